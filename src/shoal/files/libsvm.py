"""LIBSVM text: `label [qid:task] index:value ...  # comment`, indices from 1 and no index twice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.files.bad_rows import BadRows
from shoal.files.libsvm_scan import LARGEST_INDEX, scan_libsvm
from shoal.files.sheet import WIDTH, next_line
from shoal.files.source import ByteSource
from shoal.files.sparse import MalformedLine, Row, SparseReader, number
from shoal.files.targets import Labels, State


class LibsvmReader(SparseReader):
    """Chunks from LIBSVM text; feature i of the file is column i - 1 of X, values stay as they are.

    Parameters
    ----------
    task : str or None
        "qid", or the index of the feature whose value is the task id (it is then no feature); None: `qid:`
        where the first line has one, otherwise all rows belong to one task.
    width : int
        Columns of X to begin with.
    """

    def __init__(
        self,
        source: ByteSource,
        bad: BadRows,
        labels: Labels,
        *,
        task: str | None,
        chunk_rows: int | None,
        width: int = 0,
    ) -> None:
        if task is not None and task != "qid" and not (task.isdecimal() and int(task) > 0):
            raise ValueError(
                f"task is {task!r}, expected 'qid' or the index of a feature, because the file is LIBSVM text"
            )
        super().__init__(source, bad, labels, chunk_rows=chunk_rows)
        self._sheet.marks[WIDTH] = self._seen_width = width
        self._task_index = int(task) if task is not None and task != "qid" else None
        self._with_qid: bool | None = None if task is None else task == "qid"

    @property
    def _width(self) -> int:
        return int(self._sheet.marks[WIDTH])

    @property
    def feature_names(self) -> list[str]:
        """The indices as they stand in the file."""
        return [str(i + 1) for i in range(self._seen_width)]

    def to_dict(self) -> State:
        """The width, for JSON."""
        return {"width": self._seen_width}

    def _scan(self, data: NDArray[np.uint8], plain: bool) -> int:
        if self._with_qid is None or self._task_index is not None:
            return next_line(data, self._sheet)
        return scan_libsvm(data, plain, self._with_qid, self._sheet, self._tasks.table)

    def _columns(self, features: list[Any]) -> NDArray[np.int64]:
        return np.array(features, np.int64) - 1

    def _parse(self, line: str) -> Row | None:
        tokens = line.partition("#")[0].split()
        if not tokens:
            return None
        label = number(tokens[0], "label")
        start, task = 1, None
        has_qid = len(tokens) > 1 and tokens[1].startswith("qid:")
        if self._with_qid is None:
            self._with_qid = has_qid
        if has_qid:
            start = 2
            task = tokens[1][4:] if self._with_qid else None
        if self._with_qid and not task:
            raise MalformedLine("no task, expected qid:TASK after the label")
        indices, values = _pairs(tokens[start:])
        if self._task_index is not None:
            task = self._take_task(indices, values)
        return Row(label, task, indices, values)

    def _take_task(self, indices: list[int], values: list[float]) -> str:
        """The value of the task's feature, which leaves the features; an absent feature is 0."""
        if self._task_index not in indices:
            return "0"
        position = indices.index(self._task_index)
        del indices[position]
        value = values.pop(position)
        return str(int(value)) if value.is_integer() else repr(value)


def _pairs(tokens: list[str]) -> tuple[list[int], list[float]]:
    """Indices and values; the slow path only finds the words for what is wrong."""
    try:
        pairs = [token.split(":") for token in tokens]
        indices = [int(index) for index, _ in pairs]
        values = [float(value) for _, value in pairs]
        # One test of the sum finds every nan and inf (and sums that overflow, which the slow path lets pass).
        right = sum(values) - sum(values) == 0.0 and "_" not in "".join(tokens)
    except ValueError:
        right = False
    if not right:
        indices, values = [], []
        for token in tokens:
            index, colon, value = token.partition(":")
            if not colon or not index.isdecimal():
                raise MalformedLine(f"token {token!r}, expected INDEX:VALUE")
            indices.append(int(index))
            values.append(number(value, f"value of feature {index}"))
    if indices and not (min(indices) >= 1 and max(indices) <= LARGEST_INDEX):
        wrong = next(index for index in indices if not 1 <= index <= LARGEST_INDEX)
        raise MalformedLine(f"feature index {wrong}, expected 1 to {LARGEST_INDEX}")
    if len(set(indices)) < len(indices):
        twice = next(index for index in indices if indices.count(index) > 1)
        raise MalformedLine(f"feature {twice} twice, expected each index once")
    return indices, values
