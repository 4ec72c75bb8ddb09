"""A learner whose tasks live on several shards, each an actor of Ray's, behind the verbs of a learner."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from shoal.classifier import Classifier, probabilities
from shoal.cluster import storage
from shoal.cluster.actors import start_shards
from shoal.cluster.eligible import exchange_of
from shoal.cluster.exchanging import Exchanging
from shoal.cluster.homes import Assign, Homes, blocks_of, taken_out
from shoal.cluster.places import Part, as_simultaneous, split
from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.rounds import Chunk
from shoal.learner import Learner
from shoal.model.model import Admitted, Model
from shoal.model.table import read_table, validated


def _classifies(cluster: Cluster) -> bool:
    return isinstance(cluster.learner, Classifier)


def _has_probabilities(cluster: Cluster) -> bool:
    return _classifies(cluster) and bool(getattr(cluster.learner, "is_probabilistic", False))


class Cluster:
    """A learner on a Ray cluster: tasks on shards, which exchange what all tasks share.

    Each shard is an actor with a model of its tasks. This process routes rows to them, in order within a task. Every
    `exchange_every` rows of the stream all shards stop at the same row and merge what tasks share, as the learner's
    `Algorithm.exchange` says. So the positions of rows alone decide what is learned: delays, scheduling, and shards
    that die and come back change no bit of it.

    With one shard it is the plain learner, to the bit. With more, what tasks share lags: a shard sees what the others
    learned at the next exchange. That pays where tasks are many (docs/cluster.md has the numbers).

    Parameters
    ----------
    learner : Learner
        With the hyper-parameters to use; it stays as it is.
    shards : int >= 1
    exchange_every : int >= 1 or None
        Rows of the stream between two exchanges; one that would cut a round comes after it. None: never; each shard is
        then, to the bit, a learner of its own on its tasks' rows.
    assign : mapping or str, optional
        Shards (0, 1, ...) of tasks that shall live together; other tasks go by a stable hash of their ids. Or a column:
        tasks whose first rows have the same value there live together, by a hash of that value. A frame `X` has the
        column, which is no feature then, or a stream keeps it (`ReadOptions.keep`); else `live_together` says it.
    options : mapping, optional
        What Ray is told about an actor (`num_cpus`, `resources`, `scheduling_strategy` ...). By default each takes
        one core, or its share where there are fewer, and shards are spread over machines.

    Raises
    ------
    ValueError
        If the learner cannot be cut by tasks; the sentence says why, and what else to do.
    ModuleNotFoundError
        Without Ray: ``pip install "shoal[cluster]"``.
    """

    def __init__(
        self, learner: Learner, *, shards: int, exchange_every: int | None = 200_000,
        assign: Assign = None, options: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        _check_count("shards", shards)
        if exchange_every is not None:
            _check_count("exchange_every", exchange_every)
        self.learner = learner
        self._homes = Homes.of(shards, assign)
        kinds = exchange_of(learner, exchanges=exchange_every is not None, is_assigned=assign is not None)
        self._exchanging = Exchanging(kinds, exchange_every)
        self._options = dict(options or {})
        self.companion: Any = None  # what was saved next to it
        self._front = Model(
            learner.new_core(), learner.targets, type(learner).__name__, getattr(learner, "classes", None)
        )
        self._rows = 0
        self._begun = False
        self._links = start_shards(learner, shards, self._options)

    # ---- learning ----------------------------------------------------------------------------------------

    def partial_fit(
        self, X: Any, y: Any, task: Any = None, *, rounds: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn the rows in order, as a learner does; shards may be at it when this returns."""
        self._learn(X, y, task, rounds, classes, sample_weight, out=False)
        return self

    def test_then_train(
        self, X: Any, y: Any, task: Any = None, *, rounds: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> FloatArray:
        """Learn like `partial_fit`; return the (n,) decision values given *before* learning each round."""
        return self._learn(X, y, task, rounds, classes, sample_weight, out=True)

    def learn_stream(self, chunks: Iterable[Chunk], *, classes: Any = None) -> Self:
        """Learn the chunks of a stream, such as `shoal.files.open_stream` reads from a folder. They are read and
        encoded while shards learn, and their features may become more."""
        for X, y, task, rounds, weight in chunks:
            kept = getattr(chunks, "kept", None)
            if self._homes.column is not None and kept is not None and self._homes.column in kept.columns:
                self.live_together(task, kept[self._homes.column])
            more = X.shape[1] - self._front.features.count
            if self._begun and more > 0:
                self.add_features(more)
            self.partial_fit(X, y, task, rounds=rounds, classes=classes, sample_weight=weight)
        return self

    def add_features(self, more: Iterable[Hashable] | int) -> Self:
        """Let rows have more features from now on: names, as dict rows have them, or how many more columns."""
        self._front.add_features(more)
        if self._begun:
            self._widen()
        return self

    def _widen(self) -> None:
        """All shards have room for the same features, so that they can exchange."""
        for link in self._links:
            link.send("widen", self._front.features)
        self._exchanging.fit(self._links)

    def _learn(self, X: Any, y: Any, task: Any, rounds: Any, classes: Any, weight: Any, *, out: bool) -> FloatArray:
        X, values = taken_out(X, self._homes.column)
        blocks = {} if values is None else blocks_of(task, values)
        table = validated(read_table(X))
        admitted = self._front.admit(table, y, task, rounds, classes, weight)
        new_shards = self._homes.new(admitted.new_tasks, blocks)
        self._front.know(admitted)
        self._homes.settle(admitted.new_tasks, new_shards, blocks)
        self._begin()
        shard, column = self._homes.at(admitted.rounds.task, task)
        new = [[t for t, s in zip(admitted.new_tasks, new_shards.tolist(), strict=True) if s == n] for n in self.shards]
        own_rounds = rounds is None and self._front.core.simultaneous
        decisions = self._front.core.new_out(table.n_rows if out else 0)
        waiting: list[tuple[IntArray, int, int]] = []
        for first, last, exchanges in self._exchanging.segments(admitted.rounds.starts, self._rows):
            for part in split(admitted.rounds, first, last, shard, column):
                number = self._send(as_simultaneous(part) if own_rounds else part, new, out)
                waiting.append((part.rows, part.shard, number))
            if exchanges:
                self._exchanging.merge(self._links)
        self._rows += table.n_rows
        for rows, which, number in waiting if out else ():
            decisions[rows] = self._links[which].result(number)
        return decisions

    def _send(self, part: Part, new: list[list[Any]], out: bool) -> int:
        tasks, new[part.shard] = new[part.shard], []
        admitted = Admitted(part.rounds, tasks, self._front.features, self._front.labels)
        nbytes = sum(array.nbytes for array in part.rounds[1:])
        return self._links[part.shard].send("learn", admitted, out, nbytes=nbytes, wanted=out)

    def _begin(self) -> None:
        """All shards begin with the first rows of any."""
        if self._begun:
            return
        for link in self._links:
            link.send("begin", self._front.features, self._front.labels)
        self._begun = True
        self._exchanging.fit(self._links)

    # ---- where tasks are ---------------------------------------------------------------------------------

    @property
    def shards(self) -> range:
        """The numbers of the shards."""
        return range(len(self._links))

    def live_together(self, task: Any, values: Iterable[Any]) -> Self:
        """Say of rows to come the values of the column of `assign`, if nothing else says them."""
        if self._homes.column is None:
            raise ValueError("live_together is for a cluster with assign='...', the name of a column")
        self._homes.announce(task, values)
        return self

    def shard_of(self, task: Hashable) -> int:
        """The shard that has a task, or would have it."""
        k = self._front.tasks.column.get(task)
        return int(self._homes.would([task])[0] if k is None else self._homes.places.shard[k])

    def forget_task(self, task: Hashable) -> Self:
        """Remove a task and what only it holds; what others learned from it stays with them."""
        k = self._front.tasks.column.get(task)
        if k is None:
            raise ValueError(f"no task {task!r} in this cluster")
        self._links[self._homes.without(k, task)].send("forget", [task])
        self._front.tasks = type(self._front.tasks)(other for other in self._front.tasks.ids if other != task)
        return self

    def add_shards(self, n: int = 1) -> Self:
        """More shards: each takes half of the tasks, by their hash, of the one that has most.

        Everything that tasks have travels with them, so nothing is learned again; only where two tasks share a record
        by a hash (crossed rows of `HedgedSharing`) one of them loses it, as by `forget_task`. Shards exchange first.
        """
        _check_count("n", n)
        if self._begun:
            self._exchanging.merge(self._links)
        for link in start_shards(self.learner, n, self._options):
            self._links.append(link)
            donor, stay, go = self._homes.halved(self.tasks_)
            if self._begun:
                self._halve(donor, stay, go)
        return self

    def _halve(self, donor: int, stay: list[Any], go: list[Any]) -> None:
        """The last shard becomes a copy of another, and each forgets what is the other's from now on."""
        new = self._links[-1]
        new.send("adopt", self._links[donor].checkpoint().model)
        new.send("forget", stay)
        self._links[donor].send("forget", go)
        new.checkpoint()

    # ---- deciding ----------------------------------------------------------------------------------------

    def _values(self, X: Any, task: Any) -> FloatArray:
        self._refuse_unfitted()
        rounds = self._front.rows_to_decide(taken_out(X, self._homes.column)[0], task)
        n = len(rounds.task)
        shard, column = self._homes.at(rounds.task, task)
        decisions = self._front.core.new_out(n)
        rounds = rounds._replace(starts=np.arange(n + 1))
        parts = list(split(rounds, 0, n, shard, column))
        asked = [self._links[part.shard].asked("decide", part.rounds) for part in parts]
        for part, reference in zip(parts, asked, strict=True):
            decisions[part.rows] = self._links[part.shard].answer(reference, "decide", part.rounds)
        return decisions

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any, task: Any = None) -> FloatArray:
        """(n,) margins, by the shards that have the rows' tasks."""
        return self._values(X, task)

    def predict(self, X: Any, task: Any = None) -> NDArray[Any]:
        """(n,) labels, or of a regressor predictions."""
        values = self._values(X, task)
        return np.asarray(self.classes_[(values >= 0.0).astype(np.int64)]) if _classifies(self) else values

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, task: Any = None) -> FloatArray:
        """(n, 2) probabilities of the labels, in the order of `classes_`."""
        return probabilities(self._values(X, task))

    def _refuse_unfitted(self) -> None:
        if not self._begun:
            raise NotFittedError("This Cluster is not fitted yet. Call 'partial_fit' first.")

    # ---- what can be seen --------------------------------------------------------------------------------

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
        """(n_tasks,) examples of each task that were used in updates of its own model."""
        self._refuse_unfitted()
        places, counts = self._homes.places, [link.ask("updates") for link in self._links]
        found = np.zeros(len(places.shard), np.int64)
        for shard, count in enumerate(counts):
            mine = places.shard == shard
            found[mine] = count[places.column[mine]]
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
        """Which tasks live together, as it was said."""
        return self._homes.plan.assign if self._homes.column is None else self._homes.column

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What it was made with."""
        return {
            "learner": self.learner, "shards": len(self._links), "exchange_every": self._exchanging.every,
            "assign": self.assign,
        }  # fmt: skip

    def __sklearn_tags__(self) -> Any:
        return self.learner.__sklearn_tags__()

    def __repr__(self) -> str:
        assign = "" if self._homes.column is None else f", assign={self._homes.column!r}"
        return f"Cluster({self.learner!r}, shards={len(self._links)}, exchange_every={self._exchanging.every}{assign})"

    def nbytes(self) -> list[int]:
        """Memory of each shard's state."""
        self._refuse_unfitted()
        return [link.ask("nbytes") for link in self._links]

    # ---- files -------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str], *, companion: Any = None) -> None:
        """Write a folder: a model file for each shard, which `shoal.load` reads too, and a manifest.

        `companion` is JSON to keep next to the models, as `shoal run` does with how rows were read.
        """
        self._refuse_unfitted()
        homes = self._homes
        header = {
            "shards": homes.plan.n_shards, "splits": homes.plan.splits, "exchange_every": self._exchanging.every,
            "rows": self._rows, "companion": companion,
        }  # fmt: skip
        blocks = [homes.blocks.get(task) for task in self.tasks_] if homes.blocks else []
        files = [link.ask("saved", companion) for link in self._links]
        storage.write(
            folder, storage.Saved(header, self.assign, blocks, homes.places.shard, self._exchanging.base, files)
        )

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
        cluster = cls(
            learner, shards=header["shards"], exchange_every=header["exchange_every"], assign=saved.assign,
            options=options,
        )  # fmt: skip
        numbers = [link.send("open", file, wanted=True) for link, file in zip(cluster._links, saved.files, strict=True)]
        ids = [link.result(number) for link, number in zip(cluster._links, numbers, strict=True)]
        splits = tuple((int(halved), int(new)) for halved, new in header["splits"])
        tasks = storage.in_order(ids, saved.shard_of)
        homes = cluster._homes
        homes.plan = homes.plan._replace(first=header["shards"] - len(splits), splits=splits)
        homes.settle(tasks, saved.shard_of, dict(zip(tasks, saved.blocks, strict=True)) if saved.blocks else {})
        cluster._front.labels, cluster._front.features = labels, features
        cluster._front.tasks.add(tasks)
        cluster._exchanging.base = saved.base
        cluster._exchanging.fit(cluster._links)
        cluster._rows, cluster._begun = header["rows"], True
        cluster.companion = header["companion"]
        return cluster

    def close(self) -> None:
        """Stop the shards."""
        for link in self._links:
            link.close()
        self._links = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_count(name: str, count: Any) -> None:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {count!r}")
