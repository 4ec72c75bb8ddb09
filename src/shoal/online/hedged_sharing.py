"""Hedged sharing: a default with nothing to tune, nine ways of learning and sharing mixed row by row.

The forecasts of nine linear experts (`_experts`) are mixed twice (`_mixing`): by Bayes weights with a fixed share, one
set a task and one for all, then by a regression on the nine and the two mixtures, whose forecast q is the answer.
Labels are forecast by probabilities and mixed on the logits. Real targets are centred on their running mean and
measured in their running deviation; the likelihood of an expert is Gaussian with the mixture's mean squared error.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray, aligned_zeros
from shoal.engine.compile import call, kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import open_round, padded
from shoal.engine.task_weights.hash_table import has_room
from shoal.engine.task_weights.record_table import (
    Pairs,
    add_all,
    compact,
    find_all,
    for_tasks,
    new_pairs,
    roomier,
    task_records,
    without_task,
)
from shoal.learner import Classifier, Learner, Regressor
from shoal.online._experts import (
    EXPERTS,
    NUMBERS,
    RULES,
    TINY,
    Settings,
    Work,
    margins,
    step_experts,
    waiting_row,
    workspace,
)  # fmt: skip
from shoal.online._mixing import (
    LIMIT,
    N_INPUTS,
    TURN,
    bayes,
    gaussian,
    inner,
    labels,
    logit_of,
    mixture,
    newton_step,
    sigmoid,
    sigmoids,
    within,
)  # fmt: skip
from shoal.online._scaling import L1, ROWS, Scale, learn_scale, new_scale, scaled_row
from shoal.online.multitask_perceptron import MultitaskPerceptron, MultitaskRegressor
from shoal.parallel.pipeline import WHOLE, Block, Part, blocks, learn_in_blocks

COUNT, MEAN, SCATTER, LARGEST, ERRORS = range(5)  # positions in `targets`
TASKS, EVERYBODY = 0, 1  # positions in `Work.forecast`
LEARN = 0  # of the loops


class State(NamedTuple):
    """Everything is per feature or per (task, feature) that occurs; slot 0 of the features is the constant."""

    shared: FloatArray  # (1 + features, 8) records of s
    own: Pairs  # records of v_k
    scale: Scale
    targets: FloatArray  # (5,) of real targets: rows, mean, squared deviations from it, the largest, squared errors
    task_rows: IntArray  # (tasks,) rows of each task so far
    task_weights: FloatArray  # (tasks, 9) Bayes weights
    weights: FloatArray  # (9,) Bayes weights of all tasks together
    regression: FloatArray  # (16,): 12 and zeros
    covariance: FloatArray  # (12 * 16,)
    updates: IntArray  # (tasks,)
    clock: IntArray  # (2,) tasks, rounds


@kernel
def deviation(targets: FloatArray) -> float:
    """Of the targets so far, from their mean."""
    return math.sqrt(targets[SCATTER] / targets[COUNT]) if targets[COUNT] > 0.0 else 0.0


@kernel
def forecast(task: int, n: int, settings: Settings, state: State, work: Work) -> float:
    """The answer: a logit, or a target less the mean."""
    logits, z, p = work.logits, work.z, work.p
    margins(n, state.shared, state.own.records, work)
    limit = 2.0 * state.targets[LARGEST] if settings.regression else LIMIT
    for e in range(9):
        logits[e] = within(limit, logits[e])
    rows = state.task_rows[task] if task >= 0 else 0
    trust = rows / (rows + settings.young)
    for rule in range(3):  # a young task's own experts lean on the pooled ones
        logits[9 + rule] = trust * logits[3 * rule + 2] + (1.0 - trust) * logits[3 * rule]
    if settings.regression:
        for e in range(12):
            work.chance[e] = logits[e]
    else:
        sigmoids(logits, work.chance)
    for e in range(9):
        leaning = 9 + e // 3 if e % 3 == 2 else e
        z[e], p[e] = logits[leaning], work.chance[leaning]
    everybody = mixture(state.weights, p)
    mine = mixture(state.task_weights[task], p) if rows > 0 else everybody
    work.forecast[TASKS], work.forecast[EVERYBODY] = mine, everybody
    z[11] = 1.0
    if not settings.regression:
        z[9], z[10] = logit_of(mine), logit_of(everybody)
        return within(LIMIT, inner(state.regression, z))
    z[9], z[10] = mine, everybody
    unit = deviation(state.targets)
    for e in range(11):
        z[e] = z[e] / unit if unit > 0.0 else 0.0
    return within(limit, unit * inner(state.regression, z))


@kernel
def learn_target(y: float, targets: FloatArray) -> None:
    """Take a real target into the running mean and deviation; the first is the mean."""
    if targets[COUNT] == 0.0:
        targets[MEAN] = y
    targets[COUNT] += 1.0
    off = y - targets[MEAN]
    targets[MEAN] += off / targets[COUNT]
    targets[SCATTER] += off * (y - targets[MEAN])
    targets[LARGEST] = max(targets[LARGEST], abs(off))


@kernel
def mix(task: int, error: float, curvature: float, state: State, work: Work) -> None:
    """Move both mixtures; `work.p` now holds each expert's likelihood."""
    if state.task_rows[task] == 0:
        for e in range(9):  # a new task starts where all together are
            state.task_weights[task, e] = state.weights[e]
    bayes(state.weights, work.p, work.uniform)
    bayes(state.task_weights[task], work.p, state.weights)
    newton_step(state.regression, state.covariance, work.z, error, curvature, work.direction)


