"""Kinds of targets: two labels, many, or real numbers; and the numbers that kernels learn for them."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray
from shoal.model import labels as two
from shoal.model.validation import LARGEST


class Targets(Protocol):
    """How targets become numbers. `known` is what is known of the labels so far, None at first."""

    def declared(self, classes: Any) -> Any:
        """Labels that the constructor's `classes=` declares."""

    def encode(self, y: Any, n_rows: int, known: Any, classes: Any) -> tuple[FloatArray, Any]:
        """Targets as numbers, and the labels known after them. Raises ValueError on bad targets; the row is named."""

    def encode_one(self, y: Any, known: Any) -> FloatArray | None:
        """(1,) the number of one target, not to be written to; None if `encode` has to look at it."""

    def to_header(self, known: Any) -> Any:
        """The labels seen so far, as plain values."""

    def from_header(self, saved: Any) -> Any:
        """The inverse of `to_header`."""


class TwoLabels:
    """+1 for the larger of two labels, or the last of those given `InOrder`; -1 for the other."""

    def declared(self, classes: Any) -> two.Labels | None:
        """Labels that the constructor's `classes=` declares."""
        return None if classes is None else two.declared(classes)

    def encode(self, y: Any, n_rows: int, known: Any, classes: Any) -> tuple[FloatArray, two.Labels]:
        """Labels as +1 and -1."""
        return two.encode(y, n_rows, known, classes)

    def encode_one(self, y: Any, known: Any) -> FloatArray | None:
        """+1 or -1 if the label is known."""
        try:
            sign: FloatArray | None = known.signs.get(y)
        except (TypeError, AttributeError):
            return None
        return sign

    def to_header(self, known: two.Labels) -> Any:
        """Labels, their type, and the only one so far if the other is a guess."""
        return known.classes.tolist(), known.classes.dtype.str, known.settled, known.seen

    def from_header(self, saved: Any) -> two.Labels:
        """The inverse of `to_header`."""
        values, kind, settled, seen = saved
        classes = np.array(values, dtype=kind)
        if classes.shape != (2,) or not isinstance(settled, bool) or not _are_two(classes, settled):
            raise ValueError("its labels are not two labels")
        return two.Labels(classes, settled, None if settled else classes.dtype.type(seen))


def _are_two(classes: NDArray[Any], settled: bool) -> bool:
    """Whether they differ; only labels that were given can be in another order than the sorted one."""
    first, second = classes.tolist()
    return bool(first < second or (settled and second < first))


class Classes(NamedTuple):
    """Labels of `ManyLabels`."""

    known: NDArray[Any]  # declared or met, sorted
    met: tuple[Any, ...]  # in order of first appearance: the c-th has code c

    @property
    def codes(self) -> dict[Any, int]:
        """Code of each label met."""
        return {label: code for code, label in enumerate(self.met)}


class ManyLabels:
    """A whole number for each label, in order of first appearance."""

    def declared(self, classes: Any) -> Classes | None:
        """Labels that the constructor's `classes=` declares."""
        return None if classes is None else Classes(np.unique(np.asarray(classes)), ())

    def encode(self, y: Any, n_rows: int, known: Classes | None, classes: Any) -> tuple[FloatArray, Classes]:
        """Labels as codes; new ones get the next."""
        y = two.checked(y, n_rows)
        if y.dtype.kind == "f" and (y != np.floor(y)).any():
            row = int(np.flatnonzero(y != np.floor(y))[0])
            raise ValueError(f"Unknown label type: continuous. Row {row}: expected a class label, got {y[row]}")
        found, first, inverse = np.unique(y, return_index=True, return_inverse=True)
        labels = found
        for others in [np.asarray(classes)] * (classes is not None) + ([] if known is None else [known.known]):
            if (others.dtype.kind in "biuf") != (y.dtype.kind in "biuf"):
                raise ValueError(
                    f"row 0: the label {y.tolist()[0]!r} is not of the kind of {others.tolist()[0]!r}; "
                    "expected all labels to be numbers, or all text"
                )
            labels = np.union1d(labels, others)
        met = () if known is None else known.met
        in_order = [found.tolist()[i] for i in np.argsort(first)]
        after = Classes(labels, met + tuple(label for label in in_order if label not in met))
        codes = after.codes
        return np.array([codes[label] for label in found.tolist()], np.float64)[inverse], after

    def encode_one(self, y: Any, known: Any) -> FloatArray | None:
        """None: a label may be new."""
        return None

    def to_header(self, known: Classes) -> Any:
        """Labels, their type, and those met."""
        return known.known.tolist(), known.known.dtype.str, list(known.met)

    def from_header(self, saved: Any) -> Classes:
        """The inverse of `to_header`."""
        values, kind, met = saved
        known = np.array(values, dtype=kind)
        labels = known.tolist()
        if known.ndim != 1 or labels != sorted(set(labels)) or len(set(met)) != len(met) or not set(met) <= set(labels):
            raise ValueError("its labels are not different labels in order")
        return Classes(known, tuple(met))


class RealTargets:
    """Real numbers as they are."""

    def declared(self, classes: Any) -> None:
        """Regressors have no labels."""

    def encode(self, y: Any, n_rows: int, known: Any, classes: Any) -> tuple[FloatArray, None]:
        """Targets as finite float64."""
        if classes is not None:
            raise ValueError("classes= is for classifiers; this learner predicts real targets")
        return two.real_targets(y, n_rows), None

    def encode_one(self, y: Any, known: Any) -> FloatArray | None:
        """The number, if it is one."""
        return np.array((y,)) if type(y) is float and abs(y) <= LARGEST else None

    def to_header(self, known: Any) -> None:
        """Nothing is known."""

    def from_header(self, saved: Any) -> None:
        """Nothing was known."""
        if saved is not None:
            raise ValueError("it has labels, but its learner predicts real targets")


class BoundedTargets(RealTargets):
    """Real numbers from a smallest one on."""

    def __init__(self, least: float, expected: str) -> None:
        self.least, self.expected = least, expected

    def encode(self, y: Any, n_rows: int, known: Any, classes: Any) -> tuple[FloatArray, None]:
        """Targets as finite float64, none too small."""
        numbers, _ = super().encode(y, n_rows, known, classes)
        if (small := numbers < self.least).any():
            row = int(small.argmax())
            raise ValueError(f"row {row}: the target is {numbers[row]:g}; expected {self.expected}")
        return numbers, None

    def encode_one(self, y: Any, known: Any) -> FloatArray | None:
        """The number, if it is one, and not too small."""
        number = super().encode_one(y, known)
        return number if number is not None and number[0] >= self.least else None


COUNTS, AMOUNTS = BoundedTargets(0.0, "a number >= 0"), BoundedTargets(5e-324, "a number > 0")
