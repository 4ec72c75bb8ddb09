"""A first run compiles in two processes: each half is all of what learning needs, and no more is started than pays."""

import subprocess
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from shoal import HedgedSharing, HedgedSharingRegressor, PassiveAggressive
from shoal.cli import compiling
from shoal.engine.compile import Compiled
from shoal.online.hedged_sharing import algorithm, dense


def test_the_halves_are_what_learning_needs() -> None:
    """Of dense and sparse rows, labels and numbers."""
    kernels: list[Any] = [algorithm.learn, dense.run_groups]
    X, y, task = np.eye(4), np.array([1, -1, 1, -1]), np.arange(4) % 2
    for learner in (HedgedSharing(), HedgedSharingRegressor()):
        compiling.compile_groups(learner)
        compiling.compile_rest(learner)
        before = [list(kernel.signatures) for kernel in kernels]
        assert all(before)
        learner.partial_fit(X, y, task).partial_fit(csr_matrix(X), y, task)
        assert [kernel.signatures for kernel in kernels] == before


@pytest.mark.parametrize(
    ("learner", "is_new", "cores", "starts"),
    [
        (HedgedSharing(), True, 2, 1),
        (HedgedSharingRegressor(), True, 2, 1),
        (HedgedSharing(), False, 2, 0),
        (HedgedSharing(), True, 1, 0),
        (PassiveAggressive(), True, 2, 0),
    ],
)
def test_another_process_starts_where_it_pays(
    learner: Any, is_new: bool, cores: int, starts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []

    class Started:
        def __init__(self, words: list[str], **_: Any) -> None:
            calls.append(words)

        def __enter__(self) -> "Started":
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def kill(self) -> None:
            calls.append(["kill"])

    monkeypatch.setattr(subprocess, "Popen", Started)
    monkeypatch.setattr(Compiled, "awaits_compiling", lambda _: is_new)
    monkeypatch.setattr(compiling, "n_threads", lambda: cores)
    compiling.compile_in_two(learner)
    assert len(calls) == starts
    if starts:
        assert f"compile_groups(shoal.{type(learner).__name__}(" in calls[0][-1]
        # A stop ends the other process, too.

        def stop(_: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(compiling, "compile_rest", stop)
        with pytest.raises(KeyboardInterrupt):
            compiling.compile_in_two(learner)
        assert calls[-1] == ["kill"]


def test_code_in_memory_or_on_disk_is_known() -> None:
    kernel: Any = dense.run_groups
    compiling.compile_groups(HedgedSharing())
    assert not kernel.awaits_compiling()
    again = Compiled.of(kernel.py_func, kernel._compiler.pipeline_class)
    assert not again.overloads
    assert not again.awaits_compiling()  # on disk


def test_new_code_awaits_compiling(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    kernel: Any = dense.run_groups
    again = Compiled.of(kernel.py_func, kernel._compiler.pipeline_class)
    assert again.awaits_compiling()
