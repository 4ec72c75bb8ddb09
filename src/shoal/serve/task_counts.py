"""Counts of each task: sums, how well forecasts order rows, and a short series, in 320 bytes a task.

The AUC comes from counts of forecasts in 24 bins of their logits, as ranks would need all rows; rows of one bin are
ties. The series has four to eight points of equally many rows each, the last with fewer: when eight are full, neighbors
become one.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.serve.contract import UnknownTask

SUMS = ("rows", "errors", "loss", "forecast", "happened", "order")
SORTS = ("rows", "error", "loss", "auc", "newest", "name")
FEWEST = 20  # rows of a task before it may be the worst one
BINS, STEP = 24, 0.5  # of logits from -6 to 6, for the AUC
POINTS, FIRST = 8, 4  # of the series, and rows of a point at first

Counts = NDArray[np.uint32]


@kernel(entry=True)
def count_rows(
    places: IntArray, rows: FloatArray, bins: IntArray, sums: FloatArray, ranks: Counts, series: FloatArray
) -> None:
    """Count rows of tasks, one after the other.

    Parameters
    ----------
    places : (n,) of the tasks
    rows : (6, n) errors, losses, forecasts, whether it happened, the number of the row, what the series shows
    bins : (n,) of the forecasts, and BINS more where it happened; -1: not counted
    sums : (6, tasks)
    ranks : (tasks, 2 * BINS)
    series : (tasks, POINTS)
    """
    for i in range(len(places)):
        k = places[i]
        n = int(sums[0, k])
        if n == 0:
            sums[5, k] = rows[4, i]
        size = FIRST
        while POINTS * size < n:
            size *= 2
        if n == POINTS * size:
            for j in range(POINTS // 2):
                series[k, j] = series[k, 2 * j] + series[k, 2 * j + 1]
            for j in range(POINTS // 2, POINTS):
                series[k, j] = 0.0
            size *= 2
        series[k, n // size] += rows[5, i]
        sums[0, k] += 1.0
        for j in range(4):
            sums[1 + j, k] += rows[j, i]
        if bins[i] >= 0:
            ranks[k, bins[i]] += 1


class TaskCounts:
    """Counts of tasks. It takes no lock.

    Parameters
    ----------
    has_losses, has_ranks : bool
        Whether losses say something, and the order of forecasts.
    """

    def __init__(self, *, has_losses: bool, has_ranks: bool) -> None:
        self._has_losses, self._has_ranks = has_losses, has_ranks
        self._places: dict[str | None, int] = {}
        self._next_place = 0
        self._make(16)

    def _make(self, n: int) -> None:
        self._sums, self._series = np.zeros((len(SUMS), n)), np.zeros((n, POINTS))
        self._ranks: Counts = np.zeros((n if self._has_ranks else 1, 2 * BINS), np.uint32)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, task: str) -> bool:
        return task in self._places

    def count(self, tasks: Sequence[str | None], judged: Sequence[FloatArray], first: int) -> None:
        """Count rows: errors, losses, forecasts, and whether it happened; `first` is the number of the first row."""
        known = self._places
        for task in tasks:
            if task not in known:
                known[task] = self._next_place  # places of forgotten tasks stay empty until the next start
                self._next_place += 1
        if self._next_place > self._sums.shape[1]:
            before = self._sums, self._series, self._ranks
            n = before[0].shape[1]
            self._make(2 * self._next_place)
            self._sums[:, :n], self._series[:n], self._ranks[: len(before[2])] = before
        errors, losses, forecast, happened = judged
        bins = np.full(len(tasks), -1)
        if self._has_ranks:
            bins = bin_of(forecast) + BINS * (happened > 0.0)
        numbers, shown = first + np.arange(len(tasks), dtype=np.float64), losses if self._has_ranks else errors
        rows = np.array([errors, losses, forecast, happened, numbers, shown])
        places = np.array([known[task] for task in tasks], np.int64)
        count_rows(places, rows, bins, self._sums, self._ranks, self._series)

    def forget(self, task: str) -> None:
        """Drop the counts of a task."""
        if (place := self._places.pop(task, None)) is not None:
            self._sums[:, place], self._series[place] = 0.0, 0.0
            if self._has_ranks:
                self._ranks[place] = 0

    def one(self, task: str) -> dict[str, Any]:
        """The counts of a task. Raises UnknownTask."""
        if task not in self._places:
            raise UnknownTask(f"no row of task {task!r} was learned here")
        return self._described(task, self._places[task])

    def described(self, tasks: Sequence[str | None]) -> list[dict[str, Any]]:
        """The counts of tasks, without those that were forgotten meanwhile."""
        return [self._described(task, self._places[task]) for task in tasks if task in self._places]

    def copied(self, sort: str) -> tuple[list[str | None], FloatArray, Counts | None]:
        """Copies of the tasks, their sums and, if asked for, their AUCs, which `in_order` sorts without a lock."""
        places = np.fromiter(self._places.values(), np.intp, len(self._places))
        return list(self._places), self._sums[:, places], self._ranks[places] if sort == "auc" else None

    def overall_auc(self) -> float | None:
        """The AUC of all rows."""
        return None if not self._has_ranks else auc_of(self._ranks.sum(axis=0, dtype=np.float64)[None])[0]

    def worst_error(self) -> float | None:
        """The error of the worst task of enough rows."""
        rows, errors = self._sums[:2]
        enough = rows >= FEWEST
        return float(np.max(errors[enough] / rows[enough])) if enough.any() else None

    def _described(self, task: str | None, place: int) -> dict[str, Any]:
        rows, errors, loss, forecast, happened, _ = self._sums[:, place].tolist()
        n = max(rows, 1.0)
        found: dict[str, Any] = {"task": task, "rows": int(rows), "error": errors / n}
        if self._has_losses:
            found |= {"loss": loss / n, "forecast": forecast / n, "happened": happened / n}
        if self._has_ranks and (auc := auc_of(self._ranks[place : place + 1].astype(np.float64))[0]) is not None:
            found["auc"] = auc
        size = FIRST
        while POINTS * size < rows:
            size *= 2
        counts = np.diff(np.minimum(size * np.arange(POINTS + 1), rows))
        found["trend"] = (self._series[place][counts > 0] / counts[counts > 0]).tolist()
        return found

    # ---- saved -----------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """All counts, for JSON."""
        places = [*self._places.values()]
        arrays: dict[str, NDArray[Any]] = {
            "sums": self._sums[:, places],
            "ranks": self._ranks[places] if self._has_ranks else self._ranks[:0],
            "series": self._series[places],
        }
        packed = {name: base64.b64encode(zlib.compress(one.tobytes(), 1)).decode() for name, one in arrays.items()}
        return {"tasks": [*self._places], **packed}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from saved counts. Raises ValueError or TypeError if they are damaged."""
        tasks = list(saved["tasks"])
        self._places = {task: place for place, task in enumerate(tasks)}
        self._next_place = len(tasks)
        self._make(max(len(tasks), 1))
        for name, kept in (("sums", self._sums), ("ranks", self._ranks), ("series", self._series)):
            try:
                packed = np.frombuffer(zlib.decompress(base64.b64decode(saved[name])), kept.dtype)
            except zlib.error as error:
                raise ValueError(str(error)) from None
            if len(packed):
                kept[...] = packed.reshape(kept.shape)


