"""Hedged sharing: a default with nothing to tune, nine ways of learning and sharing mixed row by row.

Three learning rules (N diagonal second order, A AdaGrad, C constant step) times three ways of sharing (pooled: s;
together: s + v_k, both step; own: v_k) are nine logistic experts, all linear in the same scaled row x. With margin m
of an expert, error e = y - sigmoid(m), and per-feature steps r_j,

    w_j <- w_j + r_j x_j e / (1 + tau p (1 - p)),   tau = sum_j r_j x_j^2      (one Newton iterate of the implicit step)

N: r = 1/(1/a + H), H the sum of q (1 - q) x^2;  A: r = eta/sqrt(G), G the sum of squared gradients;  C: r constant.
Their forecasts are mixed twice (`_mixing`): by Bayes weights with a fixed share, one set a task and one for all, then
by a logistic regression on the nine logits and the two mixtures, whose forecast q is the answer.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from shoal.learner import Classifier, Learner
from shoal.online._mixing import N_INPUTS, clipped, inner, logit_of, mixture, newton_step, reweigh, sigmoid, sigmoids
from shoal.online._scaling import L1, ROWS, Scale, ScaledRow, learn_scale, new_scale, scaled_row
from shoal.online.multitask_perceptron import MultitaskPerceptron
from shoal.ops import jit, leaf, leaf_disjoint, leaf_in_order, open_round, padded
from shoal.pairs import (
    FIRST_ROOM,
    Pairs,
    add_pair,
    compact,
    find_or_zero,
    has_room,
    make_room,
    new_pairs,
    roomier,
    task_records,
    without_task,
)
from shoal.rounds import FloatArray, IntArray, Rounds

EXPERTS = [
    f"{rule}-{sharing}" for rule in ("newton", "adagrad", "constant") for sharing in ("pooled", "together", "own")
]
# Positions in a record: two weights a rule (shared: of pooled and together; own: of together and own), then H and G.
N, A, C, H, G, NUMBERS = 0, 2, 4, 6, 7, 8
TINY = 1e-12  # AdaGrad's first step divides by a root that may be zero


class Settings(NamedTuple):
    """The recipe's constants; none is for users to set."""

    prior_one: float = 10.0  # a of pooled and own N experts
    prior_both: float = 1.0  # a of the two parts of "together"
    eta: float = 3.0  # of A, divided by the mean 1-norm of rows
    step_pooled: float = 0.4  # of C
    step_both: float = 0.1
    step_own: float = 1.6
    young: float = 10.0  # rows after which a task's own experts count half


class State(NamedTuple):
    """Everything is per feature or per (task, feature) that occurs; slot 0 of the features is the constant."""

    shared: FloatArray  # (1 + features, 8) records of s
    own: Pairs  # records of v_k
    scale: Scale
    task_rows: IntArray  # (tasks,) rows of each task so far
    task_weights: FloatArray  # (tasks, 9) Bayes weights
    weights: FloatArray  # (9,) Bayes weights of all tasks together
    regression: FloatArray  # (12,)
    covariance: FloatArray  # (12, 12)
    updates: IntArray  # (tasks,)
    clock: IntArray  # (2,) tasks, rounds


class Work(NamedTuple):
    """Scratch of one call."""

    row: ScaledRow  # (longest row + 1, padded) each; its features are slots in `shared`
    slot: IntArray  # (same) slots in `own`
    sums: FloatArray  # (4, same) H of s and v, G of s and v
    steps: FloatArray  # (6, same) of N: pooled, together (s, v), own; of A: s, v
    logits: FloatArray  # (16,) of the nine experts, and of the three own ones leaning on the pooled while young
    chance: FloatArray  # (16,) their sigmoids
    p: FloatArray  # (9,) the experts' forecasts, with the leaning ones
    z: FloatArray  # (12,) inputs of the regression
    direction: FloatArray  # (12,)
    forecast: FloatArray  # (2,) task's mixture, everybody's
    uniform: FloatArray  # (9,)


@jit
def workspace(rounds: Rounds) -> Work:
    longest = rounds.width
    for row in range(len(rounds.indptr) - 1):
        longest = max(longest, rounds.indptr[row + 1] - rounds.indptr[row])
    n = padded(longest + 1)
    scaled = ScaledRow(np.zeros(n), np.zeros(n, np.int64), np.zeros(n), np.zeros(n), np.zeros(2))
    return Work(
        scaled, np.zeros(n, np.int64), np.zeros((4, n)), np.zeros((6, n)),
        np.zeros(16), np.zeros(16), np.zeros(9), np.zeros(N_INPUTS), np.zeros(N_INPUTS),
        np.zeros(2), np.full(9, 1.0 / 9.0),
    )  # fmt: skip


