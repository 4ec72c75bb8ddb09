"""A service of two shards: each is an engine of its tasks, and one that is killed comes back with all it accepted."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import tarfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serve.material import assert_same, fold_in_one_go, predict_one, records, rows, write_model
from tests.serve.test_http import served, unlabeled

from shoal.cluster.placement import shards_of
from shoal.cluster.service import ShardedService
from shoal.serve.client import Client, ServiceError
from shoal.serve.contract import Refused, Unavailable, UnknownTask
from shoal.serve.engine import EngineSettings
from shoal.serve.http.access import READ, Token
from shoal.serve.log import Log
from shoal.serve.row_codec import unpack
from shoal.serve.served_model import ServedModel

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.timeout(300)]
SETTINGS = EngineSettings(keep_log=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sharded")


@pytest.fixture(scope="module")
def service(nodes: Any, folder: Path) -> Iterator[ShardedService]:
    found = ShardedService.start(write_model(folder), folder / "live", SETTINGS, shards=2, fallback=True)
    yield found
    found.close()


def shard_of(task: str) -> int:
    return int(shards_of([task], 2)[0])


def test_it_answers_as_one_service_over_http(service: ShardedService, folder: Path) -> None:
    mails = records(200, seed=4)
    with served(service, []) as url, Client(url, retries=0) as client:
        assert client.model()["tasks"] == 6
        assert client.model()["shards"] == 2
        answers = [client.predict_one(unlabeled(mails)[0]), *client.predict(unlabeled(mails)[1:40])]
        assert [answer.task for answer in answers] == [mail["user"] for mail in mails[:40]]
        labels = [(str(answer.id), mail["spam"]) for answer, mail in zip(answers, mails, strict=False)]
        receipt = client.label([*labels, labels[0], ("nonsense", "no"), ("7.3", "no")])
        assert (receipt.accepted, receipt.double, receipt.unknown) == (40, [labels[0][0]], ["nonsense", "7.3"])
        assert client.learn(mails[40:], "rest").rows == 160
        assert client.learn(mails[40:], "rest").repeated
        while client.model()["learned"] < client.model()["logged"]:
            time.sleep(0.01)
        assert client.model()["rows"] == 200
        listed = client.tasks("rows")
        assert listed["total"] == 6
        assert [one["rows"] for one in listed["tasks"]] == sorted(
            (one["rows"] for one in listed["tasks"]), reverse=True
        )
        assert [one["task"] for one in client.tasks("name", page=1)["tasks"]] == [f"u{i}" for i in range(6)]
        assert [one["task"] for one in client.tasks("newest", text="U3")["tasks"]] == ["u3"]
        assert client.task("u2")["rows"] == sum(mail["user"] == "u2" for mail in mails)
        assert [one.task for one in client.query(unlabeled(mails)[:9])] == [mail["user"] for mail in mails[:9]]
        assert b"shoal_rows_learned_total 200.0" in client._http.get("/metrics").content
        assert b"<html" in client._http.get("/").content
        with client._http.stream("GET", "/v1/events") as events:
            seen = json.loads(next(events.iter_lines()).removeprefix("data: "))
        assert (seen["rows"], seen["tasks"], seen["who"][0]) == (200, 6, "learner")
        assert sum(point[0] for point in seen["points"]) == sum(seen["calibration"][0]) == 200
        errors = [one["error"] * one["rows"] for one in listed["tasks"]]
        assert seen["errors"][0] == pytest.approx(sum(errors) / 200) == seen["gauges"]["error"]
        with tarfile.open(client.export(folder / "models.tar")) as models:
            models.extractall(folder / "models", filter="data")
        for shard in range(2):
            model = ServedModel(folder / "models" / f"shard-{shard}.shoal", with_shadows=False)
            own = [mail for mail in unlabeled(mails) if shard_of(mail["user"]) == shard][:20]
            alone = model.predict(model.rows_of(rows(own), model.readers().table)).probability
            assert [answer.probability for answer in client.predict(own)] == pytest.approx(np.asarray(alone), rel=1e-12)
        for change in (partial(client.swap, folder / "mails.shoal"), client.promote, client.rollback):
            with pytest.raises(ServiceError, match="a service of shards keeps its model") as raised:
                change()
            assert raised.value.status == 422
        for wrong in ({"size": 1}, {"user": "", "size": 1}):
            with pytest.raises(ServiceError, match="user") as raised:
                client.predict_one(wrong)
            assert raised.value.status == 422


@pytest.mark.filterwarnings("ignore")  # Ray Serve and what it stands on warn of their own code
def test_ray_serve_may_stand_in_front(service: ShardedService) -> None:
    from shoal.cluster.ray_serve import by_ray_serve

    mails = unlabeled(records(40, seed=7))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with by_ray_serve(service, [Token(b"open", READ)], "127.0.0.1", port):
        url = f"http://127.0.0.1:{port}"
        with Client(url, token="open", retries=0) as client:
            assert client.model()["shards"] == 2
            assert [answer.task for answer in client.predict(mails)] == [mail["user"] for mail in mails]
            lines = b"\n".join(json.dumps(mail).encode() for mail in mails)
            streamed = client._http.post("/v1/predict", content=lines, headers={"content-type": "application/x-ndjson"})
            assert [json.loads(line)["task"] for line in streamed.iter_lines()] == [mail["user"] for mail in mails]
            with pytest.raises(ServiceError, match="scope"):
                client.forget("u1")
        with Client(url, retries=0) as stranger, pytest.raises(ServiceError, match="401"):
            stranger.model()
        with (
            pytest.raises(ValueError, match="runs on this cluster already"),
            by_ray_serve(service, [], "127.0.0.1", port),
        ):
            pass


def test_what_one_shard_refuses_no_shard_takes(service: ShardedService) -> None:
    mails = records(30, seed=6)
    before = service.describe()["logged"]
    bad = [*mails[:9], {**mails[9], "size": "huge"}, *mails[10:20], {**mails[20], "size": "vast"}]
    with pytest.raises(Refused) as raised:
        service.learn(rows(bad)).result()
    assert [fault.row for fault in raised.value.faults] == [9, 20]
    with pytest.raises(UnknownTask):
        service.forget("nobody").result()
    assert service.describe()["logged"] == before


def test_a_shard_that_is_killed_comes_back_with_all_it_accepted(service: ShardedService, folder: Path) -> None:
    mails = [{**mail, "size": 1_000.0 + i} for i, mail in enumerate(records(400, seed=5))]
    lost = shard_of("u1")
    there = next(mail for mail in unlabeled(mails) if shard_of(mail["user"]) != lost)
    away = next(mail for mail in unlabeled(mails) if shard_of(mail["user"]) == lost)
    for first in range(0, 200, 20):
        service.learn(rows(mails[first : first + 20]), f"early {first}").result()
    os.kill(service.processes()[lost], signal.SIGKILL)
    # The shard may be back before the next call: then it answers itself, and a key is learned once.
    fallen_back = predict_one(service, away)
    assert fallen_back.task == away["user"]
    assert fallen_back.known_task or fallen_back.id is None
    assert predict_one(service, there).known_task
    with contextlib.suppress(Unavailable):
        service.learn(rows(mails[200:220]), "late 200").result()
    ends = time.monotonic() + 100
    while service.trouble:
        assert time.monotonic() < ends
        time.sleep(0.2)
    for first in range(200, 400, 20):
        service.learn(rows(mails[first : first + 20]), f"late {first}").result()
    assert predict_one(service, away).known_task
    service.close()

    learned = []
    for shard in range(2):
        own = folder / "live" / f"shard-{shard}"
        log = f"sqlite:///{own / 'log.sqlite'}"
        reader = Log(log)
        frames = [unpack(record.body).frame for record in reader.read()]
        reader.close()
        users = {user for frame in frames for user in frame["user"]}
        assert {shard_of(user) for user in users} == {shard}
        learned += [size for frame in frames for size in frame["size"].cast(float)]
        newest = max((own / "snapshots").glob("*.shoal"))
        assert_same(newest, fold_in_one_go(own / "snapshots" / f"{0:016}.shoal", log, folder / "again.shoal"))
    assert sorted(size for size in learned if size >= 1_000.0) == [1_000.0 + i for i in range(400)]


def test_a_folder_keeps_its_number_of_shards(nodes: Any, folder: Path) -> None:
    with pytest.raises(ValueError, match="holds 2 shards"):
        ShardedService.start(folder / "mails.shoal", folder / "live", SETTINGS, shards=3)
    with pytest.raises(ValueError, match="log of its own"):
        ShardedService.start(folder / "mails.shoal", folder / "other", SETTINGS._replace(log="sqlite://"), shards=3)
