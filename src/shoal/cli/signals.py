"""Ctrl-C and SIGTERM end the pass at the next chunk: the rows so far are scored, printed and saved."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

T = TypeVar("T")
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Whether a signal asked the program to stop, and which one."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    @property
    def name(self) -> str | None:
        """The signal's name, if one came."""
        return None if self.signal is None else self.signal.name

    @property
    def exit_code(self) -> int:
        """128 plus the signal's number, as in shells; 0 without a signal."""
        return 0 if self.signal is None else 128 + self.signal

    def until(self, items: Iterator[T]) -> Iterator[T]:
        """The items up to the stop; a stop before the first item ends the program, as there is nothing to save."""
        begun = False
        for item in items:
            if self.signal is not None:
                if begun:
                    return
                print(f"shoal: stopped by {self.name} before the first row: nothing is saved", file=sys.stderr)
                sys.exit(self.exit_code)
            begun = True
            yield item

    @contextmanager
    def on_signals(self) -> Iterator[Stop]:
        """Record the first signal; a second one ends the program at once."""
        before = {number: signal.signal(number, self._record) for number in SIGNALS}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _record(self, number: int, frame: FrameType | None) -> None:
        self.signal = signal.Signals(number)
        for each in SIGNALS:
            signal.signal(each, signal.default_int_handler)
