"""The router's end of one shard: commands in order, and the shard brought back after its process or machine is gone.

Ray starts the actor again, elsewhere if it has to. What it was is the last checkpoint and the commands since, which
lie in the object store on the router's side: they are done again in order, and as they are what they were, so is the
shard. A shard that was started again refuses commands and questions before that (`OutOfStep`): none is lost, done
twice, or answered from an earlier model.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import ray
from ray.exceptions import ActorDiedError, ObjectLostError, RayActorError

from shoal.cluster.shard import OutOfStep, Progress
from shoal.learner import Learner

MOST_WAITING = 4  # commands whose results nobody has asked for: the router runs no further ahead of a shard
LEAST_LOGGED = 2**26  # bytes of commands that are kept before a checkpoint is made, or as many as the model has
PATIENCE = 600.0  # seconds in which Ray may start a shard again: where a worker does not register, it waits 60 itself
GONE = (OutOfStep, RayActorError, ObjectLostError)


class Sent(NamedTuple):
    """A command that may have to be done again."""

    number: int
    command: str
    arguments: Any  # a reference


class Link:
    """Commands to one shard and their results."""

    def __init__(self, actor: Any, learner: Learner) -> None:
        self.actor = actor
        self._least_logged = LEAST_LOGGED
        self._checkpoint = ray.put(Progress(0, learner, None))
        self._log: list[Sent] = []
        self._logged = 0  # bytes
        self._last = 0
        self._results: dict[int, Any] = {}  # references, until they are asked for
        self._values: dict[int, Any] = {}
        self.actor.restore.remote(self._checkpoint)

    def send(self, command: str, *arguments: Any, nbytes: int = 0, wanted: bool = False) -> int:
        """Have a command done after all others; return its number. `wanted`: `result` will be asked for."""
        if self._logged > self._least_logged:
            self.checkpoint()
        while len(self._results) >= MOST_WAITING:
            self._collect(next(iter(self._results)))
        self._last += 1
        sent = Sent(self._last, command, ray.put(arguments))
        self._log.append(sent)
        self._logged += nbytes
        self._results[self._last] = self._submitted(sent)
        if wanted:
            self._values[self._last] = None
        return self._last

    def result(self, number: int) -> Any:
        """What a command gave that was sent as `wanted`."""
        if number in self._results:
            self._collect(number)
        return self._values.pop(number)

    def ask(self, question: str, *arguments: Any) -> Any:
        """What the shard answers after all commands so far."""
        return self.answer(self.asked(question, *arguments), question, *arguments)

    def asked(self, question: str, *arguments: Any) -> Any:
        """A reference to the answer, for `answer`."""
        return self.actor.answer.remote(self._last, question, arguments)

    def answer(self, reference: Any, question: str, *arguments: Any) -> Any:
        """What was asked; asked again if the shard was not there."""
        return self._answer(reference, question, *arguments)[0]

    def _answer(self, reference: Any, question: str, *arguments: Any) -> tuple[Any, Any]:
        """The same, and the reference that has it."""
        found = [reference]

        def again() -> None:
            found[0] = self.asked(question, *arguments)

        return self._until_there(lambda: ray.get(found[0]), again), found[0]

    def checkpoint(self) -> Progress:
        """Keep the model as it is, and forget the commands before."""
        for number in list(self._results):
            self._collect(number)
        progress: Progress
        progress, reference = self._answer(self.asked("progress"), "progress")
        is_here = progress.machine == ray.get_runtime_context().get_node_id()  # else it may go with the shard's machine
        self._checkpoint = reference if is_here else ray.put(progress)
        self._log.clear()
        model = progress.model
        self._least_logged = max(self._least_logged, 0 if model is None else model.core.nbytes())
        self._logged = 0
        return progress

    # ---- coming back -------------------------------------------------------------------------------------

    def _submitted(self, sent: Sent) -> Any:
        return self.actor.run.remote(sent.number, sent.command, sent.arguments)

    def _collect(self, number: int) -> None:
        value = self._until_there(lambda: ray.get(self._results[number]), lambda: None)
        del self._results[number]
        if number in self._values:
            self._values[number] = value

    def _until_there(self, get: Callable[[], Any], again: Callable[[], None]) -> Any:
        begun, pause = time.monotonic(), 0.05
        while True:
            try:
                return get()
            except GONE as error:
                last: Exception = error
            try:
                self._restore()
                again()
            except GONE as error:
                last = error
                if isinstance(error, ActorDiedError):  # Ray does not start it again
                    break
            if time.monotonic() - begun > PATIENCE:
                break
            time.sleep(pause)
            pause = min(2 * pause, 1.0)
        raise RuntimeError(f"a shard does not come back: {last}") from last

    def _restore(self) -> None:
        """Have everything since the checkpoint done again."""
        ray.get(self.actor.restore.remote(self._checkpoint))
        for sent in self._log:
            reference = self._submitted(sent)
            if sent.number in self._results:
                self._results[sent.number] = reference

    def close(self) -> None:
        """Stop the actor."""
        ray.kill(self.actor)
