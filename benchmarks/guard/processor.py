"""The processor that tests and the guard compile for, so that numbers are the same on all newer ones, and fresh code.

What is compiled for the tests is what the guard counts: nothing is compiled twice. It lacks the narrower loops that
LLVM puts behind vectorised ones for the turns left over: they begin with an instruction that valgrind 3.19 does not
know (vmovq between registers).
"""

import os
from pathlib import Path

import llvmlite.binding as llvm

SOURCE = Path(__file__).parents[2] / "src" / "shoal"
NEEDED = {"avx2", "fma", "bmi1", "bmi2", "abm"}
HASWELL = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+sse4.2,+popcnt,+avx,+avx2,+fma,+bmi,+bmi2,+lzcnt"}


def has_haswell() -> bool:
    """Does this machine know all instructions of that processor (2013)?"""
    try:
        words = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    except OSError:
        return False
    return set(words) >= NEEDED


def compile_for_haswell() -> None:
    """From now on, where that is possible: else for whatever processor this is. Numba must not have been imported."""
    if has_haswell():
        os.environ.update(HASWELL)
        llvm.set_option("shoal", "-enable-epilogue-vectorization=false")


def remove_stale_code() -> None:
    """Empty numba's cache if any source is newer: it does not see changes in functions that are called."""
    compiled = [*SOURCE.rglob("*.nbi")]
    if compiled and min(map(_age, compiled)) < max(map(_age, SOURCE.rglob("*.py"))):
        for path in [*compiled, *SOURCE.rglob("*.nbc")]:
            path.unlink(missing_ok=True)


def _age(path: Path) -> float:
    return path.stat().st_mtime
