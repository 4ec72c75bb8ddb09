"""Whichever way rows come to a service, tasks and labels are those of the file that the model has learned."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import polars as pl
import pytest
from tests.serve.material import assert_same

from shoal import HedgedSharing, MultiClass
from shoal.files import ReadOptions, open_stream
from shoal.learner import Learner
from shoal.model_file import Reading, save_model
from shoal.serve.engine import Engine
from shoal.serve.http.app import application
from shoal.serve.http.request_bodies import BodyLimits
from shoal.serve.kafka.messages import Columns, Message, read_messages

BIG = 2**53
JSON, NDJSON, ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"


def write_model(folder: Path, labels: list[str], learner: Learner) -> Path:
    """A model of a CSV file with shops 1 to 3."""
    random = np.random.default_rng(0)
    lines = [f"{i % 3 + 1},{random.normal():.3f},{labels[i % len(labels)]}" for i in range(60)]
    (folder / "sales.csv").write_text("\n".join(["shop,size,sold", *lines]))
    kind: Any = "multiclass" if isinstance(learner, MultiClass) else "binary"
    with open_stream(folder / "sales.csv", ReadOptions(task="shop", label="sold", kind=kind)) as stream:
        for chunk in stream:
            learner.partial_fit(chunk.X, chunk.y, chunk.task)
    return save_model(
        folder / "m.shoal", {"m": learner}, Reading({"task": ["shop"], "label": "sold"}, stream.to_dict())
    )


def posted(engine: Engine, path: str, content: bytes, kind: str = JSON) -> Any:
    headers = {"content-type": kind, "accept": JSON}

    async def post() -> httpx.Response:
        transport = httpx.ASGITransport(application(engine, [], BodyLimits()))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post(path, content=content, headers=headers)

    answer = asyncio.run(post())
    assert answer.status_code == 200, answer.text
    return answer.json()


def as_arrow(rows: list[dict[str, Any]]) -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame(rows).write_ipc_stream(buffer, compression="uncompressed")
    return buffer.getvalue()


Table = list[dict[str, Any]]
ROWS: Table = [{"shop": i % 3 + 1, "size": i / 8 - 1, "sold": i % 2} for i in range(16)]
FLOATS: Table = [{"shop": float(row["shop"]), "size": row["size"], "sold": float(row["sold"])} for row in ROWS]
TEXTS: Table = [{"shop": str(row["shop"]), "size": row["size"], "sold": str(row["sold"])} for row in ROWS]
TRUTHS: Table = [{**row, "sold": bool(row["sold"])} for row in ROWS]


def as_lines(rows: list[dict[str, Any]]) -> bytes:
    return b"\n".join(json.dumps(row).encode() for row in rows)


def as_array(rows: list[dict[str, Any]]) -> bytes:
    return json.dumps(rows).encode()


def test_every_route_learns_the_same(tmp_path: Path) -> None:
    model = write_model(tmp_path, ["0", "1"], HedgedSharing(memory=8))
    routes = [(JSON, as_array), (NDJSON, as_lines), (ARROW, as_arrow)]
    bodies = [(kind, pack, rows) for kind, pack in routes for rows in (ROWS, FLOATS, TEXTS, TRUTHS)]
    with Engine(model, tmp_path / "plain") as plain, Engine(model, tmp_path / "mixed") as mixed:
        for i, (kind, pack, rows) in enumerate(bodies):
            posted(plain, "/v1/learn", as_array(ROWS[i : i + 5]))
            posted(mixed, "/v1/learn", pack(rows[i : i + 5]), kind)
        assert plain.wait_until_learned(timeout=30)
        assert mixed.wait_until_learned(timeout=30)
        assert mixed.describe()["labels"] == [0, 1]
        assert mixed.describe()["tasks"] == 3
        assert_same(plain.export(), mixed.export())


def test_late_labels_are_those_of_the_file(tmp_path: Path) -> None:
    model = write_model(tmp_path, ["0", "1"], HedgedSharing(memory=8))
    topic = Columns("sold", labels_topic="labels")
    with Engine(model, tmp_path / "plain") as plain, Engine(model, tmp_path / "mixed") as mixed:
        for part, rows in enumerate((ROWS, FLOATS, TEXTS, TRUTHS)):
            asked = [{name: value for name, value in row.items() if name != "sold"} for row in rows]
            answers = posted(mixed, "/v1/predict", as_array(asked))
            answers += [posted(mixed, "/v1/predict", json.dumps(row).encode()) for row in asked[:2]]
            assert {answer["task"] for answer in answers} == {"1", "2", "3"}
            assert {type(answer["predicted"]) for answer in answers} == {int}
            assert all(answer["known_task"] for answer in answers)
            labels = [{"id": a["id"], "label": row["sold"]} for a, row in zip(answers, rows, strict=False)]
            assert posted(mixed, "/v1/labels", as_array(labels))["accepted"] == len(rows)
            keys = [f"{part}.{k}".encode() for k in range(len(rows))]
            messages = [Message("rows", 0, k, keys[k], json.dumps(row).encode()) for k, row in enumerate(asked)]
            truth = [json.dumps({"label": row["sold"]}).encode() for row in rows]
            messages += [Message("labels", 0, k, keys[k], label) for k, label in enumerate(truth)]
            assert mixed.follow(read_messages(messages, topic)[0]).result().rows == len(rows)
            posted(plain, "/v1/learn", as_array(ROWS + ROWS))
        assert plain.wait_until_learned(timeout=30)
        assert mixed.wait_until_learned(timeout=30)
        assert_same(plain.export(), mixed.export())


@pytest.mark.parametrize(
    ("written", "sent", "answered"),
    [
        (["01234", "1234", "94110"], ["01234", 1234, 94110.0], ["01234", "1234", "94110"]),
        ([str(BIG), str(BIG + 1)], [BIG, str(BIG + 1)], [BIG, BIG + 1]),
        (["0.0", "1.0", "2.0"], [0, 1.0, "2"], [0.0, 1.0, 2.0]),
        (["True", "False"], [False, True], ["False", "True"]),
    ],
)
def test_labels_come_back_as_the_file_wrote_them(
    written: list[str], sent: list[Any], answered: list[Any], tmp_path: Path
) -> None:
    with Engine(write_model(tmp_path, written, MultiClass(HedgedSharing(memory=8))), tmp_path / "engine") as engine:
        rows = [{"shop": 1, "size": i / 8, "sold": label} for i, label in enumerate(sent)]
        posted(engine, "/v1/learn", as_array(rows))
        assert engine.wait_until_learned(timeout=30)
        assert sorted(engine.describe()["labels"]) == answered
        said = [a["predicted"] for a in posted(engine, "/v1/predict", as_array(ROWS))]
        assert {(type(one), one) for one in said} <= {(type(one), one) for one in answered}


def test_ids_of_messages_are_their_integers() -> None:
    bodies = [b'{"order": 7, "sold": 1}', b'{"order": 7.0, "sold": 1}', b'{"order": "7", "sold": 1}']
    columns = Columns("price", id="order", labels_topic="labels")
    found, bad = read_messages([Message("rows", 0, i, None, body) for i, body in enumerate(bodies)], columns)
    assert not bad
    assert [name for name, _ in found.unlabeled] == ["7"] * 3
