"""A topic into a service of two shards: each message is learned once, by the shard of its task, whatever is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.serve.material import assert_same, fold_in_one_go, records, write_model
from tests.serve.mock_kafka import mock_brokers
from tests.serve.test_kafka import as_message, until

from shoal.cluster.placement import shards_of
from shoal.cluster.service import ShardedService
from shoal.cluster.topic_per_shard import TopicPerShard
from shoal.serve.contract import Messages, Refused
from shoal.serve.engine import EngineSettings
from shoal.serve.kafka.follower import Follower
from shoal.serve.kafka.messages import Columns
from shoal.serve.kafka.topic import Topics
from shoal.serve.log import Log
from shoal.serve.row_codec import unpack

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.timeout(300)]
SETTINGS = EngineSettings(keep_log=True)


def test_shards_that_are_killed_learn_each_message_once(nodes: Any, tmp_path: Path) -> None:
    mails = [{**mail, "size": float(i)} for i, mail in enumerate(records(1_200, seed=7))]
    live = tmp_path / "live"
    service = ShardedService.start(write_model(tmp_path), live, SETTINGS, shards=2, offsets={"mails/0": 0})
    with mock_brokers() as brokers:
        brokers.create("mails")
        follower = Follower(service, Topics(brokers.address, ["mails"], service.offsets()), Columns("spam"))
        follower.start()
        for first in range(0, 1_200, 400):
            brokers.send("mails", [as_message(mail) for mail in mails[first : first + 400]])
            if first == 400:  # both at once, as to start again takes longest
                for process in service.processes():
                    os.kill(process, signal.SIGKILL)
                until(lambda: not service.trouble)
        brokers.send("mails", [as_message({"size": 1.0, "spam": "no"})])  # without a task
        until(lambda: sum(service.offsets().values()) == 1_201)
        follower.stop()
        assert follower.failure is None
        assert follower.lag == 0
        with pytest.raises(Refused, match="labels from a topic of their own need one engine"):
            service.follow(Messages([], [], [("id", "no")], {"mails/0": 9_999}, []))
    service.close()
    assert_each_was_learned_once(live, range(1_200))


def test_each_shard_may_read_a_topic_of_its_own(nodes: Any, tmp_path: Path) -> None:
    """Rows with their labels, and rows whose labels come later; a shard is killed meanwhile."""
    mails = [{**mail, "size": float(i)} for i, mail in enumerate(records(600, seed=8))]
    homes = shards_of([mail["user"] for mail in mails], 2).tolist()
    live = tmp_path / "live"
    with mock_brokers() as brokers:
        for shard in range(2):
            brokers.create(f"mails-{shard}", 1)
            brokers.create(f"truths-{shard}", 1)
        source = TopicPerShard(brokers.address, "mails-{shard}", "truths-{shard}", "id")
        service = ShardedService.start(write_model(tmp_path), live, SETTINGS, shards=2, source=source)
        for first in range(0, 600, 300):
            for shard in range(2):
                own = [i for i in range(first, first + 300) if homes[i] == shard]
                late = [i for i in own if i % 3 == 0]
                sent = [{**mails[i], **({"spam": None} if i in late else {}), "id": str(i)} for i in own]
                brokers.send(f"mails-{shard}", [as_message(mail) for mail in sent])
                truths = [{"id": str(i), "label": mails[i]["spam"]} for i in late]
                brokers.send(f"truths-{shard}", [as_message(truth) for truth in truths])
            if first == 0:
                os.kill(service.processes()[0], signal.SIGKILL)
                until(lambda: not service.trouble)
        brokers.send("mails-1", [as_message({**mails[homes.index(0)], "id": "astray"})])
        until(lambda: not service.trouble and service.describe()["learned"] == service.describe()["logged"])
        until(lambda: service.gauges().get("follow_refused") == 1)
        until(lambda: service.describe()["rows"] == 600)
        service.close()
    assert_each_was_learned_once(live, range(600))


def assert_each_was_learned_once(live: Path, sizes: range) -> None:
    """By the shard of its task, to the bits of a model that read the log in one go."""
    learned: list[float] = []
    for shard in range(2):
        own = live / f"shard-{shard}"
        log = f"sqlite:///{own / 'log.sqlite'}"
        reader = Log(log)
        frames = [unpack(record.body).frame for record in reader.read()]
        reader.close()
        users = {user for frame in frames for user in frame["user"]}
        assert set(shards_of(sorted(users), 2).tolist()) == {shard}
        learned += [float(size) for frame in frames for size in frame["size"]]
        newest = max((own / "snapshots").glob("*.shoal"))
        assert_same(newest, fold_in_one_go(own / "snapshots" / f"{0:016}.shoal", log, live / "again.shoal"))
    assert sorted(learned) == [float(i) for i in sizes]
