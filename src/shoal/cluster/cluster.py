"""A learner whose tasks live on several shards, each an actor of Ray's, behind the verbs of a learner."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from shoal.classifier import Classifier, probabilities
from shoal.cluster import storage
from shoal.cluster.actors import start_shards
from shoal.cluster.eligible import exchange_of
from shoal.cluster.merging import Shared, merged
from shoal.cluster.places import Part, as_simultaneous, no_places, split
from shoal.cluster.routing import Plan
from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.rounds import Chunk
from shoal.learner import Learner
from shoal.model.model import Admitted, Model
from shoal.model.table import read_table, validated


class Cluster:
    """A learner on a Ray cluster: tasks on shards, which exchange what all tasks share.

    Each shard is an actor with a model of its tasks. This process routes rows to them, in order within a task. Every
    `exchange_every` rows of the stream all shards stop at the same row and merge what tasks share, as the learner's
    `Algorithm.exchange` says. So the positions of rows alone decide what is learned: delays, scheduling, and shards
    that die and come back change no bit of it.

    With one shard it is the plain learner, to the bit. With more, what tasks share lags: a shard sees what the others
    learned at the next exchange. That pays where tasks are many (docs/cluster.md has curves).

    Parameters
    ----------
    learner : Learner
        With the hyper-parameters to use; it stays as it is.
    shards : int >= 1
    exchange_every : int >= 1 or None
        Rows of the stream between two exchanges; one that would cut a round comes after it. None: never; each shard is
        then, to the bit, a learner of its own on its tasks' rows.
    assign : mapping, optional
        Shards (0, 1, ...) of tasks that shall live together. Other tasks go by a stable hash of their ids.
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
        assign: Mapping[Any, int] | None = None, options: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        _check_count("shards", shards)
        if exchange_every is not None:
            _check_count("exchange_every", exchange_every)
        self.learner = learner
        self.exchange_every = exchange_every
        self._plan = Plan(shards, (), assign)
        self._exchange = exchange_of(learner, exchanges=exchange_every is not None, is_assigned=assign is not None)
        self._options = dict(options or {})
        self._front = Model(
            learner.new_core(), learner.targets, type(learner).__name__, getattr(learner, "classes", None)
        )
        self._places = no_places(shards)
        self._rows = 0
        self._begun = False
        self._base: Shared = {}
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
        if self._exchanges:
            found = self._links[0].ask("shared")  # where it is new, nothing has moved yet
            wide = {name: array.copy() for name, array in found.items()}  # what Ray hands over may only be read
            for name, known in self._base.items():
                wide[name][tuple(map(slice, known.shape))] = known
            self._base = wide

    def _learn(self, X: Any, y: Any, task: Any, rounds: Any, classes: Any, weight: Any, *, out: bool) -> FloatArray:
        table = validated(read_table(X))
        admitted = self._front.admit(table, y, task, rounds, classes, weight)
        new_shards = self._shards_for(admitted.new_tasks)
        self._front.know(admitted)
        self._places = self._places.with_tasks(new_shards)
        self._begin()
        shard, column = self._at(admitted.rounds.task, task)
        new = [[t for t, s in zip(admitted.new_tasks, new_shards.tolist(), strict=True) if s == n] for n in self.shards]
        own_rounds = rounds is None and self._front.core.simultaneous
        decisions = self._front.core.new_out(table.n_rows if out else 0)
        waiting: list[tuple[IntArray, int, int]] = []
        for first, last, exchanges in self._segments(admitted.rounds.starts):
            for part in split(admitted.rounds, first, last, shard, column):
                number = self._send(as_simultaneous(part) if own_rounds else part, new, out)
                waiting.append((part.rows, part.shard, number))
            if exchanges:
                self._merge()
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
        if self._exchanges:
            self._base = self._links[0].ask("shared")

    def _segments(self, starts: IntArray) -> list[tuple[int, int, bool]]:
        """Rows up to each exchange: from, to, and whether one follows."""
        n, cuts = int(starts[-1]), [0]
        if self.exchange_every is not None:
            due = np.arange(self.exchange_every - self._rows % self.exchange_every, n + 1, self.exchange_every)
            cuts += np.unique(starts[np.searchsorted(starts, due)]).tolist()
        found = [(a, b, True) for a, b in pairwise(cuts)]
        return [*found, (cuts[-1], n, False)]

    @property
    def _exchanges(self) -> bool:
        return self.exchange_every is not None and bool(self._exchange.mean or self._exchange.sum)

    def _merge(self) -> None:
        """An exchange: all shards do the same at the same row of the stream."""
        if not self._exchanges or len(self._links) == 1:
            return
        asked = [(link, link.asked("shared")) for link in self._links]
        copies = [link.answer(reference, "shared") for link, reference in asked]
        self._base = merged(self._exchange, self._base, copies)
        nbytes = sum(array.nbytes for array in self._base.values())
        for link in self._links:
            link.send("merge", self._base, nbytes=nbytes)

    # ---- where tasks are ---------------------------------------------------------------------------------

    @property
    def shards(self) -> range:
        """The numbers of the shards."""
        return range(len(self._links))

    def _shards_for(self, tasks: list[Any]) -> IntArray:
        return self._plan.shards_of(tasks)

    def _at(self, columns: IntArray, task: Any) -> tuple[IntArray, IntArray]:
        """Of each row its shard, and its task's column there, -1 where it has none: a new task goes where it would."""
        places, unknown = self._places, np.flatnonzero(columns < 0)
        shard, column = places.shard[columns] if len(places.shard) else columns.copy(), columns.copy()
        if len(places.shard):
            column = np.where(columns < 0, -1, places.column[columns])
        if len(unknown):
            shard[unknown] = self._shards_for(_ids_at(task, unknown))
        return shard, column

    def shard_of(self, task: Hashable) -> int:
        """The shard that has a task, or would have it."""
        k = self._front.tasks.column.get(task)
        return int(self._shards_for([task])[0] if k is None else self._places.shard[k])

    def forget_task(self, task: Hashable) -> Self:
        """Remove a task and what only it holds; what others learned from it stays with them."""
        k = self._front.tasks.column.get(task)
        if k is None:
            raise ValueError(f"no task {task!r} in this cluster")
        self._links[self._places.shard[k]].send("forget", [task])
        self._places = self._places.without(k)
        self._front.tasks = type(self._front.tasks)(other for other in self._front.tasks.ids if other != task)
        return self

    def add_shards(self, n: int = 1) -> Self:
        """More shards: each takes half of the tasks, by their hash, of the one that has most.

        Everything that tasks have travels with them, so nothing is learned again; only where two tasks share a record
        by a hash (crossed rows of `HedgedSharing`) one of them loses it, as by `forget_task`. Shards exchange first.
        """
        _check_count("n", n)
        if self._begun:
            self._merge()
        for link in start_shards(self.learner, n, self._options):
            donor = int(self._places.counts.argmax())
            self._plan = self._plan.with_split(donor)
            self._links.append(link)
            if self._begun:
                self._halve(donor)
            else:
                self._places = no_places(len(self._links))
        return self

    def _halve(self, donor: int) -> None:
        """The last shard becomes a copy of another, and each forgets what is the other's from now on."""
        before, ids = self._places.shard, self.tasks_
        of_donor = np.flatnonzero(before == donor)
        after, new = before.copy(), self._links[-1]
        after[of_donor] = self._shards_for([ids[k] for k in of_donor.tolist()])
        model = self._links[donor].checkpoint().model
        new.send("adopt", model)
        new.send("forget", [ids[k] for k in of_donor.tolist() if after[k] == donor])
        self._links[donor].send("forget", [ids[k] for k in of_donor.tolist() if after[k] != donor])
        self._places = no_places(len(self._links)).with_tasks(after)
        new.checkpoint()

    # ---- deciding ----------------------------------------------------------------------------------------

    def _values(self, X: Any, task: Any) -> FloatArray:
        self._refuse_unfitted()
        rounds = self._front.rows_to_decide(X, task)
        n = len(rounds.task)
        shard, column = self._at(rounds.task, task)
        decisions = self._front.core.new_out(n)
        rounds = rounds._replace(starts=np.arange(n + 1))
        parts = list(split(rounds, 0, n, shard, column))
        asked = [self._links[part.shard].asked("decide", part.rounds) for part in parts]
        for part, reference in zip(parts, asked, strict=True):
            decisions[part.rows] = self._links[part.shard].answer(reference, "decide", part.rounds)
        return decisions

    def decision_function(self, X: Any, task: Any = None) -> FloatArray:
        """(n,) margins, by the shards that have the rows' tasks."""
        self._refuse_regressor("decision_function")
        return self._values(X, task)

    def predict(self, X: Any, task: Any = None) -> NDArray[Any]:
        """(n,) labels, or of a regressor predictions."""
        values = self._values(X, task)
        return np.asarray(self.classes_[(values >= 0.0).astype(np.int64)]) if self._classifies else values

    def predict_proba(self, X: Any, task: Any = None) -> FloatArray:
        """(n, 2) probabilities of the labels, in the order of `classes_`."""
        self._refuse_regressor("predict_proba")
        if not getattr(self.learner, "is_probabilistic", False):
            raise AttributeError(f"{type(self.learner).__name__} has no probabilities")
        return probabilities(self._values(X, task))

    @property
    def _classifies(self) -> bool:
        return isinstance(self.learner, Classifier)

    def _refuse_regressor(self, verb: str) -> None:
        if not self._classifies:
            raise AttributeError(f"{type(self.learner).__name__} has no {verb}")

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

    @property
    def n_updates_(self) -> int:
        """Examples used in updates so far."""
        return sum(int(link.ask("updates").sum()) for link in self._links)

    def nbytes(self) -> list[int]:
        """Memory of each shard's state."""
        self._refuse_unfitted()
        return [link.ask("nbytes") for link in self._links]

    # ---- files -------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder: a model file for each shard, which `shoal.load` reads too, and a manifest."""
        self._refuse_unfitted()
        plan = self._plan
        header = {
            "shards": plan.n_shards,
            "splits": plan.splits,
            "exchange_every": self.exchange_every,
            "rows": self._rows,
        }
        files = [link.ask("saved") for link in self._links]
        storage.write(folder, storage.Saved(header, plan.assign, self._places.shard, self._base, files))

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
        cluster._plan = Plan(header["shards"] - len(splits), splits, saved.assign)
        cluster._front.labels, cluster._front.features = labels, features
        cluster._places = no_places(header["shards"]).with_tasks(saved.shard_of)
        cluster._front.tasks.add(storage.in_order(ids, saved.shard_of))
        cluster._rows, cluster._base, cluster._begun = header["rows"], saved.base, True
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


def _ids_at(task: Any, rows: IntArray) -> list[Any]:
    """Ids of some rows."""
    if task is None:
        return [None] * len(rows)
    values = task.to_numpy() if hasattr(task, "to_numpy") else task
    return [values[row] for row in rows.tolist()]
