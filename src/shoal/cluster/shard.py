"""A shard: a model of some of the tasks, and the commands and questions of the router. No Ray here.

Commands change the model. They are numbered, and a shard runs them in order, each once. A command depends on the model
and its arguments alone, so replaying commands on an earlier model gives the same model, bit for bit. A question names
the command after which it is asked; a shard that is not there yet, after a restart, refuses to answer.
"""

import copy
import tempfile
from collections.abc import Hashable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shoal.cluster.merge_state import Shared, shared_part, take_shared
from shoal.engine.arrays import FloatArray
from shoal.engine.rounds import Rounds
from shoal.learner import Learner, model_of, view
from shoal.model.algorithm import Exchange
from shoal.model.core import NO_OUT, Core
from shoal.model.features import Features
from shoal.model.model import Admitted, Model
from shoal.model_file import Reading, load_learner, save_model


class OutOfStep(RuntimeError):
    """The shard was restarted and lacks earlier commands: it has to be restored first."""


class Progress(NamedTuple):
    """The state of a shard after a command."""

    number: int
    learner: Learner  # with the hyper-parameters
    model: Model | None  # None: not begun
    machine: str = ""  # on which it runs


def writable(rounds: Rounds) -> Rounds:
    """The same rows in writable memory, which compiled code takes: arrays from Ray are read-only."""
    parts: Any = [np.require(part, None, ["C", "W"]) if isinstance(part, np.ndarray) else part for part in rounds]
    return Rounds(*parts)


class Shard:
    """One actor's part of a cluster. Its first call must be `restore`, which may bring an empty progress."""

    def __init__(self, n_threads: int = 1) -> None:
        self._n_threads = n_threads
        self._done = -1
        self._learner: Any = None
        self._model: Model | None = None

    def ready(self) -> None:
        """Do nothing: an answer proves that the shard is up."""

    def restore(self, progress: Progress) -> None:
        """Become the shard of that progress."""
        self._done, self._learner = progress.number, progress.learner
        self._model = None if progress.model is None else self._own(progress.model)

    def run(self, number: int, command: str, arguments: tuple[Any, ...]) -> Any:
        """Run one command.

        Raises
        ------
        OutOfStep
            If the command before was not the last one.
        """
        self._expect(number - 1)
        found = getattr(self, f"do_{command}")(*arguments)
        self._done = number
        return found

    def answer(self, number: int, question: str, arguments: tuple[Any, ...]) -> Any:
        """Answer one question, asked after this command.

        Raises
        ------
        OutOfStep
            If that was not the last one.
        """
        self._expect(number)
        return getattr(self, f"tell_{question}")(*arguments)

    def _expect(self, number: int) -> None:
        if number != self._done:
            raise OutOfStep(f"the caller expects command {number} to be the last one done, but it is {self._done}")

    # ---- commands ----------------------------------------------------------------------------------------

    def do_begin(self, features: Features, labels: Any) -> None:
        """Make a model without tasks."""
        learner = self._learner
        self._model = Model(learner.new_core(), learner.targets, type(learner).__name__)
        self._model.commit(Admitted(_no_rows(features.count), [], features, labels))

    def do_open(self, content: bytes) -> list[Any]:
        """Take the model of a file; return its tasks."""
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "model").write_bytes(content)
            self._model = model_of(load_learner(Path(folder) / "model"))
        return self._model.tasks.ids

    def do_adopt(self, model: Model) -> None:
        """Take another shard's model."""
        self._model = self._own(model)

    def do_learn(self, admitted: Admitted, out: bool) -> FloatArray | None:
        """Learn rows; with `out`, return the decisions before each round."""
        from joblib import parallel_config

        model = self._known()
        admitted = admitted._replace(rounds=writable(admitted.rounds))
        model.commit(admitted)
        decisions = model.core.new_out(len(admitted.rounds.task)) if out else NO_OUT
        with parallel_config(n_jobs=self._n_threads):
            model.core.learn(admitted.rounds, decisions)
        return decisions if out else None

    def do_widen(self, features: Features) -> None:
        """Make room for more features."""
        model = self._known()
        model.core.reserve(len(model.tasks), features.count)
        model.features = features

    def do_merge(self, shared: Shared) -> None:
        """Take the merged arrays."""
        core = self._known().core_as(Core)
        take_shared(_exchange(core), core.setup, core.state, shared)

    def do_forget(self, tasks: list[Hashable]) -> None:
        """Remove tasks."""
        for task in tasks:
            self._known().forget_task(task)

    # ---- questions ---------------------------------------------------------------------------------------

    def tell_shared(self) -> Shared:
        """Copies of the shared arrays."""
        core = self._known().core_as(Core)
        return shared_part(_exchange(core), core.state)

    def tell_decide(self, rounds: Rounds) -> FloatArray:
        """The decisions for rows."""
        core, rounds = self._known().core, writable(rounds)
        decisions = core.new_out(len(rounds.task))
        core.decide(rounds, decisions)
        return decisions

    def tell_updates(self) -> Any:
        """The number of updates of each task."""
        return self._known().updates()

    def tell_saved(self, reading: Any = None) -> bytes:
        """The model as a file."""
        with tempfile.TemporaryDirectory() as folder:
            learner = view(self._learner, self._known())
            save_model(Path(folder) / "model", {"learner": learner}, None if reading is None else Reading(**reading))
            return (Path(folder) / "model").read_bytes()

    def tell_nbytes(self) -> int:
        """Bytes of the state."""
        return self._known().core.nbytes()

    def tell_progress(self) -> Progress:
        """The whole shard, for a checkpoint."""
        return Progress(self._done, self._learner, self._model)

    def _own(self, model: Model) -> Model:
        """A copy of a model that can learn: arrays from Ray are read-only."""
        model = copy.copy(model)
        model.core.attach(self._learner.new_core())
        model.core = copy.deepcopy(model.core)
        model.tasks = copy.deepcopy(model.tasks)
        return model

    def _known(self) -> Model:
        assert self._model is not None, "the shard has not begun"
        return self._model


def _no_rows(n_features: int) -> Rounds:
    ints, numbers = np.zeros(0, np.int64), np.zeros(0)
    return Rounds(n_features, ints, np.zeros(0, np.int32), numbers, ints, numbers, np.zeros(1, np.int64))


def _exchange(core: Core) -> Exchange:
    """How copies of shared arrays merge; blocks of tasks that cannot be cut share no arrays."""
    exchange = core.algorithm.exchange
    return exchange if isinstance(exchange, Exchange) else Exchange()
