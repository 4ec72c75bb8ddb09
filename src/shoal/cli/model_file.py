"""Models of the program: next to the learner, the file keeps how its rows were read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from shoal.files import FileStream
from shoal.learner import Learner, load_with_companion


class Reading(NamedTuple):
    """How the rows of a model were read."""

    task: str | None  # column
    label: str | None  # column
    state: dict[str, Any] | None  # of the stream: features, statistics and labels


def load_model(path: str) -> tuple[Learner, Reading | None]:
    """The learner and how its rows were read; None if it was not saved by the program from a file."""
    learner, companion = load_with_companion(path)
    return learner, None if companion is None else Reading(**companion)


def save_model(path: str, learner: Learner, stream: FileStream | None, *, task: str | None, label: str | None) -> Path:
    """Write both; a symbolic link stays a link."""
    target = Path(path).resolve()
    reading = None if stream is None else Reading(task, label, stream.to_dict())._asdict()
    learner.save(target, companion=reading)
    return target
