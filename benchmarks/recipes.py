"""HedgedSharing() beside its own forms and an earlier version of itself, paired row by row.

    python -m benchmarks.recipes [STREAM ...] [--quick] [--save FOLDER] [--against FOLDER]

The forms are those of its parameters: each `relation`, and each `interactions` and `effort` where there is that
parameter. To compare two versions, run the first with `--save FOLDER`, which keeps the logits of all lines in a file
per stream, and the second with `--against FOLDER`. Differences are HedgedSharing() less the line: a negative one of
log-loss is a gain. Their standard errors are over rows, those of the macro-AUC over tasks of 100 rows; "won" counts the
tasks of higher AUC.
"""

import argparse
import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paired import Gap, Gaps, gaps
from benchmarks.scores import Scores, Stream, score, timed
from benchmarks.streams import STREAMS, read
from benchmarks.timing import machine
from shoal import HedgedSharing

QUICK = 5_000
DEFAULT = "HedgedSharing()"
_HEAD = (
    f"{'':26}{'AUC':>10}{'macro-AUC':>10}{'error':>8}{'log-loss':>10}{'rows/s':>12}"
    f"{'d macro-AUC':>21}{'won':>8}{'d error':>21}{'d log-loss':>21}"
)
_FORMS = {"relation": ("independent", "pooled"), "interactions": (False, True), "effort": ("fast", "full")}


def forms(learner: type[Any]) -> dict[str, dict[str, Any]]:
    """The arguments of each line, the default first; of parameters that this version has."""
    known = learner().get_params()
    one_changed = {
        f"{name}={value!r}": {name: value} for name, values in _FORMS.items() if name in known for value in values
    }
    return {f"{learner.__name__}()": {}} | one_changed


def run(stream: Stream) -> dict[str, tuple[Any, float]]:
    """Logits and seconds of each form."""
    found = {}
    for name, arguments in forms(HedgedSharing).items():
        answers(stream.first(100), arguments)  # loads the compiled code
        found[name] = timed(partial(answers, stream, arguments))
    return found


def answers(stream: Stream, arguments: dict[str, Any]) -> Any:
    """The logit that each row got before it was learned."""
    return HedgedSharing(**arguments).test_then_train(stream.X, stream.y, stream.task)


def load(folder: Path, stream: Stream) -> Any:
    """The logits of HedgedSharing() that an earlier run saved."""
    path = folder / f"{stream.name}.npz"
    if not path.exists():
        sys.exit(f"{path} is not there; run the other version with --save {folder}")
    logits = np.load(path)[DEFAULT]
    if len(logits) != len(stream.y):
        sys.exit(f"{path} has answers to {len(logits):,} rows, the stream has {len(stream.y):,}: was one run --quick?")
    return logits


def compare(stream: Stream, options: argparse.Namespace) -> None:
    """The table of a stream."""
    found = run(stream)
    if options.save:
        options.save.mkdir(parents=True, exist_ok=True)
        np.savez(options.save / f"{stream.name}.npz", **{name: logits for name, (logits, _) in found.items()})
    if options.against:
        found["saved"] = load(options.against, stream), math.nan
    default = found[DEFAULT][0]
    print(f"\n{stream.name}: {len(stream.y):,} rows, {stream.task.max() + 1} tasks")
    print(_HEAD)
    for name, (logits, seconds) in found.items():
        gap = None if name == DEFAULT else gaps(stream, default, logits)
        print(line(name, score(stream, logits, seconds), gap), flush=True)


def line(name: str, scores: Scores, gap: Gaps | None) -> str:
    """A row of the table; a saved run has no speed, the default no difference from itself."""
    speed = "" if math.isnan(scores.speed) else f"{scores.speed:,.0f}"
    own = (
        f"{name:26}{scores.auc:>10.4f}{scores.macro_auc:>10.4f}{scores.error:>8.4f}{scores.log_loss:>10.4f}{speed:>12}"
    )
    if gap is None:
        return own
    won = f"{gap.won}/{gap.tasks}"
    return f"{own}{_shown(gap.macro_auc)}{won:>8}{_shown(gap.error)}{_shown(gap.log_loss)}"


def _shown(gap: Gap) -> str:
    return f"{gap.mean:>+12.4f} ± {gap.standard_error:.4f}"


def main() -> None:
    """A table a stream."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recipes", description=__doc__.split("\n\n")[0])
    parser.add_argument("streams", nargs="*", metavar="STREAM", help=f"some of {', '.join(STREAMS)}; default: all")
    parser.add_argument("--quick", action="store_true", help=f"the first {QUICK:,} rows of each stream")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="keep the logits there")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="compare with logits kept there")
    options = parser.parse_args()
    if unknown := set(options.streams) - set(STREAMS):
        parser.error(f"there is no stream {unknown.pop()!r}; choose from {', '.join(STREAMS)}")
    print(machine())
    for name in options.streams or STREAMS:
        compare(read(name, QUICK if options.quick else None), options)


if __name__ == "__main__":
    main()
