"""Instructions a row, counted by valgrind's callgrind: the same whatever else the machine is doing.

The code is compiled for a fixed processor, so that counts do not depend on the machine either: that of the tests.
Counting starts after a learner has seen its first rows: no compiling, no imports; and no garbage collection, which
comes when it likes. All learners are counted in one process, always: Python makes code faster that has run before, so
one alone takes more. What are left are Python's and NumPy's caches that go by addresses: where two things share a place
in one, looking them up takes longer. So a count can be made again with everything elsewhere.
"""

import ctypes
import gc
import mmap
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from benchmarks.guard.processor import compile_for_haswell

PROJECT = Path(__file__).parents[2]
CACHE = PROJECT / "build" / "guard"
FIXED = {"OPENBLAS_CORETYPE": "Nehalem", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
WARM_UP, TIMES = 120, 4  # rows; how often the others are learned, so that they outweigh the call
FITTED = 32  # rows of a batch learner, which goes over them again and again
# What valgrind takes for a request on x86-64: rotations of rdi by 128 bits in all, then an exchange of rbx with itself.
REQUEST = bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db 4889d0 c3")
ZERO, DUMP, START, STOP = 0x43540001, 0x43540003, 0x43540004, 0x43540005  # callgrind's, "CT" in the upper half


class Callgrind:
    """Requests to the valgrind that this process runs in; without one they do nothing."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._page.write(REQUEST)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._page))
        self._call = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(address)

    def request(self, code: int, text: bytes = b"") -> None:
        """Send one; `text` names a dump."""
        buffer = ctypes.create_string_buffer(text)
        arguments = (ctypes.c_uint64 * 6)(code, ctypes.addressof(buffer), 0, 0, 0, 0)
        self._call(ctypes.addressof(arguments))


def work() -> None:
    """Learn every workload, each between two requests.

    Counting begins once, when all is ready: valgrind translates all code anew when it begins and when it ends.
    """
    from benchmarks.guard.workloads import BATCH, ONLINE

    callgrind = Callgrind()
    gc.disable()
    names = ["PassiveAggressive", *ONLINE, *BATCH]  # one more to begin with: counting itself has to get going
    learning = [online_work(name) if name in ONLINE else batch_work(name) for name in names]
    callgrind.request(START)
    for name, learn in zip(names, learning, strict=True):
        callgrind.request(ZERO)
        learn()
        callgrind.request(DUMP, name.encode())
    callgrind.request(STOP)  # counting is slow: nothing else is counted


def online_work(name: str) -> Callable[[], object]:
    """Learning the later rows several times, after the first."""
    from benchmarks.guard.workloads import N_TASKS, ONLINE, rows

    learner: Any = ONLINE[name]()
    X, y, task = rows(regression=not is_classifier(learner))
    for round_ in np.split(np.arange(WARM_UP), WARM_UP // N_TASKS):  # Python, too, gets faster over the first calls
        learner.partial_fit(X[round_], y[round_], task[round_])
    which = np.resize(np.arange(WARM_UP, len(y)), learned(name))
    X, y, task = X[which], y[which], task[which]
    return lambda: learner.partial_fit(X, y, task)


def learned(name: str) -> int:
    """How many rows are learned: few where trees are trained, a hundred times the work of other learners."""
    from benchmarks.guard.workloads import BATCH, N_ROWS

    if name in BATCH:
        return FITTED
    return 60 if name.startswith("Hedged") else TIMES * (N_ROWS - WARM_UP)


def batch_work(name: str) -> Callable[[], object]:
    """Fitting the first rows, after some of them."""
    from benchmarks.guard.workloads import BATCH, rows

    learner: Any = BATCH[name]()
    X, y, task = (part[:FITTED] for part in rows(regression=not is_classifier(learner)))
    learner.fit(*(part[: FITTED // 2] for part in (X, y, task)))
    return lambda: learner.fit(X, y, task)


def instructions(elsewhere: int = 0) -> dict[str, float]:
    """Instructions a row of each learner's `partial_fit`, or of its `fit`; another `elsewhere`, other addresses."""
    from benchmarks.guard.workloads import BATCH, ONLINE

    CACHE.mkdir(parents=True, exist_ok=True)
    for old in CACHE.glob("callgrind.*"):
        old.unlink()
    command = [sys.executable, "-m", "benchmarks.guard.cost"]
    environment = {**os.environ, **FIXED, **{f"ELSEWHERE_{i}": "" for i in range(37 * elsewhere)}}
    subprocess.run(command, cwd=PROJECT, env=environment, check=True)  # compiles what is not in the cache
    out = f"--callgrind-out-file={CACHE / 'callgrind.%p'}"
    valgrind = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", out]
    subprocess.run([*valgrind, *command], cwd=PROJECT, env=environment, check=True)
    counts = {}
    for path in sorted(CACHE.glob("callgrind.*"), key=lambda path: int(path.suffix[1:])):  # the first was to get going
        text = path.read_text(encoding="utf-8", errors="replace")
        trigger, total = re.search(r"Client Request: (\w+)", text), re.search(r"^totals: (\d+)", text, re.MULTILINE)
        if trigger and total:
            counts[trigger[1]] = round(int(total[1]) / learned(trigger[1]), 1)
    return {name: counts[name] for name in [*ONLINE, *BATCH]}


if __name__ == "__main__":
    compile_for_haswell()
    work()
