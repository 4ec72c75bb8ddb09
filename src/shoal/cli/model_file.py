"""Models of the program: next to the learner, the file keeps how its rows were read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from shoal.files import FileStream
from shoal.files.saved import saved_feature_names
from shoal.learner import Learner, load_with_companion


class Reading(NamedTuple):
    """How the rows of a model were read."""

    task: str | None  # column
    label: str | None  # column
    state: dict[str, Any] | None  # of the stream: features, statistics and labels


def load_model(path: str) -> tuple[Learner, Reading | None]:
    """The learner and how its rows were read; None if it was not saved by the program from a file."""
    learner, reading, _ = load_named(path)
    return learner, reading


def load_named(path: str) -> tuple[Learner, Reading | None, list[str]]:
    """The two, and the names of the features as files or rows had them; none if they have none."""
    learner, companion = load_with_companion(path)
    if companion is not None and "names" not in companion:
        reading = Reading(**companion)
        return learner, reading, [] if reading.state is None else saved_feature_names(reading.state)
    names = getattr(learner, "feature_names_in_", []) if companion is None else companion["names"]
    return learner, None, list(names)


def save_model(
    path: str, learner: Learner, stream: FileStream | tuple[str, ...], *, task: str | None, label: str | None
) -> Path:
    """Write the learner and how its rows were read, or of a built-in data set what its features are called; a symbolic
    link stays a link."""
    target = Path(path).resolve()
    reading = {"names": stream} if isinstance(stream, tuple) else Reading(task, label, stream.to_dict())._asdict()
    learner.save(target, companion=reading)
    return target
