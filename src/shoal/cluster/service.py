"""The service of several shards, behind the same contract as one engine: requests go to the shard of their task.

Each shard is an engine with a log and snapshots of its own, so what one engine keeps is kept here, shard by shard.
Shards do not exchange what tasks share: with many tasks that costs next to nothing (docs/cluster.md). A shard that dies
is started again by Ray; the others answer meanwhile.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import polars as pl
import ray
from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError, RayTaskError

from shoal.cluster.engines import start_engines
from shoal.cluster.routing import shards_of
from shoal.cluster.together import Together
from shoal.engine.arrays import IntArray
from shoal.files.tables.targets import Tasks
from shoal.serve.bodies import as_text
from shoal.serve.contract import (
    Answer,
    Fault,
    Followed,
    LabelReceipt,
    Messages,
    Receipt,
    Refused,
    Rows,
    Unavailable,
    Worth,
)
from shoal.serve.engine import EngineSettings

AWAY = (RayActorError, ObjectLostError, GetTimeoutError)
PATIENCE = 10.0  # seconds for what is asked of all shards
MARK = "."  # between a shard's number and the id that it gave
MEANS = ("error", "loss", "calibration")  # gauges that are means over rows; of others, sums


class Part(NamedTuple):
    """What one shard gets of some rows."""

    shard: int
    places: IntArray  # where they were
    rows: Rows


class ShardedService:
    """Engines on a Ray cluster, as one service.

    Parameters
    ----------
    model : Path
        What `shoal run --save` wrote: where every shard begins.
    folder : Path
        Has a folder for each shard. On several machines it must be storage that all of them see.
    settings : EngineSettings
    shards : int >= 1
        How many; a folder that was made for another number is refused.
    fallback : bool
        Whether tasks of a shard that is away are answered by another shard, as tasks that are not known, without an id;
        else they are unavailable.

    Raises
    ------
    ValueError
        If the model has no tasks, or the folder is of another number of shards.
    """

    def __init__(
        self, model: Path, folder: Path, settings: EngineSettings, *, shards: int, fallback: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        there = len(list(folder.glob("shard-*")))
        if there not in (0, shards):
            raise ValueError(f"{folder} holds {there} shards; tasks do not move between shards of a service")
        if settings.log is not None:
            raise ValueError("each shard has a log of its own in its folder: leave out the log's address")
        self._actors = start_engines(model, folder, settings, shards, options)
        self._rows = [Together(actor) for actor in self._actors]
        self._fallback, self.folder = fallback, folder
        self._about = self._ask_all("describe", patience=None)[0]
        if not self._about["task"]:
            self.close()
            raise ValueError("the model has no tasks, so there is nothing to share out")

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

        return _joined([self._answered(part.shard, ask(part.rows), wait) for part in parts], join)

    def predict_one(self, row: Mapping[str, Any], *, wait: bool = True) -> Future[Answer]:
        """The same of one row of JSON values."""
        names = self._about["task"]
        if any(as_text(row.get(name)) in (None, "") for name in names):
            name = next(name for name in names if as_text(row.get(name)) in (None, ""))
            raise Refused(Fault(0, name, f"column {name!r} is empty, expected the id of a task"))
        task = Tasks(names).read(pl.DataFrame({name: [as_text(row[name])] for name in names}))[0]
        shard = int(shards_of(task.tolist(), len(self._actors))[0])
        asked = self._answered(shard, lambda n, wait: self._rows[n].predict_one(row, wait), wait)
        return _joined([asked], lambda found: _with_shard(found[0], shard))

    def learn(self, rows: Rows, key: str | None = None) -> Future[Receipt]:
        """Done when the rows are in the logs of their shards. If one of these cannot take its part, none does, unless
        it goes away in between: asked again with its key, the request is then completed."""
        parts = self._parts(rows)

        def learn(_: object = None) -> Future[Receipt]:
            return _joined([self._ask(part.shard, "learn", part.rows, key) for part in parts], _receipt)

        return learn() if len(parts) == 1 else _chained(self._checked(parts), learn)

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

        return _joined([self._ask(shard, "label", by_shard[shard], key) for shard in shards], join)

    def worth(self, rows: Rows) -> list[Worth]:
        """Which labels are worth asking for; nothing changes."""
        found: list[Any] = [None] * rows.frame.height
        parts = self._parts(rows)
        asked = [self._ask(part.shard, "worth", part.rows) for part in parts]
        for part, future in zip(parts, asked, strict=True):
            for place, one in zip(part.places.tolist(), _result(future), strict=True):
                found[place] = one
        return found

    def follow(self, messages: Messages) -> Future[Followed]:
        """Not here: each shard would need the whole topic."""
        raise Refused(Fault(None, None, "a service of several shards follows no topic"))

    # ---- tasks -----------------------------------------------------------------------------------------------

    def forget(self, task: str) -> Future[Receipt]:
        """Forget a task."""
        return _joined([self._ask(self._shard(task), "forget", task)], _receipt)

    def task(self, task: str) -> Mapping[str, Any]:
        """What is known of one task. Raises UnknownTask."""
        found: Mapping[str, Any] = _result(self._ask(self._shard(task), "task", task))
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
        found = self._ask_all("gauges")
        rows = [one["rows_judged"] for one in found]
        gauges: Counter[str] = Counter()
        for one, n in zip(found, rows, strict=True):
            for name, value in one.items():
                if name.startswith(MEANS):
                    gauges[name] += value * n / max(sum(rows), 1)
                elif name.endswith("_seconds"):
                    gauges[name] = max(gauges[name], value)
                else:
                    gauges[name] += value
        return gauges

    def export(self) -> Path:
        """Not here: there is a model for each shard."""
        raise Refused(Fault(None, None, f"each shard has a model of its own: the snapshots in {self.folder}"))

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
        tasks, problems = Tasks(names).read(rows.frame)
        if problems:
            raise Refused(*(Fault(row, names[0], sentence) for row, sentence in problems))
        shards = shards_of(tasks.tolist(), len(self._actors))
        found = [(int(shard), np.flatnonzero(shards == shard)) for shard in np.unique(shards)]
        return [Part(shard, places, Rows(rows.frame[places], rows.strings)) for shard, places in found]

    def _checked(self, parts: Sequence[Part]) -> Future[None]:
        """Done when all shards could take their parts; it raises Refused for all that could not."""
        asked = [_future(self._actors[part.shard].check.remote(part.rows)) for part in parts]

        def join(done: list[Future[Any]]) -> None:
            faults: list[Fault] = []
            for part, one in zip(parts, done, strict=True):
                try:
                    _result(one)
                except Refused as error:
                    rows = [None if fault.row is None else int(part.places[fault.row]) for fault in error.faults]
                    faults += [fault._replace(row=row) for fault, row in zip(error.faults, rows, strict=True)]
            if faults:
                raise Refused(*sorted(faults, key=lambda fault: fault.row or 0))

        return _when_done(asked, join)

    def _ask(self, shard: int, verb: str, *arguments: Any, **options: Any) -> Future[Any]:
        return _future(self._actors[shard].ask.remote(verb, *arguments, **options))

    def _ask_all(self, verb: str, *arguments: Any, patience: float | None = PATIENCE) -> list[Any]:
        try:
            return list(ray.get([actor.ask.remote(verb, *arguments) for actor in self._actors], timeout=patience))
        except (*AWAY, RayTaskError) as error:
            _raise(error)

    def _answered(self, shard: int, ask: Callable[[int, bool], Future[Any]], wait: bool) -> Future[Any]:
        """A shard's answers; of one that is away another's, if that is wanted."""
        asked = ask(shard, wait)
        if not self._fallback or len(self._actors) == 1:
            return asked
        answered: Future[Any] = Future()

        def then(done: Future[Any]) -> None:
            if not isinstance(done.exception(), AWAY):
                _copy(done, answered)
                return
            other = ask((shard + 1) % len(self._actors), False)
            other.add_done_callback(lambda found: _copy(found, answered, _as_unknown))

        asked.add_done_callback(then)
        return answered


def _with_shard(answer: Answer, shard: int) -> Answer:
    return answer if answer.id is None else answer._replace(id=f"{shard}{MARK}{answer.id}")


def _receipt(found: list[Receipt]) -> Receipt:
    rows, repeated = sum(one.rows for one in found), all(one.repeated for one in found)
    return Receipt(max(one.position for one in found), rows, repeated)


def _future(reference: Any) -> Future[Any]:
    found: Future[Any] = reference.future()
    return found


def _as_unknown(found: Any) -> Any:
    """Answers that do not come from where their tasks are."""
    return found._replace(known_task=False) if isinstance(found, Answer) else [_as_unknown(one) for one in found]


def _copy(done: Future[Any], to: Future[Any], edited: Callable[[Any], Any] = lambda found: found) -> None:
    error = done.exception()
    if error is None:
        to.set_result(edited(done.result()))
    else:
        to.set_exception(error)


def _joined(asked: Sequence[Future[Any]], join: Callable[[list[Any]], Any]) -> Future[Any]:
    """What comes of several answers, when all are there."""
    return _when_done(asked, lambda done: join([_result(one) for one in done]))


def _when_done(asked: Sequence[Future[Any]], join: Callable[[list[Future[Any]]], Any]) -> Future[Any]:
    joined: Future[Any] = Future()
    missing, counting = len(asked), threading.Lock()

    def finish() -> None:
        try:
            joined.set_result(join(list(asked)))
        except Exception as error:
            joined.set_exception(error)

    def one_more(_: object) -> None:
        nonlocal missing
        with counting:
            missing -= 1
            last = missing == 0
        if last:
            finish()

    if not asked:
        finish()
    for one in asked:
        one.add_done_callback(one_more)
    return joined


def _chained(first: Future[Any], then: Callable[[Any], Future[Any]]) -> Future[Any]:
    """What comes of the first, or what it raises."""
    chained: Future[Any] = Future()

    def go_on(done: Future[Any]) -> None:
        try:
            then(done.result()).add_done_callback(lambda found: _copy(found, chained))
        except Exception as error:
            chained.set_exception(error)

    first.add_done_callback(go_on)
    return chained


def _result(future: Future[Any]) -> Any:
    try:
        return future.result()
    except (*AWAY, RayTaskError) as error:
        _raise(error)


def _raise(error: BaseException) -> NoReturn:
    """What the contract has for it."""
    if isinstance(error, RayTaskError) and isinstance(error.cause, Exception):
        raise error.cause from None
    raise Unavailable("a shard is away; it comes back from its snapshot and log") from None