@leaf
def look_up(task: int, n: int, own: Pairs, work: Work) -> int:
    """The slots of the row's pairs in `own`; how many do not occur yet (theirs is the zero record)."""
    missing = 0
    for i in range(n):
        work.slot[i] = find_or_zero(own, task, work.row.feature[i])
        missing += int(work.slot[i] == len(own.keys))
    return missing


@leaf
def take_in(task: int, n: int, missing: int, own: Pairs, work: Work) -> None:
    """Give the missing pairs records."""
    make_room(own, task, missing)
    for i in range(n):
        work.slot[i] = add_pair(own, task, work.row.feature[i])


@leaf_in_order
def _products(
    n: int, x: FloatArray, place: IntArray, records: FloatArray, H_: FloatArray, G_: FloatArray
) -> tuple[float, float, float, float, float, float]:
    """Inner products of the six weights in a record with x; H and G side by side for the steps."""
    n0 = n1 = a0 = a1 = c0 = c1 = 0.0
    for i in range(n):
        record, value = records[np.uint32(place[i])], x[i]
        n0 += record[N] * value
        n1 += record[N + 1] * value
        a0 += record[A] * value
        a1 += record[A + 1] * value
        c0 += record[C] * value
        c1 += record[C + 1] * value
        H_[i], G_[i] = record[H], record[G]
    return n0, n1, a0, a1, c0, c1


@leaf
def forecast(task: int, n: int, settings: Settings, state: State, work: Work) -> float:
    """The answer's logit."""
    x, sums, logits, z, p = work.row.x, work.sums, work.logits, work.z, work.p
    n0, n1, a0, a1, c0, c1 = _products(n, x, work.row.feature, state.shared, sums[0], sums[2])
    m0, m1, b0, b1, d0, d1 = _products(n, x, work.slot, state.own.records, sums[1], sums[3])
    logits[0], logits[1], logits[2] = n0, n1 + m0, m1  # pooled, together, own
    logits[3], logits[4], logits[5] = a0, a1 + b0, b1
    logits[6], logits[7], logits[8] = c0, c1 + d0, d1
    for e in range(9):
        logits[e] = clipped(logits[e])
    rows = state.task_rows[task] if task >= 0 else 0
    trust = rows / (rows + settings.young)
    for rule in range(3):  # a young task's own experts lean on the pooled ones
        logits[9 + rule] = trust * logits[3 * rule + 2] + (1.0 - trust) * logits[3 * rule]
    sigmoids(logits, work.chance)
    for e in range(9):
        z[e], p[e] = logits[e], work.chance[e]
    for rule in range(3):
        z[3 * rule + 2], p[3 * rule + 2] = logits[9 + rule], work.chance[9 + rule]
    everybody = mixture(state.weights, p)
    mine = mixture(state.task_weights[task], p) if rows > 0 else everybody
    work.forecast[0], work.forecast[1] = mine, everybody
    z[9], z[10], z[11] = logit_of(mine), logit_of(everybody), 1.0
    return clipped(inner(state.regression, z))


@leaf_disjoint
def _newton_steps(
    n: int, x: FloatArray, H_s: FloatArray, H_v: FloatArray, h: float, one: float, both: float, pooled: FloatArray,
    together_s: FloatArray, together_v: FloatArray, own: FloatArray,
) -> tuple[float, float, float]:  # fmt: skip
    """1/(1/a + H), H taking the row in first, and each expert's tau. A division costs most, so one serves all four."""
    tau0 = tau1 = tau2 = 0.0
    for i in range(padded(n)):
        square = x[i] * x[i]
        H_s[i] += h * square
        H_v[i] += h * square
        s, v = (one + H_s[i]) * (both + H_s[i]), (one + H_v[i]) * (both + H_v[i])
        inverse = 1.0 / (s * v)
        r0, r1 = (both + H_s[i]) * v * inverse, (one + H_s[i]) * v * inverse
        r2, r3 = (one + H_v[i]) * s * inverse, (both + H_v[i]) * s * inverse
        tau0 += square * r0
        tau1 += square * (r1 + r2)
        tau2 += square * r3
        pooled[i], together_s[i], together_v[i], own[i] = r0 * x[i], r1 * x[i], r2 * x[i], r3 * x[i]
    return tau0, tau1, tau2


