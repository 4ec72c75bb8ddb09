"""How kernels are compiled, and that a user is told once, only if it takes long."""

from __future__ import annotations

import gc
import importlib
import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tests.compiled import from_python

from shoal.engine import compile as compiling
from shoal.engine.compile import MESSAGE, CompileNotice, Entry, kernel


@kernel(alone=False, disjoint=True)
def _double(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(x)):
        out[i] = 2.0 * x[i]


def test_code_that_is_optimised_within_its_callers_is_none_of_its_own() -> None:
    """Compiled now, or read from the disk."""
    x, out = np.arange(5.0), np.zeros(5)
    from_python(_double)(x, out)
    np.testing.assert_array_equal(out, 2.0 * x)
    [compiled] = cast(Any, _double).overloads.values()
    assert not list(compiled.library.get_defined_functions())
    with pytest.raises(TypeError, match="_double is a kernel for compiled code"):
        _double(x, out)


@kernel(entry="too")
def _one_more(n: int) -> int:
    return n + 1


@kernel(entry=True)
def _one_less(n: int) -> int:
    return n - 1


@kernel(entry=True)
def _nothing_more(n: int) -> int:
    return _one_less(_one_more(n))


@kernel
def _three_more(n: int) -> int:
    return _one_more(n) + _one_more(1) + _one_more(2)


def test_a_kernel_is_compiled_for_types_and_not_for_values() -> None:
    assert from_python(_three_more)(5) == 11
    assert _one_more(1) == 2
    assert len(cast(Any, _one_more).overloads) == 1


def test_a_kernel_that_only_python_calls_refuses_others() -> None:
    """The disk keeps no bitcode of it that they could take."""
    kernel: Any = _one_less
    assert kernel(1) == 0
    again = Entry.of(kernel.py_func, kernel._compiler.pipeline_class, **kernel.targetoptions)
    assert again(1) == 0
    read: Any = next(iter(again.overloads.values()))
    module = str(read.library._get_module_for_linking())
    assert "ret void" in module
    assert "i64" not in module
    with pytest.raises(TypeError, match="_one_less is a kernel that Python calls"):
        _nothing_more(1)


@kernel(entry=True)
def _power(x: float, n: int) -> float:
    return x**n


@pytest.fixture
def threshold() -> Iterator[tuple[int, ...]]:
    """Python's own threshold of garbage; tests have a higher one."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield gc.get_threshold()
    gc.set_threshold(*before)


def test_numba_types_a_call_once_and_stays_as_it_was(
    threshold: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel: Any = _power
    function, thresholds, asked = compiling._Function, [], []
    call_type = function.get_call_type

    def ask(*arguments: Any) -> Any:
        thresholds.append(gc.get_threshold()[0])
        return call_type(*arguments)

    monkeypatch.setattr(compiling, "_call_type", ask)
    monkeypatch.setattr(compiling, "_call_types", {})
    for folder in "ab":  # it compiles in each
        monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path / folder))
        again = Entry.of(kernel.py_func, kernel._compiler.pipeline_class, **kernel.targetoptions)
        assert again(2.0, 3) == 8.0
        asked.append(len(thresholds))
        assert (function.get_call_type, gc.get_threshold()) == (call_type, threshold)
    assert asked[0] == asked[1] > 0
    assert set(thresholds) == {compiling.MANY_OBJECTS}


Said = tuple[pytest.LogCaptureFixture, threading.Event]


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[Said]:
    """Messages logged, and an event that is set by the first."""
    first = threading.Event()
    emit = caplog.handler.emit

    def noted(record: logging.LogRecord) -> None:
        emit(record)
        first.set()

    monkeypatch.setattr(caplog.handler, "emit", noted)
    with caplog.at_level(logging.WARNING, logger="shoal"):
        yield caplog, first


TO_BE_KEPT = """
from typing import NamedTuple
from shoal.engine.compile import kernel

class {name}(NamedTuple):
    value: float

@kernel(entry=True)
def twice(one: {name}) -> float:
    return 2.0 * one.value

def asked() -> float:
    return twice({name}(4.0))
"""


def test_kept_code_of_types_that_are_gone_is_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a package is replaced by a newer one: what was compiled stays beside it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("numba.core.config.CACHE_DIR", "")
    for name in ("Old", "New"):
        (tmp_path / "kept_code.py").write_text(TO_BE_KEPT.format(name=name))
        importlib.invalidate_caches()
        sys.modules.pop("kept_code", None)
        assert importlib.import_module("kept_code").asked() == 8.0
        assert list(tmp_path.rglob("kept_code*.nbi"))
    sys.modules.pop("kept_code")


def test_it_is_said_while_the_compiler_works_and_once(said: Said) -> None:
    log, first = said
    notice = CompileNotice(patience=0.01)
    notice.start()
    assert first.wait(60)
    notice.stop()
    notice.start()
    notice.start()  # nested
    notice.stop()
    notice.stop()
    assert log.messages == [MESSAGE]


def test_short_compilations_are_added_up(said: Said) -> None:
    _, first = said
    notice = CompileNotice(patience=0.0005)
    for _ in range(1000):
        notice.start()
        if first.wait(0.0001):
            return
        notice.stop()
    raise AssertionError("0.1 s of compiling in pieces were never told")


def test_nothing_is_said_of_what_is_fast(said: Said) -> None:
    log, first = said
    notice = CompileNotice(patience=3600.0)
    notice.start()
    notice.stop()
    assert not first.is_set()
    assert log.messages == []
    assert threading.active_count() < 50  # the timer has ended
