"""While one core uses a result, another computes the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from shoal.parallel.cores import add_seconds, n_threads

S = TypeVar("S")
T = TypeVar("T")


def one_ahead(function: Callable[[S], T], items: Sequence[S]) -> Iterator[T]:
    """`map(function, items)`; the next result is computed in another thread, if `n_jobs` allows one."""
    if len(items) < 2 or n_threads() < 2:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(1) as other:
        ahead = other.submit(function, items[0])
        for item in items[1:]:
            result, ahead = ahead.result(), other.submit(function, item)
            yield result
        yield ahead.result()
        add_seconds(other.submit(time.thread_time).result())
