"""CSV and TSV: a compiled scan finds the records and their lines, polars parses them.

The scan is needed because a parser tells neither the line of a row (quoted fields may contain line ends) nor which row
has too few fields. Fields are read as strings; `column_kinds` decides and checks their meaning.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.engine.compile import kernel
from shoal.files.encodings import no_text
from shoal.files.messages import SHOWN, plural
from shoal.files.source import ByteSource
from shoal.files.tables.batches import Batch, Problem, parse_good_records

DELIMITERS = ",;\t|"
SAMPLED, SAMPLE_BYTES = 20, 1 << 18  # records that decide the delimiter, and bytes searched for them
DELIMITER_LINE = re.compile(rb'"?sep=([^"\r\n])"?\r?\n')  # a first line for Excel
MOSTLY = 0.9
MAX_COLUMNS = 100_000
NEWLINE, RETURN, QUOTE = 10, 13, 34
START, PLAIN, QUOTED, CLOSED = range(4)  # states of the scan: field start, in a field, in quotes, after quotes
UNCLOSED = -1  # the "number of fields" of a line with a quote that is never closed
LONGEST_RECORD = 1 << 26  # bytes: a quote that is never closed must not take the whole file into memory


class Delimited:
    """A CSV or TSV file, whose first line names the columns, as batches of strings.

    Parameters
    ----------
    delimiter : str or None
        The separator of fields; None: the one that the first lines agree on.

    Attributes
    ----------
    index : str or None
        The first column, if it alone has no name: the index that pandas saves.

    Raises ValueError if the file is empty or two columns have the same name.
    """

    index: str | None = None

    def __init__(self, source: ByteSource, delimiter: str | None) -> None:
        blocks = source.blocks()
        first_block = next(blocks, b"")
        line, declared = 1, DELIMITER_LINE.match(first_block)
        if declared:
            line, first_block = 2, first_block[declared.end() :]
            delimiter = delimiter or declared[1].decode()
        self.delimiter = delimiter = delimiter or find_delimiter(first_block)
        self._records = read_records(itertools.chain([first_block], blocks), ord(delimiter), source.name, line)
        for first in self._records:
            filled = np.flatnonzero(first.fields)
            if len(filled):
                header = int(filled[0])
                self.names = self._header(source.name, first.record(header))
                self._first = first.after(header)
                return
        raise ValueError(f"{source.name} is empty, expected a first line with the names of the columns")

    def batches(self) -> Iterator[Batch]:
        """All rows; at least one batch, which may be empty."""
        yield self._batch(self._first)
        for records in self._records:
            yield self._batch(records)

    def _header(self, file: str, record: bytes) -> list[str]:
        try:
            written = [name.strip() for name in self._fields(record)]
            names = [name or f"column_{i}" for i, name in enumerate(written, 1)]
            self.index = names[0] if written[:1] == [""] and all(written[1:]) and written[1:] else None
        except UnicodeDecodeError:
            raise ValueError(
                f"{file}: the names of the columns are not UTF-8 text (encoding= names another, such as shift_jis)"
            ) from None
        except csv.Error as error:
            raise ValueError(f"{file}: the names of the columns cannot be read: {error}") from None
        if any("\r" in name and "\n" not in name for name in names):
            raise ValueError(f"{file}: lines end in a carriage return alone, expected line feeds (mac2unix makes them)")
        if len(names) > MAX_COLUMNS:
            raise ValueError(
                f"{file} has {len(names):,} columns, expected at most {MAX_COLUMNS:,}: write wide rows as VW text"
            )
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        if twice:
            raise ValueError(f"{file}: columns need names of their own, but {twice[:SHOWN]} stand there twice")
        return names

    def _fields(self, record: bytes) -> list[str]:
        text = io.StringIO(record.decode("utf-8"), newline="")
        return next(csv.reader(text, delimiter=self.delimiter))

    def _batch(self, records: Records) -> Batch:
        """The records with as many fields as the header; the others become problems."""
        n, width = len(records.fields), len(self.names)
        if (records.fields == width).all() and not records.stray.any():
            try:
                frame = self._parse([records.data[records.starts[0] : records.starts[-1]]])
                if frame.height == n:
                    return Batch(frame, records.lines[:n], [])
            except pl.exceptions.PolarsError:
                pass
        return self._slow_batch(records)

    def _slow_batch(self, records: Records) -> Batch:
        """`_batch` record by record, for blank records, stray quotes and wrong numbers of fields."""
        rows: list[bytes] = []
        lines: list[int] = []
        problems: list[Problem] = []
        for i in np.flatnonzero(records.fields).tolist():
            record, n_fields = records.record(i), int(records.fields[i])
            if records.stray[i]:
                record, n_fields = self._requote(record, n_fields)
            if n_fields == len(self.names):
                rows.append(record)
                lines.append(int(records.lines[i]))
            else:
                found = "a quote that is never closed" if n_fields == UNCLOSED else plural(n_fields, "field")
                problems.append((int(records.lines[i]), f"{found}, expected {len(self.names)} fields as in the header"))
        batch = parse_good_records(self._parse, _explain, rows, np.array(lines, np.int64))
        return Batch(batch.frame, batch.lines, sorted(problems + batch.problems))

    def _requote(self, record: bytes, n_fields: int) -> tuple[bytes, int]:
        """Repair the quotes of a record such as `5" pipe,3`, which parsers refuse."""
        try:
            fields = self._fields(record)
        except (UnicodeDecodeError, csv.Error):
            return record, n_fields
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=self.delimiter, lineterminator="\n").writerow(fields)
        return text.getvalue().encode(), len(fields)

    def _parse(self, records: Sequence[bytes]) -> pl.DataFrame:
        schema = dict.fromkeys(self.names, pl.String)
        data = b"".join(records)
        if not data:
            return pl.DataFrame(schema=schema)
        return pl.read_csv(data, has_header=False, schema=schema, infer_schema=False, separator=self.delimiter)


def find_delimiter(block: bytes) -> str:
    r"""The delimiter that splits the first records into equally many fields, and the header into most.

    >>> find_delimiter(b"a;b\n1,5;2\n")
    ';'
    """
    best, most = ",", (0, 1)
    for delimiter in DELIMITERS:
        records = find_records(block[:SAMPLE_BYTES] + b"\n", ord(delimiter), 1)
        fields = records.fields[:SAMPLED]
        if not fields.any():
            continue
        header = int(fields[fields > 0][0])
        agree = np.mean((fields == header)[fields > 0] & ~records.stray[:SAMPLED][fields > 0])
        found = (int(agree >= MOSTLY), header)
        if header > 1 and found > most:
            best, most = delimiter, found
    return best


def _explain(record: bytes) -> str:
    try:
        record.decode("utf-8")
    except UnicodeDecodeError as error:
        return no_text(record, error)
    return f"{record[:60].decode('utf-8', 'replace').rstrip()!r} cannot be read, expected delimited text"


class Records(NamedTuple):
    """The complete records of a block of text; a blank line is a record of 0 fields."""

    data: bytes
    starts: NDArray[np.int64]  # (n + 1,) offset of each record, and the end of the last
    fields: NDArray[np.int64]  # (n,) number of fields
    lines: NDArray[np.int64]  # (n + 1,) first line of each record, and the line after the last
    stray: NDArray[np.bool_]  # (n,) whether the record has a misplaced quote

    def record(self, i: int) -> bytes:
        """The bytes of one record, with its line end."""
        return self.data[self.starts[i] : self.starts[i + 1]]

    def after(self, i: int) -> Records:
        """The records after that one."""
        i += 1
        return Records(self.data, self.starts[i:], self.fields[i:], self.lines[i:], self.stray[i:])


@kernel(entry=True, allocates=True)
def scan(
    data: NDArray[np.uint8],
    separator: int,
    starts: NDArray[np.int64],
    fields: NDArray[np.int64],
    lines: NDArray[np.int64],
    stray: NDArray[np.bool_],
) -> int:
    """Fill the arrays for every complete record, and return their number. Lines count from lines[0]."""
    n = 0
    line = lines[0]
    state = START
    for i in range(len(data)):
        byte = data[i]
        if byte == NEWLINE:
            line += 1
        if state == QUOTED:
            if byte == QUOTE:
                state = CLOSED
        elif byte == separator:
            fields[n] += 1
            state = START
        elif byte == NEWLINE:
            length = i - starts[n]
            if length > 1 or (length == 1 and data[i - 1] != RETURN):
                fields[n] += 1
            n += 1
            starts[n] = i + 1
            lines[n] = line
            state = START
        elif byte == QUOTE:
            stray[n] |= state == PLAIN
            state = PLAIN if state == PLAIN else QUOTED
        elif byte != RETURN:
            stray[n] |= state == CLOSED
            state = PLAIN
    return n


def find_records(data: bytes, separator: int, line: int) -> Records:
    """The complete records of `data`, which starts at line `line`."""
    most = data.count(b"\n") + 2
    starts, fields, lines = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
    stray = np.zeros(most, np.bool_)
    lines[0] = line
    n = scan(np.frombuffer(data, np.uint8), separator, starts, fields, lines, stray)
    return Records(data, starts[: n + 1], fields[:n], lines[: n + 1], stray[:n])


def read_records(blocks: Iterable[bytes], separator: int, name: str, line: int = 1) -> Iterator[Records]:
    """All records of a text, block by block; a line with a quote that is never closed becomes a bad record."""
    rest = b""
    for block in blocks:
        records = find_records(rest + block, separator, line)
        yield records
        rest, line = records.data[records.starts[-1] :], int(records.lines[-1])
        if len(rest) > LONGEST_RECORD:
            if b"\n" not in rest:
                raise ValueError(f"{name}, line {line}: longer than {LONGEST_RECORD >> 20} MB")
            given_up, rest, line = give_up_line(rest, line)
            yield given_up
    while rest:
        records = find_records(rest if rest.endswith(b"\n") else rest + b"\n", separator, line)
        yield records
        rest, line = records.data[records.starts[-1] :], int(records.lines[-1])
        if rest:
            given_up, rest, line = give_up_line(rest, line)
            yield given_up


def give_up_line(rest: bytes, line: int) -> tuple[Records, bytes, int]:
    """The first line as a bad record, the bytes after it, and their line."""
    first, _, rest = rest.partition(b"\n")
    offsets, lines = np.array([0, len(first)]), np.array([line, line + 1])
    return Records(first, offsets, np.array([UNCLOSED]), lines, np.zeros(1, np.bool_)), rest, line + 1
