"""The files that a path stands for, and their format.

A path is a file, a pattern such as `2024-*.csv`, a folder, a zip archive, a URL or "-" (standard input). The format
follows from the endings of the names unless the user gives it.
"""

import difflib
import glob
import os
from collections.abc import Sequence
from pathlib import Path

from shoal.files.messages import unknown_name
from shoal.files.source import PACKED, STDIN, Member, is_url, members

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

FORMATS = {
    "csv": ("csv",),
    "tsv": ("tsv", "tab"),
    "parquet": ("parquet", "pq"),
    "ndjson": ("ndjson", "jsonl", "json"),
    "arrow": ("arrow", "feather", "ipc"),
    "libsvm": ("libsvm", "svm", "svmlight"),
    "vw": ("vw", "txt"),
}
"""Formats and their file name endings; .gz, .bz2, .xz, .zst or .zip may follow those of text."""

TYPED = ("parquet", "arrow")
SPARSE = ("libsvm", "vw")
EITHER = ".txt"  # VW text; CSV if the user names a column


def find_files(paths: Paths) -> list[str]:
    """All files, those of a pattern, a folder or a zip archive sorted by name.

    Raises FileNotFoundError, with the nearest name, if no file is found.
    """
    many = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not many:
        raise ValueError("the list of files is empty, expected at least one path")
    found = [part for path in many for file in _expand(os.fspath(path)) for part in _parts(file)]
    if STDIN in found and len(found) > 1:
        raise ValueError("standard input cannot be one of several files")
    return found


def _expand(path: str) -> list[str]:
    if path == STDIN or is_url(path):
        return [path]
    if os.path.isdir(path):
        return _files_of(path)
    if os.path.exists(path):
        return [path]
    if glob.has_magic(path):
        found = sorted(name for name in glob.glob(path, recursive=True) if not os.path.isdir(name))
        if found:
            return found
        raise FileNotFoundError(f"no file matches {path}")
    folder = Path(path).parent
    if os.path.islink(path):
        raise FileNotFoundError(f"{path} is a link to nothing")
    names = os.listdir(folder) if folder.is_dir() else []
    close = difflib.get_close_matches(Path(path).name, names, n=1)
    hint = f": did you mean {folder / close[0]}?" if close else ""
    raise FileNotFoundError(f"there is no file {path}{hint}")


def _parts(path: str) -> Sequence[str]:
    """The data files in an archive, or the file itself."""
    found = members(path)
    return _data_files(found) or found or [path]


def _data_files(paths: Sequence[str]) -> list[str]:
    """The files whose names have a format; beside others, those of .txt are taken for notes such as README.txt."""
    named = [path.name if isinstance(path, Member) else path for path in paths]
    known = {path: name for path, name in zip(paths, named, strict=True) if format_of(name)}
    return [path for path, name in known.items() if not unpacked(name).endswith(EITHER)] or list(known)


def _files_of(folder: str) -> list[str]:
    """The data files of a folder and its subfolders, without hidden files and files of other endings."""
    found = []
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        found += [os.path.join(where, name) for name in sorted(names) if not name.startswith((".", "_"))]
    files = _data_files(found)
    if not files:
        endings = ", ".join(f".{ending}" for endings in FORMATS.values() for ending in endings)
        raise FileNotFoundError(f"{folder} is a folder without data files: none ends in {endings}")
    return files


def unpacked(path: str) -> str:
    """The lower-case name of a file without the ending of its compression."""
    name = path.lower().partition("?")[0] if "://" in path else path.lower()
    for packed in PACKED:
        name = name.removesuffix(packed)
    return name


def format_of(path: str) -> str | None:
    """The format of a file's name, if it has one; the name of an archive decides for all its files."""
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
    """The given format, or that of the files' names; with `has_columns`, only a table will do."""
    if format is None:
        found = {path: _meant(path, has_columns) for path in paths}
        unknown = [path for path, meant in found.items() if meant is None]
        if unknown:
            endings = ", ".join(f".{ending}" for of_format in FORMATS.values() for ending in of_format)
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
