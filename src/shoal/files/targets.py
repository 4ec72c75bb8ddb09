"""The labels of a stream: which there may be, and what is said about others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Target = Literal["binary", "multiclass", "regression", "auto"]
TARGETS: tuple[str, ...] = get_args(Target)
State = dict[str, Any]  # what JSON can hold
MAX_CLASSES = 10_000  # more labels than that are an id or a number, no class
MAX_NUMERIC_CLASSES = 20  # of numbers in the sample, if the kind is left to it
SHOWN = 5


@contextmanager
def reading_state() -> Iterator[None]:
    """Make one ValueError of whatever a saved state that is not one, or is damaged, leads to."""
    try:
        yield
    except (KeyError, TypeError, IndexError, AttributeError, OverflowError, MemoryError) as error:
        raise ValueError(
            f"the saved state of the file's columns is damaged ({type(error).__name__}: {error})"
        ) from None


def check_state(right: bool, what: str) -> None:
    """Raise ValueError if a saved state is not right."""
    if not right:
        raise ValueError(f"the saved state of the file's columns is damaged: {what}")


def as_number(text: str) -> float | None:
    """The finite number that a text is (true is 1, false is 0), or None.

    >>> [as_number(text) for text in ("-1", "True", "spam")]
    [-1.0, 1.0, None]
    """
    text = {"true": "1", "false": "0"}.get(text.lower(), text)
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None


class Labels:
    """The labels of a stream: real numbers, or classes that are numbers or strings.

    Attributes
    ----------
    kind : {"binary", "multiclass", "regression", "auto"}
        With "binary" a third label is a bad row. "auto" becomes one of the others with the first rows.
    numeric : bool or None
        Whether labels are numbers; None until the first rows say it.
    classes : list
        The labels so far, in the order of their appearance, or in the order in which they were given.
    given : bool
        Whether there are no others than those.
    """

    def __init__(self, kind: Target, labels: Sequence[Any] | None = None) -> None:
        self.kind: Target = kind
        self.numeric: bool | None = True if kind == "regression" else None
        self.classes: list[Any] = []
        self.given = labels is not None
        if labels is None:
            return
        n = 0 if isinstance(labels, str) else len(set(labels))
        if kind == "auto":
            self.kind = "binary" if n == 2 else "multiclass"
        if n < 2 or n < len(labels) or kind == "regression" or (kind == "binary" and n > 2):
            expected = "the two labels of a binary stream" if kind == "binary" else "two labels or more"
            raise ValueError(f"labels={labels!r}, expected {expected}")
        texts = [str(label) for label in labels]
        numbers = [as_number(text) for text in texts]
        self.numeric = None not in numbers
        self.classes = list(numbers) if self.numeric else list(texts)

    def decide(self, sample: Iterable[Any]) -> None:
        """Choose the kind, if it is "auto", by the distinct labels of the first rows."""
        if self.kind != "auto":
            return
        distinct = list(sample)
        many = self.numeric and (
            len(distinct) > MAX_NUMERIC_CLASSES or not all(float(label).is_integer() for label in distinct)
        )
        if len(distinct) <= 2:
            self.kind = "binary"
        else:
            self.kind = "regression" if many else "multiclass"

    def check_given(self, labels: Sequence[Any]) -> None:
        """Raise ValueError if these are not the labels known, which are in sorted order unless they were given."""
        asked, known = Labels("auto", labels).classes, self.classes if self.given else sorted(self.classes)
        if asked != known and not (len(asked) > 2 and set(asked) == set(known)):
            raise ValueError(f"labels={list(labels)!r}, but {known!r} in the saved state: leave it out")

    def known_numbers(self, numbers: NDArray[np.float64]) -> bool:
        """Whether these labels need no further look."""
        if self.kind == "regression":
            return True
        return len(self.classes) >= 2 and bool(np.isin(numbers, self.classes).all())

    def refuse(self, found: Sequence[Any]) -> list[Any]:
        """Those of the labels, given in order of appearance, that there may not be; the others are classes now."""
        most = 0 if self.given else 2 if self.kind == "binary" else MAX_CLASSES
        known = set(self.classes)
        for label in found:
            if len(self.classes) < most and label not in known:
                self.classes.append(label)
                known.add(label)
        return [label for label in found if label not in known]

    def unexpected(self, label: Any) -> str:
        """What is wrong with a label that there may not be."""
        if self.kind != "binary":
            found = "is none of those given" if self.given else f"is one more than {MAX_CLASSES:,}"
            return f"label {label!r} {found}, expected {self.expected()}"
        ways = "" if self.given else " (kind='multiclass' takes more labels, kind='regression' any number)"
        return f"label {label!r} is a third one, expected {self.expected()}{ways}"

    def expected(self) -> str:
        """What a label should be."""
        if self.classes and self.kind != "regression":
            shown = [repr(label) for label in self.classes[:SHOWN]]
            if len(self.classes) > SHOWN:
                shown.append(f"{len(self.classes) - SHOWN} others")
            return " or ".join(shown)
        return "a finite number" if self.numeric else "a label"

    def to_dict(self) -> State:
        """Everything that `from_dict` needs, for JSON."""
        return {"kind": self.kind, "numeric": self.numeric, "classes": list(self.classes), "given": self.given}

    @classmethod
    def from_dict(cls, state: State) -> Labels:
        """The labels as they were saved."""
        with reading_state():
            labels = cls(state["kind"])
            labels.numeric, labels.classes, labels.given = state["numeric"], list(state["classes"]), state["given"]
            check_state(labels.kind in TARGETS and labels.numeric in (True, False, None), "kind of the labels")
            kinds = (int, float) if labels.numeric else (str,)
            right = all(isinstance(label, kinds) for label in labels.classes)
            right &= len(set(labels.classes)) == len(labels.classes)
            right &= len(labels.classes) <= (2 if labels.kind == "binary" else MAX_CLASSES)
            check_state(right and isinstance(labels.given, bool), "labels")
        return labels