@kernel
def learn_label(task: int, n: int, y: float, logit: float, mean_l1: float, s: Settings, state: State, w: Work) -> None:
    """y is 0 or 1."""
    q = sigmoid(logit)
    g = (y - w.forecast[EVERYBODY]) ** 2
    step_experts(n, y, q * (1.0 - q), g, s.eta / mean_l1, TINY, s, state.shared, state.own.records, w)
    labels(w.p, y > 0.5)
    mix(task, y - q, q * (1.0 - q), state, w)


@kernel
def learn_real(task: int, n: int, y: float, f: float, mean_l1: float, s: Settings, state: State, w: Work) -> None:
    """f is less the mean before the row."""
    targets = state.targets
    before, mean = deviation(targets), targets[MEAN] if targets[COUNT] > 0.0 else y
    learn_target(y, targets)
    y -= mean
    unit, g = deviation(targets), (y - w.forecast[EVERYBODY]) ** 2
    targets[ERRORS] += g
    tiny = max(TINY * unit * unit, 1e-300)
    step_experts(n, y, 1.0, g, s.eta * unit / mean_l1, tiny, s, state.shared, state.own.records, w)
    variance = targets[ERRORS] / targets[COUNT]
    if variance > 0.0 and before > 0.0:
        gaussian(w.p, y, variance)
        precision = before / variance * before  # of the forecast in units of the deviation
        mix(task, (y - f) / before * precision, precision, state, w)


@kernel
def answer(rounds: Rounds, row: int, settings: Settings, state: State, work: Work) -> float:
    n = scaled_row(rounds, row, state.scale, not settings.regression, work.row)
    find_all(state.own, rounds.task[row], work.row.feature[:n], work.found)
    return float(state.targets[MEAN] + forecast(rounds.task[row], n, settings, state, work))


@kernel
def prepare_row(rounds: Rounds, row: int, settings: Settings, state: State, work: Work) -> int:
    """Scale the row, find or make its pairs; return how many entries it has. Needs no label and no weight."""
    n = scaled_row(rounds, row, state.scale, not settings.regression, work.row)
    missing = find_all(state.own, rounds.task[row], work.row.feature[:n], work.found)
    if missing > 0:
        add_all(state.own, rounds.task[row], work.row.feature[:n], missing, work.found)
    learn_scale(state.scale, work.row, n)
    return n


