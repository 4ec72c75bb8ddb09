"""An algorithm at work: the one place where a state is allocated, grows, learns and loses tasks."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import numpy as np

from shoal.engine.arrays import FLOAT64, FloatArray, IndexArray, IntArray
from shoal.engine.compile import call
from shoal.engine.rounds import Rounds
from shoal.engine.rows import FEATURES, ROUNDS, TASKS
from shoal.model.algorithm import FAILED, Algorithm, Setup, Size, State
from shoal.model.explanations import Parts, parts_of_linear
from shoal.model.groups import Groups
from shoal.model.growth import aside
from shoal.model.parameters import read
from shoal.model.state import copied, in_capacity, leaves, nbytes, trimmed, without_task

SHAPES_STATE = "this hyper-parameter shapes the state: it can only change before fit"
NO_OUT = np.zeros(0)  # for learning without the decisions
NOT_LINEAR = (
    "this learner compares whole rows (by a kernel, a second-order form or mapped features), so there are no "
    "contributions of single features"
)


class CoreLike(Protocol):
    """The interface of a core to its model; wrappers are cores that hold other cores."""

    simultaneous: bool
    named_tasks: list[Any]
    may_fail: bool  # may learning valid rows raise?

    @property
    def groups(self) -> Groups | None:
        """The groups of tasks, if it learns by group, too: rows of unseen tasks then name their group."""

    @property
    def no_weights(self) -> str:
        """Why rows cannot have weights, or ""."""

    @property
    def state(self) -> Any:
        """The learned state; None before the first row."""

    def reserve(self, n_tasks: int, n_features: int) -> None:
        """Capacity for this many tasks and features."""

    def enter(self, n_tasks: int) -> None:
        """Let the first `n_tasks` tasks exist."""

    def leave(self, k: int, n_tasks: int) -> None:
        """Remove task k of `n_tasks`; later tasks move up by one."""

    def learn(self, rounds: Rounds, out: FloatArray) -> None:
        """Learn rounds in order; `out`, unless empty, gets the decisions before each."""

    def decide(self, rounds: Rounds, out: FloatArray) -> None:
        """Answer rows."""

    def new_out(self, n_rows: int) -> FloatArray:
        """An array for the decisions of n rows."""

    def updates(self, n_tasks: int) -> IntArray:
        """Updates of each task."""

    def pack(self, size: Size) -> Any:
        """The state as it is saved: a named tuple of arrays."""

    def blank(self, size: Size) -> Any:
        """A packed empty state."""

    def expect_labels(self, labels: Any) -> None:
        """The labels of the model that `unpack` will bring."""

    def unpack(self, packed: Any, size: Size) -> None:
        """Take what was saved. Raises ValueError if it is not what this core could have saved."""

    def adopt(self, other: Any) -> None:
        """Take the hyper-parameters of another core. Raises ValueError if they shape the state."""

    def attach(self, other: Any) -> None:
        """Take the algorithm of a new core: it is not part of what is pickled."""

    def snapshot(self) -> Callable[[], None]:
        """A function that brings the state back."""

    def nbytes(self) -> int:
        """Memory of the state."""

    @property
    def learns_in_blocks(self) -> bool:
        """Whether a chunk may be learned in blocks of rounds, without loss of speed."""


class Core:
    """An algorithm with its hyper-parameters and its state."""

    groups: Groups | None = None

    def __init__(self, algorithm: Algorithm[Any], values: Mapping[str, Any]) -> None:
        params = read(algorithm.parameters, values)
        self.algorithm = algorithm
        self.setup = Setup(params, algorithm.settings(params))
        self.named_tasks = algorithm.tasks.named(params)
        self.simultaneous = algorithm.chunks.simultaneous
        self.may_fail = algorithm.chunks.may_fail(params)
        self.size = Size(0, 0)
        self._state: State = None
        self._seen: Any = None  # the form of the state that kernels take
        self._dtype = getattr(params, "dtype", FLOAT64)  # with the kinds of tuple it tells the compiled code

    @property
    def state(self) -> State:
        """The learned state; None before the first row."""
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._seen = None if state is None else self.algorithm.chunks.seen(state)
        self._state = state

    # ---- capacity ----------------------------------------------------------------------------------------

    def reserve(self, n_tasks: int, n_features: int) -> None:
        """Capacity for this many tasks and features."""
        if self.state is None or n_tasks > self.size.tasks or n_features > self.size.features:
            self._grow(self.algorithm.storage.capacity(self.setup, self.size, Size(n_tasks, n_features)))
        self.state.counters[FEATURES] = n_features

    def _grow(self, size: Size) -> None:
        self._take(partial(self._grown, size))
        self.size = size

    def _grown(self, size: Size) -> State:
        algorithm = self.algorithm
        if self.state is None:
            return algorithm.allocate(self.setup, size)
        if algorithm.storage.grow is not None:
            return algorithm.storage.grow(self.setup, self.state, size)
        return in_capacity(self.state, algorithm.allocate(self.setup, size))

    def _take(self, make: Callable[[], State]) -> None:
        """Swap in a new state; concurrent readers keep the old one."""
        with aside():
            larger = make()
        old, self.state = self.state, larger
        with aside():  # to give a gigabyte back takes a tenth of a second
            del old

    # ---- tasks -------------------------------------------------------------------------------------------

    def enter(self, n_tasks: int) -> None:
        """Let the first `n_tasks` tasks exist."""
        self.algorithm.tasks.enter(self.setup, self.state, n_tasks)

    def leave(self, k: int, n_tasks: int) -> None:
        """Remove task k of `n_tasks`; later tasks move up by one."""
        algorithm, setup = self.algorithm, self.setup
        with aside():
            state = copied(self.state)
            algorithm.tasks.leave(setup, state, k)
            smaller = without_task(state, k, algorithm.allocate(setup, self.size))
        self.state = smaller
        self.state.counters[TASKS] -= 1
        algorithm.tasks.left(setup, self.state, n_tasks - 1)

    # ---- learning and deciding ---------------------------------------------------------------------------

    @property
    def no_weights(self) -> str:
        """Why rows cannot have weights, or ""."""
        return self.algorithm.no_weights

    @property
    def learns_in_blocks(self) -> bool:
        """Whether a chunk may be learned in blocks of rounds, without loss of speed."""
        chunks = self.algorithm.chunks
        return chunks.pieces is None and chunks.run is None and not self.may_fail

    def new_out(self, n_rows: int) -> FloatArray:
        """An array for the decisions of n rows."""
        return np.empty(n_rows)

    def learn(self, rounds: Rounds, out: FloatArray) -> None:
        """Learn rounds in order; `out`, unless empty, gets the decisions before each."""
        chunks, setup = self.algorithm.chunks, self.setup
        if chunks.pieces is None:
            self._learn(rounds, setup.settings, out, ())
        elif chunks.row is not None and len(rounds.task) == 1:
            changes, more = chunks.row(setup, self._seen, rounds, True)
            if changes:
                self.state = self.state._replace(**changes)
            self._learn(rounds, setup.settings, out, more)
        else:
            for piece in chunks.pieces(setup, self._seen, rounds, True):
                if piece.changes:
                    self.state = self.state._replace(**piece.changes)
                self._learn(piece.rounds, piece.settings, out[piece.first : piece.last], piece.more)

    def _learn(self, rounds: Rounds, settings: Any, out: FloatArray, more: tuple[Any, ...]) -> None:
        learn, run = self.algorithm.learn, self.algorithm.chunks.run
        while True:
            if run is None or len(rounds.task) == 1:
                done = call(learn, rounds, settings, self._seen, out, self._dtype, *more)
            else:
                step = partial(call, learn, rounds, settings, self._seen, out, self._dtype)
                done = run(step, more, rounds, self.setup)
            if not 0 <= done < len(rounds.starts) - 1:
                break
            rounds = rounds._replace(starts=rounds.starts[done:])  # the next round needs more capacity
            self._take(partial(self._extended, rounds))
        if done == FAILED:
            raise ValueError(self.algorithm.chunks.failure.format(updates=self.state.updates.sum()))

    def _extended(self, rounds: Rounds) -> State:
        assert self.algorithm.storage.extend is not None
        return self.algorithm.storage.extend(self.setup, self.state, self.size, rounds)

    def decide(self, rounds: Rounds, out: FloatArray) -> None:
        """Answer rows."""
        self._answer(self.algorithm.decide, rounds, out)

    def confidence(self, rounds: Rounds, out: FloatArray) -> None:
        """|f| of rows less the model's doubt of it."""
        assert self.algorithm.explain.confidence is not None
        self._answer(self.algorithm.explain.confidence, rounds, out)

    def _answer(self, kernel: Any, rounds: Rounds, out: FloatArray) -> None:
        chunks, state, setup = self.algorithm.chunks, self._seen, self.setup
        if chunks.pieces is None:
            call(kernel, rounds, setup.settings, state, out, self._dtype)
        elif chunks.row is not None and len(rounds.task) == 1:
            _, more = chunks.row(setup, state, rounds, False)
            call(kernel, rounds, setup.settings, state, out, self._dtype, *more)
        else:
            for piece in chunks.pieces(setup, state, rounds, False):
                seen = chunks.seen(self.state._replace(**piece.changes)) if piece.changes else state
                into = out[piece.first : piece.last]
                call(kernel, piece.rounds, piece.settings, seen, into, self._dtype, *piece.more)

    # ---- explaining --------------------------------------------------------------------------------------

    def contributions(self, tasks: IntArray, features: IndexArray, values: FloatArray | None = None) -> Parts:
        """Contributions of features to the decisions of tasks, in a row of these values, or (None) of 1 each.

        Raises
        ------
        ValueError
            If the decisions are no sums over features.
        """
        explain = self.algorithm.explain
        if explain.contributions is not None:
            return explain.contributions(self.setup, self.state, tasks, features, values)
        if not explain.linear:
            raise ValueError(NOT_LINEAR)
        shared = None if explain.shared is None else partial(self._answer, explain.shared)
        return parts_of_linear(self.decide, shared, tasks, features, values)

    def likeness(self, k: int, n_tasks: int) -> FloatArray | None:
        """(n_tasks,) how alike they are to task k, where the algorithm learns it."""
        likeness = self.algorithm.explain.likeness
        return None if likeness is None else likeness(self.state, k, n_tasks)

    def updates(self, n_tasks: int) -> IntArray:
        """Updates of each task."""
        counts: IntArray = self.state.updates[:n_tasks]
        return counts.copy()

    # ---- hyper-parameters that change --------------------------------------------------------------------

    def adopt(self, other: Core) -> None:
        """Take the hyper-parameters of another core.

        Raises
        ------
        ValueError
            If they shape the state.
        """
        if self.state is not None:
            if other.named_tasks != self.named_tasks:
                raise ValueError("the new relation names other tasks or another order: it can only change before fit")
            if type(other) is not Core or not _same_shapes(self, other):
                raise ValueError(SHAPES_STATE)
            if self.algorithm.retune is not None:
                self.algorithm.retune(self.setup, other.setup, self.state)
        self.attach(other)
        self.named_tasks, self.simultaneous = other.named_tasks, other.simultaneous
        self.may_fail, self._dtype = other.may_fail, other._dtype

    def attach(self, other: Core) -> None:
        """Take the algorithm of a new core: it is not part of what is pickled."""
        self.algorithm, self.setup = other.algorithm, other.setup

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("algorithm", "setup")}

    def __deepcopy__(self, memo: Any) -> Core:
        other = copy.copy(self)
        other.attach(self)
        other.state = None if self.state is None else copied(self.state)
        return other

    # ---- transactions and files --------------------------------------------------------------------------

    def snapshot(self) -> Callable[[], None]:
        """A function that brings the state back."""
        state, size = None if self.state is None else copied(self.state), self.size

        def rollback() -> None:
            self.state, self.size = state, size

        return rollback

    def nbytes(self) -> int:
        """Memory of the state."""
        return 0 if self.state is None else nbytes(self.state)

    def pack(self, size: Size) -> Any:
        """The state as it is saved: without spare capacity, so that equal models give equal files."""
        if self.algorithm.storage.pack is not None:
            return self.algorithm.storage.pack(self.setup, self.state, size)
        return trimmed(self.state, self.algorithm.allocate(self.setup, size))

    def expect_labels(self, labels: Any) -> None:
        """The labels of the model that `unpack` will bring: they change nothing here."""

    def blank(self, size: Size) -> Any:
        """A packed empty state."""
        make = self.algorithm.storage.blank or self.algorithm.allocate
        return make(self.setup, size)

    def unpack(self, packed: Any, size: Size) -> None:
        """Take what was saved.

        Raises
        ------
        ValueError
            If it is not what this core could have saved.
        """
        storage, counters = self.algorithm.storage, packed.counters
        if not (0 <= counters[TASKS] <= size.tasks and counters[ROUNDS] >= 0 and counters[FEATURES] == size.features):
            raise ValueError("its counters do not fit its tasks and features")
        if (packed.updates < 0).any():
            raise ValueError("its numbers of updates are negative")
        if storage.check is not None:
            storage.check(self.setup, packed, size)
        self.state = packed if storage.unpack is None else storage.unpack(self.setup, packed, size)
        self.size = size


def _same_shapes(core: Core, other: Core) -> bool:
    """Would both allocate arrays of the same shapes and types?"""
    if other.algorithm.learn is not core.algorithm.learn:
        return False
    size = Size(2, core.size.features if core.size.features < 64 else 3)
    states = (each.algorithm.allocate(each.setup, size) for each in (core, other))
    (kind, shapes), (other_kind, other_shapes) = ((type(s), [(a.shape, a.dtype) for a in leaves(s)]) for s in states)
    return kind is other_kind and shapes == other_shapes
