"""Models in files: a learner and, if its rows came from files or tables, how they were read (`Reading`).

`tabular.loading.load` makes one object of both. A model of the program also holds the baselines of a verdict, each as
the file that it would be alone: its header, and its arrays under its name.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.base import is_classifier

from shoal.learner import Learner
from shoal.model import persistence


def load_learner(path: str | os.PathLike[str]) -> Learner:
    """The learner of a file. Raises FileNotFoundError or ValueError, as `shoal.load` does."""
    return _load(path, ())[0]


def _load(path: str | os.PathLike[str], trusted: Collection[str]) -> tuple[Learner, Any]:
    """The learner, and the file's record of how rows are read."""
    with persistence.opened(path) as (header, arrays):
        return _restored(header, arrays, trusted), header["reading"]


def _restored(header: Mapping[str, Any], arrays: persistence.Arrays, trusted: Collection[str]) -> Learner:
    """The learner of a header and its arrays."""
    kind = persistence.learner_class(header["class"], trusted)
    learner: Learner = kind(**persistence.from_json(header["parameters"], arrays, trusted))
    learner._restore(persistence.known_from(header, arrays), persistence.state_arrays(arrays))
    return learner


class Reading(NamedTuple):
    """How the rows of a model were read."""

    options: dict[str, Any]  # of `ReadOptions`, as they were typed: the next file needs them too
    state: dict[str, Any]  # of the stream: features, statistics and labels


def load_model(path: str | os.PathLike[str], trusted: Collection[str] = ()) -> tuple[Learner, Reading | None]:
    """The learner and how its rows were read; None if they came as arrays. `trusted` is as in `shoal.load`."""
    learner, reading, _ = load_named(path, trusted)
    return learner, reading


def load_named(
    path: str | os.PathLike[str], trusted: Collection[str] = ()
) -> tuple[Learner, Reading | None, Callable[[], list[str]]]:
    """The two, and the names of the features as files, data sets or rows had them; none if they have none.

    The names of a table cost a reader of its rows, which most callers make themselves.
    """
    learner, found = _load(path, trusted)
    if found is None:
        return learner, None, lambda: list(getattr(learner, "feature_names_in_", []))
    damaged = ValueError(f"{path} is damaged: its description of the columns cannot be read")
    if not isinstance(found, dict):
        raise damaged
    if found.keys() == {"names"}:
        return learner, None, lambda: list(found["names"])
    if found.keys() != set(Reading._fields) or not all(isinstance(part, dict) for part in found.values()):
        raise damaged
    reading = Reading(**found)
    from shoal.files.opening import saved_feature_names  # `shoal.load` needs no reader of files

    if reading.state.get("family") == "table":
        return learner, reading, partial(saved_feature_names, reading.state)
    names = saved_feature_names(reading.state)
    return learner, reading, lambda: names


def knows_no_table(path: str | os.PathLike[str], learner: Learner) -> ValueError:
    """The error for a learner that is asked for rows with names of columns or features, which it has not learned."""
    name, wrapper = type(learner).__name__, "TabularClassifier" if is_classifier(learner) else "TabularRegressor"
    return ValueError(
        f"{path} holds a {name} alone, which does not know how the columns of a table are read, nor the names of VW "
        "text: `shoal run FILE --task … --label … --save` writes models that do, and in Python "
        f"shoal.{wrapper}(task, {name}(…))"
    )


def save_model(
    path: str | Path, contestants: Mapping[str, Learner], reading: Reading | None, names: Sequence[str] = ()
) -> Path:
    """Write the learner, which comes first, its baselines, and how their rows were read, or of a built-in data set what
    its features are called; a symbolic link stays a link."""
    target = Path(path).resolve()
    learner, *baselines = contestants.values()
    header, arrays = learner._content()
    if reading is not None or names:
        header["reading"] = {"names": list(names)} if reading is None else reading._asdict()
    if baselines:
        header["baselines"] = {}
    for name, baseline in list(contestants.items())[1:]:
        header["baselines"][name], own = baseline._content()
        arrays |= {f"{name}/{part}": array for part, array in own.items()}
    persistence.write(target, header, arrays)
    return target


def load_baselines(path: str | Path, trusted: Collection[str] = ()) -> dict[str, Learner]:
    """The baselines by their names; none if the model was saved without them."""
    with persistence.opened(path) as (header, arrays):
        found = {}
        for name, own in header.get("baselines", {}).items():
            mark = f"{name}/"
            parts = {part.removeprefix(mark): array for part, array in arrays.items() if part.startswith(mark)}
            found[name] = _restored(own, parts, trusted)
        return found
