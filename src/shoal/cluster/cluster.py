"""`Cluster`: a learner whose tasks live on several shards, each a Ray actor, behind the verbs of a learner.

This process is the router. It checks rows and sends each to the shard of its task (`placement`) through that shard's
handle (`shard_handle`), and at fixed rows of the stream it has all shards exchange what tasks share (`merge_state`).
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from shoal.cluster import storage
from shoal.cluster.actors import start_shards
from shoal.cluster.merge_state import Shared, merged
from shoal.cluster.placement import (
    Assign,
    Placement,
    ShardRounds,
    as_simultaneous,
    blocks_of,
    split,
    without_column,
)
from shoal.cluster.shard_handle import ShardHandle
from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.rounds import Chunk
from shoal.learner import Classifier, Learner, available_if, log_probabilities, probabilities
from shoal.model.algorithm import Algorithm, Exchange
from shoal.model.model import Admitted, Model
from shoal.model.table import read_table, validated

BLOCKS = (
    "Give assign= (blocks of tasks that live on one shard) and exchange_every=None: then each block has a learner of "
    "its own, whose relation spans the block and nothing beyond it"
)


def _classifies(cluster: Cluster) -> bool:
    return isinstance(cluster.learner, Classifier)


def _has_probabilities(cluster: Cluster) -> bool:
    return _classifies(cluster) and bool(getattr(cluster.learner, "is_probabilistic", False))


class Cluster:
    """A learner on a Ray cluster: tasks on shards, which exchange what all tasks share.

    Each shard is an actor with a model of its tasks. This process routes rows to them, in order within a task. Every
    `exchange_every` rows of the stream, all shards stop at the same row and merge the state that tasks share, by the
    rules of the learner's `Algorithm.exchange`. The result depends on the positions of rows alone: delays, scheduling,
    and shards that die and come back change no bit of it.

    A cluster of one shard equals the plain learner, bit for bit. With more shards the shared state lags: a shard sees
    at the next exchange what the others have learned. That pays with many tasks (docs/cluster.md has the numbers).

    Parameters
    ----------
    learner : Learner
        With the hyper-parameters to use; it stays as it is.
    shards : int >= 1
    exchange_every : int >= 1 or None
        Rows of the stream between two exchanges; an exchange never cuts a round, but follows it. None: no exchanges;
        each shard is then, bit for bit, a learner of its own on its tasks' rows.
    assign : mapping or str, optional
        Shards (0, 1, ...) of tasks that shall live together; other tasks go by a stable hash of their ids. Or a column:
        tasks whose first rows have the same value there live together, by a hash of that value. The column stands in
        the frame `X`, where it is no feature then, or is kept by a stream (`ReadOptions.keep`), or is passed to
        `live_together`.
    options : mapping, optional
        Ray's options of an actor (`num_cpus`, `resources`, `scheduling_strategy` ...). By default each takes one core,
        or an equal share if there are fewer cores, and shards are spread over machines.

    Raises
    ------
    ValueError
        If the learner cannot be cut by tasks; the message says why, and what to do instead.
    ModuleNotFoundError
        Without Ray: ``pip install "shoal[cluster]"``.
    """

    def __init__(
        self,
        learner: Learner,
        *,
        shards: int,
        exchange_every: int | None = 200_000,
        assign: Assign = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        _check_count("shards", shards)
        if exchange_every is not None:
            _check_count("exchange_every", exchange_every)
        self.learner = learner
        self._placement = Placement.of(shards, assign)
        kinds = exchange_of(learner, exchanges=exchange_every is not None, is_assigned=assign is not None)
        self._schedule = ExchangeSchedule(kinds, exchange_every)
        self._options = dict(options or {})
        self.reading: Any = None  # how rows of files were read, as JSON
        self._front = Model(
            learner.new_core(), learner.targets, type(learner).__name__, getattr(learner, "classes", None)
        )
        self._rows = 0
        self._begun = False
        self._handles = start_shards(learner, shards, self._options)

    # ---- learning ----------------------------------------------------------------------------------------

    def partial_fit(
        self, X: Any, y: Any, task: Any = None, *, rounds: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn the rows in order, as a learner does; shards may still be learning when this returns."""
        self._learn(X, y, task, rounds, classes, sample_weight, out=False)
        return self

    def test_then_train(
        self, X: Any, y: Any, task: Any = None, *, rounds: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> FloatArray:
        """Learn like `partial_fit`; return the (n,) decision values given *before* learning each round."""
        return self._learn(X, y, task, rounds, classes, sample_weight, out=True)

    def learn_stream(self, chunks: Iterable[Chunk], *, classes: Any = None) -> Self:
        """Learn the chunks of a stream, such as `shoal.files.open_stream` reads from a folder.

        Chunks are read and encoded while shards learn. Later chunks may have more features.
        """
        for X, y, task, rounds, weight in chunks:
            kept = getattr(chunks, "kept", None)
            if self._placement.column is not None and kept is not None and self._placement.column in kept.columns:
                self.live_together(task, kept[self._placement.column])
            more = X.shape[1] - self._front.features.count
            if self._begun and more > 0:
                self.add_features(more)
            self.partial_fit(X, y, task, rounds=rounds, classes=classes, sample_weight=weight)
        return self

    def add_features(self, more: Iterable[Hashable] | int) -> Self:
        """Let rows have more features from now on: the names of dict rows, or the number of new columns."""
        self._front.add_features(more)
        if self._begun:
            self._widen()
        return self

    def _widen(self) -> None:
        """Give all shards room for the same features, so that they can exchange."""
        for handle in self._handles:
            handle.send("widen", self._front.features)
        self._schedule.fit(self._handles)

    def _learn(self, X: Any, y: Any, task: Any, rounds: Any, classes: Any, weight: Any, *, out: bool) -> FloatArray:
        X, values = without_column(X, self._placement.column)
        blocks = {} if values is None else blocks_of(task, values)
        table = validated(read_table(X))
        admitted = self._front.admit(table, y, task, rounds, classes, weight)
        new_shards = self._placement.shards_of_new(admitted.new_tasks, blocks)
        self._front.know(admitted)
        self._placement.add(admitted.new_tasks, new_shards, blocks)
        self._begin()
        shard, column = self._placement.of_rows(admitted.rounds.task, task)
        new = [[t for t, s in zip(admitted.new_tasks, new_shards.tolist(), strict=True) if s == n] for n in self.shards]
        own_rounds = rounds is None and self._front.core.simultaneous
        decisions = self._front.core.new_out(table.n_rows if out else 0)
        waiting: list[tuple[IntArray, int, int]] = []
        for first, last, exchanges in self._schedule.segments(admitted.rounds.starts, self._rows):
            for part in split(admitted.rounds, first, last, shard, column):
                number = self._send(as_simultaneous(part) if own_rounds else part, new, out)
                waiting.append((part.rows, part.shard, number))
            if exchanges:
                self._schedule.merge(self._handles)
        self._rows += table.n_rows
        for rows, which, number in waiting if out else ():
            decisions[rows] = self._handles[which].result(number)
        return decisions

    def _send(self, part: ShardRounds, new: list[list[Any]], out: bool) -> int:
        tasks, new[part.shard] = new[part.shard], []
        admitted = Admitted(part.rounds, tasks, self._front.features, self._front.labels)
        nbytes = sum(array.nbytes for array in part.rounds[1:])
        return self._handles[part.shard].send("learn", admitted, out, nbytes=nbytes, wanted=out)

    def _begin(self) -> None:
        """Start all shards, before the first rows of any of them."""
        if self._begun:
            return
        for handle in self._handles:
            handle.send("begin", self._front.features, self._front.labels)
        self._begun = True
        self._schedule.fit(self._handles)

    # ---- where tasks are ---------------------------------------------------------------------------------

    @property
    def shards(self) -> range:
        """The numbers of the shards."""
        return range(len(self._handles))

    def live_together(self, task: Any, values: Iterable[Any]) -> Self:
        """Announce the values of the `assign` column for rows to come, where neither frame nor stream has it."""
        if self._placement.column is None:
            raise ValueError("live_together is for a cluster with assign='...', the name of a column")
        self._placement.announce(task, values)
        return self

    def shard_of(self, task: Hashable) -> int:
        """The shard that has a task, or would get it."""
        k = self._front.tasks.column.get(task)
        return int(self._placement.expected_shards([task])[0] if k is None else self._placement.addresses.shard[k])

    def forget_task(self, task: Hashable) -> Self:
        """Remove a task and its own state; other tasks keep the effect of its rows."""
        k = self._front.tasks.column.get(task)
        if k is None:
            raise ValueError(f"no task {task!r} in this cluster")
        self._handles[self._placement.remove(k, task)].send("forget", [task])
        self._front.tasks = type(self._front.tasks)(other for other in self._front.tasks.ids if other != task)
        return self

    def add_shards(self, n: int = 1) -> Self:
        """Add shards: each takes half of the tasks of the fullest one, by their hash.

        Shards exchange first. Tasks move with their whole state, so nothing is learned again; only where two tasks
        share a record by a hash (crossed rows of `HedgedSharing`) does one of them lose it, as by `forget_task`.
        """
        _check_count("n", n)
        if self._begun:
            self._schedule.merge(self._handles)
        for handle in start_shards(self.learner, n, self._options):
            self._handles.append(handle)
            donor, stay, go = self._placement.halve(self.tasks_)
            if self._begun:
                self._halve(donor, stay, go)
        return self

    def _halve(self, donor: int, stay: list[Any], go: list[Any]) -> None:
        """Make the last shard a copy of another; then each forgets the tasks of the other."""
        new = self._handles[-1]
        new.send("adopt", self._handles[donor].checkpoint().model)
        new.send("forget", stay)
        self._handles[donor].send("forget", go)
        new.checkpoint()

    # ---- deciding ----------------------------------------------------------------------------------------

    def _values(self, X: Any, task: Any) -> FloatArray:
        self._refuse_unfitted()
        rounds = self._front.rows_to_decide(without_column(X, self._placement.column)[0], task)
        n = len(rounds.task)
        shard, column = self._placement.of_rows(rounds.task, task)
        decisions = self._front.core.new_out(n)
        rounds = rounds._replace(starts=np.arange(n + 1))
        parts = list(split(rounds, 0, n, shard, column))
        references = [self._handles[part.shard].asked("decide", part.rounds) for part in parts]
        for part, reference in zip(parts, references, strict=True):
            decisions[part.rows] = self._handles[part.shard].answer(reference, "decide", part.rounds)
        return decisions

    @available_if(_classifies)
    def decision_function(self, X: Any, task: Any = None) -> FloatArray:
        """(n,) margins, each by the shard of the row's task."""
        return self._values(X, task)

    def predict(self, X: Any, task: Any = None) -> NDArray[Any]:
        """(n,) labels; of a regressor, predicted numbers."""
        values = self._values(X, task)
        return np.asarray(self.classes_[(values >= 0.0).astype(np.int64)]) if _classifies(self) else values

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any, task: Any = None) -> FloatArray:
        """(n, 2) probabilities of the labels, in the order of `classes_`."""
        return probabilities(self._values(X, task))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any, task: Any = None) -> FloatArray:
        """(n, 2) logarithms of the probabilities, finite where a probability is rounded to 0 or 1."""
        return log_probabilities(self._values(X, task))

    def _refuse_unfitted(self) -> None:
        if not self._begun:
            raise NotFittedError("This Cluster is not fitted yet. Call 'partial_fit' first.")

    # ---- inspection --------------------------------------------------------------------------------------

    @property
    def tasks_(self) -> list[Any]:
        """Task ids in order of appearance."""
        return self._front.tasks.ids

    @property
    def classes_(self) -> NDArray[Any]:
        """(2,) the labels, the larger one is +1."""
        self._refuse_unfitted()
        return np.asarray(self._front.labels.classes)

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        self._refuse_unfitted()
        return self._front.features.count

    def knows_task(self, task: Hashable) -> bool:
        """Has a row of this task been learned?"""
        return task in self._front.tasks.column

    @property
    def task_updates_(self) -> IntArray:
        """(n_tasks,) number of updates of each task's own model."""
        self._refuse_unfitted()
        addresses, counts = self._placement.addresses, [handle.ask("updates") for handle in self._handles]
        found = np.zeros(len(addresses.shard), np.int64)
        for shard, count in enumerate(counts):
            own = addresses.shard == shard
            found[own] = count[addresses.column[own]]
        return found

    @property
    def n_updates_(self) -> int:
        """Examples used in updates so far."""
        return int(self.task_updates_.sum())

    @property
    def simultaneous(self) -> bool:
        """Do rows of one chunk form rounds in which no task repeats?"""
        return bool(self._front.core.simultaneous)

    @property
    def assign(self) -> Assign:
        """`assign` as it was given."""
        return self._placement.plan.assign if self._placement.column is None else self._placement.column

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments."""
        every = self._schedule.every
        return {"learner": self.learner, "shards": len(self._handles), "exchange_every": every, "assign": self.assign}

    def __sklearn_tags__(self) -> Any:
        return self.learner.__sklearn_tags__()

    def __repr__(self) -> str:
        assign = "" if self._placement.column is None else f", assign={self._placement.column!r}"
        return f"Cluster({self.learner!r}, shards={len(self._handles)}, exchange_every={self._schedule.every}{assign})"

    def nbytes(self) -> list[int]:
        """Memory of each shard's state."""
        self._refuse_unfitted()
        return [handle.ask("nbytes") for handle in self._handles]

    # ---- files -------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str], *, reading: Any = None) -> None:
        """Write a folder: a model file for each shard, which `shoal.load` reads too, and a manifest.

        `reading` is JSON that says how rows of files were read, as `shoal run` has it.
        """
        self._refuse_unfitted()
        placement = self._placement
        header = {
            "shards": placement.plan.n_shards,
            "splits": placement.plan.splits,
            "exchange_every": self._schedule.every,
            "rows": self._rows,
            "reading": reading,
        }
        blocks = [placement.blocks.get(task) for task in self.tasks_] if placement.blocks else []
        files = [handle.ask("saved", reading) for handle in self._handles]
        shards, base = placement.addresses.shard, self._schedule.base
        storage.write(folder, storage.Saved(header, self.assign, blocks, shards, base, files))

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, options: Mapping[str, Any] | None = None) -> Cluster:
        """The cluster that `save` wrote; learning on from it equals never having stopped, bit for bit.

        Raises
        ------
        FileNotFoundError, ValueError
            If there is no such folder, or it is damaged.
        """
        saved = storage.read(folder)
        learner, labels, features = storage.learner_of(saved)
        header = saved.header
        n_shards, every = header["shards"], header["exchange_every"]
        cluster = cls(learner, shards=n_shards, exchange_every=every, assign=saved.assign, options=options)
        numbers = [
            handle.send("open", file, wanted=True) for handle, file in zip(cluster._handles, saved.files, strict=True)
        ]
        ids = [handle.result(number) for handle, number in zip(cluster._handles, numbers, strict=True)]
        splits = tuple((int(halved), int(new)) for halved, new in header["splits"])
        tasks = storage.in_order(ids, saved.shard_of)
        placement = cluster._placement
        placement.plan = placement.plan._replace(first=n_shards - len(splits), splits=splits)
        placement.add(tasks, saved.shard_of, dict(zip(tasks, saved.blocks, strict=True)) if saved.blocks else {})
        cluster._front.labels, cluster._front.features = labels, features
        cluster._front.tasks.add(tasks)
        cluster._schedule.base = saved.base
        cluster._schedule.fit(cluster._handles)
        cluster._rows, cluster._begun = header["rows"], True
        cluster.reading = header["reading"]
        return cluster

    def close(self) -> None:
        """Stop the shards."""
        for handle in self._handles:
            handle.close()
        self._handles = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def exchange_of(learner: Learner, *, exchanges: bool, is_assigned: bool) -> Exchange:
    """How copies of the learner's state merge.

    Raises
    ------
    ValueError
        If they cannot, and tasks are not assigned in blocks that are learned apart.
    """
    name, core = type(learner).__name__, learner.new_core()
    algorithm = getattr(core, "algorithm", None)
    if not isinstance(algorithm, Algorithm):
        raise ValueError(f"{name} holds other learners; a cluster takes a learner of two labels or of real targets")
    if core.named_tasks:
        raise ValueError(f"{name} cannot be cut by tasks: its relation names them, so all have to be in one model")
    if core.may_fail:
        raise ValueError(f"{name} with these hyper-parameters may fail on valid rows, which shards cannot take back")
    if isinstance(algorithm.exchange, Exchange):
        return algorithm.exchange
    if exchanges or not is_assigned:
        raise ValueError(f"{name} cannot be cut by tasks: {algorithm.exchange}. {BLOCKS}")
    return Exchange()


