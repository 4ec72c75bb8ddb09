"""A service as one file, taken while it runs: its newest snapshot, the log behind it, and the models that both name.

The file is a tar archive. Its first member says what the others are; a restore holds each against it. Both backup and
restore appear whole or not at all.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path
from typing import IO, Any, NamedTuple

from shoal.model import persistence
from shoal.serve.log import Log
from shoal.serve.model_changes import MODELS, NEW, TAKEN, Change, digest_of
from shoal.serve.snapshots import BEGAN, FORMAT_FILE, SNAPSHOTS, Snapshot, Snapshots, saved_context
from shoal.whole_file import whole_file

FORMAT = 1
HEAD, LOG = "backup.json", "log.sqlite"
ATTEMPTS = 5  # while the service writes snapshots and drops what is older


class Moved(Exception):
    """The service has meanwhile dropped a file that was to be copied."""


class Backup(NamedTuple):
    """The content of a backup."""

    position: int  # of the snapshot
    logged: int  # the last record behind it


def back_up(folder: Path, log: Log, target: Path) -> Backup:
    """Write a backup of a service's folder and log, which may be in use.

    Raises
    ------
    ValueError
        If the folder holds no readable snapshot, or snapshots are dropped faster than they can be copied.
    Unavailable
        If the log cannot be read.
    """
    target = target.resolve()
    for left in target.parent.glob(f"{target.name}.*.part"):  # by a backup that was killed
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    for _ in range(ATTEMPTS):
        try:
            with (
                ExitStack() as opened,
                tempfile.TemporaryDirectory(".part", f"{target.name}.", target.parent) as scratch,
            ):
                return _write(folder, log, Path(scratch) / LOG, target, opened)
        except (Moved, FileNotFoundError):
            continue
    raise ValueError(f"{folder} changes faster than it can be copied: try again, or end the service for the backup")


def _write(folder: Path, log: Log, copy: Path, target: Path, opened: ExitStack) -> Backup:
    snapshot = _readable(folder)
    files: dict[str, IO[bytes]] = {}

    def add(path: Path, *, needed: bool) -> None:
        if needed or path.exists():  # an open file stays, whatever the service deletes
            files[str(path.relative_to(folder))] = opened.enter_context(path.open("rb"))

    for path, needed in ((snapshot.path, True), (snapshot.context, True), (snapshot.candidate, False)):
        add(path, needed=needed)
    end = log.copy_to(f"sqlite:///{copy}", snapshot.position)
    if end.dropped > snapshot.position:
        raise Moved
    behind = Log(f"sqlite:///{copy}")
    named = {Change.decoded(body).file for body in behind.changes(snapshot.position)}
    behind.close()
    replaced = {*saved_context(snapshot).replaced}
    for name in sorted({name for name in named if name is not None} | replaced):
        # The log has the changes behind the snapshot.
        add(folder / MODELS / name, needed=name in named and (name.startswith(NEW) or name in replaced))
    for path in (folder / FORMAT_FILE, folder / BEGAN, folder / MODELS / TAKEN):
        add(path, needed=False)
    files[LOG] = opened.enter_context(copy.open("rb"))
    head = {
        "format": FORMAT,
        "shoal": metadata.version("shoal"),
        "position": snapshot.position,
        "logged": end.position,
        "files": {name: _digest(file) for name, file in files.items()},
    }
    with whole_file(target, fsync=True) as part, tarfile.open(part, "w") as archive:
        _add(archive, HEAD, io.BytesIO(json.dumps(head).encode()))
        for name, file in files.items():
            _add(archive, name, file)
    return Backup(snapshot.position, end.position)


def _readable(folder: Path) -> Snapshot:
    """The newest snapshot that can be read."""
    found = Snapshots(folder / SNAPSHOTS).all() if (folder / SNAPSHOTS).is_dir() else []
    for snapshot in found:
        try:
            persistence.read(snapshot.path)
        except ValueError:
            continue
        return snapshot
    raise ValueError(f"{folder} holds no snapshot that can be read; expected the folder of a service")


def restore(file: Path, folder: Path, url: str | None) -> Backup:
    """Make a service's folder of a backup; its log goes to the database of `url`, or into the folder.

    Raises
    ------
    ValueError
        If the file is no backup or damaged, or the folder or the database is not empty; then nothing changes.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty: a backup is restored into a new folder")
    for left in folder.parent.glob(f"{folder.name}.*.restoring"):  # by a restore that was killed
        shutil.rmtree(left)
    scratch = folder.with_name(f"{folder.name}.{secrets.token_hex(6)}.restoring")
    scratch.mkdir(parents=True)
    try:
        found = _extract(file, scratch)
        if url is not None:
            _move_log(scratch / LOG, url)
        if folder.exists():
            folder.rmdir()
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return found


def _extract(file: Path, folder: Path) -> Backup:
    try:
        with tarfile.open(file) as archive:
            first = archive.next()
            content = None if first is None or first.name != HEAD else archive.extractfile(first)
            head: Mapping[str, Any] = {} if content is None else json.loads(content.read())
            if head.get("format") != FORMAT:
                raise ValueError(
                    f"{file} is no backup of format {FORMAT}, which this shoal reads: `shoal backup` writes one, and a "
                    "backup of another format is restored by the shoal that wrote it"
                )
            for name, digest in head["files"].items():
                archive.extract(name, folder, filter="data")
                with (folder / name).open("rb") as extracted:
                    if _digest(extracted) != digest:
                        raise ValueError(f"{file} is damaged: {name} is not the file that was backed up")
                    os.fsync(extracted.fileno())
            return Backup(head["position"], head["logged"])
    except (tarfile.TarError, OSError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"{file} is no backup, or is damaged: {error}") from None


def _move_log(path: Path, url: str) -> None:
    log = Log(f"sqlite:///{path}")
    try:
        target = Log(url)
        try:
            # After a kill behind the copy it is there already.
            if (target.id, target.last) != (log.id, log.last):
                if target.id:
                    raise ValueError("the database is not empty: a log is restored into an empty one")
                log.copy_to(url, 0)
        finally:
            target.close()
    finally:
        log.close()
    path.unlink()


def _digest(file: IO[bytes]) -> str:
    file.seek(0)
    return digest_of(file)


def _add(archive: tarfile.TarFile, name: str, file: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = file.seek(0, os.SEEK_END), 0o600
    file.seek(0)
    archive.addfile(member, file)
