"""What is counted of the rows that are learned: what was said of each before it was learned, against the truth.

Progressive validation, of the learner and of its shadows, in all, by task and over time, in bounded memory.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.serve.contract import UnknownTask
from shoal.serve.served import Learned, Served

MAIN = "learner"
BINS = 10  # of the calibration
MOST_POINTS = 240  # of the series; two neighbors become one when there are more
ROWS_A_POINT = 100  # at first
MINUTES = 24 * 60
SPEED_MARKS = 10  # seconds of which rows a second are the mean, while somebody looks
FEWEST = 20  # rows of a task that may be called the worst
PER_TASK = ("rows", "errors", "loss", "order")


class Judged(NamedTuple):
    """Rows judged: 0 or 1, or the absolute error of numbers; and the log-loss, or the squared error."""

    errors: NDArray[np.float64]
    losses: NDArray[np.float64]


class Statistics:
    """A fold over what was learned.

    Parameters
    ----------
    served : Served
    saved : mapping, optional
        `to_dict` of earlier ones.
    """

    def __init__(self, served: Served, saved: Mapping[str, Any] | None = None) -> None:
        self._served, self._lock = served, threading.Lock()
        self._kind = served.labels.kind
        self.who = (MAIN, *served.shadows)
        self._marks = [(time.monotonic(), 0)]  # of the last seconds: when, and how many rows there were
        self._tasks: dict[str | None, int] = {}
        self._next_place = 0
        self._per_task = np.zeros((len(PER_TASK), 16))
        self._sums = np.zeros((2, len(self.who)))  # errors and losses
        self.rows = 0
        self._bins = np.zeros((3, BINS))  # rows, probability, positive labels
        self._points: list[list[float]] = []  # rows, seconds since 1970, errors and losses of each
        self._rows_a_point = ROWS_A_POINT
        self._minutes = np.zeros((2, MINUTES))  # rows, errors
        self._minute = int(time.time() // 60)
        if saved is not None and saved.get("who") == list(self.who):
            self._restore(saved)

    def learned(self, found: Learned) -> None:
        """Count rows that were learned."""
        said = [found.decisions, *found.shadows.values()]
        if len(said) != len(self.who):
            return
        judged = [self._judge(one, found.truth) for one in said]
        n = len(judged[0].errors)
        with self._lock:
            self._sums[0] += [one.errors.sum() for one in judged]
            self._sums[1] += [one.losses.sum() for one in judged]
            self.rows += n
            self._count_tasks(found.tasks, judged[0])
            if self._kind == "binary":
                self._calibrate(found)
            self._point(n, judged)
            minute = self._at_minute(int(time.time() // 60))
            self._minutes[:, minute] += n, judged[0].errors.sum()

    def forget(self, task: str) -> None:
        """Nothing is known of a task any more."""
        with self._lock:
            if (place := self._tasks.pop(task, None)) is not None:
                self._per_task[:, place] = 0.0

    def task(self, task: str) -> dict[str, Any]:
        """What was counted of a task. Raises UnknownTask."""
        with self._lock:
            if task not in self._tasks:
                raise UnknownTask(f"no row of task {task!r} was learned here")
            return self._describe(task)

    def list_tasks(self, sort: str, text: str, first: int, n: int) -> tuple[list[Mapping[str, Any]], int]:
        """Some tasks that contain a text, and how many there are: by "rows", "error", "newest" or "name"."""
        with self._lock:
            found = [task for task in self._tasks if text.lower() in str(task).lower()]
            rows, errors, _, order = self._per_task
            at = self._tasks
            if sort == "name":
                found.sort(key=str)
            elif sort == "newest":
                found.sort(key=lambda task: -order[at[task]])
            elif sort == "error":
                found.sort(key=lambda task: -(errors[at[task]] / max(rows[at[task]], 1.0)) * (rows[at[task]] >= FEWEST))
            else:
                found.sort(key=lambda task: -rows[at[task]])
            return [self._describe(task) for task in found[first : first + n]], len(found)

    def gauges(self) -> dict[str, float]:
        """Numbers for dashboards."""
        with self._lock:
            rows = max(self.rows, 1)
            found = {"rows_judged": float(self.rows), "error": float(self._sums[0, 0] / rows)}
            found["loss"] = float(self._sums[1, 0] / rows)
            if self._kind == "binary":
                found["calibration_error"] = self._calibration_error()
            counts, errors = self._per_task[:2]
            if self._tasks:
                found["error_of_worst_task"] = float(
                    np.max(np.where(counts >= FEWEST, errors / np.maximum(counts, 1), 0.0))
                )
            self._at_minute(int(time.time() // 60))
            for name, minutes in (("hour", 60), ("day", MINUTES)):
                last = self._minutes[:, (self._minute - np.arange(minutes)) % MINUTES].sum(axis=1)
                found[f"error_of_last_{name}"] = float(last[1] / max(last[0], 1.0))
            return found

    def state(self) -> dict[str, Any]:
        """What the page shows."""
        with self._lock:
            return {
                "kind": self._kind,
                "who": list(self.who),
                "rows": self.rows,
                "rows_a_second": self._speed(),
                "errors": (self._sums[0] / max(self.rows, 1)).tolist(),
                "losses": (self._sums[1] / max(self.rows, 1)).tolist(),
                "points": [list(point) for point in self._points],
                "calibration": self._bins.tolist(),
                "tasks": len(self._tasks),
            }

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        with self._lock:
            return {
                "who": list(self.who), "rows": self.rows, "sums": self._sums.tolist(), "bins": self._bins.tolist(),
                "points": self._points, "rows_a_point": self._rows_a_point, "minute": self._minute,
                "minutes": self._minutes.tolist(), "tasks": [*self._tasks],
                "per_task": self._per_task[:, [*self._tasks.values()]].tolist(),
            }  # fmt: skip

    def _restore(self, saved: Mapping[str, Any]) -> None:
        self.rows = int(saved["rows"])
        self._marks = [(time.monotonic(), self.rows)]
        self._sums, self._bins = np.array(saved["sums"]), np.array(saved["bins"])
        self._points, self._rows_a_point = [list(point) for point in saved["points"]], saved["rows_a_point"]
        self._minutes, self._minute = np.array(saved["minutes"]), int(saved["minute"])
        self._tasks = {task: place for place, task in enumerate(saved["tasks"])}
        self._next_place = len(self._tasks)
        self._per_task = np.array(saved["per_task"]).reshape(len(PER_TASK), len(self._tasks))

    # ---- one slice -------------------------------------------------------------------------------------------

    def _judge(self, decisions: NDArray[np.float64], truth: NDArray[Any]) -> Judged:
        if self._kind == "regression":
            off = np.asarray(truth, np.float64) - decisions
            return Judged(np.abs(off), np.square(off))
        classes = self._served.learner.classes_
        if decisions.ndim == 1:
            if len(classes) != 2:  # the first rows of a model that had seen one label
                return Judged(np.zeros(len(truth)), np.zeros(len(truth)))
            positive = np.asarray(truth) == classes[1]
            wrong = (decisions >= 0.0) != positive
            return Judged(wrong.astype(np.float64), np.logaddexp(0.0, np.where(positive, -decisions, decisions)))
        wrong = classes[decisions.argmax(axis=1)] != truth if decisions.shape[1] else np.ones(len(truth), np.bool_)
        return Judged(wrong.astype(np.float64), np.zeros(len(truth)))

    def _count_tasks(self, tasks: Any, judged: Judged) -> None:
        known = self._tasks
        for task in tasks:
            if task not in known:
                known[task] = self._next_place  # places of forgotten tasks stay empty until the next start
                self._next_place += 1
        places = np.array([known[task] for task in tasks], np.intp)
        if self._next_place > self._per_task.shape[1]:
            wider = np.zeros((len(PER_TASK), 2 * self._next_place))
            wider[:, : self._per_task.shape[1]] = self._per_task
            self._per_task = wider
        rows, errors, losses, order = self._per_task
        new = np.unique(places[rows[places] == 0])
        order[new] = self.rows + np.arange(len(new))
        np.add.at(rows, places, 1.0)
        np.add.at(errors, places, judged.errors)
        np.add.at(losses, places, judged.losses)

    def _calibrate(self, found: Learned) -> None:
        chance = 1.0 / (1.0 + np.exp(-np.clip(found.decisions, -700.0, 700.0)))
        place = np.minimum((chance * BINS).astype(np.intp), BINS - 1)
        positive = np.asarray(found.truth) == self._served.learner.classes_[1]
        for row, weights in enumerate((None, chance, positive.astype(np.float64))):
            self._bins[row] += np.bincount(place, weights, BINS)

    def _calibration_error(self) -> float:
        rows, chance, positive = self._bins
        return float(np.abs(chance - positive).sum() / max(rows.sum(), 1.0))

    def _point(self, n: int, judged: list[Judged]) -> None:
        values = [float(n), time.time()] + [float(x.sum()) for one in judged for x in one]
        if self._points and self._points[-1][0] < self._rows_a_point:
            self._points[-1] = _added(self._points[-1], values)
        else:
            self._points.append(values)
        if len(self._points) > MOST_POINTS:
            last = self._points[len(self._points) // 2 * 2 :]  # has no neighbor
            self._points = [_added(*self._points[i : i + 2]) for i in range(0, len(self._points) - 1, 2)] + last
            self._rows_a_point *= 2

    def _at_minute(self, minute: int) -> int:
        """The place of a minute; those that have passed since the last one are empty."""
        for passed in range(max(self._minute + 1, minute - MINUTES + 1), minute + 1):
            self._minutes[:, passed % MINUTES] = 0.0
        self._minute = max(minute, self._minute)
        return minute % MINUTES

    def _speed(self) -> float:
        """Rows a second, lately; called once a second."""
        self._marks = [*self._marks, (time.monotonic(), self.rows)][-SPEED_MARKS:]
        (begun, rows), (ended, rows_now) = self._marks[0], self._marks[-1]
        return (rows_now - rows) / max(ended - begun, 1e-9)

    def _describe(self, task: str | None) -> dict[str, Any]:
        rows, errors, loss, _ = self._per_task[:, self._tasks[task]].tolist()
        return {"task": task, "rows": int(rows), "error": errors / max(rows, 1), "loss": loss / max(rows, 1)}


def _added(one: list[float], other: list[float]) -> list[float]:
    return [one[0] + other[0], other[1], *(a + b for a, b in zip(one[2:], other[2:], strict=True))]
