"""The labels of a stream: their kind, the classes seen so far, and messages about labels that are refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from shoal.files.ids import id_of
from shoal.files.saved_state import State, check_state, reading_state

Target = Literal["binary", "multiclass", "regression", "auto"]
TARGETS: tuple[str, ...] = get_args(Target)
MAX_CLASSES = 10_000  # a column with more labels holds ids or numbers, not classes
MANY = 50  # labels that nobody asked for: each is a learner of its own
MAX_NUMERIC_CLASSES = 20  # numbers in the sample; if there are more, "auto" is regression
CLEAR_MAJORITY = 0.9  # of the values in the sample decides; the others are then bad rows
SHOWN = 5  # labels in a message
INT64 = np.iinfo(np.int64)
TRUTH = {"true": 1, "false": 0}
WHOLE = re.compile(r"[+-]?(0|[1-9]\d*)(\.0)?")
CODE = re.compile(r"[+-]?0\d+")  # a code such as 01234, which is no number


class Labels:
    """The labels of a stream: real numbers, or classes that are whole numbers or strings.

    Attributes
    ----------
    kind : {"binary", "multiclass", "regression", "auto"}
        With "binary" a third label is a bad row. The first rows turn "auto" into one of the others.
    numeric : bool or None
        Whether labels are numbers; None until the first rows decide it.
    classes : list
        The labels so far, in the order in which they were given or appeared.
    written : list of str
        The text of each of them where it first appeared.
    given : bool
        Whether the user gave all classes, so that others are refused.
    decimal : str
        The decimal mark of the file.
    asked : bool
        Whether the user asked for classes, so that there may be more than MANY.
    n_found : int
        Distinct labels in the first rows.
    least : float
        The smallest number that is learned; `number` describes what is.
    """

    def __init__(self, kind: Target, labels: Sequence[Any] | None = None, *, as_text: bool = False) -> None:
        self.kind: Target = kind
        self.numeric: bool | None = True if kind == "regression" else False if as_text else None
        self.classes: list[Any] = []
        self.written: list[str] = []
        self.given, self.decimal = labels is not None, "."
        self.asked, self.n_found = labels is not None or kind == "multiclass", 0
        self.bound(None)
        self._typed: tuple[int, dict[Any, Any]] = (0, {})
        if labels is None:
            return
        self.written = [] if isinstance(labels, str) else [id_of(label) or "" for label in labels]
        numbers = [None if as_text else whole_number(text) for text in self.written]
        self.numeric = None not in numbers
        self.classes = list(numbers) if self.numeric else list(self.written)
        n = len(set(self.classes))
        if kind == "auto":
            self.kind = "binary" if n == 2 else "multiclass"
        if n < 2 or n < len(labels) or kind == "regression" or (kind == "binary" and n > 2):
            expected = "the two labels of a binary stream" if kind == "binary" else "two labels or more"
            raise ValueError(f"labels={labels!r}, expected {expected}")

    def decide(self, found: Mapping[str, int], numbers: Sequence[float] | None) -> None:
        """Decide kind and type of the labels, as far as they are open, from those of the first rows.

        Parameters
        ----------
        found : dict of str to int
            How often each text occurs.
        numbers : list of float, optional
            The texts as numbers, if all are numbers.
        """
        self.n_found = len(found)
        whole = {text: whole_number(text, self.decimal) for text in found}
        many = numbers is not None and self.numeric is None and not any(map(CODE.fullmatch, found))
        if self.numeric is None:
            # Text among two numeric labels is a bad row; among several, such as grades, it is a label, too.
            least = CLEAR_MAJORITY if self.kind == "binary" else 1.0
            rows = sum(n for text, n in found.items() if whole[text] is not None)
            self.numeric = rows >= least * sum(found.values())
        if self.kind != "auto":
            return
        many &= len(found) > MAX_NUMERIC_CLASSES or not all(float(number).is_integer() for number in numbers or ())
        if len(set(whole.values() if self.numeric else found)) <= 2:
            self.kind = "binary"
        elif many:
            self.kind, self.numeric = "regression", True
        else:
            self.kind = "multiclass"

    @property
    def in_order(self) -> list[Any]:
        """The classes as they were given, else sorted; texts by their numbers, if all are numbers."""
        if self.given or self.numeric:
            return list(self.classes) if self.given else sorted(self.classes)
        try:
            return sorted(self.classes, key=lambda text: (float(text), text))
        except ValueError:
            return sorted(self.classes)

    def bound(self, targets: Any) -> None:
        """Accept the numbers that a learner's kind of targets does, see `shoal.model.targets.BoundedTargets`."""
        self.least, self.number = getattr(targets, "least", -np.inf), getattr(targets, "expected", "a finite number")

    def check_given(self, labels: Sequence[Any]) -> None:
        """Raise ValueError if `labels` are not the known classes, compared as in `in_order`."""
        given, known = Labels("auto", labels, as_text=self.numeric is False).classes, self.in_order
        if given != known and not (len(given) > 2 and set(given) == set(known)):
            raise ValueError(f"labels={list(labels)!r}, but {known!r} in the saved state: leave it out")

    def codes(self, found: Sequence[str]) -> list[int]:
        """The place of each label in `classes`, -1 if it is refused; new ones become classes in their order."""
        most = 0 if self.given else 2 if self.kind == "binary" else MAX_CLASSES if self.asked else MANY
        places = {label: place for place, label in enumerate(self.classes)}
        codes: list[int] = []
        for text in found:
            label = whole_number(text, self.decimal) if self.numeric else text
            place = -1 if label is None else places.get(label, -1)
            if place < 0 and label is not None and len(places) < most:
                place = places[label] = len(places)
                self.written.append(text)
                self.classes.append(label)
            codes.append(place)
        return codes

    def known(self, value: Any) -> Any:
        """The label of a value of Python; None if it is none of those so far."""
        if type(value) is int and self.numeric and value in self.classes:
            return value
        text = id_of(value) or ""
        label = whole_number(text, self.decimal) if self.numeric else text
        return label if label in self.classes else None

    def as_written(self, found: Iterable[Any]) -> list[Any]:
        """Labels as the file wrote them: integers, floats or truth values if it wrote all of them so, else text.

        None stays None.
        """
        if self.kind == "regression" or not self.numeric:
            return list(found)
        if self._typed[0] != len(self.classes):
            typed = {label: as_typed(text) for label, text in zip(self.classes, self.written, strict=False)}
            kinds = set(map(type, typed.values()))
            if len(kinds) > 1:
                typed = dict(zip(self.classes, self.written, strict=False))
            self._typed = len(typed), typed
        typed = self._typed[1]
        kind = type(next(iter(typed.values()), 0))  # the other of two labels may not have come yet
        return [None if label is None else typed[label] if label in typed else kind(label) for label in found]

    def mark(self) -> tuple[list[Any], list[str]]:
        """The classes of now, for `rollback`."""
        return list(self.classes), list(self.written)

    def rollback(self, mark: tuple[list[Any], list[str]]) -> None:
        """Forget all classes that came after the mark."""
        self.classes, self.written = list(mark[0]), list(mark[1])
        self._typed = (0, {})

    def unexpected(self, text: str, column: str | None = None) -> str:
        """The message for a label that is refused."""
        label = whole_number(text, self.decimal) if self.numeric else text
        if label is None:
            where = "" if column is None else f" in column {column!r}"
            open_ended = column is not None and self.kind != "binary" and not self.given
            way_out = f" (category={[column]!r} takes labels as they are)" if open_ended else ""
            return f"label {text!r}{where}, expected {'a whole number' if open_ended else self.expected()}{way_out}"
        if self.kind != "binary" and not self.asked:
            where = "" if column is None else f" in column {column!r}"
            return (
                f"label {label!r}{where} is one more than {MANY}: each label is a "
                f"learner of its own, which each row costs once, so all cost more than {MANY} times as much as one "
                "(kind='multiclass' takes them)"
            )
        if self.kind != "binary":
            found = "is none of those given" if self.given else f"is one more than {MAX_CLASSES:,}"
            return f"label {label!r} {found}, expected {self.expected()}"
        ways = "" if self.given else " (kind='multiclass' takes more labels, kind='regression' any number)"
        return f"label {label!r} is a third one, expected {self.expected()}{ways}"

    def expected(self) -> str:
        """A description of the labels that are accepted."""
        if self.classes and self.kind != "regression":
            shown = [repr(label) for label in self.classes[:SHOWN]]
            if len(self.classes) > SHOWN:
                shown.append(f"{len(self.classes) - SHOWN} others")
            return " or ".join(shown)
        if self.kind == "regression":
            return self.number
        return "a whole number" if self.numeric else "a label"

    def to_dict(self) -> State:
        """The whole state, for JSON."""
        classes = {"classes": list(self.classes), "written": list(self.written), "given": self.given}
        return {"kind": self.kind, "numeric": self.numeric, "asked": self.asked, **classes}

    @classmethod
    def from_dict(cls, state: State) -> Labels:
        """The labels of a saved state."""
        with reading_state():
            labels = cls(state["kind"])
            labels.numeric, labels.classes, labels.given = state["numeric"], list(state["classes"]), state["given"]
            labels.written, labels.asked = list(state["written"]), state["asked"]
            check_state(isinstance(labels.asked, bool), "labels")
            check_state(labels.kind in TARGETS and labels.numeric in (True, False, None), "kind of the labels")
            right = all(type(label) is (int if labels.numeric else str) for label in labels.classes)
            right &= list(map(type, labels.written)) == [str] * len(labels.classes)
            right &= len(set(labels.classes)) == len(labels.classes)
            right &= len(labels.classes) <= (2 if labels.kind == "binary" else MAX_CLASSES)
            check_state(right and isinstance(labels.given, bool), "labels")
        return labels


