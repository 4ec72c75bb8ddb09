"""The router's handle of one shard: it sends commands in order, and restores the shard after a crash.

Ray restarts a dead actor, on another machine if necessary. The handle keeps the last checkpoint and the commands since
in the object store on the router's side. It restores the checkpoint and replays the commands in order, which gives the
same shard, bit for bit (`shard`). Until then a restarted shard refuses commands and questions (`OutOfStep`), so that no
command is lost or done twice, and no question is answered from an earlier model.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import ray
from ray.exceptions import ActorDiedError, ObjectLostError, RayActorError

from shoal.cluster.shard import OutOfStep, Progress
from shoal.learner import Learner

MOST_WAITING = 4  # uncollected commands: the router runs no further ahead of a shard
LEAST_LOGGED = 2**26  # bytes of commands between two checkpoints, or as many as the model has
PATIENCE = 600.0  # seconds for Ray to restart a shard; Ray itself waits 60 for a worker that does not register
GONE = (OutOfStep, RayActorError, ObjectLostError)


class SentCommand(NamedTuple):
    """A command that may have to be replayed."""

    number: int
    command: str
    arguments: Any  # a reference


class ShardHandle:
    """Commands to one shard and their results."""

    def __init__(self, actor: Any, learner: Learner) -> None:
        self.actor = actor
        self._least_logged = LEAST_LOGGED
        self._checkpoint = ray.put(Progress(0, learner, None))
        self._log: list[SentCommand] = []
        self._logged = 0  # bytes
        self._last = 0
        self._results: dict[int, Any] = {}  # references that are not collected yet
        self._values: dict[int, Any] = {}
        self.actor.restore.remote(self._checkpoint)

    def send(self, command: str, *arguments: Any, nbytes: int = 0, wanted: bool = False) -> int:
        """Send a command to run after all others; return its number. `wanted`: `result` will be called for it."""
        if self._logged > self._least_logged:
            self.checkpoint()
        while len(self._results) >= MOST_WAITING:
            self._collect(next(iter(self._results)))
        self._last += 1
        sent = SentCommand(self._last, command, ray.put(arguments))
        self._log.append(sent)
        self._logged += nbytes
        self._results[self._last] = self._submitted(sent)
        if wanted:
            self._values[self._last] = None
        return self._last

    def result(self, number: int) -> Any:
        """The result of a command that was sent as `wanted`."""
        if number in self._results:
            self._collect(number)
        return self._values.pop(number)

    def ask(self, question: str, *arguments: Any) -> Any:
        """The shard's answer to a question after all commands so far."""
        return self.answer(self.asked(question, *arguments), question, *arguments)

    def asked(self, question: str, *arguments: Any) -> Any:
        """Ask without waiting; returns a reference for `answer`."""
        return self.actor.answer.remote(self._last, question, arguments)

    def answer(self, reference: Any, question: str, *arguments: Any) -> Any:
        """The answer behind a reference; if the shard was away, the question is asked again."""
        return self._answer(reference, question, *arguments)[0]

    def _answer(self, reference: Any, question: str, *arguments: Any) -> tuple[Any, Any]:
        """The answer, and the reference that it came from."""
        found = [reference]

        def again() -> None:
            found[0] = self.asked(question, *arguments)

        return self._until_there(lambda: ray.get(found[0]), again), found[0]

    def checkpoint(self) -> Progress:
        """Keep the model as it is, and drop the commands before it."""
        for number in list(self._results):
            self._collect(number)
        progress: Progress
        progress, reference = self._answer(self.asked("progress"), "progress")
        is_here = (
            progress.machine == ray.get_runtime_context().get_node_id()
        )  # else it could be lost with the shard's machine
        self._checkpoint = reference if is_here else ray.put(progress)
        self._log.clear()
        model = progress.model
        self._least_logged = max(self._least_logged, 0 if model is None else model.core.nbytes())
        self._logged = 0
        return progress

    # ---- restoring ---------------------------------------------------------------------------------------

    def _submitted(self, sent: SentCommand) -> Any:
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
                if isinstance(error, ActorDiedError):  # Ray will not restart it
                    break
            if time.monotonic() - begun > PATIENCE:
                break
            time.sleep(pause)
            pause = min(2 * pause, 1.0)
        raise RuntimeError(f"a shard cannot be restarted: {last}") from last

    def _restore(self) -> None:
        """Restore the checkpoint and replay the commands since."""
        ray.get(self.actor.restore.remote(self._checkpoint))
        for sent in self._log:
            reference = self._submitted(sent)
            if sent.number in self._results:
                self._results[sent.number] = reference

    def close(self) -> None:
        """Stop the actor."""
        ray.kill(self.actor)
