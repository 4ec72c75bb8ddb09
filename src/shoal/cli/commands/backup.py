"""`shoal backup` and `shoal restore`: a service as one file, and back."""

from pathlib import Path

from shoal.cli.commands.log import open_log
from shoal.serve.backup import back_up
from shoal.serve.backup import restore as restored
from shoal.serve.contract import Unavailable


def backup(folder: str, url: str | None, to: str) -> None:
    """Write a backup. Raises ValueError if the folder is none of a service."""
    log = open_log(folder, url)
    try:
        found = back_up(Path(folder), log, Path(to))
    except Unavailable as error:
        raise ValueError(str(error)) from None
    finally:
        log.close()
    size = Path(to).stat().st_size
    print(f"{to} ({size:,} bytes): snapshot {found.position:,} of {folder} and the log up to record {found.logged:,}")


def restore(file: str, folder: str, url: str | None) -> None:
    """Make a folder of a backup. Raises ValueError if the file is none, or the folder or the database is not empty."""
    try:
        found = restored(Path(file), Path(folder), url)
    except Unavailable as error:
        raise ValueError(str(error)) from None
    print(f"{folder}: snapshot {found.position:,} and the log up to record {found.logged:,} of {file}")
