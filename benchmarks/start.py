"""How long `shoal run` takes on 1,000 rows, the first time ever, when it compiles, and the second.

`python -m benchmarks.start`: every file has an empty cache of compiled code to begin with. Medians of 3.
"""

import statistics
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.files import FILES, run_shoal, seconds, write_files
from benchmarks.timing import machine

REPEATS = 3


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
                    cache = str(folder / f"{ending}-{baselines}-{repeat}")
                    run = partial(run_shoal, folder / f"data.{ending}", chosen, NUMBA_CACHE_DIR=cache)
                    times.append([seconds(run) for _ in range(2)])
                first, second = map(statistics.median, zip(*times, strict=True))
                print(f"{ending:9}{baselines:>11}{first:>8.1f}{second:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
