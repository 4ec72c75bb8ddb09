"""Bytes of files, of standard input and of URLs, in blocks and uncompressed.

The files in a zip archive are paths of their own (`Member`), so that they are read like the files of a folder.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import stat
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, cast

from shoal.files.encodings import ToUTF8

LONGEST_LINE = 1 << 26  # a few compressed bytes may expand to a line beyond memory
BLOCK = 1 << 20  # bytes: large against the cost of a call to a parser, small in memory
LINES = 1 << 14  # of a block that polars reads
STDIN = "-"
PACKED = {".gz": "a gzip", ".bz2": "a bzip2", ".xz": "an xz", ".zst": "a Zstandard", ".zip": "a zip"}
MAGIC = {  # first bytes of compressed files
    ".gz": rb"\x1f\x8b\x08",
    ".bz2": rb"BZh[1-9](1AY&SY|\x17rE8P\x90)",
    ".xz": rb"\xfd7zXZ\x00",
    ".zst": rb"\x28\xb5\x2f\xfd",
    ".zip": rb"PK(\x03\x04|\x05\x06)",
}
DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, OSError, RuntimeError)
DAMAGED_ZIP = (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError)


def is_url(path: str) -> bool:
    """Whether polars has to fetch the path, as from s3:// or https://."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path) is not None


