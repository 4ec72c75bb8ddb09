"""`shoal predict`: a saved model predicts the rows of a file."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from shoal.cli.model_file import Reading, load_model
from shoal.cli.options import PredictOptions
from shoal.cli.outputs import STDOUT, check_outputs
from shoal.cli.predictions import PredictionFile
from shoal.engine.rounds import Chunk
from shoal.evaluation import Predictions
from shoal.files import open_stream
from shoal.learner import Learner


def predict_file(data: str, options: PredictOptions) -> None:
    """The whole command."""
    check_outputs({"--out": options.out}, [None if data == STDOUT else data, options.model])
    learner, reading = load_model(options.model)
    if reading is None:
        raise ValueError(f"{options.model} was not saved by `shoal run` from a file: it does not know columns of files")
    unseen: dict[Any, int] = {}
    with PredictionFile(options.out, "--out") as file:
        for chunk in _open(data, options, learner, reading):
            found = _predicted(chunk, learner)
            for task, is_known in zip(found.task or [], found.is_known or [], strict=True):
                if not is_known:
                    unseen[task] = unseen.get(task, 0) + 1
            file.write(found)
    if unseen:
        rows, some = sum(unseen.values()), ", ".join(map(str, list(unseen)[:5]))
        print(
            f"shoal: {rows:,} rows belong to {len(unseen):,} tasks that the model has not seen ({some}"
            f"{', ...' if len(unseen) > 5 else ''}): predicted from what the tasks share",
            file=sys.stderr,
        )


def _open(data: str, options: PredictOptions, learner: Learner, reading: Reading) -> Any:
    return open_stream(
        data, task=options.task or reading.task, label=options.label or reading.label, format=options.format,
        kind="binary" if is_classifier(learner) else "regression", state=reading.state,
    )  # fmt: skip


def _predicted(chunk: Chunk, learner: Learner) -> Predictions:
    X = chunk.X[:, : learner.n_features_in_]  # what the model has not learned from has no weight
    known = set(learner.tasks_)
    task = None if chunk.task is None else chunk.task.tolist()
    is_known = None if task is None else [one in known for one in task]
    predicted = learner.predict(X, chunk.task).tolist()
    probability = decision = None
    if hasattr(learner, "predict_proba"):
        probabilities = np.asarray(learner.predict_proba(X, chunk.task))
        probability = probabilities[:, 1] if probabilities.shape[1] == 2 else probabilities.max(axis=1)
    elif is_classifier(learner) and len(learner.classes_) == 2:
        decision = np.asarray(learner.decision_function(X, chunk.task))
    return Predictions(task, None, predicted, probability, decision, is_known)