@leaf
def _adagrad_steps(
    n: int, x: FloatArray, G_s: FloatArray, G_v: FloatArray, g: float, eta: float, of_s: FloatArray, of_v: FloatArray
) -> tuple[float, float, float]:
    """eta/sqrt(G), G taking the row in first, and the sums of both times x^2, and of x^2."""
    tau_s = tau_v = squares = 0.0
    for i in range(padded(n)):
        square = x[i] * x[i]
        G_s[i] += g * square
        G_v[i] += g * square
        root_s, root_v = math.sqrt(G_s[i] + TINY), math.sqrt(G_v[i] + TINY)
        scale = eta / (root_s * root_v)
        tau_s += square * scale * root_v
        tau_v += square * scale * root_s
        squares += square
        of_s[i], of_v[i] = scale * root_v * x[i], scale * root_s * x[i]
    return tau_s, tau_v, squares


@leaf
def step_experts(n: int, y: float, q: float, mean_l1: float, settings: Settings, state: State, work: Work) -> None:
    """Move all nine experts, H and G."""
    x, sums, steps = work.row.x, work.sums, work.steps
    h, g = q * (1.0 - q), (y - work.forecast[1]) ** 2
    tau0, tau1, tau2 = _newton_steps(
        n, x, sums[0], sums[1], h, 1.0 / settings.prior_one, 1.0 / settings.prior_both, steps[0], steps[1], steps[2],
        steps[3],
    )  # fmt: skip
    tau_s, tau_v, squares = _adagrad_steps(n, x, sums[2], sums[3], g, settings.eta / mean_l1, steps[4], steps[5])
    n0, n1, n2 = slope(work, 0, y, tau0), slope(work, 1, y, tau1), slope(work, 2, y, tau2)
    a0, a1, a2 = slope(work, 3, y, tau_s), slope(work, 4, y, tau_s + tau_v), slope(work, 5, y, tau_v)
    c0 = slope(work, 6, y, settings.step_pooled * squares) * settings.step_pooled
    c1 = slope(work, 7, y, 2.0 * settings.step_both * squares) * settings.step_both
    c2 = slope(work, 8, y, settings.step_own * squares) * settings.step_own
    _move(
        n, work.row.feature, x, (n0, n1, a0, a1, c0, c1), steps[0], steps[1], steps[4], sums[0], sums[2], state.shared
    )
    _move(n, work.slot, x, (n1, n2, a1, a2, c1, c2), steps[2], steps[3], steps[5], sums[1], sums[3], state.own.records)


@leaf_in_order
def _move(
    n: int, place: IntArray, x: FloatArray, slopes: tuple[float, float, float, float, float, float], first: FloatArray,
    second: FloatArray, adagrad: FloatArray, H_: FloatArray, G_: FloatArray, records: FloatArray,
) -> None:  # fmt: skip
    """w <- w + slope step x, and H and G as they are now."""
    n0, n1, a0, a1, c0, c1 = slopes
    for i in range(n):
        record = records[np.uint32(place[i])]
        record[N] += n0 * first[i]
        record[N + 1] += n1 * second[i]
        record[A] += a0 * adagrad[i]
        record[A + 1] += a1 * adagrad[i]
        record[C] += c0 * x[i]
        record[C + 1] += c1 * x[i]
        record[H], record[G] = H_[i], G_[i]


@leaf
def slope(work: Work, expert: int, y: float, tau: float) -> float:
    """e / (1 + tau p (1 - p)): the step cannot overshoot."""
    p = work.chance[expert]
    return float((y - p) / (1.0 + tau * p * (1.0 - p)))


@leaf
def mix(task: int, y: float, q: float, state: State, work: Work) -> None:
    """Move both mixtures."""
    if state.task_rows[task] == 0:
        for e in range(9):  # a new task starts where all together are
            state.task_weights[task, e] = state.weights[e]
    reweigh(state.weights, work.p, y > 0.5, work.uniform)
    reweigh(state.task_weights[task], work.p, y > 0.5, state.weights)
    newton_step(state.regression, state.covariance, work.z, y - q, q * (1.0 - q), work.direction)


@leaf
def answer(rounds: Rounds, row: int, settings: Settings, state: State, work: Work) -> float:
    n = scaled_row(rounds, row, state.scale, work.row)
    look_up(rounds.task[row], n, state.own, work)
    return forecast(rounds.task[row], n, settings, state, work)


