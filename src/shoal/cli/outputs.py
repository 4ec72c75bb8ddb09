"""Checks of outputs before the first row: a run must be able to write them and must not overwrite its inputs."""

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

STDOUT = "-"
LEAST_ROOM = 1 << 20  # bytes


def check_outputs(outputs: Mapping[str, str | None], inputs: Iterable[str | None]) -> None:
    """Raise an error that names the first wrong option.

    Parameters
    ----------
    outputs : dict of option -> file, or None
    inputs : files to be read
    """
    taken = {Path(name).resolve(): "is read as the input" for name in inputs if name is not None}
    for option, name in outputs.items():
        if name is None or name == STDOUT:
            continue
        path = Path(name).resolve()  # of a link, its target
        if path in taken:
            raise ValueError(f"{option} {name} {taken[path]}: choose another file")
        _check_file(option, name, path)
        taken[path] = f"is the file of {option}, too"


def check_folder(option: str, name: str | None) -> None:
    """Raise an error if the option names no folder that exists or can be made."""
    if name is not None:
        path = Path(name).resolve()
        if path.exists() and not path.is_dir():
            raise NotADirectoryError(f"{option} {name} is a file, expected a folder")
        _check_room(option, path if path.is_dir() else path.parent)


def _check_file(option: str, name: str, path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"{option} {name} is a folder, expected a file")
    if Path(name).exists() and not path.is_file():  # a pipe behind a link such as /dev/stdout has no path
        raise ValueError(f"{option} {name} is a device or a pipe, expected a file")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(f"{option} {name} cannot be written to")
    _check_room(option, path.parent)


def _check_room(option: str, folder: Path) -> None:
    if not folder.is_dir():
        raise FileNotFoundError(f"the folder {folder} for {option} does not exist; make it first")
    usage = shutil.disk_usage(folder)
    if not os.access(folder, os.W_OK) or usage.total == 0:  # such as /proc, which has no disk
        raise PermissionError(f"the folder {folder} for {option} cannot be written to")
    if usage.free < LEAST_ROOM:
        raise OSError(f"there is no room in {folder} for {option}")
