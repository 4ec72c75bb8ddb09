"""Rows and a model for the tests of the service: numbers, categories, dates, words, and columns that come late."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from shoal import HedgedSharing, MultitaskPerceptron
from shoal.files import ReadOptions, open_stream
from shoal.learner import Learner
from shoal.model import persistence
from shoal.model_file import Reading, save_model
from shoal.serve.apply import Fold
from shoal.serve.contract import Answer, Rows, Service
from shoal.serve.log import Log
from shoal.serve.model_changes import ModelFolder
from shoal.serve.row_codec import from_dicts
from shoal.serve.served_model import ServedModel


def records(n: int, seed: int = 0, *, late_columns: bool = True) -> list[dict[str, Any]]:
    """Mails: whose, size, sender, when, subject; from the middle on also urgency. The label depends on all."""
    rng = np.random.default_rng(seed)
    found: list[dict[str, Any]] = []
    for i in range(n):
        user, size, sender = int(rng.integers(6)), float(rng.normal()), int(rng.integers(8))
        words = rng.choice(["win", "meeting", "offer", "report", "free", "lunch"], 4)
        logit = size * (1 + user % 2) + (sender > 4) + 2 * ("win" in words) - 1
        row: dict[str, Any] = {
            "user": f"u{user}", "size": round(size, 3), "sender": f"s{sender}",
            "day": f"2026-0{1 + i % 9}-1{i % 9}", "subject": " ".join([*words, str(i)]),
            "spam": "yes" if rng.random() < 1 / (1 + np.exp(-2 * logit)) else "no",
        }  # fmt: skip
        if late_columns and i > n // 2:
            row["urgency"] = float(rng.normal())
        found.append(row)
    return found


def rows(found: list[dict[str, Any]]) -> Rows:
    """As one request."""
    return from_dicts(found)


def wait_for(url: str) -> None:
    """Until a service that was started answers; a client waits twice as long each time."""
    ends = time.monotonic() + 240
    while True:
        try:
            httpx.get(f"{url}/health")
            return
        except httpx.TransportError:
            assert time.monotonic() < ends
            time.sleep(0.05)


def predict_one(service: Service, row: dict[str, Any], *, wait: bool = True) -> Answer:
    """The answer to a row that comes alone, or what is wrong with it."""
    [(_, answers)] = service.predict_each([row], wait=wait)
    [found] = answers.result()
    if isinstance(found, Exception):
        raise found
    assert isinstance(found, Answer)
    return found


def default_learner() -> Learner:
    """What the program learns with unless asked; where `make matrix` compiles everything anew, a smaller one."""
    return MultitaskPerceptron(loss="logistic") if "MATRIX" in os.environ else HedgedSharing(memory=8)


def write_model(folder: Path, learner: Learner | None = None, n: int = 300) -> Path:
    """What `shoal run mails.csv --task user --label spam --save` leaves."""
    table = folder / "mails.ndjson"
    rows(records(n, late_columns=False)).frame.write_ndjson(table)
    learner = default_learner() if learner is None else learner
    contestants = {type(learner).__name__: learner, **learner.baselines()}
    options = ReadOptions(task="user", label="spam", hash_bits=10)
    with open_stream(table, options) as stream:
        for chunk in stream:
            for one in contestants.values():
                one.partial_fit(chunk.X, chunk.y, chunk.task, classes=["no", "yes"])
        reading = Reading({"task": ["user"], "label": "spam", "hash_bits": 10}, stream.to_dict())
    return save_model(folder / "mails.shoal", contestants, reading)


def content(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Everything in a model file."""
    return persistence.read(path)


def assert_same(one: Path, other: Path) -> None:
    """Two model files hold the same bits."""
    header, arrays = content(one)
    header_of_other, arrays_of_other = content(other)
    assert header == header_of_other
    assert arrays.keys() == arrays_of_other.keys()
    for name, array in arrays.items():
        assert array.tobytes() == arrays_of_other[name].tobytes(), name


def fold_in_one_go(
    model: Path, log: str, target: Path, *, shadows: bool = True, folder: Path | None = None, until: int | None = None
) -> Path:
    """The model that read the whole log, from the first model on; changes name files in the folder."""
    reader = Log(log)
    scratch = target.with_suffix(".scratch")
    files = None if folder is None else ModelFolder(folder, with_shadows=shadows, scratch=scratch)
    fold = Fold(ServedModel(model, with_shadows=shadows), files=files)
    for _ in fold.replay(reader.read(until=until)):
        pass
    reader.close()
    shutil.rmtree(scratch, ignore_errors=True)
    return fold.served.save(target)
