"""A user is told once that code is being compiled, and only if it takes long."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from shoal.engine.notice import MESSAGE, CompileNotice

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
