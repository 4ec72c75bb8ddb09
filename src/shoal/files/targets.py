"""The labels of a stream: which there may be, and what is said about others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Target = Literal["binary", "regression"]
State = dict[str, Any]  # what JSON can hold


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
    """The labels of a stream: real numbers, or two classes that are numbers or strings.

    Parameters
    ----------
    kind : "binary" or "regression"
        With "binary" a third label is a bad row.
    labels : two values, optional
        The two classes; without it they are the first two that the file holds.
    """

    def __init__(self, kind: Target, labels: Sequence[Any] | None = None) -> None:
        if kind not in ("binary", "regression"):
            raise ValueError(f"kind is {kind!r}, expected 'binary' or 'regression'")
        if labels is not None and (isinstance(labels, str) or len(set(labels)) != 2 or kind == "regression"):
            raise ValueError(f"labels is {labels!r}, expected the two labels of a binary stream")
        self.kind = kind
        self.numeric: bool | None = True if kind == "regression" else None
        self.classes: list[Any] = []
        if labels is not None:
            texts = [str(label) for label in labels]
            numbers = [as_number(text) for text in texts]
            self.numeric = None not in numbers
            self.classes = numbers if self.numeric else texts

    def knows_all(self, numbers: NDArray[np.float64]) -> bool:
        if self.kind == "regression":
            return True
        return len(self.classes) == 2 and bool(np.isin(numbers, self.classes).all())

    def refuse(self, found: Sequence[Any]) -> list[Any]:
        """Those of the labels, given in order of appearance, that would be a third."""
        for label in found:
            if len(self.classes) < 2 and label not in self.classes:
                self.classes.append(label)
        return [label for label in found if label not in self.classes]

    def third(self, label: Any) -> str:
        """What is wrong with a third label."""
        return f"label {label!r} is a third one, expected {self.expected()} (regression takes any number)"

    def to_dict(self) -> State:
        """Everything that `from_dict` needs, for JSON."""
        return {"kind": self.kind, "numeric": self.numeric, "classes": list(self.classes)}

    @classmethod
    def from_dict(cls, state: State) -> Labels:
        """The labels as they were saved."""
        labels = cls(state["kind"])
        labels.numeric, labels.classes = state["numeric"], list(state["classes"])
        return labels

    def expected(self) -> str:
        if self.classes:
            return " or ".join(repr(label) for label in self.classes)
        return "a finite number" if self.numeric else "a label"
