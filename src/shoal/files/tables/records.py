"""Records of delimited text, found by a jitted scan: where each starts, its line, how many fields it has.

The scan is there because a parser tells neither the line of a row (quoted fields may hold line ends) nor
which row has too few fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.compile import kernel

NEWLINE, RETURN, QUOTE = 10, 13, 34
START, PLAIN, QUOTED, CLOSED = range(4)  # where the scan stands: field start, in a field, in quotes, after quotes
UNCLOSED = -1  # the "number of fields" of a line that opens a quote which nothing closes
LONGEST_RECORD = 1 << 26  # a quote that is never closed must not take the whole file into memory


class Records(NamedTuple):
    """Complete records of a piece of text; a blank line is a record of 0 fields."""

    data: bytes
    starts: NDArray[np.int64]  # (n + 1,) offset of each record, then of what follows the last
    fields: NDArray[np.int64]  # (n,) number of fields
    lines: NDArray[np.int64]  # (n + 1,) line on which each record starts, then of what follows
    stray: NDArray[np.bool_]  # (n,) whether a quote stands where none belongs

    def record(self, i: int) -> bytes:
        """The text of one record, with its line end."""
        return self.data[self.starts[i] : self.starts[i + 1]]

    def after(self, i: int) -> Records:
        """The records behind that one."""
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
    """Fill the arrays for every complete record, return how many there are. Lines count from lines[0]."""
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


def read_records(blocks: Iterable[bytes], separator: int, name: str) -> Iterator[Records]:
    """All records of a text, block by block; where a quote is never closed, the line is given up."""
    rest, line = b"", 1
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
    """The first line as a record that is none, and what follows."""
    first, _, rest = rest.partition(b"\n")
    offsets, lines = np.array([0, len(first)]), np.array([line, line + 1])
    return Records(first, offsets, np.array([UNCLOSED]), lines, np.zeros(1, np.bool_)), rest, line + 1