class ExchangeSchedule:
    """The rows of the stream at which shards merge what tasks share, and the merged arrays of the last time.

    Parameters
    ----------
    kinds : Exchange
        How copies of the learner's state merge.
    every : int or None
        Rows of the stream between two exchanges; None: never.

    Attributes
    ----------
    base : dict of arrays
        The shared arrays of all shards after the last exchange.
    """

    def __init__(self, kinds: Exchange, every: int | None) -> None:
        self.every, self._kinds = every, kinds
        self.base: Shared = {}
        self._happens = every is not None and bool(kinds.mean or kinds.sum)

    def segments(self, starts: IntArray, before: int) -> list[tuple[int, int, bool]]:
        """The rows up to each exchange as (from, to, whether an exchange follows).

        Parameters
        ----------
        starts : (n_rounds + 1,) row offsets: no exchange cuts a round
        before : int
            Rows of the stream before these.
        """
        n, cuts = int(starts[-1]), [0]
        if self.every is not None:
            due = np.arange(self.every - before % self.every, n + 1, self.every)
            cuts += np.unique(starts[np.searchsorted(starts, due)]).tolist()
        found = [(a, b, True) for a, b in pairwise(cuts)]
        return [*found, (cuts[-1], n, False)]

    def fit(self, handles: Sequence[ShardHandle]) -> None:
        """Give `base` the shapes of the shards' arrays when learning begins or features are added.

        New entries take the values that shards begin with, because no shard has learned them yet.
        """
        if not self._happens:
            return
        found = handles[0].ask("shared")
        fitting = {name: array.copy() for name, array in found.items()}  # arrays from Ray are read-only
        for name, known in self.base.items():
            both = tuple(slice(min(pair)) for pair in zip(known.shape, fitting[name].shape, strict=True))
            fitting[name][both] = known[both]
        self.base = fitting

    def merge(self, handles: Sequence[ShardHandle]) -> None:
        """Exchange: every shard merges the same arrays at the same row of the stream."""
        if not self._happens or len(handles) == 1:
            return
        references = [(handle, handle.asked("shared")) for handle in handles]
        copies = [handle.answer(reference, "shared") for handle, reference in references]
        self.base = merged(self._kinds, self.base, copies)
        nbytes = sum(array.nbytes for array in self.base.values())
        for handle in handles:
            handle.send("merge", self.base, nbytes=nbytes)


def _check_count(name: str, count: Any) -> None:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {count!r}")
