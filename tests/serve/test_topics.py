"""Topics by themselves: rows and labels read and joined by their ids, commits and a clock that the test holds."""

from __future__ import annotations

import json
import logging
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError
from tests.serve.material import records, rows, write_model

from shoal.serve.contract import Busy, Fault, Followed, LimitExceeded, Messages, Rows, Unavailable
from shoal.serve.kafka.address import Address, read_settings
from shoal.serve.kafka.follower import PARTITIONS_SECONDS, PAUSE, Follower
from shoal.serve.kafka.messages import Columns, Message, read_messages
from shoal.serve.kafka.topic import Topics
from shoal.serve.log import Half
from shoal.serve.model_changes import Models
from shoal.serve.row_codec import JSON, pack
from shoal.serve.served_model import ServedModel
from shoal.serve.topic_join import Joined, ids_of, join, without_faults


def messages(*unlabeled: tuple[str, Any], labels: Any = (), labeled: Any = ()) -> Messages:
    return Messages(labeled, unlabeled, labels, {}, [("mails/2", 40 + i) for i in range(len(labeled))])


def whole(found: Joined) -> list[tuple[Any, ...]]:
    return [] if found.rows is None else found.rows.frame.select("size", "spam").rows()


def test_a_row_and_its_label_join_whichever_comes_first() -> None:
    asked = messages(("a", {"size": 1}), ("b", {"size": 2}), labels=[("b", True), ("c", None)])
    assert ids_of(asked) == ["a", "b", "c"]
    first = join(asked, {}, "spam", 7.0)
    assert whole(first) == [("2", "true")]
    assert (first.answer.rows, first.answer.double, first.answer.position) == (1, 0, None)
    assert first.halves == [
        Half("a", 7.0, JSON + b'{"size":1}', None), Half("b", 7.0, None, None), Half("c", 7.0, None, "null"),
    ]  # fmt: skip
    waiting = {half.id: half for half in first.halves}
    second = join(messages(("c", {"size": 3}), labels=[("a", "no")]), waiting, "spam", 9.0)
    assert whole(second) == [("3", None), ("1", "no")]
    assert second.halves == [Half("c", 9.0, None, None), Half("a", 9.0, None, None)]


def test_what_comes_twice_is_counted_and_changes_nothing() -> None:
    waiting = {
        "a": Half("a", 1.0, JSON + b'{"size":1}', None),
        "b": Half("b", 1.0, None, '"no"'),
        "c": Half("c", 1.0, None, None),
    }
    found = join(
        messages(("a", {"size": 9}), ("c", {"size": 9}), labels=[("b", "yes"), ("c", "yes")]), waiting, "spam", 2.0
    )
    assert (found.rows, found.halves, found.answer.double) == (None, [], 4)
    both = join(messages(("d", {"size": 1}), ("d", {"size": 2}), labels=[("d", 1), ("d", 2)]), waiting, "spam", 2.0)
    assert (whole(both), both.answer.double, both.answer.rows) == ([("1", "1")], 2, 1)
    assert both.halves == [Half("d", 2.0, None, None)]


def test_labeled_rows_come_first_and_packed_rows_are_read() -> None:
    waiting = {"a": Half("a", 1.0, pack(rows([{"size": 4, "user": None}])), None)}  # its task was forgotten
    found = join(messages(labels=[("a", "no")], labeled=[{"size": 5, "spam": "yes"}]), waiting, "spam", 2.0)
    assert whole(found) == [("5", "yes"), ("4", "no")]
    nothing = join(messages(), {}, "spam", 2.0)
    assert (nothing.rows, nothing.halves, nothing.answer) == (None, [], (None, 0, 0, ()))


