"""The service of several shards behind the contract of one engine: requests go to the shard of their task.

Each shard is an engine with its own log and snapshots in a Ray process (`ShardEngine`), so the guarantees of one engine
hold for each shard. Shards do not exchange the state that tasks share: with many tasks that costs next to nothing
(docs/cluster.md). If a shard dies, Ray restarts it from its snapshot and log; the others answer meanwhile.
"""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

import numpy as np
import ray
from ray.exceptions import RayTaskError

from shoal.cluster import batched_calls
from shoal.cluster.actors import start_ray
from shoal.cluster.placement import shards_of, shards_of_rows, tasks_frame
from shoal.engine.arrays import IntArray
from shoal.serve import contract
from shoal.serve.commands import now
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.model_changes import OF_SHARDS
from shoal.serve.statistics import MOST_POINTS, added
from shoal.tabular.reasons import Reasons

if TYPE_CHECKING:
    from shoal.cluster.topic_per_shard import TopicFollower, TopicPerShard

PATIENCE = 10.0  # seconds for an answer of all shards
AT_ONCE = 64  # concurrent requests of a shard
MARK = "."  # between a shard's number and the id that it gave
MEANS = ("error", "loss", "auc", "calibration", "coverage")  # gauges that are means over rows; the others are sums

Ask = Callable[..., Future[Any]]  # (shard, method, arguments)


class ShardRows(NamedTuple):
    """The rows of a request that one shard gets."""

    shard: int
    numbers: IntArray  # of the rows in the request
    rows: contract.Rows


