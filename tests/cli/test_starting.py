"""The program starts fast: it loads what it needs, and what is compiled once stays compiled."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import shoal
from shoal.cli import main

HEAVY = ["altair", "pandas.core", "polars", "pyarrow", "scipy.stats._stats_py", "sklearn.linear_model", "shoal.batch"]
SOURCE = str(Path(shoal.__file__).parents[1])


def python(code: str) -> subprocess.CompletedProcess[str]:
    """What a process of its own says."""
    environment = os.environ | {"PYTHONPATH": SOURCE}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)


# What a process has compiled or taken from the cache of compiled code, as its last line, and how often it compiled.
KERNELS = """
import gc
from shoal.engine.compile import Compiled
used = [one for one in gc.get_objects() if isinstance(one, Compiled)]
kernels = [f"{one.py_func.__module__}.{one.py_func.__qualname__}{sign}" for one in used for sign in one.signatures]
print(len(compiled.buffer), sorted(kernels), sep="; ")
"""


def test_after_compile_a_run_compiles_nothing_and_loads_little(tmp_path: Path) -> None:
    """With the cache of all tests, for time: it compares what the two processes have compiled or taken from it."""
    path = tmp_path / "a.libsvm"
    values = np.random.default_rng(0).normal(size=120)
    path.write_text("".join(f"{y} qid:{i % 3} 1:{values[i]} 2:1\n" for i, y in enumerate([1, -1] * 60)))

    def program(*arguments: str) -> tuple[str, int, set[str]]:
        """What the program prints, how often it compiles, and the kernels that it has in the end."""
        said = python(
            f"""
import sys
sys.argv = ["shoal", *{arguments!r}]
from numba.core import event
with event.install_recorder("numba:compile") as compiled:
    from shoal.cli import main
    main()
print("loaded:", *[name for name in {HEAVY!r} if name in sys.modules])
{KERNELS}"""
        )
        *printed, last = said.stdout.splitlines()
        assert said.stderr == ""
        times, _, kernels = last.partition("; ")
        return "\n".join(printed), int(times), set(ast.literal_eval(kernels))

    said, _, compiled = program("compile", "PassiveAggressive", "--jobs", "1")
    assert said.startswith("compiled 1 learner, the metrics and 7 file formats in ")
    said, times, used = program("run", str(path), "--learner", "PassiveAggressive")
    assert "could be chance" in said  # so the verdict's test has been made
    assert said.splitlines()[-1] == "loaded:"
    assert times == 0
    assert used
    assert used <= compiled


def test_without_the_extra_the_program_says_what_to_install() -> None:
    code = """
import sys
sys.modules["cyclopts"] = None
from shoal.cli import main
try:
    main()
except SystemExit as end:
    print(end.code)
"""
    said = python(code)
    assert said.stdout == "2\n"
    assert said.stderr == 'shoal: the program needs cyclopts, among others: pip install "shoal[cli]"\n'


def test_an_interrupt_while_it_starts_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shoal.cli.starting.collect_rarely", interrupt)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130


@pytest.mark.parametrize("name", [None, "shoal.nothing", "numpy"])
def test_what_else_is_missing_is_raised(name: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ModuleNotFoundError("not there", name=name)

    monkeypatch.setattr("shoal.cli.starting.collect_rarely", fail)
    with pytest.raises(ModuleNotFoundError, match="not there"):
        main()


def test_a_part_of_the_extra_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise ModuleNotFoundError("not there", name="cyclopts.core")

    monkeypatch.setattr("shoal.cli.starting.collect_rarely", fail)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "the program needs cyclopts.core, among others" in capsys.readouterr().err
