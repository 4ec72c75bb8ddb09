"""Topics of Kafka: every message is learned exactly once, whatever is killed or stopped."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from tests.serve.material import assert_same, fold_in_one_go, records, wait_for, write_model
from tests.serve.mock_kafka import Brokers, mock_brokers

from shoal.cli.app import start
from shoal.serve.client import Client
from shoal.serve.contract import Messages
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.kafka import topic
from shoal.serve.kafka.address import Address, read_settings
from shoal.serve.kafka.follower import Follower
from shoal.serve.kafka.messages import Columns, Message, read_messages
from shoal.serve.kafka.topic import Topics
from shoal.serve.learner_thread import Rhythm
from shoal.serve.log import Log
from shoal.serve.row_codec import unpack

KILLS = max(int(os.environ.get("SOAK", 5)) * 2 // 5, 2)
SETTINGS = EngineSettings(keep_log=True, rhythm=Rhythm(rows=150))
COLUMNS = Columns("spam", "id", drops_id=True, labels_topic="truths")


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    with mock_brokers() as found:
        found.create("mails")
        found.create("truths", 1)
        yield found


def until(there: Callable[[], bool], seconds: float = 60.0) -> None:
    ends = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < ends
        time.sleep(0.02)


def as_message(row: dict[str, Any], **more: Any) -> tuple[None, bytes]:
    return None, json.dumps({**row, **more}).encode()


def following(engine: Engine, address: str) -> Follower:
    follower = Follower(engine, Topics(address, ["mails", "truths"], engine.offsets()), COLUMNS)
    follower.start()
    return follower


def serve(folder: Path, address: str) -> None:
    with Engine(None, folder, SETTINGS) as engine:
        following(engine, address)
        time.sleep(600)


def test_killed_while_messages_come(brokers: Brokers, tmp_path: Path) -> None:
    """Rows with their labels, rows whose labels come later or came before; brokers stop, the process is killed."""
    chance = random.Random(os.environ.get("SOAK_SEED", "seed"))
    folder, n = tmp_path / "engine", 400
    Engine(write_model(tmp_path), folder, SETTINGS).close()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.serve.warm"])
    sent = 0
    for kill in range(KILLS):
        process = context.Process(target=serve, args=(folder, brokers.address))
        process.start()
        for _ in range(2):
            mails = [{**mail, "size": float(sent + i)} for i, mail in enumerate(records(n, seed=kill))]
            whole, parted = mails[: n // 2], mails[n // 2 :]
            truths = [as_message({"id": f"m{mail['size']}", "label": mail["spam"]}) for mail in parted]
            rows = [as_message({**mail, "spam": None}, id=f"m{mail['size']}") for mail in parted]
            brokers.send("truths", truths[::2])
            brokers.send("mails", [*map(as_message, whole), *rows])
            brokers.send("truths", truths[1::2])
            sent += n
        if kill % 2:
            brokers.stop(1 + kill // 2 % 2)
        time.sleep(chance.uniform(0.0, 1.0))
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        for broker in (1, 2):
            brokers.start(broker)
    with Engine(None, folder, SETTINGS) as engine:
        follower = following(engine, brokers.address)
        until(lambda: engine.gauges()["rows_learned"] >= 0 and sum(engine.offsets().values()) == sent + KILLS * n)
        follower.stop()
        assert follower.failure is None
        assert engine.wait_until_learned(timeout=60)
        exported = engine.export()
    log = f"sqlite:///{folder / 'log.sqlite'}"
    reader = Log(log)
    sizes = [float(size) for record in reader.read() for size in unpack(record.body).frame["size"]]
    reader.close()
    assert sorted(sizes) == [float(i) for i in range(sent)]
    assert_same(exported, fold_in_one_go(folder / "snapshots" / f"{0:016}.shoal", log, tmp_path / "again.shoal"))


def test_what_cannot_be_learned_is_left_out_and_holds_nothing_up(
    brokers: Brokers, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mails = records(8, seed=5)
    with Engine(write_model(tmp_path), tmp_path / "engine", SETTINGS) as engine:
        good = [as_message(mail) for mail in mails]
        bad: list[tuple[str | None, bytes | None]] = [
            (None, None), (None, b"no json"), (None, b"[1]"), (None, b'{"user": {"a": 1}, "spam": "no"}'),
            as_message({**mails[0], "size": "huge"}), as_message({**mails[0], "spam": None}),
        ]  # fmt: skip
        twice = as_message({**mails[0], "spam": None}, id=7)
        truth = as_message({"id": 7, "label": "yes"})
        brokers.send("mails", [*good[:4], *bad, twice, twice, *good[4:]])
        brokers.send("truths", [truth, truth, as_message({"id": 8, "label": "yes"}), as_message({"label": "yes"})])
        follower = following(engine, brokers.address)
        until(lambda: follower.rows + follower.refused + follower.double == len(good) + 1 + 6 + 2)
        assert (follower.rows, follower.refused, follower.double) == (9, 6, 2)
        engine.forget("u1").result()  # of what waits, too
        follower.stop()
        assert engine.wait_until_learned(timeout=30)
        assert "id" not in engine.describe()["columns"]
    assert re.search(r"left out: message \d+ of mails/[01]: no JSON object", caplog.text)
    assert re.search(r"left out: message \d+ of mails/[01]: column 'size' has 'huge'", caplog.text)


def test_addresses_messages_and_settings(tmp_path: Path) -> None:
    assert Address.of("kafka://a:9092,b:9092/mails.in") == ("a:9092,b:9092", "mails.in")
    for wrong in ("mails", "http://a/mails", "kafka://a:9092/", "kafka://a:x/mails", "kafka:///mails"):
        with pytest.raises(ValueError, match="expected kafka://"):
            Address.of(wrong)
    file = tmp_path / "client.properties"
    file.write_text("# how to get in\nsasl.password = a=b\n\n")
    assert read_settings(str(file)) == {"sasl.password": "a=b"}
    file.write_text("sasl.password\n")
    with pytest.raises(ValueError, match="line 1: expected name=value"):
        read_settings(str(file))
    by_key = Message("mails", 0, 3, b"k1", b'{"size": 1}')
    found, _ = read_messages([by_key], Columns("spam", labels_topic="truths"))
    assert found.unlabeled == [("k1", {"size": 1})]
    found, bad = read_messages([by_key], Columns("spam"))
    assert found.offsets == {"mails/0": 4}
    assert "message 3 of mails/0: 'spam' is missing" in str(bad[0])
    label = Message("truths", 0, 0, b"k1", b'{"spam": "yes"}')
    assert read_messages([label], Columns("spam", labels_topic="truths"))[0].labels == [("k1", "yes")]


def test_a_partition_that_moves_is_asked_for_again(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Moving(Consumer):
        def get_watermark_offsets(self, *args: Any, **more: Any) -> Any:
            asked.append(args)
            if len(asked) == 1:  # as while its broker has stopped and no other has it yet
                raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
            return super().get_watermark_offsets(*args, **more)

    monkeypatch.setattr(topic, "Consumer", Moving)
    brokers.send("moving", [as_message({"size": 1.0})])
    Topics(brokers.address, ["moving"], {"moving/0": 0}).close()
    assert len(asked) == 2


def test_a_lost_log_is_read_again_behind_the_snapshot(tmp_path: Path) -> None:
    folder, mails = tmp_path / "engine", records(30, seed=0)

    def message(i: int) -> Messages:
        return Messages([mails[i]], [], [], {"mails/0": i + 1}, [("mails/0", i)])

    with Engine(write_model(tmp_path), folder, SETTINGS, offsets={"other/0": 7}) as engine:
        for i in range(10):
            engine.follow(message(i)).result()
        assert engine.wait_until_learned(timeout=30)
    whole = shutil.copytree(folder, tmp_path / "whole")
    with Engine(None, folder, EngineSettings(rhythm=Rhythm(10**9, 1e9))) as engine:
        assert engine.offsets() == {"mails/0": 10, "other/0": 7}
        engine.follow(message(10)).result()
    for log in whole.glob("log.sqlite*"):
        log.unlink()
    with Engine(None, whole, SETTINGS._replace(new_log=True)) as engine:
        assert engine.offsets() == {"mails/0": 10, "other/0": 7}
        engine.follow(message(10)).result()
        assert engine.wait_until_learned(timeout=30)
        assert_same(engine.export(), max((folder / "snapshots").glob("*.shoal")))


def test_the_program_follows_a_topic_from_nothing(brokers: Brokers, tmp_path: Path) -> None:
    mails = records(1_500, seed=9, late_columns=False)
    brokers.send("mails", [as_message(mail, id=f"m{i}") for i, mail in enumerate(mails)])
    port = 20_000 + os.getpid() % 20_000
    url, topic = f"http://127.0.0.1:{port}", f"kafka://{brokers.address}/mails"
    begin = ["--task", "user", "--label", "spam", "--id", "id"]
    command = [sys.executable, "-m", "shoal", "follow", topic, "--port", str(port), "--no-shadows"]

    # The same command, as a supervisor gives it, goes on after the end; so does one without what the model knows.
    for arguments, more, wanted in ((begin, [], 500), (begin, mails[:20], 520), (["--id", "id"], mails[20:30], 530)):
        brokers.send("mails", [as_message(mail) for mail in more])
        process = subprocess.Popen([*command, *arguments], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        try:
            wait_for(url)
            with Client(url) as client:
                learned = 0
                while learned < wanted:  # the first thousand made the model, without being rows of the service
                    learned = client.model()["rows"]
                assert learned == wanted
                assert "id" not in client.model()["columns"]
                assert client.predict_one({"user": "u1", "size": 1}).known_task
        finally:
            process.send_signal(signal.SIGTERM)
            said = process.communicate(timeout=60)[1]
        assert process.returncode == 0, said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mails", "--label", "spam"], "expected kafka://"),
        (["kafka://127.0.0.1:9/mails"], "--label is missing"),
        (["kafka://127.0.0.1:9/mails", "--label", "spam", "--labels-from", "truths"], "needs --model"),
        (["kafka://127.0.0.1:9/mails", "--model", "m.shoal", "--label", "spam"], "leave out --label"),
        (["kafka://127.0.0.1:9/mails", "--model", "MODEL", "--label", "spam", "--task", "size"], "leave out --task"),
        (["kafka://BROKERS/nothing", "--label", "spam"], "there is no topic 'nothing'"),
        (["kafka://BROKERS/truths", "--label", "spam"], "no messages in truths"),
        (["kafka://BROKERS/mails", "--label", "spam", "--kafka-settings", "bad"], "No such configuration property"),
    ],
)
def test_what_cannot_be_followed_says_why(
    arguments: list[str], words: str, brokers: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shoal.cli.commands.follow.QUIET", 0.2)
    Path("bad").write_text("such.is.none=1\n")
    if "MODEL" in arguments:
        write_model(tmp_path)
    with pytest.raises(SystemExit):
        start(
            ["follow", *(one.replace("BROKERS", brokers.address).replace("MODEL", "mails.shoal") for one in arguments)]
        )
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said
