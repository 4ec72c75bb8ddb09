"""Why a model decides as it does: the contribution of each feature to a decision, and which tasks are alike.

A decision that is linear in the row needs no code of its algorithm: the decision of a row that has one feature alone is
what that feature adds, and the decision of an unseen task is what comes from all tasks. No weights are materialised.
Algorithms that decide otherwise bring `Algorithm.contributions`, or say that they are not linear.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol

import numpy as np

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.rounds import Rounds
from shoal.html_tables import Listed, html_table
from shoal.model.features import Features

INTERCEPT = "(intercept)"  # the name of the part that is the same for all rows
UNSEEN = -1  # the column of a task that the model has not seen
MOST_FEATURES = 1_000  # on which tasks are compared: of more, those that weigh most in the task asked about
MOST_NUMBERS = 2**18  # weights that are held at once
MOST_TASKS = 256  # to which a task is compared; of several labels fewer, as each has weights
FEWEST_TASKS = 32
TASKS_A_TURN, FEATURES_A_TURN = 16, 2**14

NONE = np.zeros(0)

Decide = Callable[[Rounds, FloatArray], None]
Turn = Callable[[], AbstractContextManager[None]]  # a context in which the model does not change


class Item(NamedTuple):
    """A feature of a pair: its value, or that it lies in a bin."""

    feature: int
    above: float = math.nan
    up_to: float = math.nan


class Parts(NamedTuple):
    """Contributions of features to the decisions of tasks; column 0 is the intercept."""

    shared: FloatArray  # (tasks, 1 + features) by what all tasks share
    own: FloatArray  # (tasks, 1 + features) by what the task has of its own
    spread: FloatArray | None = None  # (features,) root mean square of each over the rows so far, where it is known
    pairs: Sequence[tuple[Item, Item]] = ()  # of one row
    pairs_shared: FloatArray = NONE  # (pairs,)
    pairs_own: FloatArray = NONE  # (pairs,)


class Contribution(NamedTuple):
    """The contribution of one feature to a decision."""

    feature: Any  # its name, or its column where columns have no names; of a pair, a text with both
    value: float  # of the feature in the row; of the intercept 1, of a weight the spread of its feature
    shared: float  # its contribution by what all tasks share
    own: float  # its contribution by what the task has of its own

    @property
    def total(self) -> float:
        """Both together."""
        return self.shared + self.own


class Explanation(NamedTuple):
    """One decision, taken apart; `str()` gives a table of the ten largest contributions, and the rest in one line.

    Of a linear learner feature j adds ``w_j x_j``; shared is what an unseen task would be answered (of `ROMCO` the
    common part u_k), own the rest. Of `HedgedSharing` it adds ``Σ_e c_e w_ej x_j``, x the scaled row and c_e the share
    of expert e in the mixture: its mean slope on the way from no evidence to this row. A name that the model has not
    seen adds 0. Only what the row touches is read.
    """

    decision: float  # the sum of all contributions
    label: Any  # the label that large decisions speak for; None for numbers
    contributions: list[Contribution]  # the largest first

    def __str__(self) -> str:
        return "\n".join(table(with_rest(self.contributions, SHOWN), self.decision))

    def _repr_html_(self) -> str:
        rows = [[str(one.feature), *_numbers(one)] for one in with_rest(self.contributions, SHOWN)]
        return html_table(("", *TITLES), [*rows, ["decision", "", "", "", _digits(self.decision)]])


class Explains(Protocol):
    """A core whose decisions can be taken apart."""

    def contributions(self, tasks: IntArray, features: IndexArray, values: FloatArray | None = None) -> Parts:
        """Contributions of features to the decisions of tasks."""

    def likeness(self, k: int, n_tasks: int) -> FloatArray | None:
        """How alike tasks are to task k, where that is learned."""


class SimilarTask(NamedTuple):
    """A task that is like another."""

    task: Any
    similarity: float


# ---- contributions of features -----------------------------------------------------------------------------


def parts_of_linear(
    decide: Decide, shared: Decide | None, tasks: IntArray, features: IndexArray, values: FloatArray | None
) -> Parts:
    """Contributions to linear decisions: the decisions of rows with one feature alone, less those of empty rows.

    Parameters
    ----------
    shared : the part of a decision that all tasks share; None: the decision of an unseen task
    values : (features,) of a row; None: 1 each
    """
    common = tasks if shared is not None else np.full(1, UNSEEN)
    both = _alone(decide, tasks, features)
    from_all = np.broadcast_to(_alone(shared or decide, common, features), both.shape)
    x = np.concatenate([[1.0], np.ones(len(features)) if values is None else values])
    return Parts(from_all * x, (both - from_all) * x)


def decisions_of(parts: Parts) -> FloatArray:
    """(tasks,) the decisions that the contributions add up to."""
    pairs = float(parts.pairs_shared.sum() + parts.pairs_own.sum())
    return np.asarray((parts.shared + parts.own).sum(axis=1) + pairs)


def between(u: FloatArray, first: Parts, second: Parts) -> Parts:
    """u of the one and 1 - u of the other; pairs are of one row."""
    row, v = u[:, None], float(u[0])
    shared, own = row * first.shared + (1.0 - row) * second.shared, row * first.own + (1.0 - row) * second.own
    place = {pair: i for i, pair in enumerate(dict.fromkeys([*first.pairs, *second.pairs]))}
    pairs = np.zeros((2, len(place)))
    for share, parts in ((v, first), (1.0 - v, second)):
        at = [place[pair] for pair in parts.pairs]
        np.add.at(pairs[0], at, share * parts.pairs_shared)
        np.add.at(pairs[1], at, share * parts.pairs_own)
    return Parts(shared, own, second.spread if first.spread is None else first.spread, [*place], *pairs)


def _alone(decide: Decide, tasks: IntArray, features: IndexArray) -> FloatArray:
    """(tasks, 1 + features) decisions of the empty row, and how much more a 1 in one feature is."""
    n = 1 + len(features)
    entries = np.arange(n * len(tasks)) % n > 0
    indptr = np.concatenate([[0], np.cumsum(entries)])
    columns = np.tile(features, len(tasks)).astype(np.int32)
    n_rows = len(entries)
    of_rows = np.repeat(tasks, n).astype(np.int64)
    rounds = Rounds(0, indptr, columns, np.ones(len(columns)), of_rows, np.zeros(n_rows), np.arange(n_rows + 1))
    decisions = np.empty(n_rows)
    decide(rounds, decisions)
    found = decisions.reshape(len(tasks), n)
    found[:, 1:] -= found[:, :1]
    return found


def entries_of(rounds: Rounds) -> tuple[IndexArray, FloatArray]:
    """Columns and values of the features of the one row that are not 0."""
    columns = np.arange(rounds.width, dtype=np.int32) if rounds.width > 0 else rounds.indices
    nonzero = rounds.values != 0.0
    return columns[nonzero], rounds.values[nonzero]


def explain(
    model: Any, cores: dict[Any, Any], x: Any, task: Hashable, label: Any, predicted: Callable[[], Any]
) -> Explanation:
    """The decision on one row by one of the cores, that of the predicted label unless one is named.

    Raises
    ------
    ValueError
        If there is no such label, or the decisions are no sums over features.
    """
    if label is None:
        label = next(iter(cores)) if len(cores) == 1 else predicted()
    if label not in cores:
        raise ValueError(f"there is no decision for the label {label!r}; expected one of {[*cores]}")
    rounds = model.row_to_decide(x, task)
    return _explained(bare(cores[label]), rounds, names_of(model.features), x, label)


def names_of(features: Features) -> Callable[[int], Any]:
    """The name of a column, or the column itself."""
    names = None if features.names is None else list(features.names)
    return lambda j: j if names is None else names[j]


def _explained(core: Explains, rounds: Rounds, name_of: Callable[[int], Any], x: Any, label: Any) -> Explanation:
    """The largest contributions first; names of `x` that the model has not seen add 0."""
    features, values = entries_of(rounds)
    parts = core.contributions(rounds.task, features, values)
    found = named(parts, [name_of(j) for j in features.tolist()], values)
    known = {one.feature for one in found}
    found += pairs_of(parts, name_of)
    if isinstance(x, Mapping):
        found += [
            Contribution(name, float(value), 0.0, 0.0) for name, value in x.items() if value and name not in known
        ]
    return Explanation(math.fsum(part for one in found for part in one[2:]), label, largest_first(found))


def named(parts: Parts, names: list[Any], values: FloatArray) -> list[Contribution]:
    """Contributions for one task, without an intercept of 0."""
    rows = zip(
        [INTERCEPT, *names], [1.0, *values.tolist()], parts.shared[0].tolist(), parts.own[0].tolist(), strict=True
    )
    found = [Contribution(*row) for row in rows]
    return found if found[0].shared or found[0].own else found[1:]


def pairs_of(parts: Parts, name_of: Callable[[int], Any]) -> list[Contribution]:
    """Contributions of pairs of features, by name: "hour 17 to 19 × carrier EV"."""

    def text(item: Item) -> str:
        name = name_of(item.feature)
        name = f"column {name}" if isinstance(name, int) else str(name)
        if math.isnan(item.above):
            return name
        if math.isinf(item.above) or math.isinf(item.up_to):
            return f"{name} up to {item.up_to:.4g}" if math.isinf(item.above) else f"{name} above {item.above:.4g}"
        return f"{name} {item.above:.4g} to {item.up_to:.4g}"

    names = [" × ".join(map(text, pair)) for pair in parts.pairs]
    rows = zip(names, parts.pairs_shared.tolist(), parts.pairs_own.tolist(), strict=True)
    return [Contribution(name, math.nan, shared, own) for name, shared, own in rows if shared or own]


def largest_first(found: Iterable[Contribution]) -> list[Contribution]:
    """By the size of what they add; equal ones stay in order."""
    return sorted(found, key=lambda one: -abs(one.total))


def bare(core: Any) -> Explains:
    """The core that decides: one that only chooses what is learned holds it as `inner`, and explains nothing."""
    found: Explains = core if hasattr(core, "contributions") else bare(core.inner)
    return found


# ---- summaries of a model ----------------------------------------------------------------------------------


def strongest(core: Any, k: int, n_features: int, name_of: Callable[[int], Any], most: int) -> list[Contribution]:
    """The features that move a task's decisions most, each at its spread, or at 1 if that is not known.

    Parameters
    ----------
    k : column of the task, or `UNSEEN` for what all tasks share
    """
    found: list[Contribution] = []
    for features in _blocks(n_features, MOST_NUMBERS):
        parts = bare(core).contributions(np.array([k]), features, None)
        spread = np.ones(len(features)) if parts.spread is None else parts.spread
        shared, own = parts.shared[0, 1:] * spread, parts.own[0, 1:] * spread
        top = np.argsort(-np.abs(shared + own), kind="stable")[:most]
        rows = zip(features[top].tolist(), spread[top].tolist(), shared[top].tolist(), own[top].tolist(), strict=True)
        found += [Contribution(name_of(j), value, of_all, its) for j, value, of_all, its in rows if of_all or its]
    return largest_first(found)[:most]


def _blocks(n: int, size: int) -> Iterator[IndexArray]:
    for first in range(0, n, size):
        yield np.arange(first, min(first + size, n), dtype=np.int32)


# ---- tasks that are alike ----------------------------------------------------------------------------------


def most_alike(
    cores: list[Any],
    column_of: Mapping[Any, int],
    task: Hashable,
    n_features: int,
    n: int,
    turn: Turn = nullcontext,
) -> list[SimilarTask]:
    """The tasks most like one, by what an algorithm has learned of it, else by the cosine of own weights.

    Parameters
    ----------
    turn : function
        Gives the contexts in which the model is read: a few milliseconds each, so that others have their turn.

    Raises
    ------
    ValueError
        If the task is not known, or `n` is no number of tasks.
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n must be a number of tasks, 1 or more, got {n!r}")
    with turn():
        if task not in column_of:
            raise ValueError(f"no task {task!r} in this model")
        k, ids = column_of[task], list(column_of)
        likeness = bare(cores[0]).likeness(k, len(ids)) if len(cores) == 1 else None
    if likeness is None:
        own = [_largest_own(bare(core), task, column_of, n_features, turn) for core in cores]
        chosen = _sample(len(ids), k, MOST_TASKS // len(cores))
        ids = [ids[j] for j in chosen.tolist()]
        likeness, k = _cosines(cores, own, column_of, ids, turn), int(np.searchsorted(chosen, k))
    order = np.argsort(-likeness, kind="stable")  # NaN, which is not comparable, last
    known = [j for j in order.tolist() if j != k and not math.isnan(likeness[j])]
    return Listed(SimilarTask(ids[j], float(likeness[j])) for j in known[:n])


def _sample(n_tasks: int, k: int, most: int) -> IntArray:
    """All tasks, or a random sample with task k; the same task gets the same sample."""
    if n_tasks <= most:
        return np.arange(n_tasks)
    chosen = np.random.default_rng(k).choice(n_tasks, max(most, FEWEST_TASKS), replace=False)
    return np.union1d(chosen, k)


def _cosines(
    cores: list[Any],
    own: list[tuple[IndexArray, FloatArray]],
    column_of: Mapping[Any, int],
    ids: list[Any],
    turn: Turn,
) -> FloatArray:
    """(ids,) cosines of own weights, of all cores side by side; NaN where a task has none, or is forgotten by now."""
    product, square = np.zeros((2, len(ids)))
    norm = sum(float(weights @ weights) for _, weights in own)
    widest = max(len(features) for features, _ in own)
    for some in _blocks(len(ids), min(TASKS_A_TURN, max(1, MOST_NUMBERS // max(widest, 1)))):
        with turn():
            columns = np.array([column_of.get(ids[j], UNSEEN) for j in some.tolist()])
            some, columns = some[columns != UNSEEN], columns[columns != UNSEEN]
            for core, (features, weights) in zip(cores, own, strict=True):
                if len(features) and len(columns):
                    found = bare(core).contributions(columns, features, None).own[:, 1:]
                    product[some] += found @ weights
                    square[some] += np.square(found).sum(axis=1)
    length = np.sqrt(square * norm)
    return np.asarray(np.divide(product, length, out=np.full(len(ids), np.nan), where=length > 0.0))


def correlations_with(relation: FloatArray, k: int) -> FloatArray:
    """(n_tasks,) R[k, j] / sqrt(R[k, k] R[j, j]) of a relation R without negative variances; 0 where one is 0."""
    size = np.sqrt(np.maximum(np.diagonal(relation), 0.0))
    length = size[k] * size
    return np.asarray(np.divide(relation[k], length, out=np.zeros(len(relation)), where=length > 0.0))


def _largest_own(
    core: Explains, task: Hashable, column_of: Mapping[Any, int], n_features: int, turn: Turn
) -> tuple[IndexArray, FloatArray]:
    """All features, or if they are many those of the task's largest own weights; and these weights."""
    features, weights = np.zeros(0, np.int32), np.zeros(0)
    for block in _blocks(n_features, FEATURES_A_TURN):
        with turn():
            k = np.array([column_of.get(task, UNSEEN)])
            own = core.contributions(k, block, None).own[0, 1:]
        if n_features <= MOST_FEATURES:
            return block, own
        features, weights = np.concatenate([features, block]), np.concatenate([weights, own])
        keep = np.argsort(-np.abs(weights), kind="stable")[:MOST_FEATURES]
        keep = keep[weights[keep] != 0.0]
        features, weights = features[keep], weights[keep]
    order = np.argsort(features)
    return features[order], weights[order]


# ---- for readers -------------------------------------------------------------------------------------------

WIDEST = 40  # letters of a name
SHOWN = 10  # contributions
TITLES = ("value", "shared", "own", "total")


def table(found: list[Contribution], decision: float | None = None, titles: tuple[str, ...] = TITLES) -> list[str]:
    """A line each, in columns; at the end, if it is given, the decision that they add up to."""
    names = [_short(one.feature) for one in found]
    width = max(map(len, ["decision", *names]))
    lines = [f"{'':<{width}}" + "".join(f"{title:>12}" for title in titles)]
    for name, one in zip(names, found, strict=True):
        lines.append(f"{name:<{width}}" + "".join(f"{text:>12}" for text in _numbers(one)))
    if decision is not None:
        lines.append(f"{'decision':<{width}}" + " " * 36 + f"{_digits(decision):>12}")
    return lines


def _numbers(one: Contribution) -> tuple[str, ...]:
    value = "" if math.isnan(one.value) else _digits(one.value)
    return (value, *map(_digits, (one.shared, one.own, one.total)))


def with_rest(found: list[Contribution], most: int) -> list[Contribution]:
    """The first of them, and the others as one, without a value: so they still add up to the decision."""
    rest = found[most:]
    if len(rest) < 2:
        return found
    sums = math.fsum(one.shared for one in rest), math.fsum(one.own for one in rest)
    return [*found[:most], Contribution(f"({len(rest):,} others)", math.nan, *sums)]


def _digits(value: float) -> str:
    """Four digits, never wider than a column, and no -0."""
    return f"{value + 0.0:.4g}"


def _short(name: Any) -> str:
    text = f"column {name}" if isinstance(name, int) else " ".join(str(name).split())
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 3]}..."