@kernel
def learn_row(rounds: Rounds, row: int, n: int, mean_l1: float, settings: Settings, state: State, work: Work) -> float:
    """Answer the row, then learn it."""
    task, mean = rounds.task[row], state.targets[MEAN]
    f = forecast(task, n, settings, state, work)
    if settings.regression:
        learn_real(task, n, rounds.y[row], f, mean_l1, settings, state, work)
    else:
        learn_label(task, n, 0.5 * (rounds.y[row] + 1.0), f, mean_l1, settings, state, work)
    state.task_rows[task] += 1
    state.updates[task] += 1
    return float(mean + f)


@kernel
def decide_rows(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray, work: Work) -> None:
    for row in range(len(decisions)):
        decisions[row] = answer(rounds, row, settings, state, work)


@kernel
def learn_rounds(
    rounds: Rounds, settings: Settings, state: State, decisions: FloatArray, part: Part, end: int, block: Block,
    work: Work,
) -> int:  # fmt: skip
    """Do a part of the rounds, or of learning them, until `own` might get too full; return how far it got."""
    at, waits = 0, len(part.block.n) > 0
    for r in range(part.first, end):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        if part.prepares and not has_room(rounds, first, last, state.own.tables):
            return r
        if part.learns:
            open_round(rounds, r, state.clock)
        if len(decisions) > 0 and last - first > 1:
            for row in range(first, last):
                decisions[row] = answer(rounds, row, settings, state, work)
        for row in range(first, last):
            i, waiting = r - part.first if waits else 0, waiting_row(block, at, work)
            if part.prepares:
                block.n[i] = prepare_row(rounds, row, settings, state, waiting)
                block.mean_l1[i] = state.scale.sums[L1] / state.scale.sums[ROWS]
            n = block.n[i]
            if part.learns:
                decision = learn_row(rounds, row, n, block.mean_l1[i], settings, state, waiting)
                if len(decisions) > 0 and last - first == 1:
                    decisions[row] = decision
            at += padded(n) if waits else 0  # else the same room serves all rows
    return end


@kernel(entry=True, allocates=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    decide_rows(rounds, settings, state, decisions, workspace(rounds, 0, len(decisions)))


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray, part: Part) -> int:
    end = part.last if part.last >= 0 else len(rounds.starts) - 1
    work, block = workspace(rounds, rounds.starts[part.first], rounds.starts[end]), part.block
    if len(block.n) == 0:
        block = Block(work.row.x, work.row.feature, work.found.place, np.zeros(1, np.int64), np.zeros(1))
    return learn_rounds(rounds, settings, state, decisions, part, end, block, work)


