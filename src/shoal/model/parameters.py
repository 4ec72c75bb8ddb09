"""Hyper-parameters: each algorithm declares once what its own may be, for checks, messages and documentation."""

import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar, dataclass_transform

import numpy as np

Params = SimpleNamespace  # hyper-parameters by name, checked and converted
T = TypeVar("T")


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def from_keywords(kind: type[T]) -> type[T]:
    """Make the class's annotated attributes its hyper-parameters: the constructor takes and stores them unchanged."""
    return dataclass(kw_only=True, eq=False, repr=False)(kind)


class Reader(NamedTuple):
    """Checks a value and converts it to what the algorithm works with."""

    text: str  # the range, as in "C must be ..."
    convert: Callable[[Any], Any]  # raises ValueError, or TypeError, if the value is none of that


Readers = Mapping[str, Reader]


def read(readers: Readers, values: Mapping[str, Any]) -> Params:
    """All hyper-parameters, checked.

    Raises
    ------
    ValueError
        If one is not what its reader takes: "C must be a finite number > 0, got -1".
    """
    found = Params()
    for name, value in values.items():
        reader = readers.get(name)
        if reader is None:
            setattr(found, name, value)
            continue
        try:
            setattr(found, name, reader.convert(value))
        except (_NotThat, TypeError):
            raise ValueError(f"{name} must be {reader.text}, got {value!r}") from None
    return found


class _NotThat(ValueError):
    """The value is not what the text says; other ValueErrors say more and are passed on."""


def _number(holds: Callable[[float], bool]) -> Callable[[Any], float]:
    def convert(value: Any) -> float:
        if isinstance(value, bool | str) or not isinstance(value, numbers.Real | np.number):
            raise _NotThat
        if not holds(float(value)):
            raise _NotThat
        return float(value)

    return convert


def positive(*, infinite: bool = False) -> Reader:
    """A number above 0."""
    if infinite:
        return Reader("a number > 0", _number(lambda value: value > 0))
    return Reader("a finite number > 0", _number(lambda value: 0 < value < math.inf))


def non_negative(*, infinite: bool = False) -> Reader:
    """A number of at least 0."""
    if infinite:
        return Reader("a number >= 0", _number(lambda value: value >= 0))
    return Reader("a finite number >= 0", _number(lambda value: 0 <= value < math.inf))


def at_least(least: float) -> Reader:
    """A finite number with a lower bound."""
    return Reader(f"a finite number >= {least:g}", _number(lambda value: least <= value < math.inf))


def between(low: float, high: float) -> Reader:
    """A number in a closed interval."""
    return Reader(f"a number in [{low:g}, {high:g}]", _number(lambda value: low <= value <= high))


def share() -> Reader:
    """A share of something."""
    return Reader("in (0, 1]", _number(lambda value: 0 < value <= 1))


def below_one() -> Reader:
    """A number in [0, 1)."""
    return Reader("a number >= 0 and < 1", _number(lambda value: 0 <= value < 1))


def strictly_between(low: float, high: float) -> Reader:
    """A number in an open interval."""
    return Reader(f"between {low:g} and {high:g}, both excluded", _number(lambda value: low < value < high))


def whole(least: int, meaning: str = "an integer") -> Reader:
    """An integer."""

    def convert(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
            raise _NotThat
        return int(value)

    return Reader(f"{meaning} >= {least}", convert)


def optional(reader: Reader) -> Reader:
    """None, or what the reader takes."""
    return Reader(f"None or {reader.text}", lambda value: None if value is None else reader.convert(value))


def one_of(choices: Iterable[Any]) -> Reader:
    """One of a few values; a mapping gives what each stands for."""
    allowed = tuple(choices)

    def convert(value: Any) -> Any:
        if not isinstance(value, str | None) or value not in allowed:
            raise _NotThat
        return choices[value] if isinstance(choices, Mapping) else value

    return Reader(f"one of {allowed}", convert)


def or_auto(reader: Reader, automatic: Any) -> Reader:
    """A number, or "auto", which is given as `automatic`."""

    def convert(value: Any) -> Any:
        if isinstance(value, str) and value == "auto":
            return automatic
        return reader.convert(value)

    return Reader(f"{reader.text} or 'auto'", convert)


def truth() -> Reader:
    """True or False."""

    def convert(value: Any) -> bool:
        if not isinstance(value, bool | np.bool_ | int):
            raise _NotThat
        return bool(value)

    return Reader("True or False", convert)


def _weights_type(value: Any) -> np.dtype[Any]:
    for kind in (np.dtype(np.float64), np.dtype(np.float32)):
        if isinstance(value, str | type | np.dtype) and value in (kind.name, kind.type, kind):
            return kind
    raise _NotThat


WEIGHTS_TYPE = Reader("'float64' or 'float32'", _weights_type)


class Seed(NamedTuple):
    """A seed drawn from what scikit-learn calls a random state."""

    seed: int
    given: bool  # or a new one each time


def _seed(value: Any) -> Seed:
    from sklearn.utils import check_random_state

    return Seed(int(check_random_state(value).randint(2**31 - 1)), value is not None)


SEEDED = Reader("a seed, a RandomState or None", _seed)


@cache
def _getter(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    """Reads all hyper-parameters of a kind of learner (scikit-learn's way costs 30 us a call)."""
    names: list[str] = kind._get_param_names()
    return attrgetter(*names) if len(names) > 1 else lambda learner: tuple(getattr(learner, n) for n in names)


def hyper_parameters(learner: Any) -> tuple[Any, ...]:
    """The values of all hyper-parameters, those of learners within it included."""
    kind: Any = type(learner)
    values = _getter(kind)(learner)
    for name in learner.estimator_names:
        inner = getattr(learner, name)
        if hasattr(inner, "estimator_names"):
            values += hyper_parameters(inner)
    return values


def for_users(names: Iterable[str], internal: str) -> list[str]:
    """The attributes of a learner that `dir` shows: none of those, and no request of metadata for a missing verb."""
    shown = set(names) - set(internal.split())
    requests = {name: name.removeprefix("set_").removesuffix("_request") for name in shown if name.endswith("_request")}
    return sorted(shown - {name for name, verb in requests.items() if verb not in shown})


def alike(values: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    """Are they equal? The same object is, without a look at it."""
    try:
        return values == others
    except (TypeError, ValueError):  # arrays and data frames do not say so
        return False
