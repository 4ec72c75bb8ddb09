"""Progress of long work: a bar on a terminal, a line that changes in a notebook, nothing elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from html import escape
from types import TracebackType
from typing import Any, Self, TypeVar

from shoal.extras import named_extra

T = TypeVar("T")
EVERY = 0.25  # seconds between two updates of a notebook


def in_notebook() -> bool:
    """Whether cells of a notebook run this."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def shown(items: Iterable[T], n: int, unit: str, *, when: bool) -> Iterator[T]:
    """The items, with their progress."""
    if not when:
        yield from items
        return
    with Bar(n, unit) as bar:
        for done, item in enumerate(items, 1):
            bar.update(done)
            yield item


class Bar:
    """How much is done, how much a second, how long the rest takes, and a word on the result so far.

    Parameters
    ----------
    total : int or None
        None: not known.
    unit : str
        What is counted, as in "rows".
    """

    def __init__(self, total: int | None, unit: str) -> None:
        self._total, self._unit = total, unit
        self._start = self._last = time.monotonic()
        self._text = ""
        self._bar: Any = None  # on a terminal
        self._cell: Any = None  # in a notebook

    def __enter__(self) -> Self:
        if in_notebook():
            from IPython.display import display

            self._cell = display(self._bundle(0), raw=True, display_id=True)
            return self
        with named_extra("progress=True"):
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

        console = Console(stderr=True)
        self._bar = Progress(
            BarColumn(),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._line = self._bar.add_task("", total=self._total)
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._cell is not None:
            self._cell.update(self._bundle(self._total), raw=True)

    def update(self, done: int, result: str = "") -> None:
        """Show that n are done."""
        now = time.monotonic()
        self._text = progress_line(done, self._total, self._unit, now - self._start, result)
        if self._bar is not None:
            self._bar.update(self._line, completed=done, description=self._text)
        elif self._cell is not None and now - self._last >= EVERY:
            self._last = now
            self._cell.update(self._bundle(done), raw=True)

    def _bundle(self, done: int | None) -> dict[str, str]:
        """The line in HTML and as text."""
        value = f' value="{done}" max="{self._total}"' if self._total and done is not None else ""
        return {"text/html": f"<progress{value}></progress> {escape(self._text)}", "text/plain": self._text}


def progress_line(done: int, total: int | None, unit: str, seconds: float, result: str = "") -> str:
    """The line.

    Examples
    --------
    >>> progress_line(20_000, 80_000, "rows", 2.0, "error 0.18")
    '20,000 of 80,000 rows, 10,000 rows/s, 0:06 left, error 0.18'
    >>> progress_line(3, None, "orders", 6.0)
    '3 orders, 0.5 orders/s'
    """
    speed = done / seconds if seconds > 0 else 0.0
    parts = [f"{done:,}{'' if total is None else f' of {total:,}'} {unit}"]
    if speed > 0:
        parts.append(f"{speed:,.{0 if speed >= 10 else 1}f} {unit}/s")
    if speed > 0 and total is not None and done < total:
        left = round((total - done) / speed)
        parts.append(f"{left // 60}:{left % 60:02d} left")
    return ", ".join([*parts, *filter(None, [result])])
