"""A user is told once that code is being compiled, and only if it takes long."""

from __future__ import annotations

import logging
import threading

import pytest

from shoal.engine.notice import MESSAGE, CompileNotice


@pytest.fixture
def said(caplog):
    """Messages logged, and an event that is set by the first."""
    first = threading.Event()
    caplog.handler.emit, emit = lambda record: (emit(record), first.set()), caplog.handler.emit
    with caplog.at_level(logging.WARNING, logger="shoal"):
        yield caplog, first


def test_it_is_said_while_the_compiler_works_and_once(said):
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


def test_short_compilations_are_added_up(said):
    _, first = said
    notice = CompileNotice(patience=0.0005)
    for _ in range(1000):
        notice.start()
        if first.wait(0.0001):
            return
        notice.stop()
    raise AssertionError("0.1 s of compiling in pieces were never told")


def test_nothing_is_said_of_what_is_fast(said):
    log, first = said
    notice = CompileNotice(patience=3600.0)
    notice.start()
    notice.stop()
    assert not first.is_set()
    assert log.messages == []
    assert threading.active_count() < 50  # the timer has ended
