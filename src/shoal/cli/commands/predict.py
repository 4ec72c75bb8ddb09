"""`shoal predict`: a saved model predicts the rows of a file."""

import sys
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from shoal.cli.commands.learners import modules_from_here
from shoal.cli.intervals import check_coverage
from shoal.cli.options import PredictOptions, RowOptions
from shoal.cli.outputs import STDOUT, check_outputs
from shoal.cli.predictions import PredictionFile, as_written
from shoal.cli.sharded import is_folder, opened
from shoal.cli.streams import in_ids_of, is_dataset, read_options, reading_of
from shoal.evaluation.predictions import predict_chunk
from shoal.files import open_stream
from shoal.files.messages import plural
from shoal.model_file import Reading, load_model


def predict_files(data: Sequence[str], rows: RowOptions, options: PredictOptions) -> None:
    """The whole command."""
    if not data or is_dataset(data):
        raise ValueError("shoal predict takes files with the columns of the model's, or - for standard input")
    check_outputs({"--out": options.out}, [*(name for name in data if name != STDOUT), options.model])
    if is_folder(options.model):
        cluster, reading = opened(options.model, options.cluster)
        with closing(cluster):
            _predict(data, rows, options, cluster, reading)
        return
    if options.cluster is not None:
        raise ValueError(f"--cluster is for models of several shards, and {options.model} is a single one")
    with modules_from_here():
        learner, found = load_model(options.model, options.trusted)
    _predict(data, rows, options, learner, found)


def _predict(
    data: Sequence[str], rows: RowOptions, options: PredictOptions, learner: Any, reading: Reading | None
) -> None:
    check_coverage(learner, options.interval, options.model)
    reading = reading_of(data, rows, options.model, learner, reading)
    read = read_options(rows, reading, labeled=False, keep=options.keep, strict=options.strict)
    unseen: dict[Any, int] = {}
    with PredictionFile(options.out, "--out") as file, open_stream(list(data), read, state=reading.state) as stream:
        for chunk in in_ids_of(learner, stream):
            found = predict_chunk(learner, chunk)
            for task, is_known in zip(found.task or [], found.is_known or [], strict=True):
                if not is_known:
                    unseen[task] = unseen.get(task, 0) + 1
            file.write(as_written(found, stream.as_written), stream.kept)
        for sentence in stream.unmatched:
            print(f"shoal: {sentence}", file=sys.stderr)
    if unseen:
        rows_of, tasks = plural(sum(unseen.values()), "row"), plural(len(unseen), "task")
        some = ", ".join(map(str, list(unseen)[:5]))
        print(
            f"shoal: the model has not seen {tasks} of {rows_of} ({some}"
            f"{', ...' if len(unseen) > 5 else ''}): predicted from what the tasks share",
            file=sys.stderr,
        )