class _Hedged(Learner):
    """What the two forms share."""

    def _allocate(self, n_tasks: int, n_features: int) -> State:
        dtype, own = self._weights_type(), getattr(self._state, "own", None)
        if own is not None and own.records.dtype == dtype:
            pairs = for_tasks(own, n_tasks)
        else:
            pairs = new_pairs(NUMBERS, n_tasks, dtype=dtype)
        start = np.zeros(TURN)
        start[9] = 1.0  # the regression begins as the task's mixture
        return State(
            aligned_zeros((1 + n_features, NUMBERS), dtype), pairs, new_scale(n_features), np.zeros(5),
            np.zeros(n_tasks, np.int64), np.full((n_tasks, 9), 1.0 / 9.0), np.full(9, 1.0 / 9.0),
            start, np.eye(N_INPUTS, TURN).ravel(), np.zeros(n_tasks, np.int64), np.zeros(2, np.int64),
        )  # fmt: skip

    def _loops(self) -> tuple[Any, Any]:
        return learn, decide

    def _run(self, loop: int, rounds: Rounds, settings: Any, decisions: FloatArray) -> Any:
        if loop != LEARN:
            return super()._run(loop, rounds, settings, decisions)
        run = partial(call, self._code[LEARN], rounds, settings, self._state, decisions, self.dtype)
        in_blocks = blocks(rounds)
        if in_blocks is None:
            return run(WHOLE)
        done, seconds = learn_in_blocks(run, *in_blocks)
        self._seconds_beside += seconds
        return done

    def _more_room(self, rounds: Rounds) -> None:
        first, n_rows = int(rounds.starts[0]), len(rounds.task)  # of those left each entry may be a new pair
        entries = (n_rows - first) * rounds.width if rounds.width > 0 else int(rounds.indptr[-1] - rounds.indptr[first])
        most = len(self.tasks_) * (1 + self.n_features_in_) - int(self._state.own.used[0])
        self._state = self._state._replace(own=roomier(self._state.own, min(entries + n_rows - first, most)))

    def _trimmed(self) -> State:
        trimmed: State = super()._trimmed()
        return trimmed._replace(own=compact(self._state.own, len(self.tasks_)))

    def _leave(self, state: State, k: int, n_tasks: int) -> None:
        without_task(state.own, k)

    @property
    def experts_(self) -> list[str]:
        """Rule and sharing of each expert."""
        return list(EXPERTS)

    @property
    def weights_(self) -> FloatArray:
        """(n_tasks, 9) Bayes weights of the experts in each task."""
        state: State = self._fitted("weights_")
        n = len(self.tasks_)
        seen = state.task_rows[:n, None] > 0
        return np.where(seen, state.task_weights[:n], state.weights)

    def experts_coef(self, task: Any) -> FloatArray:
        """(9, 1 + n_features) the experts' weights on the scaled row of a task; the first column is the constant's."""
        state: State = self._fitted("experts_coef")
        if task not in self.tasks_:
            raise ValueError(f"no task {task!r} in this model")
        d = self.n_features_in_
        own = task_records(state.own, self.tasks_.index(task), 1 + d)
        shared = state.shared[: 1 + d]
        rules = [(shared[:, r], shared[:, r + 1] + own[:, r], own[:, r + 1]) for r in RULES]
        return np.array([weights for rule in rules for weights in rule])

    @property
    def experts_coef_(self) -> FloatArray:
        """(n_tasks, 9, 1 + n_features) `experts_coef` of every task: dense, so for models that are not too large."""
        self._fitted("experts_coef_")
        return np.array([self.experts_coef(task) for task in self.tasks_])


class HedgedSharing(_Hedged, Classifier):
    """The default: nine ways of learning and sharing, mixed row by row. Nothing to tune.

    Experts are three rules (diagonal second order, AdaGrad, constant step) times three ways of sharing (one model for
    all; shared plus own, both stepping; one model per task). Their forecasts are mixed by Bayes weights with a fixed
    share, per task and for all tasks, and then by an online logistic regression on the experts' logits, whose
    forecast is calibrated. Rows may come on any scale: features are brought near the overall r.m.s. and rows to
    usual length by running statistics.
    Cost O(non-zeros) an example whatever the number of tasks; memory a record of 8 numbers per feature and per
    (task, feature) pair that has occurred.

    Parameters
    ----------
    dtype : {"float64", "float32"}
        What weights are stored in. float32 takes half the memory; sums are float64 all the same.

    Attributes
    ----------
    weights_ : (n_tasks, 9) Bayes weights of the experts `experts_`: which way of sharing won in each task
    experts_ : names of the experts
    experts_coef_ : (n_tasks, 9, 1 + n_features) their weights; `experts_coef(task)` for one task
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_ (every row is an update), task_updates_

    Raises
    ------
    ValueError
        On bad input.

    Notes
    -----
    The mixture is not linear in x, so there is no `coef_`; `experts_coef_` holds the nine linear models on the scaled
    row. The decision value is the logit of the probability of the larger label. An unseen task is answered by
    the shared parts of the experts, mixed by the weights of all tasks together. The first mixing loses at most
    ln 9 + T ln(1/(1 - 0.01)) to its best expert in T rows: `shoal.theory.fixed_share_regret_bound`.

    References
    ----------
    The step without overshoot: Karampatziakis, Langford, Online importance weight aware updates, UAI 2011. Fixed
    share: Herbster, Warmuth, Tracking the best expert, Machine Learning 32, 1998. AdaGrad: Duchi, Hazan, Singer, JMLR
    12, 2011. "Dynamically adapting b" is the open problem that Cavallanti et al. (JMLR 11, 2010) end with.

    Examples
    --------
    >>> from shoal import HedgedSharing, MultitaskPerceptron
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> for learner in (HedgedSharing(), MultitaskPerceptron()):
    ...     decisions = learner.test_then_train(data.X, data.y, data.task)
    ...     print(f"{type(learner).__name__:20} error {((decisions >= 0) != (data.y > 0)).mean():.3f}")
    HedgedSharing        error 0.117
    MultitaskPerceptron  error 0.162
    """

    def __init__(self, *, dtype: Any = "float64") -> None:
        self.dtype = dtype

    def _settings(self) -> Settings:
        return Settings()

    def baselines(self) -> dict[str, Learner]:
        """Logistic learners at the step that is usual on unit-norm rows."""
        return {
            name: MultitaskPerceptron(relation=name, loss="logistic", eta=0.5) for name in ("independent", "pooled")
        }

    def predict_proba(self, X: Any, task: Any = None) -> FloatArray:
        """(n, 2) probabilities of the two labels, in the order of `classes_`."""
        positive = 1.0 / (1.0 + np.exp(-self.decision_function(X, task)))
        return np.column_stack([1.0 - positive, positive])

    def predict_proba_one(self, x: Any, task: Any = None) -> dict[Any, float]:
        """Probability of each label for one example (dict or 1-d array)."""
        positive = 1.0 / (1.0 + math.exp(-self.decision_one(x, task)))
        return dict(zip(self.classes_.tolist(), (1.0 - positive, positive), strict=True))


