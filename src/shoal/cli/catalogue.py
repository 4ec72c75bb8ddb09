"""What there is: learners by name with their hyper-parameters, and data sets."""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import shoal
from shoal.learner import Learner

if TYPE_CHECKING:
    from shoal.batch.base import BatchLearner

Kind = TypeVar("Kind")


def learner_kinds() -> dict[str, type[Learner]]:
    """All public online learners by name."""
    return _kinds(Learner)


def batch_kinds() -> dict[str, type[BatchLearner]]:
    """All public batch learners by name."""
    from shoal.batch.base import BatchLearner

    return _kinds(BatchLearner)


def _kinds(base: type[Kind]) -> dict[str, type[Kind]]:
    public = {name: getattr(shoal, name) for name in shoal.__all__ if name[0].isupper()}
    return {
        name: kind
        for name, kind in sorted(public.items())
        if isinstance(kind, type) and issubclass(kind, base) and kind is not base
    }


def make_learner(name: str, settings: list[str]) -> Learner:
    """The learner of that name with `["alpha=0.9", ...]`; raises ValueError with what would be right."""
    kind = getattr(shoal, name) if name in shoal.__all__ else None  # loads this one only
    if not (isinstance(kind, type) and issubclass(kind, Learner) and kind is not Learner):
        raise _no_learner(name)
    known = list(inspect.signature(kind).parameters)
    parameters = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"--set takes name=value, got {setting!r}")
        if key not in known:
            raise ValueError(f"{name} has no hyper-parameter {key!r}{_nearest(key, known)}; it has {', '.join(known)}")
        parameters[key] = parse_value(value)
    learner = kind(**parameters)
    learner.new_core()  # a wrong value is refused before the data is opened
    return learner


def _no_learner(name: str) -> ValueError:
    if name in batch_kinds():
        return ValueError(f"{name} is a batch learner: it sees all rows at once, so it has no place on a stream")
    known = list(learner_kinds())
    return ValueError(f"there is no learner {name!r}{_nearest(name, known)}; `shoal learners` lists them")


def parse_value(text: str) -> Any:
    """A number, true, false, null, or else text."""
    words = {"none": None, "null": None, "true": True, "false": False, "inf": float("inf")}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _nearest(name: str, known: list[str]) -> str:
    lower = {other.lower(): other for other in known}
    close = difflib.get_close_matches(name.lower(), list(lower), n=1)
    return f" (did you mean {lower[close[0]]}?)" if close else ""


def print_learners() -> None:
    """Two lines each: name, what it is; its hyper-parameters with their defaults."""
    print("Online")
    _print_kinds(learner_kinds())
    print("\nBatch (in Python only)")
    _print_kinds(batch_kinds())


def _print_kinds(kinds: Mapping[str, type]) -> None:
    for name, kind in kinds.items():
        summary = (inspect.getdoc(kind) or "").splitlines()[0]
        print(f"  {name:28}{summary}")
        parameters = inspect.signature(kind).parameters.values()
        defaults = ", ".join(f"{parameter.name}={parameter.default!r}" for parameter in parameters)
        print(f"  {'':28}{defaults}".rstrip())


def print_datasets() -> None:
    """One line each."""
    from shoal.datasets import names

    for name, description in names().items():
        print(f"dataset:{name:18}{description}")
