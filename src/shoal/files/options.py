"""`ReadOptions`: all options of reading a file, declared once.

Messages of the readers write an option as `name=`, so that the command line can replace it by its own `--name`.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from shoal.files.encodings import known_encoding
from shoal.files.labels import TARGETS, Target

CONSTANT = "constant"  # the name of the feature of tables that is 1 in every row


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How `open_stream` reads a file.

    Parameters
    ----------
    task : str or sequence of str, optional
        Tables: the column of the task ids, or several columns whose values together are the id (`shop,country`).
        LIBSVM: "qid" (the default where the file has it) or the index of a feature. VW: a namespace. Without it all
        rows belong to one task. Ids are given as strings.
    label : str, optional
        Tables: the column of the labels. LIBSVM and VW have the label at the start of the line.
    weight : str, optional
        Tables: the column of the rows' weights, finite numbers >= 0; it is no feature. VW has its own.
    time : str, optional
        Tables: the column of the rows' times, numbers or dates; a row that is earlier than the one before it is bad.
    keep : sequence of str
        Tables: columns to carry along as they are; `FileStream.kept` has them.
    text, category, numeric, date : sequences of str
        Tables: columns to read as words, as values of their own (one-hot), as numbers (also `$5`, `1,234` and `5 %`)
        or as dates (also `10:30`).
    forecast : sequence of str
        Tables: columns with forecasts of other models, the first features behind the constant, as they are: see
        `shoal.OutsideForecast`.
    ignore : sequence of str
        Tables: columns that are no features.
    kind : {"binary", "multiclass", "regression", "auto"}
        Two labels, any number of labels, or real numbers. "auto" lets the first 1,000 rows decide: see
        `FileStream.kind`.
    labels : sequence, optional
        The labels that there are; by default those that appear. `FileStream.classes` keeps their order.
    labeled : bool
        False for rows to be predicted: y is None. With a state, columns and features then stay as they were saved.
    format : str, optional
        One of `FORMATS`; by default the ending of the file's name says it.
    encoding : str, optional
        Text formats: the encoding, by a name that Python knows, such as "shift_jis"; by default UTF-8, UTF-16 by its
        byte order mark, or Windows-1252 if the bytes are no UTF-8 and stand as its letters do. The notes name it.
    delimiter : str, optional
        CSV: the separator of the fields; by default the comma, semicolon, tab or bar that the first lines agree on.
    decimal : {".", ","}, optional
        Text formats: the decimal mark of numbers; by default what each column has: commas are found unless they may
        mark thousands.
    date_format : str, optional
        How dates are written, such as "%d/%m/%Y": columns of which nine values in ten are so are dates. By default
        those of ISO 8601, and other forms in which day and month cannot be mistaken.
    missing : sequence of str
        Text formats: words for missing values beside those that are known.
    hash_bits : int
        The words of a text column share 2**hash_bits features.
    keep_names : bool
        Features of words are called `column=word`, by the first word or pair that was hashed to them, instead of
        `column#number`. Reading takes about twice as long until all features have names.
    sort : bool
        Sort the rows by `time` first; more than 128 MB of them on disk, in the folder for temporary files (TMPDIR).
    strict : bool
        Tables: refuse rows that lack a column of the state (without one, of the first file), or have a further one.
        Otherwise the values of the one are missing and the other is not used; the notes of the stream name both.
    new_columns : int
        Tables: learn this many further columns. Those of JSON are all learned without a state.
    skip_bad : bool
        Count bad rows (`FileStream.skipped`, `bad_rows`) instead of raising `BadRow` at the first.
    chunk_rows : int, optional
        Rows of a chunk; by default 10,000 of standard input, and of a file at most 30,000: as many as have 600,000
        fields or 8 MB, or, in LIBSVM and VW text, about 500,000 features.
    """

    task: str | Sequence[str] | None = None
    label: str | None = None
    weight: str | None = None
    time: str | None = None
    keep: Sequence[str] = ()
    text: Sequence[str] = ()
    category: Sequence[str] = ()
    numeric: Sequence[str] = ()
    date: Sequence[str] = ()
    forecast: Sequence[str] = ()
    ignore: Sequence[str] = ()
    kind: Target = "binary"
    labels: Sequence[Any] | None = None
    labeled: bool = True
    format: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    date_format: str | None = None
    missing: Sequence[str] = ()
    hash_bits: int = 18
    keep_names: bool = False
    sort: bool = False
    strict: bool = False
    new_columns: int = 0
    skip_bad: bool = False
    chunk_rows: int | None = None

    def __post_init__(self) -> None:
        """Refuse impossible values and options that contradict each other."""
        for name in ("keep", "text", "category", "numeric", "date", "forecast", "ignore", "missing"):
            if isinstance(getattr(self, name), str):
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected a list of names")
        if self.kind not in TARGETS:
            raise ValueError(f"kind={self.kind!r}, expected one of {', '.join(map(repr, TARGETS))}")
        if self.chunk_rows is not None and self.chunk_rows < 1:
            raise ValueError(f"chunk_rows={self.chunk_rows}, expected at least 1")
        if not 1 <= self.hash_bits <= 24:
            raise ValueError(f"hash_bits={self.hash_bits}, expected 1 to 24")
        if self.encoding is not None:
            known_encoding(self.encoding)
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal={self.decimal!r}, expected '.' or ','")
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise ValueError(f"delimiter={self.delimiter!r}, expected one character, such as ';'")
        if self.sort and self.time is None:
            raise ValueError("sort= needs time=, the column to sort by")
        given: dict[str, str] = {}
        for kind in ("text", "category", "numeric", "date", "forecast"):
            for column in getattr(self, kind):
                if given.setdefault(column, kind) != kind:
                    raise ValueError(f"column {column!r} is both in {given[column]}= and in {kind}=, expected one")

    @property
    def tasks(self) -> list[str]:
        """The columns of the task id."""
        if self.task is None:
            return []
        return [self.task] if isinstance(self.task, str) else list(self.task)

    @property
    def named(self) -> set[str]:
        """All columns that an option names."""
        lists = [self.tasks, self.keep, self.text, self.category, self.numeric, self.date, self.forecast, self.ignore]
        single = [name for name in (self.label, self.weight, self.time) if name is not None]
        return {name for names in [*lists, single] for name in names}

    def changed(self, **changes: Any) -> ReadOptions:
        """A copy with some options changed."""
        known = [field.name for field in fields(self)]
        for name in changes:
            if name not in known:
                nearest = difflib.get_close_matches(name, known, n=1)
                hint = f": did you mean {nearest[0]!r}?" if nearest else ""
                raise TypeError(f"open_stream has no option {name!r}{hint}")
        return replace(self, **changes)
