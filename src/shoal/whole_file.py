"""Files that are written whole or not at all."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: str | os.PathLike[str], *, fsync: bool = False) -> Iterator[Path]:
    """A new, empty file next to `path`, for the block to fill; if the block succeeds, it replaces `path`.

    A failure leaves `path` as it was. A symbolic link stays a link, and its target is replaced. A replaced file keeps
    its permissions, a new one obeys the umask.

    Parameters
    ----------
    path : path
    fsync : bool
        Whether the content is on the disk before it gets its name, for files that must survive a power cut.

    Raises
    ------
    OSError
        If the disk is full; the message names the file.
    """
    target = Path(path).resolve()
    part = target.with_name(f"{target.name}.{secrets.token_hex(6)}.part")
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # tempfile's may be read by their owner only
    try:
        if target.exists():
            part.chmod(target.stat().st_mode & 0o777)
        yield part
        if fsync:
            with part.open("rb") as file:
                os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise OSError(error.errno, f"the disk has no room for {path}, which is as it was") from None
    finally:
        part.unlink(missing_ok=True)


def write_whole(path: str | os.PathLike[str], content: bytes, *, fsync: bool = False) -> None:
    """Write a file as `whole_file` does."""
    with whole_file(path, fsync=fsync) as part:
        part.write_bytes(content)
