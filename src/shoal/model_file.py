"""Models in files: `load` reads what `learner.save` wrote, and the program keeps more beside the learner.

A model of the program also holds how its rows were read, and the baselines of a verdict. A baseline is stored as the
file that it would be alone: its header, and its arrays under its name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from shoal.learner import Learner
from shoal.model import persistence


def load(path: str | os.PathLike[str]) -> Learner:
    """The model that `learner.save(path)` wrote; learning on from it equals never having stopped, bit for bit.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not a shoal model, is truncated or damaged, or holds what no learner could have saved.
    """
    return load_with_companion(path)[0]


def load_with_companion(path: str | os.PathLike[str]) -> tuple[Learner, Any]:
    """The model, and what was saved next to it (None if nothing was)."""
    with persistence.opened(path) as (header, arrays):
        kind = persistence.learner_class(header["class"])
        learner: Learner = kind(**persistence.from_json(header["parameters"], arrays))
        learner._restore(persistence.known_from(header, arrays), persistence.state_arrays(arrays))
    return learner, header["companion"]


class Reading(NamedTuple):
    """How the rows of a model were read."""

    options: dict[str, Any]  # of `ReadOptions`, as they were typed: what the next file needs, too
    state: dict[str, Any]  # of the stream: features, statistics and labels


def load_model(path: str | Path) -> tuple[Learner, Reading | None]:
    """The learner and how its rows were read; None if it was not saved by the program from a file."""
    learner, reading, _ = load_named(path)
    return learner, reading


def load_named(path: str | Path) -> tuple[Learner, Reading | None, list[str]]:
    """The two, and the names of the features as files, data sets or rows had them; none if they have none."""
    learner, companion = load_with_companion(path)
    if companion is None:
        return learner, None, list(getattr(learner, "feature_names_in_", []))
    damaged = ValueError(f"{path} is damaged: what it says of its columns cannot be read")
    if not isinstance(companion, dict):
        raise damaged
    if companion.keys() == {"names"}:
        return learner, None, list(companion["names"])
    if companion.keys() != set(Reading._fields) or not all(isinstance(part, dict) for part in companion.values()):
        raise damaged
    reading = Reading(**companion)
    from shoal.files.opening import saved_feature_names  # `shoal.load` needs no reader of files

    return learner, reading, saved_feature_names(reading.state)


def save_model(
    path: str | Path, contestants: Mapping[str, Learner], reading: Reading | None, names: Sequence[str] = ()
) -> Path:
    """Write the learner, which comes first, its baselines, and how their rows were read, or of a built-in data set what
    its features are called; a symbolic link stays a link."""
    target = Path(path).resolve()
    companion = {"names": list(names)} if reading is None else reading._asdict()
    learner, *baselines = contestants.values()
    if not baselines:
        learner.save(target, companion=companion)
        return target
    with TemporaryDirectory() as folder:
        alone = Path(folder, "model")
        learner.save(alone, companion=companion)
        header, arrays = persistence.read(alone)
        header["baselines"] = {}
        for name, baseline in list(contestants.items())[1:]:
            baseline.save(alone)
            header["baselines"][name], own = persistence.read(alone)
            arrays |= {f"{name}/{part}": array for part, array in own.items()}
    persistence.write(target, header, arrays)
    return target


def load_baselines(path: str | Path) -> dict[str, Learner]:
    """The baselines by their names; none if the model was saved without them."""
    with persistence.opened(path) as (header, arrays), TemporaryDirectory() as folder:
        alone, found = Path(folder, "model"), {}
        for name, own in header.get("baselines", {}).items():
            mark = f"{name}/"
            parts = {part.removeprefix(mark): array for part, array in arrays.items() if part.startswith(mark)}
            persistence.write(alone, dict(own), parts)
            found[name] = load(alone)
        return found
