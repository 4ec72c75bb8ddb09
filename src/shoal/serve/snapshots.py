"""Snapshots: model files named by their positions in the log, of which the last few are kept.

A forked process writes each snapshot. The child sees the memory of that moment, and only pages that the parent changes
meanwhile are copied, so predictions wait for the fork (a copy of page tables) and not for the disk. Systems without
fork write the model in place.
"""

import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from shoal.serve.log import of_another_format
from shoal.serve.model_changes import Models
from shoal.serve.served_model import ServedModel
from shoal.whole_file import write_whole

logger = logging.getLogger("shoal")
NAME = re.compile(r"(\d{16})\.shoal$")
# In the folder of a service: its snapshots, its format, and of which file its first snapshot is.
SNAPSHOTS, FORMAT_FILE, BEGAN = "snapshots", "format", "model.json"
FOLDER_FORMAT = 1
CONTEXT, CANDIDATE = ".json", ".candidate"  # the suffixes of a context, and of the candidate beside a model


class Snapshot(NamedTuple):
    """One model file."""

    position: int
    path: Path

    @property
    def context(self) -> Path:
        """The file of its `Context`."""
        return self.path.with_suffix(CONTEXT)

    @property
    def candidate(self) -> Path:
        """The file of the candidate, if there was one."""
        return self.path.with_suffix(CANDIDATE)

    @property
    def time(self) -> float:
        """When it was written."""
        return self.path.stat().st_mtime


class Context(NamedTuple):
    """The service beside a model: its counts, the reached offsets of topics, and the id of its log."""

    counted: Mapping[str, Any] | None
    offsets: Mapping[str, int]  # of the next message of each partition
    log: str | None = None  # the id of the log; None: not known
    rows: int = 0  # that the service has learned
    replaced: Sequence[str] = ()  # the files of replaced models, newest last


class Snapshots:
    """A folder of snapshots.

    Parameters
    ----------
    folder : Path
    keep : int
        How many of the newest are kept.
    keep_first : bool
        Whether the oldest is kept, too, so that the model can be built as it was at any time.
    """

    def __init__(self, folder: Path, keep: int = 3, *, keep_first: bool = False) -> None:
        self._folder, self._keep, self._keep_first = folder, keep, keep_first
        folder.mkdir(parents=True, exist_ok=True)

    def tidy(self) -> None:
        """Delete the files that a killed process left."""
        for part in self._folder.glob("*.part"):
            part.unlink()

    def all(self) -> list[Snapshot]:
        """All snapshots, newest first."""
        found = [(NAME.fullmatch(path.name), path) for path in self._folder.iterdir()]
        return sorted((Snapshot(int(name[1]), path) for name, path in found if name), reverse=True)

    def path(self, position: int) -> Path:
        """The path of the snapshot of a position."""
        return self._folder / f"{position:016}.shoal"

    def prune(self, forgotten: int = 0) -> int:
        """Delete surplus snapshots and, once there is a newer one, those from before a task was forgotten; return the
        position of the oldest one left, behind which the log is needed."""
        found = self.all()
        kept = found[: self._keep]
        if self._keep_first and found and found[-1] not in kept:
            kept.append(found[-1])
        if found and found[0].position >= forgotten:
            kept = [snapshot for snapshot in kept if snapshot.position >= forgotten]
        for snapshot in found:
            if snapshot not in kept:
                snapshot.context.unlink(missing_ok=True)
                snapshot.candidate.unlink(missing_ok=True)
                snapshot.path.unlink(missing_ok=True)
        return kept[-1].position if kept else 0


def newest(folder: Snapshots, *, with_shadows: bool, until: int | None = None) -> tuple[Models, int, Context]:
    """The models of the newest readable snapshot (up to a position), with its position and context.

    Raises
    ------
    ValueError
        If no snapshot can be read.
    """
    reasons = []
    chosen = [one for one in folder.all() if until is None or one.position <= until]
    for snapshot in chosen:
        try:
            paths = [snapshot.path, *([snapshot.candidate] if snapshot.candidate.exists() else [])]
            models = Models(*(ServedModel(path, with_shadows=with_shadows) for path in paths))
        except (ValueError, OSError) as error:
            logger.warning("snapshot %d cannot be read: %s", snapshot.position, error)
            reasons.append(str(error))
        else:
            return models, snapshot.position, saved_context(snapshot)
    raise ValueError(f"no snapshot can be read: {'; '.join(reasons) or 'there is none'}")


def check_format(folder: Path, *, is_new: bool) -> None:
    """Compare the format of a service's folder with that of this shoal; a new folder gets it. Raises ValueError."""
    path = folder / FORMAT_FILE
    if is_new:
        write_whole(path, f"{FOLDER_FORMAT}\n".encode(), fsync=True)
        return
    found = path.read_text(encoding="utf-8").strip() if path.exists() else "none"
    if found != str(FOLDER_FORMAT):
        raise ValueError(of_another_format(f"{folder} has format {found}", FOLDER_FORMAT))


class Writing:
    """A snapshot that a child process is writing."""

    def __init__(self, position: int, child: int | None, error: str = "") -> None:
        self.position = position
        self._child, self.error = child, error

    @property
    def is_done(self) -> bool:
        """Whether it has ended; `error` then says how."""
        if self._child is None:
            return True
        child, status = os.waitpid(self._child, os.WNOHANG)
        if child == 0:
            return False
        self._ended(status)
        return True

    def wait(self) -> None:
        """Wait for the end."""
        if self._child is not None:
            self._ended(os.waitpid(self._child, 0)[1])

    def _ended(self, status: int) -> None:
        self._child = None
        if status != 0:
            self.error = self.error or f"its process ended with {os.waitstatus_to_exitcode(status)}"


def begin(
    position: int, path: Path, save: Callable[[Path], object], context: Callable[[], Context] | None = None
) -> Writing:
    """Write a snapshot of the memory as it is now; nothing may change the model or its context until this returns.
    Both functions may be called in a fork, where other threads hold their locks for ever."""

    def write() -> None:
        if context is not None:
            write_context(path, context())
        save(path)  # to a file of another name that is renamed once it is on the disk

    if not hasattr(os, "fork"):
        try:
            write()
        except (OSError, ValueError) as error:
            return Writing(position, None, str(error))
        return Writing(position, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads: the child runs none of their code
        child = os.fork()
    if child:
        return Writing(position, child)
    code = 1
    try:
        os.closerange(3, 1 << 16)  # sockets and locks must not outlive the parent
        with suppress(OSError):
            os.nice(10)  # answers go first
        write()
        code = 0
    except BaseException as error:
        print(f"shoal: snapshot {position} was not written: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def save_models(models: Models, path: Path) -> None:
    """Write a model, and before it the candidate beside it."""
    if models.candidate is not None:
        models.candidate.save(path.with_suffix(CANDIDATE))
    models.served.save(path)


def write_context(path: Path, context: Context) -> None:
    """Write the context of a model, before the model itself."""
    write_whole(path.with_suffix(CONTEXT), json.dumps(context._asdict()).encode(), fsync=True)


def saved_context(snapshot: Snapshot) -> Context:
    """The context of a snapshot; an empty one if it is missing or damaged, as the model does not need it."""
    try:
        found = Context(**json.loads(snapshot.context.read_text(encoding="utf-8")))
        offsets = {str(source): int(at) for source, at in found.offsets.items()}
        return found._replace(offsets=offsets, rows=int(found.rows), replaced=[str(name) for name in found.replaced])
    except (OSError, ValueError, TypeError, AttributeError):
        return Context(None, {})
