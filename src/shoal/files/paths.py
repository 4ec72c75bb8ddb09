"""Which files are meant: a path, several, a pattern such as `2024-*.csv`, a folder, a zip archive, or a URL."""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Sequence
from pathlib import Path

from shoal.files.archives import members
from shoal.files.formats import FORMATS, format_of
from shoal.files.source import STDIN, is_url

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def find_files(paths: Paths) -> list[str]:
    """The files, those of a pattern, a folder or a zip archive in the order of their names.

    Raises FileNotFoundError, with the nearest name, if there is none.
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
    """The files of an archive, or the file itself."""
    return members(path) or [path]


def _files_of(folder: str) -> list[str]:
    """The data files of a folder and of those in it; what is hidden or has another ending is left out."""
    found = []
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        found += [os.path.join(where, name) for name in sorted(names) if not name.startswith((".", "_"))]
    files = [path for path in found if format_of(path)]
    if not files:
        endings = ", ".join(f".{ending}" for endings in FORMATS.values() for ending in endings)
        raise FileNotFoundError(f"{folder} is a folder without data files: none ends in {endings}")
    return files
