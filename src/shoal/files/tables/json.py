"""JSON: an object per line (NDJSON), or an array of objects.

Values are read as strings, as in CSV, so that both formats give the same. An array is cut into the texts of its values
while it is read, so it may be larger than memory and messages have lines.
"""

from __future__ import annotations

import codecs
import io
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import polars as pl

from shoal.files.ids import id_of
from shoal.files.messages import HALF_LETTER
from shoal.files.source import ByteSource
from shoal.files.tables.batches import Batch, parse_good_records

LONGEST_VALUE = 1 << 26  # letters: a file that is no JSON must not fill the memory
_SPACE = re.compile(r"[ \t\r\n]*")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_BEGIN = re.compile(rb"\s*\[\s*[{\]]")
START, FIRST, NEXT, AFTER, END = "[", "]", "", ",]", "end"  # the punctuation that may follow
VALUE_MAY_COME = (FIRST, NEXT)


class NDJSON:
    """A file of JSON objects as batches of strings; keys become columns in the order in which they appear.

    Raises ValueError if the file is empty.
    """

    def __init__(self, source: ByteSource) -> None:
        self.names: list[str] = []
        self._source = source

    def batches(self) -> Iterator[Batch]:
        """All rows; a key that first appears in a later batch becomes a column there."""
        empty = True
        for numbered in self._records():
            if numbered:
                empty = False
                yield self._batch([text for _, text in numbered], [number for number, _ in numbered])
        if empty:
            raise ValueError(f"{self._source.name} is empty, expected a JSON object on every line")

    def _records(self) -> Iterator[list[tuple[int, bytes]]]:
        """The lines of the file, or the values of its array, with their line numbers."""
        blocks = self._source.blocks()
        first = next(blocks, b"")
        blocks = itertools.chain([first], blocks)
        if is_array(first):
            yield from cut_array(self._source.name, blocks)
            return
        line = 1
        for block in self._source.lines(blocks):
            yield [(number, one) for number, one in enumerate(block, line) if one.strip()]
            line += len(block)

    def _batch(self, records: list[bytes], numbers: list[int]) -> Batch:
        self._learn_names(records)
        return parse_good_records(self._parse, _explain, records, np.array(numbers, np.int64))

    def _learn_names(self, records: list[bytes]) -> None:
        """Add new keys in the order of appearance, which the type inference of polars does not keep."""
        records = [record for record in records if not _has_half_letter(record)]
        known = set(self.names)
        missing: set[str] | None = None  # None: unknown, so every line is looked at
        try:
            schema = pl.scan_ndjson(io.BytesIO(b"\n".join(records)), infer_schema_length=None).collect_schema()
            missing = set(schema) - known
        except pl.exceptions.PolarsError:
            pass  # a malformed line, or an object here and a list there
        for record in records:
            if missing is not None and missing <= known:
                return
            try:
                keys = json.loads(record)
            except ValueError:
                continue
            if isinstance(keys, dict):
                self.names += [key for key in keys if key not in known]
                known.update(keys)

    def _parse(self, records: Sequence[bytes]) -> pl.DataFrame:
        schema = dict.fromkeys(self.names, pl.String)
        if not records or not schema:
            return pl.DataFrame(schema=schema)
        if any(map(_has_half_letter, records)):
            raise pl.exceptions.ComputeError("half a surrogate pair")
        frame = pl.read_ndjson(b"\n".join(records), schema=schema)
        for name, column in frame.to_dict().items():  # polars writes the number -0.0 as it writes the text "-0"
            rows = (column == "-0").arg_true()
            if len(rows):
                written = [id_of(json.loads(records[row])[name]) for row in rows]
                frame = frame.with_columns(column.scatter(rows, written))
        return frame


def _explain(record: bytes) -> str:
    try:
        value = json.loads(record)
    except ValueError as error:
        return f"not JSON ({error}), expected a JSON object"
    if _has_half_letter(record):
        return HALF_LETTER
    if isinstance(value, dict):
        return "a JSON object with a value that cannot be read, expected strings, numbers, true, false or null"
    return f"a JSON {type(value).__name__}, expected a JSON object"


def _has_half_letter(record: bytes) -> bool:
    """Whether a text has one escape of a pair without the other, which is no letter."""
    if _SURROGATE.search(record) is None:
        return False
    try:
        json.dumps(json.loads(record), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except ValueError:  # no JSON at all
        return False
    return False


def is_array(block: bytes) -> bool:
    """Whether a file with this first block is an array of objects."""
    return _BEGIN.match(block) is not None


def cut_array(name: str, blocks: Iterable[bytes]) -> Iterator[list[tuple[int, bytes]]]:
    """The values of an array, a list per block: the line number of each, and its text without line ends.

    Raises
    ------
    ValueError
        If it is no array or breaks off; the message begins with `name`.
    """
    cutter = _Cutter(name)
    for block in blocks:
        yield cutter.values(block)
    yield cutter.values(b"", is_last=True)


class _Cutter:
    """The state of the parser: text that is not cut yet, and the expected token."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._letters = codecs.getincrementaldecoder("utf-8")()
        self._decode = json.JSONDecoder().raw_decode
        self._rest, self._line, self._expected = "", 1, START

    def values(self, block: bytes, *, is_last: bool = False) -> list[tuple[int, bytes]]:
        """The values that end in this block."""
        try:
            text = self._rest + self._letters.decode(block, is_last)
        except UnicodeDecodeError:
            raise self._damaged("it is not UTF-8 text (encoding= names another)") from None
        found: list[tuple[int, bytes]] = []
        done = 0
        while (at := self._skip(text, done)) < len(text):
            self._line += text.count("\n", done, at)
            done = at
            if self._expected == END:
                raise self._damaged("text follows its end")
            if text[at] in self._expected:
                self._expected = {"[": FIRST, ",": NEXT, "]": END}[text[at]]
                done += 1
                continue
            if self._expected not in VALUE_MAY_COME:
                raise self._damaged(f"{text[at]!r} found, expected {' or '.join(self._expected)}")
            end = self._end(text, at, is_last=is_last)
            if end is None:
                break
            found.append((self._line, re.sub(r"[\r\n]", " ", text[at:end]).encode()))
            self._line += text.count("\n", at, end)
            done, self._expected = end, AFTER
        self._rest = text[done:]
        if is_last and self._expected != END:
            raise self._damaged("it breaks off")
        return found

    def _end(self, text: str, at: int, *, is_last: bool) -> int | None:
        """The end of the value; None if it needs more text."""
        try:
            _, end = self._decode(text, at)
        except ValueError as error:
            if is_last or len(text) - at > LONGEST_VALUE:
                raise self._damaged(str(error)) from None
            return None
        return None if end == len(text) and not is_last else end  # 12 may go on as 123

    @staticmethod
    def _skip(text: str, at: int) -> int:
        found = _SPACE.match(text, at)
        assert found is not None
        return found.end()

    def _damaged(self, why: str) -> ValueError:
        return ValueError(f"{self._name}, line {self._line}: damaged or not a JSON array of objects: {why}")
