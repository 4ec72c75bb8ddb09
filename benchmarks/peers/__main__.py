"""The default learners, nothing tuned, beside the strongest peers in hindsight: `python -m benchmarks.peers`.

Streams are the files of `$SHOAL_DATA/panels`. Peers' forecasts are kept in a folder (`--cache`, or SHOAL_PEERS_CACHE),
so that a second run costs shoal's own passes alone; a peer that is not installed is left out, and said. `--keep` writes
shoal's forecasts to a file; `--against` compares with such a file of an earlier version. `--set effort=fast` gives the
learners a parameter, `--markdown` prints tables for a page.
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.paired import Gap
from benchmarks.peers import by_row, panels, retrained
from benchmarks.peers.columns import CLASSIFICATION, REGRESSION, Score, ahead, best, score
from benchmarks.peers.panels import Panel
from benchmarks.peers.stored import Forecasts, Peer, Store
from benchmarks.printing import print_head, print_row
from benchmarks.timing import machine
from shoal import HedgedSharing, HedgedSharingRegressor

NOTES = f"""\
Every row is predicted before it is learned. Scores leave out the first twentieth of the stream, before which no peer is
trained. A family's cell has the best value of each column over its settings, chosen in hindsight, which favors peers.
Trained anew at every twentieth of the stream on all rows so far: LightGBM (5 settings, 6 of real targets; the task is a
category), EasyAdapt (logistic or ridge regression of x and x of the task, 4 settings), k-NN (4), GPBoost (linear mixed
model; trees and a random intercept), MixedLM of statsmodels. By the row: VW (31 settings, 33 of real targets), SGD of
scikit-learn on x and x of the task (4), naive means of the task (4 or 5). river: three forests on the first
{by_row.RIVER_ROWS:,} rows, with shoal's scores there in brackets; they are in no comparison.
macro-RMSE: mean over tasks. Differences are positive where shoal is better, ± one standard error of paired differences;
bold: worse by more than two."""
FAMILIES = ("LightGBM", "VW", "EasyAdapt", "GPBoost", "MixedLM", "naive", "k-NN", "SGD", "river")


class Compared(NamedTuple):
    """A line of the table of differences."""

    stream: str
    column: str
    peer: str  # the strongest in hindsight
    value: float
    gaps: list[Gap]  # shoal and each earlier version, less that peer
    since: list[Gap]  # shoal less each earlier version


class Found(NamedTuple):
    """What is printed of a stream."""

    panel: Panel
    cells: list[str]
    compared: list[Compared]


def peers(*, classification: bool) -> list[Peer]:
    """All, from cheap to dear."""
    return [
        *by_row.cheap(classification=classification),
        retrained.easy_adapt(),
        *retrained.others(classification=classification),
        *by_row.forests(classification=classification),
    ]


def columns(panel: Panel) -> tuple[str, ...]:
    """Those of the stream's kind."""
    return CLASSIFICATION if panel.classification else REGRESSION


def shoal_forecasts(panel: Panel, parameters: dict[str, Any]) -> Any:
    """(n,) logits or targets of the default learner."""
    learner = HedgedSharing if panel.classification else HedgedSharingRegressor
    return learner(**parameters).test_then_train(panel.X, panel.y, panel.task)


def compare(panel: Panel, ours: dict[str, Any], theirs: list[Forecasts]) -> Found:
    """A stream's cells and differences: `ours` are shoal and earlier versions by name."""
    own = [_scores(panel, values) for values in ours.values()]
    cells = [_cell([scores]) for scores in own]
    for family in FAMILIES:
        found = [forecasts for forecasts in theirs if forecasts.family == family]
        cell = _cell([_scores(panel, forecasts.values) for forecasts in found])
        if found and len(found[0].values) < len(panel.y):
            there = next(iter(ours.values()))[: len(found[0].values)]
            cell += f" ({_cell([_scores(panel, there)])})"
        cells.append(cell)
    whole = {
        f"{found.family} {found.setting}": _scores(panel, found.values)
        for found in theirs
        if len(found.values) == len(panel.y)
    }
    compared = []
    for column in columns(panel) if whole else ():
        value = best(column, [scores[column].value for scores in whole.values()])
        name = next(name for name, scores in whole.items() if scores[column].value == value)
        peer = whole[name][column]
        gaps = [ahead(column, scores[column], peer) for scores in own]
        since = [ahead(column, own[0][column], scores[column]) for scores in own[1:]]
        compared.append(Compared(panel.name, column, name, peer.value, gaps, since))
    return Found(panel, cells, compared)


def _scores(panel: Panel, values: Any) -> dict[str, Score]:
    """By column, over the rows that the forecasts reach to."""
    judged = panel.judged(len(values))
    return {column: score(judged, column, values[panel.first :]) for column in columns(panel)}


def _cell(found: list[dict[str, Score]]) -> str:
    """The best value of every column; empty of nothing."""
    names = found[0] if found else ()
    return " / ".join(_number(best(column, [scores[column].value for scores in found])) for column in names)


def _number(value: float) -> str:
    size = abs(value)
    return f"{value:{'.4f' if size < 10 else '.2f' if size < 100 else '.0f' if size < 1e6 else '.0e'}}"


