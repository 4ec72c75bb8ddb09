"""A notice for whoever waits for the compiler: the first call of a learner may take seconds, once per computer.

Without it a first `partial_fit` is silent for as long as it compiles, and looks as if it hung.
"""

from __future__ import annotations

import logging
import threading
import time

MESSAGE = "compiling for this computer, once: up to a minute (`shoal compile` does it in advance)"

logger = logging.getLogger("shoal")


class CompileNotice:
    """Logs one warning as soon as compiling has taken a second in all.

    `start` and `stop` enclose each compilation, nested ones included. The caller holds the compiler's lock, so they
    never run concurrently. A timer logs while the compiler is at work: after the work the news would be stale.

    Parameters
    ----------
    patience : float
        Seconds of compiling before the warning.
    """

    def __init__(self, patience: float = 1.0) -> None:
        self._left = patience
        self._depth = 0
        self._since = 0.0
        self._timer: threading.Timer | None = None
        self._said = threading.Event()

    def start(self) -> None:
        """A function is being compiled."""
        self._depth += 1
        if self._depth == 1 and not self._said.is_set():
            self._since = time.monotonic()
            self._timer = threading.Timer(max(self._left, 0.0), self._say)
            self._timer.daemon = True
            self._timer.start()

    def stop(self) -> None:
        """It has been compiled."""
        self._depth -= 1
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._left -= time.monotonic() - self._since

    def _say(self) -> None:
        if not self._said.is_set():
            self._said.set()
            logger.warning(MESSAGE)
