"""Progressive validation of the service: each row's decision values from before it was learned, against its label.

Counted for the learner and its shadows, in all, by task and over time, in bounded memory. Rows are counted one after
the other with the time of their acceptance, so the numbers are the same bit for bit after a crash, and for any slices.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.evaluation.metrics.binary import log_losses
from shoal.evaluation.metrics.calibration import N_BINS, add_forecasts, calibration_error
from shoal.evaluation.metrics.multiclass import SMALLEST
from shoal.evaluation.metrics.regression import nearest_to_median, pinball_losses
from shoal.files.saved_state import reading_state
from shoal.learner import logistic
from shoal.online.hedged_sharing.scaling import CLIPPED, MEAN, N_TARGETS, learn_target
from shoal.serve.model_changes import Models
from shoal.serve.served_model import Learned, ServedModel
from shoal.serve.task_counts import TaskCounts, in_order

logger = logging.getLogger("shoal")
MAIN = "learner"
MOST_POINTS = 240  # of the series; beyond, neighbors are merged in pairs
ROWS_A_POINT = 100  # at first
MINUTES, DAY, DAYS = 24 * 60, 24 * 3600, 14
SPEED_SECONDS = 10.0  # averaged in the rows a second
FORM = 6  # of `to_dict`


class Statistics:
    """Counts of the learned rows.

    Parameters
    ----------
    served : ServedModel
    saved : mapping, optional
        An earlier `to_dict`. If it cannot be used, counting begins anew, as the model does not need it.
    candidate : ServedModel, optional
        Is judged, too; see `Trial`.
    alone : bool
        Whether shadows are left out.
    """

    def __init__(
        self,
        served: ServedModel,
        saved: Mapping[str, Any] | None = None,
        candidate: ServedModel | None = None,
        *,
        alone: bool = False,
    ) -> None:
        self._served, self._lock = served, threading.Lock()
        self._kind = served.labels.kind
        self._has_probabilities = hasattr(served.learner, "predict_proba")
        self.who = (MAIN, *(() if alone else served.shadows))
        self.trial = None if candidate is None else Trial(served, candidate, (saved or {}).get("trial"))
        self._known = self._labels()
        self._marks: list[tuple[float, int]] = []  # of the last seconds: when, and how many rows there were
        self._sums: FloatArray
        self.rows: int
        self._clear()
        if saved is None:
            return
        try:
            with reading_state():
                self._restore(saved)
        except ValueError as error:
            logger.warning("what was counted before cannot be used: %s", error)
            self._clear()

    def learned(self, found: Learned) -> None:
        """Count learned rows."""
        decisions = [found.decisions, *found.shadows.values()]
        truth, times, tasks = found.truth, found.times, found.tasks
        taken = ~np.any([np.isnan(one) if one.ndim == 1 else np.isnan(one).any(axis=1) for one in decisions], axis=0)
        if not taken.all():  # the others were refused
            truth, times, decisions = truth[taken], times[taken], [one[taken] for one in decisions]
            tasks = [task for task, is_taken in zip(tasks, taken, strict=True) if is_taken]
        if not len(times):
            return
        if self._kind == "regression":
            targets, truth = truth.astype(np.float64), np.empty(len(truth))
            clip_targets(targets, self._targets, truth)
        labels = self._labels()
        since = known_since(np.array(labels), set(self._known), truth) if self._kind == "multiclass" else None
        judged = [self._judge(one, truth, since) for one in decisions]
        values = np.array([column for one in judged for column in (one.errors, one.losses)])
        with self._lock:
            self._known = labels
            self._tasks.count(tasks, judged[0], self.rows)
            if self._has_probabilities:
                add_forecasts(self._bins, judged[0].forecast, judged[0].happened)
            self._points_of(values, times)
            _add_to(self._minutes, 60, values[0], times)
            _add_to(self._days, DAY, values[0], times)
            self._sums = _after(self._sums, values)
            self.rows += len(times)

    def tried(self, who: str, found: Learned) -> None:
        """Count rows of the trial: of the "candidate", or of the "live" model beside it."""
        if self.trial is not None:
            self.trial.learned(who, found)

    def changed(self, models: Models, position: int) -> None:
        """Count for other models. Counting goes on if they have the same shadows; a trial begins anew."""
        served, candidate = models
        with self._lock:
            self._served, before = served, (self.who, self._has_probabilities)
            self.who, self._has_probabilities = (MAIN, *served.shadows), hasattr(served.learner, "predict_proba")
            self._known = self._labels()
            if before != (self.who, self._has_probabilities):
                self._clear()
            self.trial = None if candidate is None else Trial(served, candidate, since=position)

    def forget(self, task: str) -> None:
        """Drop the counts of a task."""
        with self._lock:
            self._tasks.forget(task)

    def task(self, task: str) -> dict[str, Any]:
        """The counts of a task. Raises UnknownTask."""
        with self._lock:
            return self._tasks.one(task)

    def list_tasks(self, sort: str, text: str, first: int, n: int) -> tuple[list[Mapping[str, Any]], int]:
        """A part of the tasks that contain a text, in one of the orders `SORTS`; and their number."""
        with self._lock:  # briefly, as learning waits
            copied = self._tasks.copied(sort)
        found = in_order(*copied, sort, text)
        page = found[first : first + n]
        with self._lock:
            described: list[Mapping[str, Any]] = list(self._tasks.described(page))
        return described, len(found) - (len(page) - len(described))  # without those that were forgotten meanwhile

    def gauges(self) -> dict[str, float]:
        """Numbers for dashboards; without rows there is no error."""
        with self._lock:
            found = {"rows_judged": float(self.rows)}
            if not self.rows:
                return found
            found["error"] = float(self._sums[0] / self.rows)
            if self._kind == "regression":
                found["targets_clipped"] = float(self._targets[CLIPPED])
            if self._has_losses:
                found["loss"] = float(self._sums[1] / self.rows)
            if self._has_probabilities:
                found["calibration_error"] = calibration_error(self._bins)
            for i, name in enumerate(self.who[1:], 1):
                found[f"error_of_{name}"] = float(self._sums[2 * i] / self.rows)
                if self._has_losses:
                    found[f"loss_of_{name}"] = float(self._sums[2 * i + 1] / self.rows)
            if (auc := self._tasks.overall_auc()) is not None:
                found["auc"] = auc
            if (worst := self._tasks.worst_error()) is not None:
                found["error_of_worst_task"] = worst
            now = time.time()
            for name, counts, first, last in (
                ("last_hour", self._minutes, now // 60 - 60, now // 60),
                ("last_day", self._minutes, now // 60 - MINUTES, now // 60),
                ("last_week", self._days, now // DAY - 7, now // DAY),
                ("week_before", self._days, now // DAY - 14, now // DAY - 7),
            ):
                moment, rows, wrong = counts
                chosen = (moment > first) & (moment <= last) & (rows > 0)
                if chosen.any():
                    found[f"error_of_{name}"] = float(wrong[chosen].sum() / rows[chosen].sum())
            return found

    def state(self) -> dict[str, Any]:
        """The numbers on the page."""
        with self._lock:
            sums = (self._sums / max(self.rows, 1)).tolist()
            return {
                "kind": self._kind,
                "positive": self._known[-1] if self._kind == "binary" else None,
                "who": list(self.who),
                "has_losses": self._has_losses,
                "has_probabilities": self._has_probabilities,
                "rows": self.rows,
                "rows_a_second": self._speed(),
                "errors": sums[::2],
                "losses": sums[1::2],
                "points": [list(point) for point in self._points],
                "calibration": self._bins.tolist(),
                "tasks": len(self._tasks),
            }

    def to_dict(self) -> dict[str, Any]:
        """The counts for JSON. Only for the thread that counts, or a fork of it: no lock is taken, as a million tasks
        need half a second."""
        return {
            "form": FORM,
            "who": list(self.who),
            "rows": self.rows,
            "sums": self._sums.tolist(),
            "bins": self._bins.tolist(),
            "points": [list(point) for point in self._points],
            "rows_a_point": self._rows_a_point,
            "minutes": self._minutes.tolist(),
            "days": self._days.tolist(),
            "per_task": self._tasks.to_dict(),
            "targets": self._targets.tolist(),
            "trial": None if self.trial is None else self.trial.to_dict(),
        }

    def _clear(self) -> None:
        self._tasks = TaskCounts(
            has_losses=self._has_losses, has_ranks=self._has_probabilities and self._kind == "binary"
        )
        self._sums = np.zeros(2 * len(self.who))  # errors and losses of each
        self.rows = 0
        self._bins = np.zeros((3, N_BINS))  # rows, forecasts, events
        self._targets = np.zeros(N_TARGETS)  # state of `clip_targets`
        self._points: list[list[float]] = []  # rows, time of the last, errors and losses of each
        self._rows_a_point = ROWS_A_POINT
        self._minutes = np.zeros((3, MINUTES))  # minute since 1970, rows, errors
        self._days = np.zeros((3, DAYS))  # the same of days

    def _restore(self, saved: Mapping[str, Any]) -> None:
        if saved["form"] != FORM or saved["who"] != list(self.who):
            raise ValueError("it is of other learners, or of another version")
        self.rows = int(saved["rows"])
        self._sums, self._bins = np.array(saved["sums"]), np.array(saved["bins"]).reshape(3, N_BINS)
        self._points, self._rows_a_point = [list(point) for point in saved["points"]], int(saved["rows_a_point"])
        self._minutes = np.array(saved["minutes"]).reshape(3, MINUTES)
        self._days = np.array(saved["days"]).reshape(3, DAYS)
        self._targets = np.array(saved["targets"]).reshape(N_TARGETS)
        self._tasks.restore(saved["per_task"])

    # ---- one slice -------------------------------------------------------------------------------------------

    @property
    def _has_losses(self) -> bool:
        return self._has_probabilities or self._kind == "regression"

    def _labels(self) -> list[Any]:
        """The labels that the learner knows, sorted."""
        return [] if self._kind == "regression" else self._served.learner.classes_.tolist()

    def _judge(self, decisions: FloatArray, truth: Any, since: Any) -> Judged:
        if self._kind == "regression":
            return judge_numbers(decisions, truth, self._served.learner.quantiles)
        labels = self._served.learner.classes_
        if since is not None:
            places = np.searchsorted(labels, truth)
            return judge_several(decisions, places, since, has_probabilities=self._has_probabilities)
        return judge_two(decisions, truth == labels[-1], has_probabilities=self._has_probabilities)

    def _points_of(self, values: FloatArray, times: FloatArray) -> None:
        """Add rows to the points of the series; each takes the same number of rows, wherever a slice ends."""
        reached, n = 0, len(times)
        while reached < n:
            if not self._points or self._points[-1][0] >= self._rows_a_point:
                if len(self._points) == MOST_POINTS:
                    self._points = [added(*self._points[i : i + 2]) for i in range(0, MOST_POINTS, 2)]
                    self._rows_a_point *= 2
                self._points.append([0.0] * (2 + len(values)))
            point = self._points[-1]
            some = slice(reached, reached + int(self._rows_a_point - point[0]))
            sums = _after(np.array(point[2:]), values[:, some]).tolist()
            reached = min(some.stop, n)
            self._points[-1] = [point[0] + reached - some.start, float(times[reached - 1]), *sums]

    def _speed(self) -> float:
        """Rows a second over the last seconds; called once a second."""
        now = time.monotonic()
        self._marks = [mark for mark in self._marks if mark[0] >= now - SPEED_SECONDS] + [(now, self.rows)]
        begun, rows = self._marks[0]
        return (self.rows - rows) / max(now - begun, 1e-9)


class Trial:
    """A candidate and the live model on the same rows, since the candidate began or the live model was replaced.

    Rows count for both that the candidate can read.

    Parameters
    ----------
    served, candidate : ServedModel
    saved : mapping, optional
        An earlier `to_dict`.
    since : int
        The position of the log at which it begins.
    """

    def __init__(
        self, served: ServedModel, candidate: ServedModel, saved: Mapping[str, Any] | None = None, since: int = 0
    ) -> None:
        if not isinstance(saved, Mapping) or not isinstance(saved.get("since"), int):
            saved = {"since": since}
        self.since = int(saved["since"])
        self._of = {
            "candidate": Statistics(candidate, saved.get("candidate"), alone=True),
            "live": Statistics(served, saved.get("live"), alone=True),
        }

    def learned(self, who: str, found: Learned) -> None:
        """Count learned rows."""
        self._of[who].learned(found._replace(tasks=[None] * len(found.times), shadows={}))

    def scores(self) -> dict[str, Any]:
        """The scores of both; `None` before the first row."""
        found: dict[str, Any] = {"since": self.since}
        for who, counted in self._of.items():
            gauges = counted.gauges()
            found[who] = {
                "rows": int(gauges["rows_judged"]),
                **{name: gauges.get(name) for name in ("error", "loss", "calibration_error")},
            }
        return found

    def gauges(self) -> dict[str, float]:
        """The scores for dashboards."""
        found = dict[str, float]()
        for who, scores in self.scores().items():
            if who != "since":
                found |= {f"trial_{who}_{name}": value for name, value in scores.items() if value is not None}
        return found

    def to_dict(self) -> dict[str, Any]:
        """The counts for JSON."""
        return {"since": self.since, **{who: counted.to_dict() for who, counted in self._of.items()}}


def _after(sums: FloatArray, values: FloatArray) -> FloatArray:
    """Sums after adding columns of values one by one, so that rounding does not depend on slices."""
    return np.asarray(np.add.accumulate(np.column_stack([sums, values]), axis=1)[:, -1])


def _add_to(counts: FloatArray, seconds: int, errors: FloatArray, times: FloatArray) -> None:
    """Count errors by minute or day, (3, n): which it is, rows, errors; later ones take the places of older ones."""
    moments = times // seconds
    ends = [*(np.flatnonzero(np.diff(moments)) + 1).tolist(), len(moments)]
    for first, end in zip([0, *ends], ends, strict=False):
        if first == end:
            continue
        column = counts[:, int(moments[first]) % counts.shape[1]]
        if column[0] < moments[first]:
            column[:] = moments[first], 0.0, 0.0
        if column[0] == moments[first]:  # or else the clock was set back by a day
            column[1] += end - first
            column[2] = _after(column[2:], errors[None, first:end])[0]


def added(one: list[float], other: list[float]) -> list[float]:
    """Two points of a series merged, at the later time."""
    return [one[0] + other[0], other[1], *(a + b for a, b in zip(one[2:], other[2:], strict=True))]


# ---- rows judged ---------------------------------------------------------------------------------------------


class Judged(NamedTuple):
    """Errors, losses and forecasts of rows, the same however rows are cut into slices.

    Decision values of two labels are logits where the learner has probabilities. Of several labels each has its logit
    against the rest; a label that has not come yet has none, even if it comes in the same slice.
    """

    errors: FloatArray  # 0 or 1; of numbers the absolute error
    losses: FloatArray  # log-loss; of numbers the squared error, or of quantiles the pinball loss; else zeros
    forecast: FloatArray  # probability of the positive label, or of the predicted one of several; the predicted number
    happened: FloatArray  # whether that label came; the number that came


@kernel(entry=True)
def clip_targets(truth: FloatArray, targets: FloatArray, clipped: FloatArray) -> None:
    """Clip real targets beyond 10 deviations as the default regressor does; `targets` is its state.

    Otherwise one odd target would dominate the mean error for ever.
    """
    for i in range(len(truth)):
        before, mean = targets[CLIPPED], targets[MEAN]
        off = learn_target(truth[i], 1.0, targets)
        clipped[i] = truth[i] if targets[CLIPPED] == before else mean + off


def judge_numbers(predicted: FloatArray, truth: NDArray[np.float64], levels: Sequence[float]) -> Judged:
    """Judge the numbers of a regressor, or its quantiles; of several the one nearest to the median has the error."""
    one = nearest_to_median(predicted, levels)
    losses = pinball_losses(truth, predicted, levels).mean(axis=1) if levels else np.square(truth - one)
    return Judged(np.abs(truth - one), losses, one, truth)


def judge_two(decisions: FloatArray, positive: NDArray[np.bool_], *, has_probabilities: bool) -> Judged:
    """Judge a learner of two labels."""
    wrong = ((decisions >= 0.0) != positive).astype(np.float64)
    happened = positive.astype(np.float64)
    if not has_probabilities:
        return Judged(wrong, np.zeros(len(wrong)), np.zeros(len(wrong)), happened)
    return Judged(wrong, log_losses(decisions, positive), logistic(decisions), happened)


def judge_several(decisions: FloatArray, truth: IntArray, since: IntArray, *, has_probabilities: bool) -> Judged:
    """Judge a learner of any number of labels, all of them known after these rows.

    Parameters
    ----------
    decisions : (n, n_labels); with two labels (n,), positive for the second
    truth : (n,) indices of the true labels
    since : (n_labels,) the row before which each was known
    """
    n, n_labels = len(truth), len(since)
    if decisions.ndim == 1:
        decisions = np.column_stack([-decisions, decisions])[:, -n_labels:]
    rows = np.arange(n)
    known = rows[:, None] >= since
    margins = np.where(known, decisions, -np.inf)
    n_known = known.sum(axis=1)
    two = np.flatnonzero(n_known == 2)  # the second decides alone
    first, second = known[two].argmax(axis=1), n_labels - 1 - known[two, ::-1].argmax(axis=1)
    margins[two, first] = -margins[two, second]
    predicted = margins.argmax(axis=1)
    predicted[two] = np.where(margins[two, second] >= 0.0, second, first)
    right = (predicted == truth) & (n_known > 0)
    if not has_probabilities:
        nothing = np.zeros(n)
        return Judged(1.0 - right, nothing, nothing, right.astype(np.float64))
    each = np.where(known, logistic(margins), 0.0)
    # Added one by one, so that a label without probability does not change the rounding of the others.
    each /= np.maximum(np.add.accumulate(each, axis=1)[:, -1:], SMALLEST)
    each[n_known == 1] = known[n_known == 1]
    losses = -np.log(np.maximum(each[rows, truth], SMALLEST))
    return Judged(1.0 - right, losses, each[rows, predicted], right.astype(np.float64))


def known_since(labels: NDArray[np.generic], before: set[object], truth: NDArray[np.generic]) -> IntArray:
    """The row before which each label was known."""
    since = np.zeros(len(labels), np.int64)
    for place, label in enumerate(labels.tolist()):
        if label not in before:
            rows = np.flatnonzero(truth == label)
            since[place] = rows[0] + 1 if len(rows) else len(truth)
    return since