def test_rows_with_faults_are_left_out(tmp_path: Path) -> None:
    served, mails = Models(ServedModel(write_model(tmp_path), with_shadows=False)), records(3, late_columns=False)
    bad = [{**mails[2], "size": "huge"}, {**mails[1], "spam": None}]
    found = without_faults(join(messages(labeled=[mails[0], bad[0], mails[1], bad[1]]), {}, "spam", 1.0), served)
    assert found.rows is not None
    assert found.rows.frame["subject"].to_list() == [mails[0]["subject"], mails[1]["subject"]]
    assert (found.answer.rows, [fault.row for fault in found.answer.refused]) == (2, [1, 3])
    first = found.answer.refused[0].sentence
    assert first == "message 41 of mails/2: column 'size' has 'huge', expected a finite number"
    none = without_faults(join(messages(labeled=[bad[0]]), {}, "spam", 1.0), served)
    assert (none.rows, none.answer.rows, len(none.answer.refused)) == (None, 0, 1)
    taskless = {"size": 1.0, "spam": "no"}
    waiting = {"a": Half("a", 1.0, JSON + b'{"size":1}', None)}
    without = without_faults(join(messages(labeled=[taskless] * 2, labels=[("a", "no")]), waiting, "spam", 1.0), served)
    assert without.rows is None  # each is named, and so counted
    places = [fault.sentence.partition(": the rows have no column 'user'")[0] for fault in without.answer.refused]
    assert places == ["message 40 of mails/2", "message 41 of mails/2", "the row of id 'a'"]
    good = join(messages(labeled=[{**mails[0], "fresh": 1}]), {}, "spam", 1.0)
    assert without_faults(good, served) is good
    assert "fresh" not in served.served.encoder.column_kinds  # it was checked, not taken
    assert without_faults(Joined(None, [], [], good.answer), served).rows is None
    assert isinstance(good.rows, Rows)


BOTH = Columns("spam", "id", labels_topic="truths")


def read(
    value: Any, columns: Columns = BOTH, topic: str = "mails", key: bytes | None = None
) -> tuple[Messages, list[str]]:
    body = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
    found, bad = read_messages([Message(topic, 2, 41, key, body)], columns)
    assert found.offsets == {f"{topic}/2": 42}  # whatever it holds, the next one comes next
    return found, [str(one).removeprefix(f"message 41 of {topic}/2: ") for one in bad]


def test_messages_that_are_rows() -> None:
    found, _ = read({"id": 7, "size": 1, "spam": False})
    assert (found.labeled, found.sources) == ([{"id": 7, "size": 1, "spam": False}], [("mails/2", 41)])
    found, _ = read({"id": 7, "size": 1, "spam": 0}, BOTH._replace(drops_id=True))
    assert found.labeled == [{"size": 1, "spam": 0}]
    found, _ = read({"id": 0, "size": 1, "spam": None})
    assert (found.unlabeled, found.labeled, found.sources) == ([("0", {"id": 0, "size": 1})], [], [])
    assert read({"size": 1}, key=b"k\xff")[0].unlabeled == [("k\\xff", {"size": 1})]
    assert read({"id": None, "size": 1}, key=b"k")[0].unlabeled == [("k", {"id": None, "size": 1})]
    assert read({"id": 7}, BOTH._replace(id=None), key=b"k")[0].unlabeled == [("k", {"id": 7})]
    assert read({"id": 7}, key=b"k")[0].unlabeled == [("7", {"id": 7})]
    assert read(None) == (Messages([], [], [], {"mails/2": 42}, []), [])


@pytest.mark.parametrize(
    ("value", "label"),
    [({"id": 7, "label": "yes"}, ("7", "yes")), ({"id": 7, "spam": "no"}, ("7", "no")),
     ({"id": 7, "label": 0}, ("7", 0)), ({"id": 7, "label": False, "spam": "no"}, ("7", False)),
     ({"label": "yes"}, ("k", "yes"))],
)  # fmt: skip
def test_messages_that_are_labels(value: Any, label: tuple[str, Any]) -> None:
    for columns in (BOTH, BOTH._replace(id=None)):
        assert read(value, columns, "truths", b"k")[0].labels == [label]
    named = {("mail" if name == "id" else name): found for name, found in value.items()}
    for other in (value, named):
        assert read(other, BOTH._replace(id="mail"), "truths", b"k")[0].labels == [label]


