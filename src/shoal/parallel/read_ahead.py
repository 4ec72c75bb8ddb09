"""An iterator whose next items are made in a thread while the last one is used."""

from __future__ import annotations

import weakref
from collections.abc import Generator, Iterator
from contextlib import suppress
from queue import Empty, Queue
from threading import Event, Thread
from typing import Any, Generic, TypeVar

T = TypeVar("T")
THREAD_PAYS = 1_000  # rows of a chunk; handing one over takes longer than reading a few rows
ITEMS = 6  # made and not yet asked for, so that a long pause of who uses them stops nothing; more would take memory
PATIENCE = 0.01  # seconds between two looks whether the thread has noticed that it shall stop


class _End(Exception):
    """Behind the last item."""


class Ahead(Iterator[T], Generic[T]):
    """The items of a generator in order, and where it raises, its exception.

    The generator must share nothing with who uses the items. `close` stops the thread and closes the generator;
    it is done too when nobody holds the iterator any more, and when the program ends.

    Examples
    --------
    >>> list(Ahead(i * i for i in range(4)))
    [0, 1, 4, 9]
    """

    def __init__(self, items: Generator[T]) -> None:
        self._queue: Queue[Any] = Queue(ITEMS)
        stop = Event()
        thread = Thread(target=_make, args=(items, self._queue, stop), name="shoal reads ahead", daemon=True)
        self._finalizer = weakref.finalize(self, _stop, self._queue, stop, thread)
        self._error: BaseException | None = None
        thread.start()

    def __next__(self) -> T:
        if self._error is None and self._finalizer.alive:
            item = self._queue.get()
            if not isinstance(item, _Raised):
                return item  # type: ignore[no-any-return]
            self._error = item.error
            self._finalizer()
            if not isinstance(self._error, _End):
                raise self._error
        raise StopIteration

    def close(self) -> None:
        """No further items."""
        self._finalizer()


def read_ahead(items: Generator[T], rows: int, *, live: bool) -> Generator[T]:
    """The items, made in a thread if each has many rows and they do not come live, as from standard input.

    A thread that waits for standard input could not be ended.
    """
    if live or rows < THREAD_PAYS:
        yield from items
        return
    ahead = Ahead(items)
    try:
        yield from ahead
    finally:
        ahead.close()


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def _make(items: Generator[Any], queue: Queue[Any], stop: Event) -> None:
    """The thread's work."""
    error: BaseException = _End()
    try:
        for item in items:
            queue.put(item)
            if stop.is_set():
                break
    except BaseException as raised:  # whatever it is, it belongs to who uses the items
        error = raised
    items.close()
    queue.put(_Raised(error))


def _stop(queue: Queue[Any], stop: Event, thread: Thread) -> None:
    """Take away what is in the thread's way until it ends."""
    stop.set()
    while thread.is_alive():
        with suppress(Empty):
            queue.get(timeout=PATIENCE)