@leaf
def learn_row(rounds: Rounds, row: int, settings: Settings, state: State, work: Work) -> float:
    """Answer the row (a logit), then learn it."""
    task, y = rounds.task[row], 0.5 * (rounds.y[row] + 1.0)
    n = scaled_row(rounds, row, state.scale, work.row)
    missing = look_up(task, n, state.own, work)
    logit = forecast(task, n, settings, state, work)
    if missing > 0:
        take_in(task, n, missing, state.own, work)
    q = sigmoid(logit)
    learn_scale(state.scale, work.row, n)
    mean_l1 = state.scale.sums[L1] / state.scale.sums[ROWS]
    step_experts(n, y, q, mean_l1, settings, state, work)
    mix(task, y, q, state, work)
    state.task_rows[task] += 1
    state.updates[task] += 1
    return logit


@leaf
def decide_rows(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray, work: Work) -> None:
    for row in range(len(decisions)):
        decisions[row] = answer(rounds, row, settings, state, work)


@leaf
def learn_rounds(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray, work: Work) -> int:
    """Learn rounds until all are done or `own` might get too full; return how many were learnt."""
    for r in range(len(rounds.starts) - 1):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        if not has_room(rounds, first, last, state.own):
            return r
        open_round(rounds, r, state.clock)
        if len(decisions) > 0 and last - first > 1:
            for row in range(first, last):
                decisions[row] = answer(rounds, row, settings, state, work)
        for row in range(first, last):
            logit = learn_row(rounds, row, settings, state, work)
            if len(decisions) > 0 and last - first == 1:
                decisions[row] = logit
    return len(rounds.starts) - 1


@jit
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    decide_rows(rounds, settings, state, decisions, workspace(rounds))


@jit
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    return learn_rounds(rounds, settings, state, decisions, workspace(rounds))


class HedgedSharing(Classifier):
    """The default: nine ways of learning and sharing, mixed row by row. Nothing to tune.

    Experts are three rules (diagonal second order, AdaGrad, constant step) times three ways of sharing (one model for
    all; shared plus own, both stepping; one model per task). Their forecasts are mixed by Bayes weights with a fixed
    share, per task and for all tasks, and then by an online logistic regression on the experts' logits, whose
    forecast is calibrated. Rows may come on any scale: features are brought near the overall r.m.s. and rows to
    usual length by running statistics.
    Cost O(non-zeros) an example whatever the number of tasks; memory a record of 8 numbers per feature and per
    (task, feature) pair that has occurred.

    Attributes
    ----------
    weights_ : (n_tasks, 9) Bayes weights of the experts `experts_`: which way of sharing won in each task
    experts_ : names of the experts
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_ (every row is an update), task_updates_

    Raises
    ------
    ValueError
        On bad input.

    Notes
    -----
    The mixture is not linear in x, so there is no `coef_`; `experts_coef(task)` gives the nine linear models on the
    scaled row. The decision value is the logit of the probability of the larger label. An unseen task is answered by
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

    def _settings(self) -> Settings:
        return Settings()

    def _allocate(self, n_tasks: int, n_features: int) -> State:
        room = FIRST_ROOM if self._state is None else len(self._state.own.keys)
        start = np.zeros(N_INPUTS)
        start[9] = 1.0  # the regression begins as the task's mixture
        return State(
            np.zeros((1 + n_features, NUMBERS)), new_pairs(NUMBERS, n_tasks, room), new_scale(n_features),
            np.zeros(n_tasks, np.int64), np.full((n_tasks, 9), 1.0 / 9.0), np.full(9, 1.0 / 9.0),
            start, np.eye(N_INPUTS), np.zeros(n_tasks, np.int64), np.zeros(2, np.int64),
        )  # fmt: skip

    def _loops(self) -> tuple[Any, Any]:
        return learn, decide

    def _more_room(self) -> None:
        self._state = self._state._replace(own=roomier(self._state.own))

    def _trimmed(self) -> State:
        trimmed: State = super()._trimmed()
        return trimmed._replace(own=compact(self._state.own, len(self.tasks_)))

    def _leave(self, state: State, k: int, n_tasks: int) -> None:
        without_task(state.own, k)

    def baselines(self) -> dict[str, Learner]:
        """Logistic learners at the step that is usual on unit-norm rows."""
        return {
            name: MultitaskPerceptron(relation=name, loss="logistic", eta=0.5) for name in ("independent", "pooled")
        }

    def predict_proba(self, X: Any, task: Any = None) -> FloatArray:
        """(n, 2) probabilities of the two labels, in the order of `classes_`."""
        positive = 1.0 / (1.0 + np.exp(-self.decision_function(X, task)))
        return np.column_stack([1.0 - positive, positive])

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
        rules = [(shared[:, r], shared[:, r + 1] + own[:, r], own[:, r + 1]) for r in (N, A, C)]
        return np.array([weights for rule in rules for weights in rule])
