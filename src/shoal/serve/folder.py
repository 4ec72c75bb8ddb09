"""The folder of an engine: whose it is, and the model in it."""

from __future__ import annotations

import fcntl
import logging
import os
from pathlib import Path

from shoal.serve import snapshots
from shoal.serve.served import Served
from shoal.serve.snapshots import Context, Snapshots

logger = logging.getLogger("shoal")


def newest(folder: Snapshots, *, with_shadows: bool, until: int | None = None) -> tuple[Served, int, Context]:
    """The model of the newest sound snapshot (up to a position), that position, and what stood next to it.

    Raises
    ------
    ValueError
        If there is none.
    """
    reasons = []
    chosen = [one for one in folder.all() if until is None or one.position <= until]
    for snapshot in chosen:
        try:
            served = Served(snapshot.path, with_shadows=with_shadows)
        except (ValueError, OSError) as error:
            logger.warning("snapshot %d cannot be read: %s", snapshot.position, error)
            reasons.append(str(error))
        else:
            return served, snapshot.position, snapshots.saved_context(snapshot)
    raise ValueError(f"no snapshot can be read: {'; '.join(reasons) or 'there is none'}")


def lock(path: Path, what: object) -> int:
    """What a file stands for is this process's until the file is closed, or the process ends."""
    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise ValueError(f"{what} is in use by another process") from None
    return handle
