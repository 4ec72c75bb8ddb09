"""HedgedSharing with nothing tuned beside its peers on nine streams: `python -m benchmarks.hedged`.

VW, river and scikit-learn learn from the stream as it does; LightGBM is trained anew at every twentieth of it.

One pass over each stream, every row answered before it is learned. `--quick` takes the first 5,000 rows of each (too
few to judge speed by), `--markdown` prints tables for a page, `--all` every run. `benchmarks.streams` says what each
stream needs.
"""

import argparse
import tempfile
import warnings
from collections.abc import Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import boosting, vw
from benchmarks.printing import print_head, print_row
from benchmarks.river_and_sklearn import RIVER, SKLEARN, run_river, run_sklearn
from benchmarks.scores import Scores, Stream, best_of, score, timed
from benchmarks.streams import STREAMS, read
from benchmarks.timing import machine
from shoal import HedgedSharing

QUICK = 5_000
RIVER_ROWS = 20_000
NOTES = f"""\
Every row is predicted before it is learned, by scikit-learn before its chunk of 1,000 rows (the first chunk, of which
it knows nothing, is left out of its scores). AUC: of all rows. macro-AUC: mean over the tasks that have both
labels and 100 rows. Rows/s: median of 3 passes, of one if it takes longer than half a second; VW's includes reading its
text file, river's leaves out making the dicts, shoal's includes its checks of the input. "Best of N": the best value of
every column over N settings, chosen in hindsight.
VW: logistic loss, the task as one more feature; -q: crossed with the features as well. Settings: these two, learning
rates 0.1, 0.5, 2, 8 with power_t at its default and 0, --coin, --ftrl.
river: the features and the same crossed with the task, the first {RIVER_ROWS:,} rows of longer streams.
scikit-learn: one SGDClassifier(loss="log_loss") for all tasks, its default and constant rates 0.1, 0.5, 2.
{boosting.NOTES}"""


def run_shoal(stream: Stream) -> tuple[Any, float]:
    """Logits and seconds, no argument given."""
    return timed(lambda: HedgedSharing().test_then_train(stream.X, stream.y, stream.task))


def systems(stream: Stream, folder: Path, *, every: bool) -> Iterator[tuple[str, Scores]]:
    """Name and scores of each line of the stream's table."""
    prefix = stream.first(RIVER_ROWS)
    suffix = f" ({RIVER_ROWS:,} rows)" if len(stream.y) > RIVER_ROWS else ""
    run_shoal(stream.first(100))  # loads the compiled code
    logits, seconds = run_shoal(stream)
    yield "shoal HedgedSharing()", score(stream, logits, seconds)
    yield f"shoal HedgedSharing(){boosting.LATER}", score(stream, logits, seconds, boosting.first_training(len(logits)))
    yield from run_lightgbm(stream, every=every)
    if suffix:
        yield f"shoal HedgedSharing(){suffix}", score(prefix, *run_shoal(prefix))
    found = vw.run_all(stream, folder)
    for name, setting in vw.DEFAULTS.items():
        yield name, found[setting]
    yield f"VW, best of {len(found)}", best_of(found.values())
    rivers = {name: run_river(prefix, make) for name, make in RIVER.items()}
    yield from _chosen(rivers, suffix, every=every)
    yield f"river, best of {len(rivers)}{suffix}", best_of(rivers.values())
    sklearns = {name: run_sklearn(stream, options) for name, options in SKLEARN.items()}
    yield from _chosen(sklearns, "", every=every)
    yield f"scikit-learn, best of {len(sklearns)}", best_of(sklearns.values())
    if every:
        yield from ((f"VW {setting}", scores) for setting, scores in found.items())


def run_lightgbm(stream: Stream, *, every: bool) -> Iterator[tuple[str, Scores]]:
    """Text with default settings alone."""
    names = ["default"] if stream.X.shape[1] > boosting.WIDE else boosting.SETTINGS
    runs = {
        name: timed(partial(boosting.logits, stream.X, stream.y, stream.task, boosting.SETTINGS[name]))
        for name in names
    }
    return boosting.lines(runs, partial(score, stream), best_of, every=every)


def _chosen(found: dict[str, Scores], suffix: str, *, every: bool) -> Iterator[tuple[str, Scores]]:
    """The defaults, or every run."""
    for name, scores in found.items():
        if every or name.endswith("default"):
            yield f"{name}{suffix}", scores


def cells(scores: Scores) -> list[str]:
    """As the table shows them."""
    return [*(f"{value:.4f}" for value in scores[:-1]), f"{scores.speed:,.0f}"]


def main() -> None:
    """The tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hedged", description=__doc__.split("\n\n")[0])
    parser.add_argument("streams", nargs="*", metavar="STREAM", help=f"some of {', '.join(STREAMS)}; default: all")
    parser.add_argument("--quick", action="store_true", help=f"the first {QUICK:,} rows of each stream")
    parser.add_argument("--markdown", action="store_true", help="tables for a page")
    parser.add_argument("--all", action="store_true", help="every run, not only defaults and the best")
    options = parser.parse_args()
    if unknown := set(options.streams) - set(STREAMS):
        parser.error(f"there is no stream {unknown.pop()!r}; choose from {', '.join(STREAMS)}")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("vowpalwabbit", "lightgbm"))
    print(f"{machine()}, {versions}\n\n{NOTES}")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.streams or STREAMS:
            stream = read(name, QUICK if options.quick else None)
            title = f"{name}: {len(stream.y):,} rows, {stream.task.max() + 1} tasks"
            print_head(title, ["AUC", "macro-AUC", "error", "log-loss", "rows/s"], markdown=options.markdown)
            for system, scores in systems(stream, Path(folder), every=options.all):
                print_row(system, cells(scores), markdown=options.markdown)


if __name__ == "__main__":
    warnings.simplefilter("ignore", FutureWarning)
    main()
