"""How long `shoal run` takes on 1,000 rows, the first time ever, when it compiles, and the second.

`python -m benchmarks.start`: every file has an empty cache of compiled code to begin with. Medians of 3.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.files import FILES, write_files
from benchmarks.timing import machine

REPEATS = 3
PROGRAM = [sys.executable, "-c", "from shoal.cli import main; main()", "run"]


def seconds(path: Path, options: list[str], cache: Path) -> float:
    """From the start of the process to its end."""
    start = time.perf_counter()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    subprocess.run([*PROGRAM, str(path), *options], check=True, env=environment, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    print(f"HedgedSharing, seconds; {machine()}\n\n{'file':9}{'baselines':>11}{'first':>8}{'second':>8}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, 1_000)
        for ending in ("vw", "parquet"):  # what is scanned, and tables
            options = FILES[ending]
            for baselines in ("yes", "no"):
                chosen = options if baselines == "yes" else [*options, "--no-baselines"]
                times = []
                for repeat in range(REPEATS):
                    cache = folder / f"{ending}-{baselines}-{repeat}"
                    times.append([seconds(folder / f"data.{ending}", chosen, cache) for _ in range(2)])
                first, second = map(statistics.median, zip(*times, strict=True))
                print(f"{ending:9}{baselines:>11}{first:>8.1f}{second:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