def cost_of(n: int) -> str:
    """The cost of a number of labels, for questions and messages."""
    return f"and each is a learner of its own: some {n} times the time and memory of one"


def whole_number(text: str, decimal: str = ".") -> int | None:
    """The label as a whole number; None if the number would not show how the label is written.

    That holds for codes (`01234`), for possible versions or codes (`1.50`, `1e3`) and for numbers beyond 64 bits. A
    plus sign, a `.0` (from a column of floats) and blanks around the digits are notation and may be lost.

    >>> [whole_number(text) for text in ("1", "-1", "+1", "1.0", "True", str(2**53 + 1))]
    [1, -1, 1, 1, 1, 9007199254740993]
    >>> [whole_number(text) for text in ("01234", "1.50", "1e3", str(2**63), "spam")]
    [None, None, None, None, None]
    """
    bare = text.strip()
    if decimal == ",":
        bare = bare.replace(".", "#").replace(",", ".")
    if WHOLE.fullmatch(bare) is None:
        return TRUTH.get(bare.lower())
    number = int(bare.removesuffix(".0"))
    return number if INT64.min <= number <= INT64.max else None


def as_typed(text: str) -> int | float | bool | str:
    """The number or truth value that typed formats write exactly so: 1, 1.0, true; otherwise the text.

    >>> [as_typed(text) for text in ("1", "1.0", "01", "true", "True")]
    [1, 1.0, '01', True, 'True']
    """
    if text in TRUTH:
        return bool(TRUTH[text])
    if WHOLE.fullmatch(text) is None or text.startswith("+"):
        return text
    number = float(text) if text.endswith(".0") else int(text)
    return number if str(number) == text else text