@pytest.mark.parametrize(
    ("value", "topic", "said"),
    [(b"no json", "mails", "not JSON"), (b"\xff", "mails", "not JSON"), ([1], "mails", "no JSON object"),
     ({"a": {}}, "mails", "'a' is nested"), ({"a": []}, "mails", "'a' is nested"),
     ({"size": 1}, "mails", "it has no id: neither a key nor 'id'"), ({"id": 7}, "truths", "expected {"),
     ({"id": 7, "label": None}, "truths", "expected {"), ({"label": 1}, "truths", "no id"),
     (b"", "truths", "not JSON")],
)  # fmt: skip
def test_messages_that_are_neither(value: Any, topic: str, said: str) -> None:
    found, [sentence] = read(value, topic=topic)
    assert said in sentence
    assert found[:3] == ([], [], [])
    assert found.sources == []


def test_a_missing_label_needs_a_topic_that_has_it() -> None:
    _, [sentence] = read({"id": 7}, Columns("spam", "id"))
    assert sentence == "'spam' is missing; with --labels-from TOPIC it may come later"
    _, [sentence] = read({"size": 1}, BOTH._replace(id=None))
    assert sentence == "it has no id: neither a key"


def test_offsets_are_those_of_the_last_message_of_each_partition() -> None:
    given = [Message("mails", p, offset, None, None) for p, offset in ((0, 5), (1, 3), (0, 6))]
    assert read_messages(given, BOTH)[0].offsets == {"mails/0": 7, "mails/1": 4}


def test_addresses_and_settings(tmp_path: Path) -> None:
    assert Address.of("kafka://[::1]:9092,b/a_{shard}") == ("[::1]:9092,b", "a_{shard}")
    assert Address.of("kafka://a/" + "t" * 249).topic == "t" * 249
    for wrong in (
        "kafka://a/" + "t" * 250,
        "kafka://a,,b/t",
        "kafka://a:123456/t",
        "kafka://a/t/u",
        "kafka://a/{x}",
        "xkafka://a/t",
    ):
        with pytest.raises(ValueError, match="is no address of a topic"):
            Address.of(wrong)
    assert read_settings(None) == {}
    path = tmp_path / "settings"
    path.write_text("a=1\n # b=2\n\n  c = d=e \n", encoding="utf-8")
    assert read_settings(str(path)) == {"a": "1", "c": "d=e"}
    path.write_text("a=1\n\nwrong\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 3: expected name=value"):
        read_settings(str(path))
    with pytest.raises(ValueError, match="cannot be read"):
        read_settings(str(tmp_path / "none"))


class Polls:
    """Topics from which the test takes."""

    def __init__(self, *polls: list[Message]) -> None:
        self._polls, self.taken, self.looks, self.is_closed = list(polls), 0, 0, False

    def take(self, n: int, seconds: float) -> list[Message]:
        self.taken += 1
        return self._polls.pop(0) if self._polls else []

    def lag(self) -> int:
        return 7

    def find_partitions(self) -> None:
        self.looks += 1

    def close(self) -> None:
        self.is_closed = True


class Commits:
    """A service whose commits the test ends."""

    def __init__(self) -> None:
        self.asked: SimpleQueue[tuple[Messages, Future[Followed]]] = SimpleQueue()

    def follow(self, found: Messages) -> Future[Followed]:
        future: Future[Followed] = Future()
        self.asked.put((found, future))
        return future


