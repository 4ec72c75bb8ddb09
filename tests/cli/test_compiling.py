"""A first run compiles in two processes: each half is all of what learning needs, and no more is started than pays."""

import subprocess
from io import BytesIO, StringIO
from typing import Any, Self

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import is_classifier

from shoal import HedgedSharing, HedgedSharingRegressor, MultiClass, PassiveAggressive
from shoal.cli import compiling
from shoal.engine.compile import Compiled
from shoal.engine.rounds import Chunk
from shoal.online.hedged_sharing import algorithm, columns, dense


def test_the_halves_are_what_learning_needs() -> None:
    """Of dense and sparse rows, few features and many, labels, several ones and numbers."""
    kernels: list[Any] = [algorithm.learn, dense.run_groups, columns.run_wide]
    X, y, task = np.eye(4), np.array([1, -1, 1, -1]), np.arange(4) % 2
    for learner in (HedgedSharing(), HedgedSharingRegressor()):
        compiling.compile_groups(learner)
        compiling.compile_groups(learner, many=True)
        compiling.compile_rest(learner, compiling.MADE_UP)
        before = [list(kernel.signatures) for kernel in kernels]
        assert all(before)
        learner.partial_fit(X, y, task).partial_fit(csr_matrix(X), y, task)
        type(learner)().partial_fit(np.ones((4, 200)), y, task)
        if is_classifier(learner):
            MultiClass(learner).partial_fit(X, np.arange(4) % 3, task, classes=[0, 1, 2])
        assert [kernel.signatures for kernel in kernels] == before


def test_more_features_than_groups_take_are_many() -> None:
    learner: Any = HedgedSharing()
    most = learner.new_core().setup.settings.dense.most
    for n in (most, most + 1):
        for X in (np.ones((1, n)), csr_matrix(np.eye(n))):
            assert compiling.has_many_features(X, learner) is (n > most)


def test_the_other_process_compiles_what_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[bool] = []
    monkeypatch.setattr(compiling, "compile_groups", lambda _, many=False: compiled.append(many))
    for told, expected in (("", [False]), ("many\n", [False, True])):
        monkeypatch.setattr("sys.stdin", StringIO(told))
        compiling.compile_beside(HedgedSharing())
        assert compiled == expected
        compiled.clear()


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
    calls: list[Any] = []

    class Told(BytesIO):
        def __exit__(self, *_: object) -> None:
            calls.append(self.getvalue())

    class Started:
        def __init__(self, words: list[str], **_: Any) -> None:
            calls.append(words[-1])
            self.stdin = Told()

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            calls.append("ended")

        def kill(self) -> None:
            calls.append("killed")

    monkeypatch.setattr(subprocess, "Popen", Started)
    monkeypatch.setattr(Compiled, "awaits_compiling", lambda _: is_new)
    monkeypatch.setattr(compiling, "n_threads", lambda: cores)
    monkeypatch.setattr(compiling, "compile_rest", lambda *_: calls.append("rest"))
    for n, told in ((None, b""), (3, b""), (300, b"many\n")):
        calls.clear()
        with compiling.compiled_in_two(learner) as compile_rest:
            compile_rest(learner, None if n is None else Chunk(np.ones((1, n)), None))
        assert calls[1:] == ([told, "rest", "ended"] if starts else [])
        assert [f"compile_beside(shoal.{type(learner).__name__}(" in call for call in calls[:1]] == [True] * starts
    # A stop ends the other process, too.
    calls.clear()
    with pytest.raises(KeyboardInterrupt), compiling.compiled_in_two(learner):
        raise KeyboardInterrupt
    assert calls[1:] == ["killed", "ended"] * starts


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
