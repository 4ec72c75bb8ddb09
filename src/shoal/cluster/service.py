"""The service of several shards, behind the same contract as one engine: requests go to the shard of their task.

Each shard is an engine with a log and snapshots of its own, so what one engine keeps is kept here, shard by shard.
Shards do not exchange what tasks share: with many tasks that costs next to nothing (docs/cluster.md). A shard that dies
is started again by Ray; the others answer meanwhile.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import ray
from ray.exceptions import RayTaskError

from shoal.cluster.engines import start_engines
from shoal.cluster.following import Following
from shoal.cluster.futures import AWAY, chained, copy_to, future_of, joined, raise_as_said, result, when_done
from shoal.cluster.gathering import gauges_of_all, overview_of_all
from shoal.cluster.routing import shards_of
from shoal.cluster.row_routing import shards_of_rows, tasks_frame
from shoal.cluster.together import Together
from shoal.engine.arrays import IntArray
from shoal.serve.commands import now
from shoal.serve.contract import (
    Answer,
    Fault,
    Followed,
    LabelReceipt,
    Messages,
    Pending,
    Receipt,
    Refused,
    Rows,
    Worth,
)
from shoal.serve.engine import EngineSettings

if TYPE_CHECKING:
    from shoal.cluster.own_topic import Source

PATIENCE = 10.0  # seconds for what is asked of all shards
MARK = "."  # between a shard's number and the id that it gave


class Part(NamedTuple):
    """What one shard gets of some rows."""

    shard: int
    places: IntArray  # where they were
    rows: Rows


class ShardedService:
    """Engines on a Ray cluster, as one service. It travels: another process then asks the same engines.

    Parameters
    ----------
    actors : list of ShardEngine
        As Ray has them.
    folder : Path
        Where they keep what they have.
    fallback : bool
        Whether tasks of a shard that is away are answered by another shard, as tasks that are not known, without an id;
        else they are unavailable.

    Raises
    ------
    ValueError
        If the model has no tasks.
    """

    def __init__(self, actors: list[Any], folder: Path, *, fallback: bool = False) -> None:
        self._actors = actors
        self._rows = [Together(actor) for actor in self._actors]
        self._fallback, self.folder = fallback, folder
        self._about = self._ask_all("describe", patience=None)[0]
        self._following = Following(self._ask, len(actors), self._about["task"])
        self.more_gauges: Callable[[], Mapping[str, float]] = dict  # of who feeds the service
        if not self._about["task"]:
            self.close()
            raise ValueError("the model has no tasks, so there is nothing to share out")

    @classmethod
    def start(
        cls, model: Path, folder: Path, settings: EngineSettings, *, shards: int, fallback: bool = False,
        options: Mapping[str, Any] | None = None, offsets: Mapping[str, int] | None = None,
        source: Source | None = None,
    ) -> Self:  # fmt: skip
        """With engines of its own, which `close` ends.

        Parameters
        ----------
        model : Path
            What `shoal run --save` wrote: where every shard begins.
        folder : Path
            Has a folder for each shard. On several machines it must be storage that all of them see.
        settings : EngineSettings
        shards : int >= 1
            How many; a folder that was made for another number is refused.
        options : mapping, optional
            What Ray is told about an actor.
        offsets : mapping, optional
            How far topics have been read into the model, by "topic/partition".
        source : Source, optional
            A topic for each shard, which it follows.
        """
        there = len(list(folder.glob("shard-*")))
        if there not in (0, shards):
            raise ValueError(f"{folder} holds {there} shards; tasks do not move between shards of a service")
        if settings.log is not None:
            raise ValueError("each shard has a log of its own in its folder: leave out the log's address")
        return cls(start_engines(model, folder, settings, shards, options, offsets, source), folder, fallback=fallback)

    def __reduce__(self) -> Any:
        return partial(type(self), fallback=self._fallback), (self._actors, self.folder)

    # ---- rows ------------------------------------------------------------------------------------------------

    def predict(self, rows: Rows, *, wait: bool = True) -> Future[list[Answer]]:
        """Answers in the order of the rows; with `wait`, done when the rows wait for their labels in the logs."""
        parts = self._parts(rows)

        def join(found: list[list[Answer]]) -> list[Answer]:
            answers: list[Any] = [None] * rows.frame.height
            for part, some in zip(parts, found, strict=True):
                for place, answer in zip(part.places.tolist(), some, strict=True):
                    answers[place] = _with_shard(answer, part.shard)
            return answers

        def ask(rows: Rows) -> Callable[[int, bool], Future[Any]]:
            return lambda shard, wait: self._ask(shard, "predict", rows, wait=wait)

        return joined([self._answered(part.shard, ask(part.rows), wait) for part in parts], join)

    def predict_each(self, rows: Sequence[Mapping[str, Any]], *, wait: bool = True) -> list[Pending]:
        """The same of rows of JSON values that came apart: those of a shard are answered together."""
        names = self._about["task"]
        shards, problems = shards_of_rows(tasks_frame(rows, names), names, len(self._actors))
        for row, _ in problems:
            shards[row] = -1  # no shard's
        found = [Pending([row], now([Refused(Fault(0, names[0], sentence))])) for row, sentence in problems]
        for shard in np.unique(shards[shards >= 0]).tolist():
            places = np.flatnonzero(shards == shard).tolist()
            found.append(Pending(places, self._of_shard(shard, [rows[place] for place in places], wait)))
        return found

    def learn(self, rows: Rows, key: str | None = None) -> Future[Receipt]:
        """Done when the rows are in the logs of their shards. If one of these cannot take its part, none does, unless
        it goes away in between: asked again with its key, the request is then completed."""
        parts = self._parts(rows)

        def learn(_: object = None) -> Future[Receipt]:
            return joined([self._ask(part.shard, "learn", part.rows, key) for part in parts], _receipt)

        return learn() if len(parts) == 1 else chained(self._checked(parts), learn)

    def label(self, labels: Sequence[tuple[str, Any]], key: str | None = None) -> Future[LabelReceipt]:
        """Learn rows as they were predicted: (id of the prediction, label) each."""
        by_shard: dict[int, list[tuple[str, Any]]] = {}
        unknown: list[str] = []
        for name, label in labels:
            shard, mark, own = name.partition(MARK)
            if mark and shard.isdecimal() and int(shard) < len(self._actors):
                by_shard.setdefault(int(shard), []).append((own, label))
            else:
                unknown.append(name)
        shards = list(by_shard)

        def join(found: list[LabelReceipt]) -> LabelReceipt:
            late: list[str] = []
            double: list[str] = []
            none: list[str] = []
            for shard, receipt in zip(shards, found, strict=True):
                for some, own in ((late, receipt.late), (double, receipt.double), (none, receipt.unknown)):
                    some += [f"{shard}{MARK}{one}" for one in own]
            positions = [receipt.position for receipt in found if receipt.position is not None]
            repeated = bool(found) and all(receipt.repeated for receipt in found)
            accepted = sum(receipt.accepted for receipt in found)
            return LabelReceipt(max(positions, default=None), accepted, late, double, [*unknown, *none], repeated)

        return joined([self._ask(shard, "label", by_shard[shard], key) for shard in shards], join)

    def worth(self, rows: Rows) -> list[Worth]:
        """Which labels are worth asking for; nothing changes."""
        found: list[Any] = [None] * rows.frame.height
        parts = self._parts(rows)
        asked = [self._ask(part.shard, "worth", part.rows) for part in parts]
        for part, future in zip(parts, asked, strict=True):
            for place, one in zip(part.places.tolist(), result(future), strict=True):
                found[place] = one
        return found

    def follow(self, messages: Messages) -> Future[Followed]:
        """Done when the messages are in the logs: each row in that of its shard, the offsets in all."""
        return self._following.follow(messages)

    def offsets(self) -> dict[str, int]:
        """The next message of each partition that not all shards have taken, by "topic/partition"."""
        return self._following.offsets()

    # ---- tasks -----------------------------------------------------------------------------------------------

    def forget(self, task: str) -> Future[Receipt]:
        """Forget a task."""
        return joined([self._ask(self._shard(task), "forget", task)], _receipt)

    def task(self, task: str) -> Mapping[str, Any]:
        """What is known of one task. Raises UnknownTask."""
        found: Mapping[str, Any] = result(self._ask(self._shard(task), "task", task))
        return found

    def list_tasks(self, sort: str, text: str, first: int, n: int) -> tuple[list[Mapping[str, Any]], int]:
        """Some tasks with what was counted of them since the service began, and how many contain the text."""
        found = self._ask_all("list_tasks", sort, text, 0, first + n)
        tasks = [one for one in chain.from_iterable(zip_longest(*(some for some, _ in found))) if one is not None]
        if sort in ("rows", "error"):
            tasks.sort(key=lambda one: -one[sort])
        elif sort == "name":
            tasks.sort(key=lambda one: str(one["task"]))
        return tasks[first : first + n], sum(total for _, total in found)

    # ---- all shards ------------------------------------------------------------------------------------------

    def describe(self) -> Mapping[str, Any]:
        """The model in plain values; counts are of all shards."""
        found = self._ask_all("describe")
        sums = {name: sum(one[name] for one in found) for name in ("learned", "logged", "rows", "tasks")}
        features = max(one["features"] for one in found)
        return {**found[0], **sums, "features": features, "shards": len(found)}

    def gauges(self) -> Mapping[str, float]:
        """Numbers for dashboards: sums over shards, and means over rows of what is a mean; ages are of the oldest."""
        return {**gauges_of_all(self._ask_all("gauges")), **self.more_gauges()}

    def overview(self) -> Mapping[str, Any]:
        """What the page shows."""
        found = overview_of_all(self._ask_all("overview"))
        return {**found, "gauges": {**found["gauges"], **self.more_gauges()}}

    def export(self) -> Path:
        """A tar file of the shards' models: each holds the tasks of its shard as they are, the others as they began.
        The caller deletes it."""
        with tempfile.NamedTemporaryFile(prefix="export-", suffix=".tar", delete=False) as file:
            path = Path(file.name)
        try:
            with tarfile.open(path, "w") as archive:
                for number, shard in enumerate(self._actors):
                    content: bytes = result(future_of(shard.exported.remote()))
                    member = tarfile.TarInfo(f"shard-{number}.shoal")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
        except BaseException:
            path.unlink()
            raise
        return path

    @property
    def is_ready(self) -> bool:
        """Can all shards learn?"""
        try:
            return all(ray.get([actor.is_ready.remote() for actor in self._actors], timeout=PATIENCE))
        except AWAY:
            return False

    def processes(self) -> list[int]:
        """The numbers of the shards' processes."""
        return list(ray.get([actor.process.remote() for actor in self._actors]))

    def close(self) -> None:
        """Learn all that was accepted, take last snapshots, end the shards."""
        for actor in self._actors:
            with suppress(*AWAY):  # it comes back from its log at the next start
                ray.get(actor.close.remote())
            ray.kill(actor)

    # ---- inside ----------------------------------------------------------------------------------------------

    def _shard(self, task: str) -> int:
        return int(shards_of([task], len(self._actors))[0])

    def _parts(self, rows: Rows) -> list[Part]:
        """Rows by shard, in their order."""
        names = self._about["task"]
        missing = [name for name in names if name not in rows.frame.columns]
        if missing:
            raise Refused(*(Fault(None, name, f"the rows have no column {name!r}") for name in missing))
        shards, problems = shards_of_rows(rows.frame, names, len(self._actors))
        if problems:
            raise Refused(*(Fault(row, names[0], sentence) for row, sentence in problems))
        found = [(int(shard), np.flatnonzero(shards == shard)) for shard in np.unique(shards)]
        return [Part(shard, places, Rows(rows.frame[places], rows.strings)) for shard, places in found]

    def _checked(self, parts: Sequence[Part]) -> Future[None]:
        """Done when all shards could take their parts; it raises Refused for all that could not."""
        asked = [future_of(self._actors[part.shard].check.remote(part.rows)) for part in parts]

        def join(done: list[Future[Any]]) -> None:
            faults: list[Fault] = []
            for part, one in zip(parts, done, strict=True):
                try:
                    result(one)
                except Refused as error:
                    rows = [None if fault.row is None else int(part.places[fault.row]) for fault in error.faults]
                    faults += [fault._replace(row=row) for fault, row in zip(error.faults, rows, strict=True)]
            if faults:
                raise Refused(*sorted(faults, key=lambda fault: fault.row or 0))

        return when_done(asked, join)

    def _ask(self, shard: int, verb: str, *arguments: Any, **options: Any) -> Future[Any]:
        return future_of(self._actors[shard].ask.remote(verb, *arguments, **options))

    def _ask_all(self, verb: str, *arguments: Any, patience: float | None = PATIENCE) -> list[Any]:
        try:
            return list(ray.get([actor.ask.remote(verb, *arguments) for actor in self._actors], timeout=patience))
        except (*AWAY, RayTaskError) as error:
            raise_as_said(error)

    def _of_shard(self, shard: int, rows: Sequence[Mapping[str, Any]], wait: bool) -> Future[list[Any]]:
        asked = self._answered(shard, lambda n, wait: self._rows[n].predict_each(rows, wait), wait)
        return joined([asked], lambda found: [_with_shard(one, shard) for one in found[0]])

    def _answered(self, shard: int, ask: Callable[[int, bool], Future[Any]], wait: bool) -> Future[Any]:
        """A shard's answers; of one that is away another's, if that is wanted."""
        asked = ask(shard, wait)
        if not self._fallback or len(self._actors) == 1:
            return asked
        answered: Future[Any] = Future()

        def then(done: Future[Any]) -> None:
            if not isinstance(done.exception(), AWAY):
                copy_to(done, answered)
                return
            other = ask((shard + 1) % len(self._actors), False)
            other.add_done_callback(lambda found: copy_to(found, answered, _as_unknown))

        asked.add_done_callback(then)
        return answered


def _with_shard(answer: Any, shard: int) -> Any:
    """An answer whose id says where its row waits; an error as it is."""
    if not isinstance(answer, Answer) or answer.id is None:
        return answer
    return answer._replace(id=f"{shard}{MARK}{answer.id}")


def _receipt(found: list[Receipt]) -> Receipt:
    rows, repeated = sum(one.rows for one in found), all(one.repeated for one in found)
    return Receipt(max(one.position for one in found), rows, repeated)


def _as_unknown(found: Any) -> Any:
    """Answers that do not come from where their tasks are."""
    return [one._replace(known_task=False) if isinstance(one, Answer) else one for one in found]