class Waits:
    """The event that ends a follower: how long it was waited for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._is_set = False

    def wait(self, seconds: float) -> bool:
        self.seconds.append(seconds)
        return self._is_set

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True


def mail(offset: int, **row: Any) -> Message:
    return Message("mails", 0, offset, None, json.dumps(row).encode())


def test_a_follower_takes_no_more_before_its_commit_has_ended() -> None:
    """Whatever fails, the same messages are asked again, after the pause that the service says."""
    polls, commits, waits = Polls([mail(0, spam="no"), mail(1)], [mail(2, spam="yes")]), Commits(), Waits()
    topics: Any = polls
    follower = Follower(commits, topics, Columns("spam"))
    follower._ends = waits  # type: ignore[assignment]
    follower.start()
    found, commit = commits.asked.get(timeout=60)
    assert (found.labeled, found.offsets, polls.taken) == ([{"spam": "no"}], {"mails/0": 2}, 1)
    for error in (Busy("full", 0.25), Unavailable("away"), LimitExceeded("tasks", 9.0), LimitExceeded("for good")):
        commit.set_exception(error)
        again, commit = commits.asked.get(timeout=60)
        assert again is found
    assert (waits.seconds, polls.taken, follower.rows, follower.refused) == ([0.25, PAUSE, 9.0, PAUSE], 1, 0, 0)
    commit.set_result(Followed(1, 1, 2, (Fault(None, None, "wrong"),)))
    found, commit = commits.asked.get(timeout=60)
    assert (found.offsets, polls.taken, polls.is_closed) == ({"mails/0": 3}, 2, False)
    counted = {"follow_lag_messages": 7, "follow_rows": 1, "follow_refused": 2, "follow_double": 2}
    assert follower.gauges() == counted  # with the message that has no label
    waits.set()
    commit.set_exception(Unavailable("away"))  # what was not written is read again by the next start
    follower.stop()
    assert (follower.rows, follower.failure, polls.is_closed, commits.asked.empty()) == (1, None, True, True)


def test_a_follower_ends_by_what_it_does_not_expect(caplog: pytest.LogCaptureFixture) -> None:
    polls, commits, told = Polls([mail(0, spam="no")]), Commits(), SimpleQueue[str]()
    topics: Any = polls
    follower = Follower(commits, topics, Columns("spam"), lambda: told.put("failed"))
    follower.start()
    commits.asked.get(timeout=60)[1].set_exception(RuntimeError("odd"))
    assert told.get(timeout=60) == "failed"
    follower.join()
    assert (str(follower.failure), polls.is_closed) == ("odd", True)
    assert "following has stopped" in caplog.text


def test_a_follower_looks_for_partitions_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    polls, waits, now = Polls(), Waits(), [1_000.0]
    looks: list[tuple[float, int]] = []

    def moved() -> float:
        looks.append((now[0], polls.looks))
        now[0] += PARTITIONS_SECONDS / 4
        if len(looks) > 20:
            waits.set()
        return now[0]

    monkeypatch.setattr("shoal.serve.kafka.follower.time", SimpleNamespace(monotonic=moved))
    topics: Any = polls
    follower = Follower(Commits(), topics, Columns("spam"))
    follower._ends = waits  # type: ignore[assignment]
    follower.run()
    begun = looks[0][0]
    assert polls.looks == (looks[-1][0] - begun) // (PARTITIONS_SECONDS * 5 / 4)  # each look asks the clock once more
    assert polls.is_closed


class Silent:
    """A client without brokers, whose topic has one partition."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.assigned: list[Any] = []

    def list_topics(self, name: str, timeout: float) -> Any:
        return SimpleNamespace(topics={name: SimpleNamespace(error=None, partitions={0: None})})

    def incremental_assign(self, partitions: list[Any]) -> None:
        self.assigned += partitions


def test_trouble_with_brokers_is_told_once_a_minute_each_kind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [500.0]
    monkeypatch.setattr("shoal.serve.kafka.topic.time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr("shoal.serve.kafka.topic.Consumer", Silent)
    topics = Topics("nowhere:9", ["mails"], {})
    gone, slow = KafkaError(KafkaError._ALL_BROKERS_DOWN), KafkaError(KafkaError._TIMED_OUT)
    told: list[tuple[float, KafkaError, int]] = [
        (0.0, gone, 1), (0.0, gone, 1), (0.0, slow, 2), (59.9, gone, 2), (60.0, gone, 3), (60.0, slow, 4),
        (119.9, gone, 4), (120.0, gone, 5),
    ]  # fmt: skip
    with caplog.at_level(logging.WARNING, "shoal"):
        for seconds, error, n in told:
            now[0] = 500.0 + seconds
            topics._heard(error)
            assert len(caplog.records) == n
