"""Bytes of a file, a gzip file or standard input, a block at a time, with how many have been read."""

from __future__ import annotations

import difflib
import gzip
import os
import sys
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import cast

BLOCK = 1 << 20  # large enough to hide the cost of a call to a parser, small in memory
STDIN = "-"


def check_exists(path: str) -> None:
    """Raise FileNotFoundError or IsADirectoryError, in one sentence with the nearest name."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder, expected a file")
    if not os.path.exists(path):
        folder = Path(path).parent
        close = difflib.get_close_matches(Path(path).name, os.listdir(folder) if folder.is_dir() else [], n=1)
        hint = f": did you mean {folder / close[0]}?" if close else ""
        raise FileNotFoundError(f"there is no file {path}{hint}")


class ByteSource:
    """A file opened for reading from start to end, once.

    Parameters
    ----------
    path : str
        A path, unpacked on the fly if it ends in `.gz`, or "-" for standard input.
    """

    def __init__(self, path: str) -> None:
        self.name = "standard input" if path == STDIN else path
        self.total_bytes: int | None = None
        self.is_standard_input = path == STDIN
        self._read = 0
        if self.is_standard_input:
            self._raw = cast(BufferedReader, sys.stdin.buffer)
        else:
            check_exists(path)
            self._raw = open(path, "rb")  # noqa: SIM115 (closed by close)
            self.total_bytes = os.fstat(self._raw.fileno()).st_size
        packed = path.lower().endswith(".gz")
        self._file = cast(BufferedReader, gzip.GzipFile(fileobj=self._raw)) if packed else self._raw

    @property
    def bytes_read(self) -> int:
        """Bytes read so far, as they lie in the file (packed, if it is packed)."""
        return self._read

    def blocks(self) -> Iterator[bytes]:
        """Blocks of up to BLOCK bytes, without a byte order mark.

        Standard input gives what has arrived: a slow producer is not waited for until a block is full.
        """
        read = self._file.read1 if self.is_standard_input else self._file.read
        first = True
        try:
            while block := read(BLOCK):
                self._read = self._read + len(block) if self.is_standard_input else self._raw.tell()
                if first:
                    block = self._without_mark(block)
                    first = False
                yield block
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{self.name} is damaged or not a gzip file: {error}") from None

    def lines(self) -> Iterator[list[bytes]]:
        """Complete lines without their line ends, a list for each block."""
        for text in self.whole_lines():
            yield text.removesuffix(b"\n").split(b"\n")

    def whole_lines(self, padding: bytes = b"") -> Iterator[bytes]:
        """The blocks, cut behind a line end (only the last may lack one), and behind each block the padding."""
        held: list[bytes] = []
        for block in self.blocks():
            end = block.rfind(b"\n") + 1
            if end:
                yield b"".join([*held, memoryview(block)[:end], padding])
                held = []
            if end < len(block):
                held.append(block[end:])
        if held:
            yield b"".join([*held, padding])

    def close(self) -> None:
        """Close the file; standard input stays open, it is not ours."""
        if not self.is_standard_input:
            self._file.close()
            self._raw.close()

    def __enter__(self) -> ByteSource:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _without_mark(self, block: bytes) -> bytes:
        if block.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ValueError(f"{self.name} is UTF-16 text, expected UTF-8")
        return block.removeprefix(b"\xef\xbb\xbf")