class HedgedSharingRegressor(_Hedged, Regressor):
    """The default for real targets: the nine experts of `HedgedSharing` with squared loss. Nothing to tune.

    Every expert steps by ``w <- w + r x (y - f) / (1 + Σ r x²)``. Bayes weights go by Gaussian likelihoods whose
    variance is the mixture's mean squared error so far; the second mixing is a ridge regression on the forecasts by
    recursive least squares. Targets are centred on their running mean and measured in their running deviation, so
    their scale and offset do not matter. Cost O(non-zeros) an example whatever the number of tasks; memory a record
    of 8 numbers per feature and per (task, feature) pair that has occurred.

    Parameters
    ----------
    dtype : {"float64", "float32"}
        What weights are stored in. float32 takes half the memory; sums are float64 all the same.

    Attributes
    ----------
    weights_ : (n_tasks, 9) Bayes weights of the experts `experts_`: which way of sharing won in each task
    experts_ : names of the experts
    experts_coef_ : (n_tasks, 9, 1 + n_features) their weights; `experts_coef(task)` for one task
    tasks_, n_features_in_, feature_names_in_, n_updates_ (every row is an update), task_updates_

    Raises
    ------
    ValueError
        On bad input.

    Notes
    -----
    `experts_coef_` holds the nine linear models on the scaled row, for targets less their mean. An unseen task
    is answered by the shared parts of the experts.

    References
    ----------
    As `HedgedSharing`; the mixing by squared error: Vovk, Competitive on-line statistics, International Statistical
    Review 69, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import HedgedSharingRegressor, MultitaskRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(3000, 5)), rng.integers(10, size=3000)
    >>> weights = rng.normal(size=5) + 0.3 * rng.normal(size=(10, 5))
    >>> y = np.einsum("ij,ij->i", X, weights[task]) + rng.normal(size=3000)
    >>> for learner in (HedgedSharingRegressor(), MultitaskRegressor()):
    ...     predictions = learner.test_then_train(X, y, task)
    ...     print(f"{type(learner).__name__:22} mean squared error {((predictions - y) ** 2)[1000:].mean():.3f}")
    HedgedSharingRegressor mean squared error 1.016
    MultitaskRegressor     mean squared error 1.290
    """

    def __init__(self, *, dtype: Any = "float64") -> None:
        self.dtype = dtype

    def _settings(self) -> Settings:
        return Settings(regression=True)

    def baselines(self) -> dict[str, Learner]:
        """Linear learners of squared loss at their default step."""
        return {name: MultitaskRegressor(relation=name) for name in ("independent", "pooled")}