def in_order(tasks: list[str | None], sums: FloatArray, ranks: Counts | None, sort: str, text: str) -> list[str | None]:
    """The tasks that contain a text, sorted: by "error", "loss" or "auc" the worst first, those of few rows last."""
    if text:
        wanted = text.lower()
        chosen = [i for i, task in enumerate(tasks) if wanted in str(task).lower()]
        tasks, sums, ranks = [tasks[i] for i in chosen], sums[:, chosen], None if ranks is None else ranks[chosen]
    rows, errors, losses, *_, order = sums
    if sort == "name":
        # Python's sort would keep the interpreter from answers meanwhile.
        places = pl.Series([str(task) for task in tasks], dtype=pl.String).arg_sort()
    else:
        n, enough = np.maximum(rows, 1.0), rows >= FEWEST
        if sort == "auc" and ranks is not None:
            bad = np.array([2.0 if auc is None else auc for auc in auc_of(ranks.astype(np.float64))])
            places = pl.Series(np.lexsort((bad, ~enough)))
        elif sort in ("error", "loss"):
            places = pl.Series(np.lexsort((-(errors if sort == "error" else losses) / n, ~enough)))
        else:
            places = pl.Series(np.argsort(-(order if sort == "newest" else rows), kind="stable"))
    return [tasks[i] for i in places.to_list()]


def bin_of(forecast: FloatArray) -> IntArray:
    """The bin of each probability."""
    inside = np.clip(forecast, 1e-9, 1.0 - 1e-9)
    logits = np.log(inside / (1.0 - inside))
    return np.asarray(np.clip(np.floor(logits / STEP) + BINS // 2, 0, BINS - 1), np.int64)


def auc_of(ranks: FloatArray) -> list[float | None]:
    """The AUC of counts in bins, (tasks, 2 * BINS); None where all rows are alike."""
    negative, positive = ranks[:, :BINS], ranks[:, BINS:]
    below = np.cumsum(negative, axis=1) - 0.5 * negative
    pairs = negative.sum(axis=1) * positive.sum(axis=1)
    found = (positive * below).sum(axis=1) / np.maximum(pairs, 1.0)
    return [auc if n > 0.0 else None for auc, n in zip(found.tolist(), pairs.tolist(), strict=True)]
