"""Two labels of any kind as +1 and -1."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, for_kernels
from shoal.engine.compile import kernel
from shoal.model.validation import LARGEST, first_out_of_range

MINUS, PLUS = np.array([-1.0]), np.array([1.0])
EXACT = 2**53  # whole numbers below are told apart as float64
# One label seen so far, and the other that is expected. A first label 1 may still turn out to belong to {0, 1}.
_PARTNER: dict[Any, Any] = {-1: 1, 1: -1, 0: 1}


class InOrder(tuple[Any, ...]):
    """Labels for `classes=` in the user's order: of two, the last is +1, whichever is larger."""


@dataclass(frozen=True)
class Labels:
    """The two labels, the last one is +1: the larger one, or the last of those given `InOrder`.

    While not `settled`, the partner of `seen` is a guess.
    """

    classes: NDArray[Any]  # (2,)
    settled: bool
    seen: Any = None  # the only label so far, if not settled
    signs: dict[Any, FloatArray] = field(init=False)  # (1,) of the labels once they are settled
    numbers: tuple[float, float] | None = field(init=False)  # the classes, if float64 tells them apart

    def __post_init__(self) -> None:
        signs = dict(zip(self.classes.tolist(), (MINUS, PLUS), strict=True)) if self.settled else {}
        object.__setattr__(self, "signs", signs)
        exact = _are_numbers(self.classes) and max(map(abs, self.classes.tolist())) < EXACT
        object.__setattr__(self, "numbers", tuple(map(float, self.classes)) if exact else None)


def declared(classes: Any) -> Labels:
    """Labels from `classes=`: sorted, unless they are given `InOrder`."""
    given = np.asarray(classes)
    values = np.unique(given)
    if len(values) != 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"classes= must name two labels, got {len(values)}"
            if len(values) > 2
            else f"classes= must name two labels, got {len(values)} class"
        )
    return Labels(given if isinstance(classes, InOrder) else values, True, None)


def _differ(given: Labels, known: Labels, classes: Any) -> bool:
    """Whether `classes=` say something else than what is known; their order matters only if it is given."""
    found, before = given.classes.tolist(), known.classes.tolist()
    return found != before if isinstance(classes, InOrder) else set(found) != set(before)


def _as_1d(y: Any, n_rows: int) -> NDArray[Any]:
    if type(y) is not np.ndarray or y.ndim != 1:
        from sklearn.utils.validation import column_or_1d

        y = column_or_1d(y.to_numpy() if hasattr(y, "to_numpy") else y, warn=True)
    if len(y) != n_rows:
        raise ValueError(f"y must hold one value per row: expected {n_rows} values, got {len(y)}")
    return np.asarray(y)


def _plain(y: NDArray[Any]) -> NDArray[Any]:
    """Labels that came as Python objects, as numbers or text where they are."""
    labels = y.tolist()
    for row, label in enumerate(labels):
        if label is None or label != label:
            raise ValueError(f"row {row}: the label is {'None' if label is None else 'NaN'}; expected a class label")
        try:
            label < labels[0]  # noqa: B015 (can they be sorted?)
        except TypeError:
            raise ValueError(f"row {row}: the label {label!r} is not of the kind of {labels[0]!r} in row 0") from None
    plain = np.array(labels)
    return plain if plain.ndim == 1 and plain.dtype.kind in "biufU" else y


def _shown(label: Any) -> str:
    return repr(label.item() if isinstance(label, np.generic) else label)


def _refuse_turned(before: Labels | None, after: Labels) -> None:
    """Raise if the only label so far was learned with the other sign."""
    if before is None or before.settled:
        return
    was_positive = bool(before.seen == before.classes[1])
    if was_positive != bool(before.seen == after.classes[1]):
        shown = " and ".join(map(_shown, after.classes))
        raise ValueError(
            f"the labels are {shown}, but {_shown(before.seen)} was learned as {'+1' if was_positive else '-1'} while "
            "it was the only one; make the learner with classes=[...]"
        )


def _refuse_third(y: NDArray[Any], known: NDArray[Any]) -> None:
    from sklearn.utils.multiclass import type_of_target

    row = int(np.flatnonzero(~np.isin(y, known))[0])
    kind = type_of_target(y)
    if kind.startswith("continuous"):
        raise ValueError(f"Unknown label type: {kind}. Row {row}: expected one of two labels, got {_shown(y[row])}")
    raise ValueError(
        f"Only binary classification is supported. The type of the target is multiclass. Row {row}: got a third "
        f"label {_shown(y[row])}; expected {_shown(known[0])} or {_shown(known[1])}"
    )


