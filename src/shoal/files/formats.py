"""The formats of files, and which one a file name means."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.files.archives import Member
from shoal.files.source import PACKED, STDIN
from shoal.files.suggest import unknown_name

FORMATS = {
    "csv": ("csv",),
    "tsv": ("tsv", "tab"),
    "parquet": ("parquet", "pq"),
    "ndjson": ("ndjson", "jsonl", "json"),
    "arrow": ("arrow", "feather", "ipc"),
    "libsvm": ("libsvm", "svm", "svmlight"),
    "vw": ("vw", "txt"),
}
"""Formats and the file name endings that mean them; those of text may be followed by .gz, .bz2, .xz, .zst or .zip."""

TYPED = ("parquet", "arrow")
SPARSE = ("libsvm", "vw")
EITHER = ".txt"  # an ending of VW text, and of CSV where columns are named


def unpacked(path: str) -> str:
    """The lower-case name of a file without the ending that says how it is packed."""
    name = path.lower().partition("?")[0] if "://" in path else path.lower()
    for packed in PACKED:
        name = name.removesuffix(packed)
    return name


def format_of(path: str) -> str | None:
    """The format that a file's name means, if any; an archive's name may say it for all in it."""
    if isinstance(path, Member):
        return format_of(path.archive) or format_of(path.name)
    ending = unpacked(path).rpartition(".")[2]
    return next((format for format, endings in FORMATS.items() if ending in endings), None)


def _meant(path: str, has_columns: bool) -> str | None:
    name = path.name if isinstance(path, Member) else path
    if path == STDIN or (has_columns and unpacked(name).endswith(EITHER)):
        return "csv"
    return format_of(path)


def choose_format(paths: Sequence[str], format: str | None, *, has_columns: bool = False) -> str:
    """The format that was asked for, or that the names of the files mean; `has_columns` if only a table will do."""
    if format is None:
        found = {path: _meant(path, has_columns) for path in paths}
        unknown = [path for path, meant in found.items() if meant is None]
        if unknown:
            endings = ", ".join(f".{other}" for others in FORMATS.values() for other in others)
            raise ValueError(
                f"{unknown[0]} does not end in {endings}: format= says which it is, one of {', '.join(FORMATS)}"
            )
        first, *others = found
        other = next((path for path in others if found[path] != found[first]), None)
        if other is not None:
            raise ValueError(f"{first} is {found[first]} and {other} is {found[other]}, expected files of one format")
        format = str(found[first])
    if format not in FORMATS:
        raise ValueError(unknown_name("there is no format", format, FORMATS))
    for path in paths if format in TYPED else ():
        if path == STDIN:
            raise ValueError(f"standard input cannot be read as {format}, which needs a file: give its path")
        if isinstance(path, Member) or path.lower().endswith(tuple(PACKED)):
            raise ValueError(f"{path}: only text is read packed, and {format} is packed in itself: unpack it")
    return format
