"""Models of the program: next to the learner, the file keeps how its rows were read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from shoal.files import FileStream
from shoal.learner import Learner, load_with_companion


class Reading(NamedTuple):
    """How the rows of a model were read."""

    options: dict[str, Any]  # of `ReadOptions`, as they were typed: what the next file needs, too
    state: dict[str, Any]  # of the stream: features, statistics and labels


def load_model(path: str) -> tuple[Learner, Reading | None]:
    """The learner and how its rows were read; None if it was not saved by the program from a file."""
    learner, companion = load_with_companion(path)
    if companion is None:
        return learner, None
    try:
        reading = Reading(**companion)
    except TypeError:
        reading = Reading({}, {})
    if not (isinstance(reading.options, dict) and isinstance(reading.state, dict) and reading.state):
        raise ValueError(f"{path} is damaged: what it says of its columns cannot be read")
    return learner, reading


def save_model(path: str, learner: Learner, stream: FileStream | None, options: dict[str, Any]) -> Path:
    """Write both; a symbolic link stays a link."""
    target = Path(path).resolve()
    reading = None if stream is None else Reading(options, stream.to_dict())._asdict()
    learner.save(target, companion=reading)
    return target
