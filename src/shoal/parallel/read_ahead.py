"""An iterator whose next items are made by a thread while the consumer works on the last one."""

import weakref
from collections.abc import Generator, Iterator
from contextlib import suppress
from queue import Empty, Queue
from threading import Event, Thread
from typing import Any, Generic, TypeVar

T = TypeVar("T")
MIN_ROWS_FOR_THREAD = 1_000  # of a chunk; handing one over takes longer than reading a few rows
QUEUE_SIZE = 6  # keeps the producer busy through a pause of the consumer, bounded in memory
POLL_SECONDS = 0.01  # between two checks whether the thread has stopped


class _End(Exception):
    """Behind the last item."""


class BackgroundIterator(Iterator[T], Generic[T]):
    """The items of a generator in order; an exception of the generator is raised in its place.

    The generator must share no state with the consumer. `close` stops the thread and closes the generator; so do
    the end of the program and the iterator's own deletion.

    Examples
    --------
    >>> list(BackgroundIterator(i * i for i in range(4)))
    [0, 1, 4, 9]
    """

    def __init__(self, items: Generator[T]) -> None:
        self._queue: Queue[Any] = Queue(QUEUE_SIZE)
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
    """The items, made by a thread if each has many rows and they do not come live, as from standard input.

    No thread waits for standard input, because it could not be stopped.
    """
    if live or rows < MIN_ROWS_FOR_THREAD:
        yield from items
        return
    ahead = BackgroundIterator(items)
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
    except BaseException as raised:  # any error is raised in the consumer
        error = raised
    items.close()
    queue.put(_Raised(error))


def _stop(queue: Queue[Any], stop: Event, thread: Thread) -> None:
    """Empty the queue until the thread, which may wait for a free place in it, ends."""
    stop.set()
    while thread.is_alive():
        with suppress(Empty):
            queue.get(timeout=POLL_SECONDS)
