"""Labels and task ids: what a file says in these two places, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # polars takes long to import; sparse text has no need of it
    import polars as pl

    from shoal.files import columns
    from shoal.files.batches import Problem

Target = Literal["binary", "regression"]
State = dict[str, Any]  # what JSON can hold
KNOWN_MOST = 10_000  # task ids that are kept for the next chunk


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
            import polars as pl

            from shoal.files import columns

            given = pl.Series([str(label) for label in labels])
            values, bad = columns.numbers(given)
            self.numeric = len(bad) == 0 and not np.isnan(values).any()
            self.classes = values.tolist() if self.numeric else given.to_list()

    def decide(self, sample: pl.Series, *, strings: bool) -> None:
        """Whether labels are numbers, from the first rows, unless that is known."""
        if self.numeric is None:
            from shoal.files import columns

            self.numeric = columns.decide(sample, strings=strings) in ("numeric", None)

    def read(self, column: pl.Series, *, strings: bool) -> tuple[NDArray[Any], list[Problem]]:
        """(n,) labels as float64 or str, and the problems of the others (their entries mean nothing)."""
        import polars as pl

        from shoal.files import columns

        kind: columns.Kind = "numeric" if self.numeric else "text"
        values, _ = columns.read(column, kind, strings=strings)
        usable = values.present
        if self.numeric:
            numbers = values.numbers
            usable = usable & (np.abs(numbers) <= columns.LARGEST)
            if usable.all() and self._all_known(numbers):
                return numbers, []
            found = pl.Series(numbers)
        else:
            found = values.texts[0]
        problems: list[Problem] = []
        if self.kind == "binary":
            for label in self.refuse(found.filter(pl.Series(usable)).unique(maintain_order=True).to_list()):
                rows = (found == label).fill_null(False).arg_true()
                problems += [(int(row), self.third(label)) for row in rows]
        problems += [(int(row), self._unusable(column, int(row))) for row in np.flatnonzero(~usable)]
        if self.numeric:
            return values.numbers, problems
        return found.fill_null("").to_numpy().astype(np.str_), problems

    def _all_known(self, numbers: NDArray[np.float64]) -> bool:
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
        return f"label {label!r} is a third one, expected {self._expected()} (regression takes any number)"

    def to_dict(self) -> State:
        """Everything that `from_dict` needs, for JSON."""
        return {"kind": self.kind, "numeric": self.numeric, "classes": list(self.classes)}

    @classmethod
    def from_dict(cls, state: State) -> Labels:
        """The labels as they were saved."""
        labels = cls(state["kind"])
        labels.numeric, labels.classes = state["numeric"], list(state["classes"])
        return labels

    def _unusable(self, column: pl.Series, row: int) -> str:
        value = column[row]
        found = "no label" if value is None or value == "" else f"label {value!r}"
        return f"{found} in column {column.name!r}, expected {self._expected()}"

    def _expected(self) -> str:
        if self.classes:
            return " or ".join(repr(label) for label in self.classes)
        return "a finite number" if self.numeric else "a label"


class Tasks:
    """The task ids of a stream, one string object each: dictionaries find the same object faster than an equal one.

    Ids are strings whatever the format, so that a model that learnt from CSV can go on with Parquet. Only an
    empty field is a missing task: "NA" is a country.
    """

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._known: Any = None  # the ids as a polars type, unless they are too many
        self._objects = np.zeros(0, np.object_)

    def read(self, column: pl.Series) -> tuple[NDArray[np.object_], list[Problem]]:
        """(n,) task ids, and the problems of the rows without one."""
        import polars as pl

        if column.dtype.is_float():
            column = column.fill_nan(None)
        text = column.cast(pl.String)
        if self._known is not None:
            codes = text.cast(self._known, strict=False).to_physical()
            if codes.null_count() == 0:
                return self._objects[codes.to_numpy()], []
        text = text.fill_null("")
        missing = np.flatnonzero((text == "").to_numpy())
        where = f"no task in column {column.name!r}, expected a task id"
        return self._new(text), [(int(row), where) for row in missing]

    def _new(self, text: pl.Series) -> NDArray[np.object_]:
        """The ids of a column of which some are not known."""
        import polars as pl

        ids = text.unique(maintain_order=True)
        objects = [self._ids.setdefault(task, task) for task in ids.to_list()]
        self._known = None
        if len(self._ids) <= KNOWN_MOST:
            self._objects = np.array([*filter(None, self._ids)], np.object_)
            self._known = pl.Enum(self._objects.tolist())
        codes = text.cast(pl.Enum(ids)).to_physical().to_numpy()
        found: NDArray[np.object_] = np.array([*objects, None], np.object_)[codes]
        return found