class ShardedService:
    """Engines on a Ray cluster as one service. A pickled copy in another process asks the same engines.

    Parameters
    ----------
    actors : list of Ray's handles of `ShardEngine`
    folder : Path
        The folder of their logs and snapshots.
    fallback : bool
        If a shard is down, let another one answer for its tasks as for unknown tasks, without an id; else they are
        unavailable.

    Raises
    ------
    ValueError
        If the model has no tasks.
    """

    def __init__(self, actors: list[Any], folder: Path, *, fallback: bool = False) -> None:
        self._actors = actors
        self._batchers = [batched_calls.CallBatcher(actor) for actor in self._actors]
        self._fallback, self.folder = fallback, folder
        self._about = self._ask_all("describe", patience=None)[0]
        self._topics = TopicFanout(self._ask, len(actors), self._about["task"])
        self.more_gauges: Callable[[], Mapping[str, float]] = dict  # of the service's Kafka follower
        if not self._about["task"]:
            self.close()
            raise ValueError("the model has no tasks, so there is nothing to share out")

    @classmethod
    def start(
        cls,
        model: Path,
        folder: Path,
        settings: EngineSettings,
        *,
        shards: int,
        fallback: bool = False,
        options: Mapping[str, Any] | None = None,
        offsets: Mapping[str, int] | None = None,
        source: TopicPerShard | None = None,
    ) -> Self:
        """Start the engines, too; `close` ends them.

        Parameters
        ----------
        model : Path
            A file that `shoal run --save` wrote: every shard begins with it.
        folder : Path
            Gets a folder for each shard. Several machines need storage that all of them see.
        settings : EngineSettings
        shards : int >= 1
            A folder that was made for another number is refused.
        options : mapping, optional
            Ray's options of an actor.
        offsets : mapping, optional
            The next message of each "topic/partition" that the model has not learned.
        source : TopicPerShard, optional
            Topics that shards follow, one each.
        """
        existing = len(list(folder.glob("shard-*")))
        if existing not in (0, shards):
            raise ValueError(f"{folder} holds {existing} shards; tasks do not move between shards of a service")
        if settings.log is not None:
            raise ValueError("each shard has a log of its own in its folder: leave out the log's address")
        return cls(start_engines(model, folder, settings, shards, options, offsets, source), folder, fallback=fallback)

    def __reduce__(self) -> Any:
        return partial(type(self), fallback=self._fallback), (self._actors, self.folder)

    # ---- rows ------------------------------------------------------------------------------------------------

    def predict(self, rows: contract.Rows, *, wait: bool = True) -> Future[list[contract.Answer]]:
        """Answers in the order of the rows; with `wait`, the logs keep the rows for their labels before it is done."""
        parts = self._parts(rows)

        def join(found: list[list[contract.Answer]]) -> list[contract.Answer]:
            answers: list[Any] = [None] * rows.frame.height
            for part, some in zip(parts, found, strict=True):
                for place, answer in zip(part.numbers.tolist(), some, strict=True):
                    answers[place] = _with_shard(answer, part.shard)
            return answers

        def ask(rows: contract.Rows) -> Callable[[int, bool], Future[Any]]:
            return lambda shard, wait: self._ask(shard, "predict", rows, wait=wait)

        return batched_calls.joined([self._answered(part.shard, ask(part.rows), wait) for part in parts], join)

    def predict_each(self, rows: Sequence[Mapping[str, Any]], *, wait: bool = True) -> list[contract.Pending]:
        """The same for single rows of JSON values: the rows of a shard are answered together."""
        names = self._about["task"]
        shards, problems = shards_of_rows(tasks_frame(rows, names), names, len(self._actors))
        for row, _ in problems:
            shards[row] = -1  # of no shard
        found = [
            contract.Pending([row], now([contract.Refused(contract.Fault(0, names[0], sentence))]))
            for row, sentence in problems
        ]
        for shard in np.unique(shards[shards >= 0]).tolist():
            places = np.flatnonzero(shards == shard).tolist()
            found.append(contract.Pending(places, self._of_shard(shard, [rows[place] for place in places], wait)))
        return found

    def learn(self, rows: contract.Rows, key: str | None = None) -> Future[contract.Receipt]:
        """Done when the rows are in the logs of their shards.

        If one shard refuses its rows, none learns any. If a shard goes away after all have agreed, the request fails;
        sent again with its key, it is completed.
        """
        parts = self._parts(rows)

        def learn(_: object = None) -> Future[contract.Receipt]:
            return batched_calls.joined([self._ask(part.shard, "learn", part.rows, key) for part in parts], _receipt)

        return learn() if len(parts) == 1 else batched_calls.chained(self._checked(parts), learn)

    def label(self, labels: Sequence[tuple[str, Any]], key: str | None = None) -> Future[contract.LabelReceipt]:
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

        def join(found: list[contract.LabelReceipt]) -> contract.LabelReceipt:
            late: list[str] = []
            double: list[str] = []
            none: list[str] = []
            for shard, receipt in zip(shards, found, strict=True):
                for some, own in ((late, receipt.late), (double, receipt.double), (none, receipt.unknown)):
                    some += [f"{shard}{MARK}{one}" for one in own]
            positions = [receipt.position for receipt in found if receipt.position is not None]
            repeated = bool(found) and all(receipt.repeated for receipt in found)
            accepted = sum(receipt.accepted for receipt in found)
            return contract.LabelReceipt(
                max(positions, default=None), accepted, late, double, [*unknown, *none], repeated
            )

        return batched_calls.joined([self._ask(shard, "label", by_shard[shard], key) for shard in shards], join)

    def worth(self, rows: contract.Rows) -> list[contract.Worth]:
        """How much each row's label is worth asking for; nothing changes."""
        return self._of_rows("worth", rows)

    def explain(self, rows: contract.Rows) -> list[Reasons]:
        """Why the forecast of each row is what it is; nothing changes."""
        return self._of_rows("explain", rows)

    def _of_rows(self, verb: str, rows: contract.Rows) -> list[Any]:
        found: list[Any] = [None] * rows.frame.height
        parts = self._parts(rows)
        futures = [self._ask(part.shard, verb, part.rows) for part in parts]
        for part, future in zip(parts, futures, strict=True):
            for place, one in zip(part.numbers.tolist(), batched_calls.result(future), strict=True):
                found[place] = one
        return found

    def follow(self, messages: contract.Messages) -> Future[contract.Followed]:
        """Done when each row is in the log of its shard, and the offsets are in all logs."""
        return self._topics.follow(messages)

    def offsets(self) -> dict[str, int]:
        """The next message of each partition that not all shards have taken, by "topic/partition"."""
        return self._topics.offsets()

    # ---- tasks -----------------------------------------------------------------------------------------------

    def forget(self, task: str) -> Future[contract.Receipt]:
        """Forget a task."""
        return batched_calls.joined([self._ask(self._shard(task), "forget", task)], _receipt)

    def task(self, task: str) -> Mapping[str, Any]:
        """Facts about one task. Raises UnknownTask."""
        found: Mapping[str, Any] = batched_calls.result(self._ask(self._shard(task), "task", task))
        return found

    def list_tasks(self, sort: str, text: str, first: int, n: int) -> tuple[list[Mapping[str, Any]], int]:
        """Some tasks with their counts since the service began, and the number of tasks whose ids contain the text."""
        found = self._ask_all("list_tasks", sort, text, 0, first + n)
        tasks = [one for one in chain.from_iterable(zip_longest(*(some for some, _ in found))) if one is not None]
        if sort in ("rows", "error", "loss"):
            tasks.sort(key=lambda one: -one.get(sort, 0.0))
        elif sort == "auc":
            tasks.sort(key=lambda one: one.get(sort, 2.0))
        elif sort == "name":
            tasks.sort(key=lambda one: str(one["task"]))
        return tasks[first : first + n], sum(total for _, total in found)

    # ---- changing the model ----------------------------------------------------------------------------------

    def new_file(self) -> Path:
        """Raises Refused."""
        return self._unchanged()

    def has_taken(self, file: Path) -> bool:
        """Raises Refused."""
        return self._unchanged()

    def change(self, what: str, file: Path | None = None) -> contract.Receipt:
        """Raises Refused."""
        return self._unchanged()

    def _unchanged(self) -> NoReturn:
        raise contract.Refused(contract.Fault(None, None, OF_SHARDS))

    # ---- all shards ------------------------------------------------------------------------------------------

    def describe(self) -> Mapping[str, Any]:
        """The model in plain values; counts are of all shards."""
        found = self._ask_all("describe")
        sums = {name: sum(one[name] for one in found) for name in ("learned", "logged", "rows", "tasks")}
        features = max(one["features"] for one in found)
        return {**found[0], **sums, "features": features, "shards": len(found)}

    def gauges(self) -> Mapping[str, float]:
        """Numbers for dashboards, over all shards."""
        return {**gauges_of_all(self._ask_all("gauges")), **self.more_gauges()}

    def overview(self) -> Mapping[str, Any]:
        """The content of the page."""
        found = overview_of_all(self._ask_all("overview"))
        found["model"] = {**found["model"], "name": self.folder.name}
        return {**found, "gauges": {**found["gauges"], **self.more_gauges()}}

    def export(self) -> Path:
        """A tar file of the shards' models, which the caller deletes.

        Each model holds the tasks of its shard up to date, and the others as they were at the start.
        """
        with tempfile.NamedTemporaryFile(prefix="export-", suffix=".tar", delete=False) as file:
            path = Path(file.name)
        try:
            with tarfile.open(path, "w") as archive:
                for number, shard in enumerate(self._actors):
                    content: bytes = batched_calls.result(batched_calls.future_of(shard.exported.remote()))
                    member = tarfile.TarInfo(f"shard-{number}.shoal")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
        except BaseException:
            path.unlink()
            raise
        return path

    @property
    def trouble(self) -> str:
        """Why not all shards can learn now; empty if all is well."""
        try:
            found = ray.get([actor.trouble.remote() for actor in self._actors], timeout=PATIENCE)
        except batched_calls.AWAY:
            return "a shard is down"
        return next((f"shard {number}: {trouble}" for number, trouble in enumerate(found) if trouble), "")

    def processes(self) -> list[int]:
        """The numbers of the shards' processes."""
        return list(ray.get([actor.process.remote() for actor in self._actors]))

    def close(self) -> None:
        """Learn all accepted rows, take last snapshots, end the shards."""
        for actor in self._actors:
            with suppress(*batched_calls.AWAY):  # the next start restores it from its log
                ray.get(actor.close.remote())
            ray.kill(actor)

    # ---- routing ---------------------------------------------------------------------------------------------

    def _shard(self, task: str) -> int:
        return int(shards_of([task], len(self._actors))[0])

    def _parts(self, rows: contract.Rows) -> list[ShardRows]:
        """Rows by shard, in their order."""
        names = self._about["task"]
        missing = [name for name in names if name not in rows.frame.columns]
        if missing:
            raise contract.Refused(
                *(contract.Fault(None, name, f"the rows have no column {name!r}") for name in missing)
            )
        shards, problems = shards_of_rows(rows.frame, names, len(self._actors))
        if problems:
            raise contract.Refused(*(contract.Fault(row, names[0], sentence) for row, sentence in problems))
        found = [(int(shard), np.flatnonzero(shards == shard)) for shard in np.unique(shards)]
        return [ShardRows(shard, numbers, contract.Rows(rows.frame[numbers], rows.strings)) for shard, numbers in found]

    def _checked(self, parts: Sequence[ShardRows]) -> Future[None]:
        """Done when all shards accept their rows; raises one Refused with the faults of all shards."""
        futures = [batched_calls.future_of(self._actors[part.shard].check.remote(part.rows)) for part in parts]

        def join(done: list[Future[Any]]) -> None:
            faults: list[contract.Fault] = []
            for part, one in zip(parts, done, strict=True):
                try:
                    batched_calls.result(one)
                except contract.Refused as error:
                    rows = [None if fault.row is None else int(part.numbers[fault.row]) for fault in error.faults]
                    faults += [fault._replace(row=row) for fault, row in zip(error.faults, rows, strict=True)]
            if faults:
                raise contract.Refused(*sorted(faults, key=lambda fault: fault.row or 0))

        return batched_calls.when_done(futures, join)

    def _ask(self, shard: int, verb: str, *arguments: Any, **options: Any) -> Future[Any]:
        return batched_calls.future_of(self._actors[shard].ask.remote(verb, *arguments, **options))

    def _ask_all(self, verb: str, *arguments: Any, patience: float | None = PATIENCE) -> list[Any]:
        try:
            return list(ray.get([actor.ask.remote(verb, *arguments) for actor in self._actors], timeout=patience))
        except (*batched_calls.AWAY, RayTaskError) as error:
            batched_calls.raise_for_contract(error)

    def _of_shard(self, shard: int, rows: Sequence[Mapping[str, Any]], wait: bool) -> Future[list[Any]]:
        answers = self._answered(shard, lambda n, wait: self._batchers[n].predict_each(rows, wait), wait)
        return batched_calls.joined([answers], lambda found: [_with_shard(one, shard) for one in found[0]])

    def _answered(self, shard: int, ask: Callable[[int, bool], Future[Any]], wait: bool) -> Future[Any]:
        """A shard's answers; with `fallback`, another shard's if it is away."""
        first = ask(shard, wait)
        if not self._fallback or len(self._actors) == 1:
            return first
        answered: Future[Any] = Future()

        def then(done: Future[Any]) -> None:
            if not isinstance(done.exception(), batched_calls.AWAY):
                batched_calls.copy_to(done, answered)
                return
            other = ask((shard + 1) % len(self._actors), False)
            other.add_done_callback(lambda found: batched_calls.copy_to(found, answered, _as_unknown))

        first.add_done_callback(then)
        return answered


