"""The origin of a run: its time, machine and code, which a page of stored results prints for each block."""

import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path

from joblib import cpu_count


def origin() -> dict[str, str]:
    """The origin of a run that is made now: `date` (UTC), `machine`, `code`."""
    return {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine(), "code": code()}


@cache
def machine() -> str:
    """Its processor and number of cores."""
    info = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*:\s*(.+)", info.read_text(encoding="utf-8")) if info.is_file() else None
    return f"{named[1] if named else platform.processor() or platform.machine()}, {cpu_count()} cores"


@cache
def code() -> str:
    """The version of shoal, and the commit where it is run from a clone; `-dirty` if files differ from it."""
    version = f"shoal {metadata.version('shoal')}"
    words = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        described = subprocess.run(words, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return version
    return f"{version} at {described}"


def told(origins: Sequence[Mapping[str, str]]) -> str:
    """The origins of several runs: each date, machine and code once."""
    if not origins:
        return ""
    dates, machines, codes = (sorted({one[name] for one in origins}) for name in ("date", "machine", "code"))
    days = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return f"run {days} on {' and '.join(machines)}, {', '.join(codes)}"
