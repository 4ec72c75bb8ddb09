"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new file next to `path`, to be written; it takes the place of `path` if the block succeeds.

    A symbolic link stays a link: what it points to is replaced. A failure leaves what was there before.
    """
    target = Path(path).resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        part.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o644)
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
