"""`shoal log` and `shoal replay`: the records that a service accepted, and its model at an earlier time."""

import datetime
import tempfile
from pathlib import Path

from shoal.files.messages import plural
from shoal.serve.apply import Fold
from shoal.serve.contract import Unavailable
from shoal.serve.log import Log, Record
from shoal.serve.model_changes import Change, ModelFolder
from shoal.serve.row_codec import unpack
from shoal.serve.snapshots import SNAPSHOTS, Snapshots, newest


def open_log(folder: str, url: str | None) -> Log:
    """The log in a service's folder, or at another address. Raises ValueError if there is none."""
    path = Path(folder)
    if url is None and not (path / "log.sqlite").exists():
        raise ValueError(f"{folder} holds no log; expected the folder of a service, such as model.shoal.live")
    try:
        return Log(url or f"sqlite:///{path / 'log.sqlite'}")
    except Unavailable as error:
        raise ValueError(str(error)) from None


def print_log(folder: str, url: str | None, *, after: int, n: int, with_rows: bool) -> None:
    """Print the records behind a position, one a line, on request with their rows."""
    log = open_log(folder, url)
    try:
        last = None
        for last in log.read(after, after + n):
            print(_line(last))
            if with_rows and last.kind == "learn":
                print(unpack(last.body).frame.write_ndjson(), end="")
        if last is None:
            print(f"no records behind position {after:,}; the last one is {log.last:,}")
    finally:
        log.close()


def replay(folder: str, url: str | None, *, until: str | None, save: str) -> None:
    """Build the model as it was at a position or time.

    Raises
    ------
    ValueError
        If `until` is no position or time, or the log lacks the records: `shoal serve --keep-log` keeps them.
    """
    log = open_log(folder, url)
    try:
        end = log.last if until is None else _position(log, until)
        found = Snapshots(Path(folder) / SNAPSHOTS)
        (served, candidate), position, _ = newest(found, with_shadows=True, until=end)
        with tempfile.TemporaryDirectory() as scratch:
            files = ModelFolder(Path(folder), scratch=Path(scratch))
            fold = Fold(served, position, None, candidate, files)
            for _ in fold.replay(log.read(position, end)):
                pass
        if fold.position < end:
            raise ValueError(f"the log ends at record {fold.position:,}, before {end:,}")
        path = fold.served.save(Path(save))
    finally:
        log.close()
    print(f"the model as it was after record {end:,}: {save} ({path.stat().st_size:,} bytes)")


def _position(log: Log, until: str) -> int:
    """The position that was given, or the last one up to a time."""
    if until.isdecimal():
        return int(until)
    try:
        moment = datetime.datetime.fromisoformat(until)
    except ValueError:
        raise ValueError(f"--until {until}: expected a position, or a time such as 2026-11-23T12:00:00") from None
    return log.position_at(moment.timestamp())


def _line(record: Record) -> str:
    moment = datetime.datetime.fromtimestamp(record.time).isoformat(sep=" ", timespec="milliseconds")
    what = plural(record.rows, "row") if record.kind == "learn" else f"forget {record.body.decode()!r}"
    if record.kind == "model":
        change = Change.decoded(record.body)
        what = f"{change.what} of the model {change.file or ''}".rstrip()
    return f"{record.position:>10,}  {moment}  {what}"
