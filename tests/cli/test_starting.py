"""The program starts fast: it loads what it needs, compiles once and says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import shoal
from shoal import HedgedSharing, MultitaskPerceptron
from shoal.cli.starting import COMPILING, FEW_ROWS, Helper, warmed
from shoal.engine.rounds import Chunk

HEAVY = ["altair", "pandas.core", "polars", "pyarrow", "scipy.stats._stats_py", "sklearn.linear_model", "shoal.batch"]


def program(*arguments, cache):
    """A run in a process of its own, whose compiled code lies in `cache`; what it had loaded, and what it said."""
    code = f"""
import sys
sys.argv = ["shoal", *{list(map(str, arguments))!r}]
from shoal.cli import main
try:
    main()
finally:
    print("loaded:", *[name for name in {HEAVY!r} if name in sys.modules])
"""
    source = str(Path(shoal.__file__).parents[1])
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": source}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)


def test_the_second_run_compiles_nothing_and_loads_little(tmp_path):
    path = tmp_path / "a.libsvm"
    values = np.random.default_rng(0).normal(size=120)
    path.write_text("".join(f"{y} qid:{i % 3} 1:{values[i]} 2:1\n" for i, y in enumerate([1, -1] * 60)))
    options = ["run", path, "--learner", "PassiveAggressive"]
    first = program(*options, cache=tmp_path / "cache")
    assert first.stderr.splitlines() == [COMPILING]
    second = program(*options, cache=tmp_path / "cache")
    assert second.stderr == ""
    assert "no clear difference" in second.stdout  # so the verdict's test has been made
    assert second.stdout.splitlines()[-1] == "loaded:"
    scores = [run.stdout.split("PassiveAggressive")[-1].split("\n")[0].split() for run in (first, second)]
    assert scores[0][:-1] == scores[1][:-1]  # all but the seconds


def test_garbage_is_collected_while_rows_are_learnt(tmp_path):
    path = tmp_path / "a.libsvm"
    path.write_text("1 qid:1 1:1\n-1 qid:1 1:-1\n")
    code = f"""
import gc, sys
sys.argv = ["shoal", "run", {str(path)!r}, "--learner", "PassiveAggressive", "--no-baselines"]
from shoal.cli import main
from shoal.cli.run import Display
Display.rows = lambda *_: print("collects:", gc.isenabled(), "without the modules:", gc.get_freeze_count() > 100_000)
main()
"""
    environment = os.environ | {"PYTHONPATH": str(Path(shoal.__file__).parents[1])}
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert "collects: True without the modules: True" in said.stdout.splitlines()


@pytest.mark.parametrize("labels", [[-1.0, 1.0], [3.0, 5.0], [5.0]])
def test_warming_up_teaches_nothing_and_loses_no_row(labels):
    rng = np.random.default_rng(0)
    X = csr_matrix(rng.normal(size=(200, 5)))
    chunks = [Chunk(X[i : i + 100], rng.choice(labels, 100), rng.integers(0, 3, 100)) for i in (0, 100)]
    learners = {"a": MultitaskPerceptron(), "b": HedgedSharing()}
    options = {"window": 10, "delay": 0, "classes": None}
    helper = Helper(learners)
    assert list(helper.others) == ["b"]  # which this process compiles while the helper compiles the first
    for _ in range(2):
        seen = list(warmed(iter(chunks), learners, helper, **options))
        assert all(one is other for one, other in zip(seen, chunks, strict=True))
        assert not any(hasattr(learner, "n_features_in_") for learner in learners.values())
        helper.start()  # for the second time round
    helper.wait()
    assert helper.started
    assert FEW_ROWS < 100


def test_nothing_to_warm_up_with():
    assert list(warmed(iter([]), {"a": MultitaskPerceptron()}, window=10, delay=0, classes=None)) == []
