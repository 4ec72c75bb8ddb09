"""HedgedSharingRegressor and its forms beside LightGBM retrained on real targets: `python -m benchmarks.regression`.

school: pupils' exam scores, in random order. delay: the flights of `load_flights`, minutes late on arrival. conjoint:
the choices of `make_conjoint`, taken as numbers -1 and +1, in random order. `--quick` takes the first 5,000 rows,
`--markdown` prints tables for a page, `--all` every setting of LightGBM. school needs SHOAL_DATA.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import explained_variance_score, root_mean_squared_error

from benchmarks import boosting
from benchmarks.printing import print_head, print_row
from benchmarks.recipes import QUICK, forms
from benchmarks.scores import Stream, timed
from benchmarks.streams import numbered
from benchmarks.tables import flights
from benchmarks.timing import machine
from shoal import HedgedSharingRegressor
from shoal.datasets import Dataset, load_flights, load_school, make_conjoint

NOTES = f"""\
Every row is predicted before it is learned. Explained variance and RMSE are of all rows, macro-RMSE is the mean over
tasks. Rows/s: median of 3 passes, of one if it takes longer than half a second. "Best of N": the best value of every
column over N settings, chosen in hindsight.
{boosting.NOTES}"""


class Scores(NamedTuple):
    """A line of the table."""

    explained: float
    rmse: float
    macro_rmse: float
    speed: float  # rows a second


def school() -> Stream:
    """A task is a school."""
    return _stream(load_school().shuffled(0))


def delay() -> Stream:
    """A task is a destination."""
    data, minutes = load_flights(), flights()["delay"].to_numpy()
    if not np.array_equal(minutes > 15, data.y > 0):
        raise ValueError("the two tables of flights differ in their rows or in the order of these")
    return _stream(data)._replace(name="delay", y=minutes.astype(np.float64))


def conjoint() -> Stream:
    """A task is a person."""
    return _stream(make_conjoint()[0].shuffled(0))


STREAMS: dict[str, Callable[[], Stream]] = {"school": school, "delay": delay, "conjoint": conjoint}


def _stream(data: Dataset) -> Stream:
    return Stream(data.name, data.X, data.y, numbered(data.task))


def score(stream: Stream, forecasts: Any, seconds: float, first: int = 0) -> Scores:
    """Scores of the answers that were given before each row was learned, from row `first` on."""
    y, task, forecasts = stream.y[first:], stream.task[first:], forecasts[first:]
    rows = np.bincount(task)
    by_task = np.bincount(task, weights=np.square(y - forecasts))[rows > 0] / rows[rows > 0]
    return Scores(
        float(explained_variance_score(y, forecasts)),
        float(root_mean_squared_error(y, forecasts)),
        float(np.sqrt(by_task).mean()),
        len(stream.y) / seconds,
    )


def best_of(found: Iterable[Scores]) -> Scores:
    """The best value of every column."""
    explained, rmse, macro_rmse, speed = zip(*found, strict=True)
    return Scores(max(explained), min(rmse), min(macro_rmse), max(speed))


def systems(stream: Stream, *, every: bool) -> Iterator[tuple[str, Scores]]:
    """Name and scores of each line of the stream's table."""
    later = boosting.first_training(len(stream.y))
    for form, arguments in forms(HedgedSharingRegressor).items():
        answers(stream.first(100), arguments)  # loads the compiled code
        run = timed(partial(answers, stream, arguments))
        yield f"shoal {form}", score(stream, *run)
        if not arguments:
            yield f"shoal {form}{boosting.LATER}", score(stream, *run, later)
    X, y, task = stream.X, stream.y, stream.task
    runs = {name: timed(partial(boosting.forecasts, X, y, task, chosen)) for name, chosen in boosting.SETTINGS.items()}
    yield from boosting.lines(runs, partial(score, stream), best_of, every=every)


def answers(stream: Stream, arguments: dict[str, Any]) -> Any:
    """The forecast that each row got before it was learned."""
    return HedgedSharingRegressor(**arguments).test_then_train(stream.X, stream.y, stream.task)


def main() -> None:
    """The tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regression", description=__doc__.split("\n\n")[0])
    parser.add_argument("streams", nargs="*", metavar="STREAM", help=f"some of {', '.join(STREAMS)}; default: all")
    parser.add_argument("--quick", action="store_true", help=f"the first {QUICK:,} rows of each stream")
    parser.add_argument("--markdown", action="store_true", help="tables for a page")
    parser.add_argument(
        "--all", action="store_true", help="every setting of LightGBM, not only its default and the best"
    )
    options = parser.parse_args()
    if unknown := set(options.streams) - set(STREAMS):
        parser.error(f"there is no stream {unknown.pop()!r}; choose from {', '.join(STREAMS)}")
    print(f"{machine()}, lightgbm {metadata.version('lightgbm')}\n\n{NOTES}")
    for name in options.streams or STREAMS:
        stream = STREAMS[name]()
        stream = stream.first(QUICK) if options.quick else stream
        title = f"{name}: {len(stream.y):,} rows, {stream.task.max() + 1} tasks"
        print_head(title, ["explained", "RMSE", "macro-RMSE", "rows/s"], markdown=options.markdown)
        for system, scores in systems(stream, every=options.all):
            quality = [f"{value:.4f}" for value in scores[:-1]]
            print_row(system, [*quality, f"{scores.speed:,.0f}"], markdown=options.markdown)


if __name__ == "__main__":
    main()
