"""Vowpal Wabbit text: `label [importance] ['tag]|namespace[:scale] feature[:value] ...|namespace ...`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.files.bad_rows import BadRows
from shoal.files.names import Names
from shoal.files.source import ByteSource
from shoal.files.sparse import MalformedLine, Row, SparseReader, number
from shoal.files.suggest import unknown_name
from shoal.files.targets import Labels, State
from shoal.files.vw_scan import scan_vw


class VWReader(SparseReader):
    """Chunks from VW text; features are called `namespace^feature` (`feature` in a namespace without a name).

    They get columns of X in the order in which they appear and keep their values; a feature that stands twice
    in a row counts twice. Importance weights other than 1 are refused: learners weigh all rows alike.

    Parameters
    ----------
    task : str or None
        The namespace whose first feature is the task id (it gives no features); None: all rows are one task.
    names : list of str
        Features to begin with.
    """

    def __init__(
        self,
        source: ByteSource,
        bad: BadRows,
        labels: Labels,
        *,
        task: str | None,
        chunk_rows: int | None,
        names: list[str] | None = None,
    ) -> None:
        super().__init__(source, bad, labels, chunk_rows=chunk_rows)
        self._task = task
        # A space is in no name: where the task is sought in a namespace without a name, there is none.
        self._task_space = np.frombuffer((task or " ").encode(), np.uint8)
        self._names = Names(names or [])
        self._seen_width = self._width
        self._make_room(0, 0)

    @property
    def _width(self) -> int:
        return len(self._names)

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of X in the chunks given so far."""
        return self._names.texts(0, self._seen_width)

    def to_dict(self) -> State:
        """The names, for JSON."""
        return {"names": self.feature_names}

    def _scan(self, data: NDArray[np.uint8], plain: bool) -> int:
        return scan_vw(
            data, plain, self._task is not None, self._task_space, self._sheet, self._names.table, self._tasks.table
        )

    def _columns(self, features: list[Any]) -> NDArray[np.int64]:
        return self._names.numbers(features)

    def _make_room(self, features: int, letters: int) -> None:
        super()._make_room(features, letters)
        self._names.make_room(features, letters)

    def _parse(self, line: str) -> Row | None:
        head, *namespaces = line.split("|")
        if not head.strip() and not namespaces:
            return None
        if not namespaces:
            raise MalformedLine("no '|', expected LABEL |NAMESPACE FEATURE ...")
        label = _label(head)
        names: list[str] = []
        values: list[float] = []
        task = None
        for text in namespaces:
            space, scale, tokens = _namespace(text)
            if space == self._task and space:
                task = task or (tokens[0].partition(":")[0] if tokens else None)
                continue
            prefix = f"{space}^" if space else ""
            for token in tokens:
                name, colon, value = token.partition(":")
                if not name:
                    raise MalformedLine(f"token {token!r}, expected FEATURE or FEATURE:VALUE")
                names.append(prefix + name)
                values.append(scale * number(value, f"value of feature {name!r}") if colon else scale)
        if self._task is not None and not task:
            spaces = {_namespace(text)[0] for text in namespaces} - {""}
            raise MalformedLine(unknown_name("no task, expected it in namespace", self._task, sorted(spaces)))
        return Row(label, task, names, values)


def _label(head: str) -> float:
    """The label; a tag may follow (with a quote, or touching the bar) and an importance weight of 1."""
    words = head.split()
    if words and (words[-1].startswith("'") or (len(words) > 1 and not head[-1:].isspace())):
        words.pop()
    if not words:
        raise MalformedLine("no label, expected a number before the first '|'")
    label = number(words[0], "label")
    if len(words) > 2:
        raise MalformedLine(f"initial prediction {words[2]!r}, expected none: learners begin with their own")
    if len(words) == 2 and number(words[1], "importance weight") != 1.0:
        raise MalformedLine(f"importance weight {words[1]!r}, expected 1: learners weigh all rows alike")
    return label


def _namespace(text: str) -> tuple[str, float, list[str]]:
    """Name, scale and tokens of what follows a bar; a space after the bar means no name."""
    tokens = text.split()
    if not tokens or text[0].isspace():
        return "", 1.0, tokens
    name, colon, scale = tokens[0].partition(":")
    return name, number(scale, f"scale of namespace {name!r}") if colon else 1.0, tokens[1:]
