"""CSV and TSV: `records` finds the rows and their lines, polars reads them.

Fields are read as strings: what they mean is decided, and checked, in `columns`.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from shoal.files.messages import SHOWN, plural
from shoal.files.source import ByteSource
from shoal.files.tables.batches import Batch, Problem, parse_good_records
from shoal.files.tables.records import UNCLOSED, Records, find_records, read_records

DELIMITERS = ",;\t|"
SAMPLED, SAMPLE_BYTES = 20, 1 << 18  # records that tell the delimiter, and what is searched for them
MOSTLY = 0.9
MAX_COLUMNS = 100_000


def find_delimiter(block: bytes) -> str:
    r"""The delimiter that cuts the first records into equally many fields, and the header into most.

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


class Delimited:
    """Batches of strings from a CSV or TSV file whose first line names the columns.

    Parameters
    ----------
    delimiter : str or None
        What separates fields; None: the one that the first lines agree on.

    Raises ValueError if the file is empty or two columns have one name.
    """

    def __init__(self, source: ByteSource, delimiter: str | None) -> None:
        blocks = source.blocks()
        first_block = b""
        if delimiter is None:
            first_block = next(blocks, b"")
            delimiter = find_delimiter(first_block)
        self.delimiter = delimiter
        self._records = read_records(itertools.chain([first_block], blocks), ord(delimiter), source.name)
        for first in self._records:
            filled = np.flatnonzero(first.fields)
            if len(filled):
                header = int(filled[0])
                self.names = self._header(source.name, first.record(header))
                self._first = first.after(header)
                return
        raise ValueError(f"{source.name} is empty, expected a first line with the names of the columns")

    def batches(self) -> Iterator[Batch]:
        """All rows; the first batch is there even if it has none."""
        yield self._batch(self._first)
        for records in self._records:
            yield self._batch(records)

    def _header(self, file: str, record: bytes) -> list[str]:
        try:
            names = [name.strip() or f"column_{i}" for i, name in enumerate(self._fields(record), 1)]
        except UnicodeDecodeError:
            raise ValueError(f"{file}: the names of the columns are not UTF-8 text (iconv converts it)") from None
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
        """Rows of the records that have as many fields as the header."""
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
        """As `_batch`, record by record: some are blank, have stray quotes or the wrong number of fields."""
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
        """A record such as `5" pipe,3`, which people write and parsers refuse, with its quotes set right."""
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


def _explain(record: bytes) -> str:
    try:
        record.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"byte {record[error.start]:#04x} is not UTF-8 text, expected UTF-8 (iconv converts it)"
    return f"{record[:60].decode('utf-8', 'replace').rstrip()!r} cannot be read, expected delimited text"
