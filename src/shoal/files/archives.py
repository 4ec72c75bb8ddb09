"""The files in a zip archive as paths of their own, so that they are read as the files of a folder are."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # how an archive begins, an empty one too
DAMAGED = (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError)


class Member(str):
    """A file in an archive, called `archive.zip/file.csv`, or as its archive if it is the only one there."""

    archive: str
    name: str  # in the archive
    start: int  # in bytes of the archive, as is the size
    size: int

    @classmethod
    def of(cls, archive: str, info: zipfile.ZipInfo, *, alone: bool) -> Member:
        """The file that the archive's table names."""
        member = cls(archive if alone else f"{archive}/{info.filename}")
        member.archive, member.name = archive, info.filename
        member.start = 0 if alone else info.header_offset
        member.size = Path(archive).stat().st_size if alone else info.compress_size
        return member


class OpenMember:
    """A file in an archive, read from start to end."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._raw: BinaryIO = open(member.archive, "rb")  # noqa: SIM115 (closed by close)
        self._file = zipfile.ZipFile(self._raw).open(member.name)  # noqa: SIM115 (closed by close)

    @property
    def position(self) -> int:
        """Packed bytes read so far."""
        return min(max(self._raw.tell() - self._member.start, 0), self._member.size)

    def blocks(self, size: int) -> Iterator[bytes]:
        """Unpacked blocks of that many bytes."""
        while block := self._file.read(size):
            yield block

    def close(self) -> None:
        """Close the archive."""
        self._file.close()
        self._raw.close()


def members(path: str) -> list[Member]:
    """The files of an archive in the order of their names; none if it is no archive, or a damaged one.

    As in a folder, what begins with a dot or an underscore (`__MACOSX`) is left out.
    """
    if not Path(path).is_file():
        return []
    with open(path, "rb") as file:
        if not file.read(4).startswith(ZIP):
            return []
        try:
            found = zipfile.ZipFile(file).infolist()
        except DAMAGED:
            return []
    kept = [one for one in found if not one.is_dir() and not _is_hidden(one.filename)]
    return [Member.of(path, one, alone=len(kept) == 1) for one in sorted(kept, key=lambda one: one.filename)]


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "_")) for part in name.split("/"))