def _with_shard(answer: Any, shard: int) -> Any:
    """The answer with the shard's number in its id; an error as it is."""
    if not isinstance(answer, contract.Answer) or answer.id is None:
        return answer
    return answer._replace(id=f"{shard}{MARK}{answer.id}")


def _receipt(found: list[contract.Receipt]) -> contract.Receipt:
    rows, repeated = sum(one.rows for one in found), all(one.repeated for one in found)
    note = next((one.note for one in found if one.note), None)
    return contract.Receipt(max(one.position for one in found), rows, repeated, note)


def _as_unknown(found: Any) -> Any:
    """Answers of a shard that does not have the rows' tasks."""
    return [one._replace(known_task=False) if isinstance(one, contract.Answer) else one for one in found]


# ---- the shard's end -----------------------------------------------------------------------------------------


class ShardEngine:
    """The actor: an engine's methods, with answers that can be sent between processes.

    Every shard begins with the whole model. The tasks of other shards stay in it unchanged and are not counted.
    """

    def __init__(
        self,
        model: Path,
        folder: Path,
        settings: EngineSettings,
        shard: int,
        n_shards: int,
        offsets: Mapping[str, int],
        source: TopicPerShard | None,
    ) -> None:
        self._engine = Engine(model, folder, settings, offsets=offsets)
        tasks = list(self._engine.tasks())
        self._n_foreign = int((shards_of(tasks, n_shards) != shard).sum())  # new tasks are always its own
        self._topic: TopicFollower | None = None
        if source is not None:
            from shoal.cluster.topic_per_shard import TopicFollower

            self._topic = TopicFollower(self._engine, source, shard, n_shards)
            self._engine.more_gauges = self._topic.gauges

    def ask(self, verb: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the engine; wait for its answer."""
        if verb in ("describe", "gauges"):
            return self._own(getattr(self._engine, verb)())
        if verb == "overview":
            seen = self._engine.overview()
            return {**seen, "gauges": self._own(seen["gauges"])}
        found = getattr(self._engine, verb)(*arguments, **options)
        if isinstance(found, Future):
            return found.result()
        return dict(found) if isinstance(found, Mapping) else found

    def _own(self, found: Mapping[str, Any]) -> dict[str, Any]:
        return {**found, "tasks": found["tasks"] - self._n_foreign}

    def predict_each(self, rows: Sequence[Mapping[str, Any]], wait: bool) -> list[Any]:
        """The answer to each row, or its error."""
        found: list[Any] = [None] * len(rows)
        for places, answers in self._engine.predict_each(rows, wait=wait):
            for place, one in zip(places, answers.result(), strict=True):
                found[place] = one
        return found

    def check(self, rows: contract.Rows) -> None:
        """Raise Refused if the rows cannot be learned."""
        self._engine.check(rows)

    def exported(self) -> bytes:
        """The bytes of the model file."""
        path = self._engine.export()
        try:
            return path.read_bytes()
        finally:
            path.unlink()

    def trouble(self) -> str:
        """Why it cannot learn now; empty if all is well."""
        return self._engine.trouble

    def close(self) -> None:
        """Learn all accepted rows, then take a last snapshot."""
        if self._topic is not None:
            self._topic.stop()
        self._engine.close()

    def process(self) -> int:
        """The number of the process."""
        return os.getpid()


def start_engines(
    model: Path,
    folder: Path,
    settings: EngineSettings,
    n: int,
    options: Mapping[str, Any] | None = None,
    offsets: Mapping[str, int] | None = None,
    source: TopicPerShard | None = None,
) -> list[Any]:
    """Start n shards of a model, each with its own folder and, with a source, its own topic."""
    start_ray()
    chosen = {"num_cpus": 0, **(options or {}), "max_restarts": -1, "max_task_retries": 0, "max_concurrency": AT_ONCE}
    actor = ray.remote(ShardEngine).options(**chosen)
    return [actor.remote(model, folder / f"shard-{i}", settings, i, n, offsets or {}, source) for i in range(n)]


# ---- a topic for all shards ----------------------------------------------------------------------------------


class TopicFanout:
    """One Kafka topic for all shards: each message goes to the shard of its task, exactly once.

    Every shard's log holds, next to its rows, how far the shard has read each partition. All shards get all messages,
    and each skips those that it has passed. If some shards took messages while another was away, the messages are sent
    to all again, and no shard learns one twice.

    Parameters
    ----------
    ask : function of (shard, method, *arguments)
        Gives a future of the answer.
    shards : int
    task : sequence of str
        The columns of the task ids.
    """

    def __init__(self, ask: Ask, shards: int, task: Sequence[str]) -> None:
        self._ask, self._n, self._task = ask, shards, task
        self._offsets: list[dict[str, int] | None] = [None] * shards  # None: the shard has to be asked

    def offsets(self) -> dict[str, int]:
        """The next message of each partition, such that no shard misses one. Raises Unavailable."""
        every = [self._of(shard) for shard in range(self._n)]
        return {name: min(each[name] for each in every) for name in every[0] if all(name in each for each in every)}

    def follow(self, messages: contract.Messages) -> Future[contract.Followed]:
        """Done when each row is in the log of its shard, and the offsets are in all logs.

        Raises
        ------
        Refused
            If labels come apart from rows: a label does not tell which shard has its row.
        Unavailable
            If a shard is down.
        """
        if messages.unlabeled or messages.labels:
            raise contract.Refused(contract.Fault(None, None, "labels from a topic of their own need one engine"))
        parts: list[tuple[int, dict[str, int], contract.Messages]] = []
        shards, problems = shards_of_rows(tasks_frame(messages.labeled, self._task), self._task, self._n)
        shards[[row for row, _ in problems]] = 0  # which refuses them
        for shard in range(self._n):
            own = self._of(shard)
            own_rows = [
                (row, (source, offset))
                for row, to, (source, offset) in zip(messages.labeled, shards.tolist(), messages.sources, strict=True)
                if to == shard and offset >= own.get(source, 0)
            ]
            further = {name: offset for name, offset in messages.offsets.items() if offset > own.get(name, 0)}
            if further:
                rows, sources = [row for row, _ in own_rows], [source for _, source in own_rows]
                parts.append((shard, own, contract.Messages(rows, [], [], further, sources)))
        futures = [self._ask(shard, "follow", part) for shard, _, part in parts]

        def join(done: list[Future[Any]]) -> contract.Followed:
            for (shard, own, part), one in zip(parts, done, strict=True):
                self._offsets[shard] = None if one.exception() else {**own, **part.offsets}
            found = [batched_calls.result(one) for one in done]
            position = max((one.position for one in found if one.position is not None), default=None)
            refused = tuple(fault for one in found for fault in one.refused)
            return contract.Followed(
                position, sum(one.rows for one in found), sum(one.double for one in found), refused
            )

        return batched_calls.when_done(futures, join)

    def _of(self, shard: int) -> dict[str, int]:
        known = self._offsets[shard]
        if known is None:
            known = self._offsets[shard] = dict(batched_calls.result(self._ask(shard, "offsets")))
        return known


# ---- counts of all shards ------------------------------------------------------------------------------------


def gauges_of_all(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Gauges over all shards: sums, means over rows for `MEANS`, and the largest age."""
    gauges: dict[str, float] = {}
    for name in dict.fromkeys(name for one in found for name in one):
        of_name = [one for one in found if name in one]
        values = np.array([one[name] for one in of_name], np.float64)
        if name == "error_of_worst_task" or name.endswith("_seconds"):
            gauges[name] = float(values.max())
        elif name == "coverage_of_worst_task":
            gauges[name] = float(values.min())
        elif name.startswith(MEANS):
            rows = np.array([one["rows_judged"] for one in of_name], np.float64)
            gauges[name] = float(values @ rows / max(rows.sum(), 1.0))
        else:
            gauges[name] = float(values.sum())
    return gauges


def overview_of_all(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The content of the page over all shards; facts about the learner are the same in each."""
    rows = np.array([one["rows"] for one in found], np.float64)
    weights = rows / max(rows.sum(), 1.0)
    means = {name: (weights @ np.array([one[name] for one in found])).tolist() for name in ("errors", "losses")}
    sums = {name: sum(one[name] for one in found) for name in ("rows", "rows_a_second", "tasks")}
    calibration = np.sum([one["calibration"] for one in found], axis=0).tolist()
    points = sorted((point for one in found for point in one["points"]), key=lambda point: point[1])
    while len(points) > MOST_POINTS:
        points = [added(*points[i : i + 2]) if i + 1 < len(points) else points[i] for i in range(0, len(points), 2)]
    gauges = gauges_of_all([one["gauges"] for one in found])
    return {**found[0], **sums, **means, "calibration": calibration, "points": points, "gauges": gauges}
