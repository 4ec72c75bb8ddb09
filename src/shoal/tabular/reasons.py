"""The reasons for a forecast, in sentences: the same in `shoal explain`, in Python and in the service.

A decision f is the sum of what its features add (`model.explanations`). Intercept and constant are the usual decision b
of the task; a feature that adds c to the decision adds c (σ(f) - σ(b)) / (f - b) to the probability: its part on the
straight way from b to f (Aumann, Shapley 1974), so that all parts add up to the probability. Likewise with exp for σ
where a learner's numbers are exp(f).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import is_classifier

from shoal.engine.arrays import FloatArray
from shoal.engine.losses import LARGEST_LOG
from shoal.files.tables.encode_one import Row
from shoal.files.tables.meanings import Meaning
from shoal.html_tables import html_table
from shoal.learner import forecast_slopes, logistic, model_of
from shoal.model.explanations import bare, entries_of

LINES = 10  # of a text, at most


class Reason(NamedTuple):
    """The part of the forecast that a feature of the row, or a pair of them, adds."""

    what: str  # in the units of the table: "price 2.50", "price up to 3.10 and promotion"
    share: float  # of the probability; of numbers and margins, of the number
    shared: float  # of the decision, by what all tasks share
    own: float  # of the decision, by what the task has of its own


class Reasons(NamedTuple):
    """A forecast and its reasons, the largest first; `str()` gives at most ten lines.

    The forecast is `usual` and the shares of all reasons together.
    """

    predicted: Any  # the label, or the number
    label: Any  # the one that the forecast is about; None for numbers
    forecast: float  # its probability; of a learner without probabilities its margin; or the number
    usual: float  # the forecast of a row without any features: what intercept and constant say
    usual_of: str  # of what that is usual: the task, or all tasks
    unit: str  # what the forecast is: "probability of yes", "margin for yes", "units"
    reasons: list[Reason]
    interval: tuple[float, float] | None = None  # of numbers, by `Conformal`
    set: list[Any] | None = None  # of labels, by `Conformal`: those that it may be

    def most(self, n: int) -> list[Reason]:
        """The n largest reasons; if there are more, the last stands for all others."""
        rest = self.reasons[n:] if len(self.reasons) > n + 1 else []
        if not rest:
            return self.reasons
        sums = (math.fsum(parts) for parts in zip(*((one.share, one.shared, one.own) for one in rest), strict=True))
        return [*self.reasons[:n], Reason(f"{len(rest):,} others", *sums)]

    def to_dict(self) -> dict[str, Any]:
        """The forecast, at most eight reasons, and the text, for JSON."""
        found = {**self._asdict(), "reasons": [one._asdict() for one in self.most(LINES - 3)], "text": str(self)}
        interval, labels = found.pop("interval"), found.pop("set")
        if interval is not None:
            found["low"], found["high"] = (end if math.isfinite(end) else None for end in interval)
        return found if labels is None else {**found, "set": labels}

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        head, shown = self._said(LINES)
        return f"<p>{escape(head)}</p>" + html_table(("", "share"), [(what, share) for share, what in shown])

    def text(self, lines: int = LINES) -> str:
        """The forecast, what is usual, and the largest reasons, a line each."""
        head, shown = self._said(lines)
        width = max(len(share) for share, _ in shown)
        return "\n".join([head, *(f"  {share:>{width}}  {what}" for share, what in shown)])

    def _said(self, lines: int) -> tuple[str, list[tuple[str, str]]]:
        """The forecast; shares and what has them."""
        scale = max(abs(self.forecast), abs(self.usual))
        write = "{:.3f}" if self.unit.startswith("probability") else f"{{:.{max(0, 3 - _magnitude(scale))}f}}"
        shown = [(write.format(self.usual), f"usual {self.usual_of}")]
        signed = [("-" if one.share < 0.0 else "+", one) for one in self.most(max(lines - 3, 1))]
        shown += [(f"{sign}{write.format(abs(one.share))}", one.what) for sign, one in signed]
        predicted = "" if self.label is None else f"predicted {self.predicted}, "
        return f"{predicted}{self.unit} {write.format(self.forecast)}{self._range(write)}", shown

    def _range(self, write: str) -> str:
        """The interval, or the set, behind the forecast."""
        if self.set is not None:
            return f"; in the set: {', '.join(map(str, self.set)) or 'no label'}"
        if self.interval is None:
            return ""
        if not math.isfinite(self.interval[0]):
            return "; no interval before 50 rows"
        return "; from {} to {}".format(*map(write.format, self.interval))


def reasons_of(
    learner: Any,
    row: Row,
    task: str | None,
    meanings: Mapping[int, Meaning],
    names: tuple[Sequence[str], str],
    written: Callable[[list[Any]], list[Any]],
    label: Any = None,
) -> Reasons:
    """The reasons for the forecast of one row.

    Parameters
    ----------
    row : its features
    meanings : what these mean, by their columns of X
    names : the columns of the task, and that of the label
    written : labels of the learner as the table has them
    label : of more than two, the one to explain, as the learner has it; None: the predicted one

    Raises
    ------
    ValueError
        If the learner compares whole rows, or there is no such label.
    """
    model, cores = model_of(learner), learner.deciding_cores()
    inside = row.indices < model.features.count
    indices, values = row.indices[inside], row.values[inside]
    X = csr_matrix((values, indices, [0, len(indices)]), shape=(1, model.features.count))
    tasks = None if task is None else [task]
    predicted = learner.predict(X, tasks).tolist()[0]
    if label is None:
        label = next(iter(cores)) if len(cores) == 1 else predicted
    if label not in cores:
        raise ValueError(f"there is no decision for the label {label!r}; expected one of {[*cores]}")
    rounds = model.sparse_rows([(indices, values)], [task])
    features, x = entries_of(rounds)
    parts = bare(cores[label]).contributions(rounds.task, features, x)
    both = np.stack([parts.shared[0], parts.own[0]], axis=1)
    added: dict[str, list[float]] = {}
    constant = (both[0] + both[1:][features == 0].sum(axis=0)).tolist()
    told = {j: meanings.get(j, Meaning(f"feature {j}", "")) for j in features.tolist()}
    for j, one in zip(features.tolist(), both[1:].tolist(), strict=True):
        if j != 0:
            _add(added, str(told[j]), one)
    pairs = zip(parts.pairs, parts.pairs_shared.tolist(), parts.pairs_own.tolist(), strict=True)
    for items, shared, own in pairs:
        meant = [told[j].within(above, up_to) for j, above, up_to in items if j != 0]
        one = next((str(told[item.feature]) for item in items if item.feature != 0), "")
        _add(added, " and ".join(meant) if len(meant) > 1 else one, [shared, own])
    base, decision = math.fsum(constant), math.fsum([*constant, *(part for one in added.values() for part in one)])
    scale, forecast, usual, unit = _scaled(learner, X, tasks, label, base, decision)
    [predicted, about] = [predicted, None] if label is None else written([predicted, label])
    reasons = [Reason(what, scale * (one[0] + one[1]), *one) for what, one in added.items() if one[0] or one[1]]
    reasons.sort(key=lambda one: -abs(one.shared + one.own))
    of = _usual_of(learner, names[0], task)
    unit = f"{unit} {about}" if unit else names[1]
    return Reasons(predicted, about, forecast, usual, of, unit, reasons, *_range_of(learner, X, tasks, written))


def _range_of(
    learner: Any, X: Any, tasks: Any, written: Callable[[list[Any]], list[Any]]
) -> tuple[tuple[float, float] | None, list[Any] | None]:
    """The interval of a row, or its set of labels, of a learner that has some."""
    if hasattr(learner, "predict_interval"):
        low, high = learner.predict_interval(X, tasks)[0].tolist()
        return (low, high), None
    if hasattr(learner, "predict_set"):
        return None, written(learner.classes_[learner.predict_set(X, tasks)[0]].tolist())
    return None, None


def _scaled(
    learner: Any, X: Any, tasks: Any, label: Any, base: float, decision: float
) -> tuple[float, float, float, str]:
    """The factor from parts of the decision to shares of the forecast, the forecast, the usual one, its unit."""
    if getattr(learner, "answers_by_exp", False):
        low, high = math.exp(min(base, LARGEST_LOG)), math.exp(min(decision, LARGEST_LOG))
        return _slope(learner, base, decision), high, low, ""
    if not is_classifier(learner):
        return 1.0, decision, base, ""
    if not hasattr(learner, "predict_proba"):
        return 1.0, decision, base, "margin for"
    low, high = logistic(np.array([base, decision])).tolist()
    chance = float(learner.predict_proba(X, tasks)[0][learner.classes_.tolist().index(label)])
    usual = low * chance / high if high > 0.0 else low  # of several labels: they share what is certain
    return _slope(learner, base, decision, np.array([chance])), chance, usual, "probability of"


def _slope(learner: Any, base: float, decision: float, chance: FloatArray | None = None) -> float:
    return float(forecast_slopes(learner, np.array([base]), np.array([decision]), chance)[0])


def _usual_of(learner: Any, columns: Sequence[str], task: str | None) -> str:
    """The name of the part that does not depend on the row: the usual forecast of the task, or of all tasks."""
    name = "/".join(columns)
    if task is None or not name:
        return "for all rows"
    return f"for {name} {task}" if learner.knows_task(task) else f"for any {name}, as {task} is new"


def _add(added: dict[str, list[float]], what: str, more: Sequence[float]) -> None:
    before = added.setdefault(what, [0.0, 0.0])
    before[:] = [before[0] + more[0], before[1] + more[1]]


def _magnitude(value: float) -> int:
    return 0 if value == 0.0 or not math.isfinite(value) else max(0, math.floor(math.log10(value)))
