"""Ctrl-C and SIGTERM end the pass at the next chunk: what was learned is scored, said and saved."""

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
    """Was the program asked to stop?"""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    @property
    def name(self) -> str | None:
        """Of the signal that asked, if one did."""
        return None if self.signal is None else self.signal.name

    @property
    def exit_code(self) -> int:
        """As shells count: 128 and the signal's number; 0 if nobody asked."""
        return 0 if self.signal is None else 128 + self.signal

    def until(self, items: Iterator[T]) -> Iterator[T]:
        """The items up to the stop; before the first item the program ends, for there is nothing to tell."""
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
        """Note the first signal; a second one ends the program at once."""
        before = {number: signal.signal(number, self._note) for number in SIGNALS}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal = signal.Signals(number)
        for each in SIGNALS:
            signal.signal(each, signal.default_int_handler)