def _settle(y: NDArray[Any], labels: Labels | None) -> Labels:
    """The labels after `y`, when fewer than two were known before."""
    found, first = np.unique(y, return_index=True)
    if labels is not None:
        if not _are_numbers(y):
            raise ValueError(
                f"row 0: got the label {_shown(y[0])} after {_shown(labels.seen)}; make the learner with classes=[...]"
            )
        found, first = np.append(labels.seen, found), np.append(-1, first)
    in_order = found[np.argsort(first, kind="stable")]
    _, keep = np.unique(in_order, return_index=True)
    in_order = in_order[np.sort(keep)]
    if len(in_order) > 2:
        _refuse_third(y, in_order[:2])
    if len(in_order) == 2:
        return Labels(np.sort(in_order), True, None)
    label = in_order[0]
    if not _are_numbers(in_order) or label not in _PARTNER:
        raise ValueError(
            f"only one label, {_shown(label)}, is known so far and it does not tell the other class; make the learner "
            "with classes=[...]"
        )
    partner = not label if label.dtype.kind == "b" else _PARTNER[label.item()]
    if label.dtype.kind == "u":
        partner = 1 - label  # unsigned labels can only be {0, 1}
    return Labels(np.sort(np.array([label, partner], label.dtype)), False, label)


def _are_numbers(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "biuf"


def checked(y: Any, n_rows: int) -> NDArray[Any]:
    """`y` as a 1-d array of labels, whatever they are and however many."""
    y = _as_1d(y, n_rows)
    if y.dtype.kind == "O":
        y = _plain(y)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise ValueError(f"row {row}: the label is {'NaN' if np.isnan(y[row]) else 'infinity'}; expected a class label")
    return np.asarray(y)


@kernel(entry=True, allocates=True)
def _signs(y: FloatArray, negative: float, positive: float) -> tuple[FloatArray, bool]:
    """+1 and -1, and whether every label is one of the two."""
    signs = np.empty(len(y))
    good = True
    for row in range(len(y)):
        signs[row] = 1.0 if y[row] == positive else -1.0
        good &= (y[row] == positive) | (y[row] == negative)
    return signs, good


def _first_two(y: NDArray[Any]) -> Labels | None:
    """The labels if there are no others than the first two that differ; None if all are equal or one is NaN."""
    first = np.array([y[0], y[int(np.argmax(y != y[0]))]])
    return Labels(np.sort(first), True, None) if first[0] < first[1] or first[1] < first[0] else None


def encode(y: Any, n_rows: int, labels: Labels | None, classes: Any = None) -> tuple[FloatArray, Labels]:
    """`y` as +1 and -1, and the labels known after it.

    Raises
    ------
    ValueError
        On a third label or NaN (row named), a wrong length, `classes` that contradict the labels known, or a
        single unknown kind of label without `classes`.
    """
    y = _as_1d(y, n_rows)
    if labels is not None and labels.settled and classes is not None and list(classes) == list(labels.classes):
        classes = None  # nothing new
    if classes is None and (labels is None or labels.settled) and _are_numbers(y) and len(y) > 0:
        known = _first_two(y) if labels is None else labels
        if known is not None and known.numbers is not None:
            signs, good = _signs(for_kernels(y), *known.numbers)
            if good:
                return signs, known
    y = checked(y, n_rows)
    if classes is not None:
        given = declared(classes)
        if labels is not None and labels.settled and _differ(given, labels, classes):
            raise ValueError(f"classes={given.classes.tolist()} differ from the model's {labels.classes.tolist()}")
        if labels is not None and labels.seen is not None and labels.seen not in given.classes:
            raise ValueError(f"classes={given.classes.tolist()} leave out {_shown(labels.seen)}, learned before")
        _refuse_turned(labels, given)
        labels = labels if labels is not None and labels.settled else given
    if labels is None or not labels.settled:
        before, labels = labels, _settle(y, labels)
        _refuse_turned(before, labels)
    positive = y == labels.classes[1]
    if not np.all(positive | (y == labels.classes[0])):
        _refuse_third(y, labels.classes)
    return np.where(positive, 1.0, -1.0), labels


def real_targets(y: Any, n_rows: int) -> FloatArray:
    """Regression targets as finite float64."""
    y = _as_1d(y, n_rows)
    if y.dtype.kind in "cmMSU":
        raise ValueError(f"y must hold real numbers, got {y.dtype} values")
    try:
        y = for_kernels(y)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"y must hold real numbers, got {y.dtype} values") from None
    row = first_out_of_range(y)
    if row >= 0:
        found = "NaN" if np.isnan(y[row]) else "infinity" if np.isinf(y[row]) else f"{y[row]:.3g}"
        expected = f"a number of at most {LARGEST:g} in size" if np.isfinite(y[row]) else "a finite number"
        raise ValueError(f"row {row}: the target is {found}; expected {expected}")
    return np.asarray(y)