class ByteSource:
    """A file, read once from start to end and uncompressed on the fly; its first bytes tell the compression.

    Parameters
    ----------
    path : str
        A path, a URL, or "-" for standard input.
    encoding : str, optional
        Of its text; by default the bytes tell it.

    Attributes
    ----------
    bytes_read : int
        Bytes of the file (compressed) that were read so far.
    total_bytes : int or None
        Bytes of the file; None for standard input and URLs.
    """

    def __init__(self, path: str, encoding: str | None = None) -> None:
        self.name = "standard input" if path == STDIN else path
        self._text = ToUTF8(self.name, encoding)
        self.path = path
        self.is_standard_input = path == STDIN
        self.bytes_read = 0
        self.total_bytes: int | None = None
        self._raw: BinaryIO | None = None
        self._member: OpenMember | None = None
        self._is_file = False
        if self.is_standard_input:
            self._raw = cast(BinaryIO, sys.stdin.buffer)
        elif isinstance(path, Member):
            self.total_bytes = path.size
            with self._sound(".zip"):
                self._member = OpenMember(path)
        elif not is_url(path):
            self._raw = open(path, "rb")  # noqa: SIM115 (closed by close)
            status = os.fstat(self._raw.fileno())
            self._is_file = stat.S_ISREG(status.st_mode)
            self.total_bytes = status.st_size if self._is_file else None

    def blocks(self) -> Iterator[bytes]:
        """Blocks of some BLOCK bytes of UTF-8, without a byte order mark.

        A block of standard input may be short: it does not wait for a slow producer.
        """
        if self._member is not None:
            blocks = self._blocks_of_member(self._member)
        else:
            blocks = self._blocks_of_url() if self._raw is None else self._unpacked(self._raw)
        first = True
        for block in self._text.blocks(blocks):
            if first and b"\r" in block[:-1] and b"\n" not in block:
                raise ValueError(f"{self.name} has lines that end in CR alone, expected LF or CR LF (tr converts them)")
            yield block
            first = False

    def lines(self, blocks: Iterable[bytes]) -> Iterator[list[bytes]]:
        """Complete lines of the blocks, without line ends: a list per block."""
        for text in self.whole_lines(blocks):
            yield text.removesuffix(b"\n").split(b"\n")

    def whole_lines(self, blocks: Iterable[bytes] | None = None, padding: bytes = b"") -> Iterator[bytes]:
        """The blocks, cut behind a line end (the last may lack one), each followed by the padding."""
        held: list[bytes] = []
        size = 0
        for block in self.blocks() if blocks is None else blocks:
            end = block.rfind(b"\n") + 1
            if end:
                yield b"".join([*held, memoryview(block)[:end], padding])
                held, size = [], 0
            if end < len(block):
                held.append(block[end:])
                size += len(held[-1])
            if size > LONGEST_LINE:
                raise ValueError(f"{self.name} has a line of more than {LONGEST_LINE >> 20} MB")
        if held:
            yield b"".join([*held, padding])

    @property
    def encoding(self) -> str | None:
        """The encoding of the text, as far as it was read; None if all of it is ASCII."""
        return self._text.encoding

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._member is not None:
            self._member.close()
        if self._raw is not None and not self.is_standard_input:
            self._raw.close()

    def __enter__(self) -> ByteSource:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _unpacked(self, raw: BinaryIO) -> Iterator[bytes]:
        """The blocks of a file or of standard input."""
        read = raw.read if self._is_file else cast(io.BufferedReader, raw).read1
        first = read(BLOCK)
        self.bytes_read = len(first)
        packed = next((ending for ending, magic in MAGIC.items() if re.match(magic, first)), None)
        meant = next((ending for ending in PACKED if self.path.lower().endswith(ending)), None)
        if packed is None and meant is not None:
            raise ValueError(f"{self.name} is damaged or not {PACKED[meant]} file")
        if packed is None:
            while first:
                yield first
                first = read(BLOCK)
                self.bytes_read += len(first)
        elif packed == ".zst":
            yield from self._by_polars(raw)
        else:
            rejoined = raw if self._is_file else io.BufferedReader(_Rejoined(first, raw))
            with self._sound(packed), _unpacking(packed, rejoined) as file:
                read = file.read if self._is_file else file.read1
                while block := read(BLOCK):
                    self.bytes_read = raw.tell() if self._is_file else self.bytes_read
                    yield block
            self.bytes_read = self.total_bytes or self.bytes_read

    @contextmanager
    def _sound(self, packed: str) -> Iterator[None]:
        """Turn the errors of a damaged compressed file into a ValueError."""
        try:
            yield
        except DAMAGED as error:
            raise ValueError(f"{self.name} is damaged or not {PACKED[packed]} file: {error}") from None

    def _blocks_of_member(self, member: OpenMember) -> Iterator[bytes]:
        with self._sound(".zip"):
            for block in member.blocks(BLOCK):
                if self.bytes_read == 0 and any(re.match(magic, block) for magic in MAGIC.values()):
                    raise ValueError(f"{self.name} is packed, in a packed file: unpack it first")
                self.bytes_read = member.position
                yield block
        self.bytes_read = self.total_bytes or 0

    def _by_polars(self, raw: BinaryIO) -> Iterator[bytes]:
        """The lines of a Zstandard file, which polars uncompresses and Python does not."""
        if not self._is_file:
            raise ValueError(f"{self.name} is a Zstandard stream: unpack it first, as with zstd -dc")
        yield from self._lines_of(self.path)
        self.bytes_read = self.total_bytes or 0

    def _blocks_of_url(self) -> Iterator[bytes]:
        yield from self._lines_of(self.path)

    def _lines_of(self, path: str) -> Iterator[bytes]:
        import polars as pl

        try:
            for frame in pl.scan_lines(path, glob=False).collect_batches(chunk_size=LINES, maintain_order=True):
                text = frame.to_series().str.join("\n").cast(pl.Binary).item()
                yield text + b"\n"
        except (pl.exceptions.PolarsError, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ValueError(f"{self.name} cannot be read: {reason}") from None


def _size(path: str) -> int | None:
    if isinstance(path, Member):
        return path.size
    return os.path.getsize(path) if os.path.isfile(path) else None


class Sources:
    """Several files, opened one after the other; their bytes are counted together.

    Attributes
    ----------
    paths : list of str
    is_standard_input : bool
    total_bytes : int or None
        Bytes of all files; None if one is standard input or a URL.
    """

    def __init__(self, paths: list[str], encoding: str | None = None) -> None:
        self.paths, self._encoding = paths, encoding
        self._found: dict[str, str] = {}  # the first file of each encoding
        self.is_standard_input = paths == [STDIN]
        sizes = [_size(path) for path in paths]
        self.total_bytes = None if None in sizes else sum(size for size in sizes if size is not None)
        self._done = 0
        self._current: ByteSource | None = None

    def __iter__(self) -> Iterator[ByteSource]:
        for path in self.paths:
            with ByteSource(path, self._encoding) as self._current:
                yield self._current
                self._found |= self._encodings()
                self._done, self._current = self.bytes_read, None

    @property
    def bytes_read(self) -> int:
        """Bytes of the files (compressed) that were read so far."""
        current = self._current
        return self._done + (current.bytes_read if current is not None else 0)

    def notes(self) -> list[str]:
        """The encodings of the files, as far as they were read, where it is not UTF-8."""
        how = "as encoding= says" if self._encoding else "found by its bytes: encoding= names another"
        found = self._found | self._encodings()
        return [f"the text of {name} is {encoding} ({how})" for encoding, name in found.items()]

    def close(self) -> None:
        """Close the file that is being read."""
        if self._current is not None:
            self._current.close()

    def _encodings(self) -> dict[str, str]:
        current = self._current
        if current is None or current.encoding in (None, "utf-8", *self._found):
            return {}
        return {str(current.encoding): current.name}


class _Rejoined(io.RawIOBase):
    """A stream, put together again with its first bytes, which were read already."""

    def __init__(self, first: bytes, raw: BinaryIO) -> None:
        self._first, self._raw = first, cast(io.BufferedReader, raw)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer))
        data = self._first[: len(view)] or self._raw.read1(len(view))
        self._first = self._first[len(view) :]
        view[: len(data)] = data
        return len(data)