def print_tables(results: list[Found], labels: list[str], *, markdown: bool) -> None:
    """Scores of each kind, then differences, then the counts."""
    for names in (CLASSIFICATION, REGRESSION):
        some = [found for found in results if columns(found.panel) == names]
        if some:
            filled = [i for i in range(len(some[0].cells)) if any(found.cells[i] for found in some)]
            heads = [*labels, *FAMILIES]
            print_head(" / ".join(names), [heads[i] for i in filled], markdown=markdown, first="stream", width=28)
            for found in some:
                print_row(found.panel.name, [found.cells[i] for i in filled], markdown=markdown, width=28)
    compared = [line for found in results for line in found.compared]
    heads = ["column", "strongest peer", "its value", *labels, *(f"shoal less {label}" for label in labels[1:])]
    print_head("Differences to the strongest peer", heads, markdown=markdown, first="stream", width=28)
    for line in compared:
        shown = [
            *(_gap(found, worse_than=2.0, markdown=markdown) for found in line.gaps),
            *(_gap(found, worse_than=1.0, markdown=markdown) for found in line.since),
        ]
        print_row(line.stream, [line.column, line.peer, _number(line.value), *shown], markdown=markdown, width=28)
    print()
    for sentence in counts(compared, labels):
        print(sentence + ("\n" if markdown else ""))


def counts(compared: list[Compared], labels: list[str]) -> Iterator[str]:
    """How many columns are ahead and behind by two standard errors; where shoal has become worse by more than one."""
    for i, label in enumerate(labels):
        found = Counter(_standing(line.gaps[i]) for line in compared)
        yield (
            f"{label}: ahead in {found[1]}, within two standard errors in {found[0]}, behind in {found[-1]} "
            f"of {len(compared)} columns, each against its strongest peer."
        )
    for i, label in enumerate(labels[1:]):
        worse = [f"{line.stream} {line.column}" for line in compared if _standing(line.since[i], 1.0) < 0]
        better = sum(_standing(line.since[i], 1.0) > 0 for line in compared)
        yield (
            f"{labels[0]} less {label}: better by more than one standard error in {better} columns, worse in "
            f"{len(worse)}{': ' if worse else ''}{', '.join(worse)}."
        )


def _standing(gap: Gap, errors: float = 2.0) -> int:
    """1: ahead by so many standard errors, -1: behind, 0: neither."""
    return int(gap.mean > errors * gap.standard_error) - int(gap.mean < -errors * gap.standard_error)


def _gap(gap: Gap, *, worse_than: float, markdown: bool) -> str:
    shown = f"{gap.mean:+.4g} ± {gap.standard_error:.2g}"
    if _standing(gap, worse_than) >= 0:
        return shown
    return f"**{shown}**" if markdown else f"{shown} !"


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("streams", nargs="*", metavar="STREAM", help="files of the folder without .npz; default: all")
    add("--panels", type=Path, metavar="FOLDER", help="default: $SHOAL_DATA/panels")
    add("--cache", type=Path, metavar="FOLDER", help="keeps peers' forecasts; default: $SHOAL_PEERS_CACHE, or none")
    add("--stored", action="store_true", help="run no peer; take what the cache has")
    add("--peers", metavar="NAMES", help=f"some of {','.join(FAMILIES)}")
    add("--fill", action="store_true", help="fill the cache alone, print no table")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of shoal's learners")
    add("--keep", type=Path, metavar="FILE", help="write shoal's forecasts, an .npz file")
    add("--replay", type=Path, metavar="FILE", help="take shoal's forecasts from a file that --keep wrote")
    add("--against", type=Path, action="append", default=[], metavar="FILE", help="compare with such a file")
    add("--markdown", action="store_true", help="tables for a page")
    options = parser.parse_args()
    data, cache = os.environ.get("SHOAL_DATA"), os.environ.get("SHOAL_PEERS_CACHE")
    options.panels = options.panels or (Path(data, "panels") if data else parser.error("set SHOAL_DATA, or --panels"))
    options.cache = options.cache or (Path(cache) if cache else None)
    known = panels.names(options.panels)
    if unknown := set(options.streams) - set(known):
        parser.error(f"there is no stream {unknown.pop()!r}; choose from {', '.join(known)}")
    if unknown := set((options.peers or FAMILIES[0]).split(",")) - set(FAMILIES):
        parser.error(f"there is no peer {unknown.pop()!r}; choose from {', '.join(FAMILIES)}")
    options.streams = options.streams or known
    return options


def _parameters(pairs: list[str]) -> dict[str, Any]:
    """Values in JSON, or as they stand."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = value
    return found


def main() -> None:
    """The tables."""
    options = parse()
    store = Store(options.cache, compute=not options.stored)
    parameters = _parameters(options.set)
    earlier = {path.stem: np.load(path, allow_pickle=False) for path in options.against}
    replayed = np.load(options.replay, allow_pickle=False) if options.replay else None
    kept: dict[str, Any] = {}
    results = []
    for name in options.streams:
        panel = panels.read(options.panels, name)
        chosen = peers(classification=panel.classification)
        if options.peers:
            chosen = [peer for peer in chosen if peer.family in options.peers.split(",")]
        theirs = list(store.forecasts(panel, chosen))
        if options.fill:
            continue
        print(f"{name}: shoal", file=sys.stderr, flush=True)
        kept[name] = replayed[name] if replayed else shoal_forecasts(panel, parameters)
        ours = {"shoal": kept[name]} | {label: content[name] for label, content in earlier.items()}
        results.append(compare(panel, ours, theirs))
        if options.keep:
            np.savez_compressed(options.keep, **kept)
    if options.fill:
        return
    here = machine()
    versions = [f"{package} {version}" for package, version in sorted(store.versions.items()) if package not in here]
    print(f"{', '.join([here, *versions])}\n\n{NOTES}")
    for family, why in store.left_out.items():
        print(f"{family}: {why}; left out.")
    print_tables(results, ["shoal", *earlier], markdown=options.markdown)


if __name__ == "__main__":
    main()