def _unpacking(packed: str, raw: BinaryIO) -> io.BufferedReader:
    """The uncompressed bytes of a file, from its start."""
    if raw.seekable():
        raw.seek(0)
    if packed == ".gz":
        return cast(io.BufferedReader, gzip.GzipFile(fileobj=raw))
    if packed == ".bz2":
        return cast(io.BufferedReader, bz2.BZ2File(raw))
    if packed == ".xz":
        return cast(io.BufferedReader, lzma.LZMAFile(raw))
    if not raw.seekable():
        raise zipfile.BadZipFile("a zip file cannot be read from a stream, give its path")
    zipfile.ZipFile(raw)  # raises if it is damaged
    raise zipfile.BadZipFile("it holds no files")


class Member(str):
    """A path of a file in a zip archive: `archive.zip/file.csv`, or `archive.zip` if the archive holds no other."""

    archive: str
    name: str  # in the archive
    start: int  # in the archive, in bytes
    size: int  # in the archive, in bytes

    @classmethod
    def of(cls, archive: str, info: zipfile.ZipInfo, *, alone: bool) -> Member:
        """The path of an entry of the archive's directory."""
        member = cls(archive if alone else f"{archive}/{info.filename}")
        member.archive, member.name = archive, info.filename
        member.start = 0 if alone else info.header_offset
        member.size = Path(archive).stat().st_size if alone else info.compress_size
        return member


class OpenMember:
    """A file in a zip archive, read from start to end."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._raw: BinaryIO = open(member.archive, "rb")  # noqa: SIM115 (closed by close)
        self._file = zipfile.ZipFile(self._raw).open(member.name)  # noqa: SIM115 (closed by close)

    @property
    def position(self) -> int:
        """Compressed bytes read so far."""
        return min(max(self._raw.tell() - self._member.start, 0), self._member.size)

    def blocks(self, size: int) -> Iterator[bytes]:
        """Uncompressed blocks of up to `size` bytes."""
        while block := self._file.read(size):
            yield block

    def close(self) -> None:
        """Close the archive."""
        self._file.close()
        self._raw.close()


def members(path: str) -> list[Member]:
    """The files in a zip archive, sorted by name; none if it is no archive or a damaged one.

    As in a folder, names that begin with a dot or an underscore (`__MACOSX`) are left out.
    """
    if not Path(path).is_file():
        return []
    with open(path, "rb") as file:
        if not re.match(MAGIC[".zip"], file.read(4)):
            return []
        try:
            found = zipfile.ZipFile(file).infolist()
        except DAMAGED_ZIP:
            return []
    kept = [one for one in found if not one.is_dir() and not _is_hidden(one.filename)]
    return [Member.of(path, one, alone=len(kept) == 1) for one in sorted(kept, key=lambda one: one.filename)]


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "_")) for part in name.split("/"))
