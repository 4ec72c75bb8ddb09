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
from shoal.online._mixing import clipped, logit_of, mixture, newton_step, reweigh, sigmoid
from shoal.online._scaling import L1, ROWS, Scale, learn_scale, new_scale, scaled_row
from shoal.online.multitask_perceptron import MultitaskPerceptron
from shoal.ops import jit, leaf, open_round
from shoal.pairs import Pairs, doubled, find_or_add, find_or_zero, has_room, new_pairs, task_records, without_task
from shoal.rounds import FloatArray, IntArray, Rounds

EXPERTS = [
    f"{rule}-{sharing}" for rule in ("newton", "adagrad", "constant") for sharing in ("pooled", "together", "own")
]
N_INPUTS = len(EXPERTS) + 3  # of the regression: the experts' logits, the task's mixture, everybody's, 1
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
    """Scratch of one call: a row's records side by side, feature after feature, for SIMD."""

    x: FloatArray  # (longest row + 1,) scaled values
    feature: IntArray  # (longest row + 1,) slot in `shared`
    slot: IntArray  # (longest row + 1,) slot in `own`
    s: FloatArray  # (8, longest row + 1)
    v: FloatArray  # (8, longest row + 1)
    steps: FloatArray  # (6, longest row + 1) of N: pooled, together (s, v), own; of A: s, v
    margin: FloatArray  # (9,) of each expert by itself
    p: FloatArray  # (9,) its forecast, own experts of young tasks leaning on the pooled ones
    z: FloatArray  # (12,) inputs of the regression
    direction: FloatArray  # (12,)
    forecast: FloatArray  # (2,) task's mixture, everybody's
    uniform: FloatArray  # (9,)


@jit
def workspace(rounds: Rounds) -> Work:
    longest = rounds.width
    for row in range(len(rounds.indptr) - 1):
        longest = max(longest, rounds.indptr[row + 1] - rounds.indptr[row])
    n = longest + 1
    return Work(
        np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64), np.zeros((NUMBERS, n)), np.zeros((NUMBERS, n)),
        np.zeros((6, n)), np.empty(9), np.empty(9), np.empty(N_INPUTS), np.empty(N_INPUTS), np.empty(2),
        np.full(9, 1.0 / 9.0),
    )  # fmt: skip


@leaf
def gather(task: int, n: int, adding: bool, state: State, work: Work) -> None:
    """The row's records from `shared` and `own`; pairs that do not occur yet are zeros."""
    feature, slots, s, v = work.feature, work.slot, work.s, work.v
    shared, keys, records, count = state.shared, state.own.keys, state.own.records, state.own.filled
    for i in range(n):
        if adding:
            slots[i] = find_or_add(keys, count, task, feature[i])
        else:
            slots[i] = find_or_zero(keys, task, feature[i]) if task >= 0 else len(keys)
    for i in range(n):
        for e in range(NUMBERS):
            s[e, i] = shared[feature[i], e]
            v[e, i] = records[slots[i], e]


@leaf
def scatter(n: int, state: State, work: Work) -> None:
    feature, slots, s, v = work.feature, work.slot, work.s, work.v
    shared, records = state.shared, state.own.records
    for i in range(n):
        for e in range(NUMBERS):
            shared[feature[i], e] = s[e, i]
            records[slots[i], e] = v[e, i]


@leaf
def inner(w: FloatArray, x: FloatArray, n: int) -> float:
    total = 0.0
    for i in range(n):
        total += w[i] * x[i]
    return total


@leaf
def forecast(task: int, n: int, settings: Settings, state: State, work: Work) -> float:
    """The answer's logit, from the gathered records."""
    x, s, v, margin, z, p = work.x, work.s, work.v, work.margin, work.z, work.p
    for rule in range(3):
        one, both, own_both, own = 0.0, 0.0, 0.0, 0.0
        for i in range(n):
            one += s[2 * rule, i] * x[i]
            both += s[2 * rule + 1, i] * x[i]
            own_both += v[2 * rule, i] * x[i]
            own += v[2 * rule + 1, i] * x[i]
        margin[3 * rule] = clipped(one)
        margin[3 * rule + 1] = clipped(both + own_both)
        margin[3 * rule + 2] = clipped(own)
    rows = state.task_rows[task] if task >= 0 else 0
    trust = rows / (rows + settings.young)
    for e in range(9):
        logit = margin[e]
        if e % 3 == 2:  # a young task's own experts lean on the pooled ones
            logit = trust * logit + (1.0 - trust) * margin[e - 2]
        z[e] = logit
        p[e] = sigmoid(logit)
    everybody = mixture(state.weights, work.p)
    mine = mixture(state.task_weights[task], work.p) if rows > 0 else everybody
    work.forecast[0], work.forecast[1] = mine, everybody
    work.z[9], work.z[10], work.z[11] = logit_of(mine), logit_of(everybody), 1.0
    return clipped(inner(state.regression, work.z, N_INPUTS))


@leaf
def step_experts(n: int, y: float, q: float, mean_l1: float, settings: Settings, work: Work) -> None:
    """Move all nine experts; H and G take the row in first."""
    x, s, v, steps = work.x, work.s, work.v, work.steps
    h, g = q * (1.0 - q), (y - work.forecast[1]) ** 2
    one, both, eta = 1.0 / settings.prior_one, 1.0 / settings.prior_both, settings.eta / mean_l1
    for i in range(n):
        square = x[i] * x[i]
        s[H, i] += h * square
        v[H, i] += h * square
        s[G, i] += g * square
        v[G, i] += g * square
    for i in range(n):  # every step once: divisions and roots cost most
        steps[0, i] = 1.0 / (one + s[H, i])
        steps[1, i] = 1.0 / (both + s[H, i])
        steps[2, i] = 1.0 / (both + v[H, i])
        steps[3, i] = 1.0 / (one + v[H, i])
        steps[4, i] = eta / math.sqrt(s[G, i] + TINY)
        steps[5, i] = eta / math.sqrt(v[G, i] + TINY)
    tau0 = tau1 = tau2 = tau3 = tau4 = tau5 = squares = 0.0
    for i in range(n):
        square = x[i] * x[i]
        squares += square
        tau0 += square * steps[0, i]
        tau1 += square * steps[1, i]
        tau2 += square * steps[2, i]
        tau3 += square * steps[3, i]
        tau4 += square * steps[4, i]
        tau5 += square * steps[5, i]
    n0, n1, n2 = slope(work, 0, y, tau0), slope(work, 1, y, tau1 + tau2), slope(work, 2, y, tau3)
    a0, a1, a2 = slope(work, 3, y, tau4), slope(work, 4, y, tau4 + tau5), slope(work, 5, y, tau5)
    c0 = slope(work, 6, y, settings.step_pooled * squares) * settings.step_pooled
    c1 = slope(work, 7, y, 2.0 * settings.step_both * squares) * settings.step_both
    c2 = slope(work, 8, y, settings.step_own * squares) * settings.step_own
    for i in range(n):
        s[N, i] += n0 * x[i] * steps[0, i]
        s[N + 1, i] += n1 * x[i] * steps[1, i]
        v[N, i] += n1 * x[i] * steps[2, i]
        v[N + 1, i] += n2 * x[i] * steps[3, i]
        s[A, i] += a0 * x[i] * steps[4, i]
        s[A + 1, i] += a1 * x[i] * steps[4, i]
        v[A, i] += a1 * x[i] * steps[5, i]
        v[A + 1, i] += a2 * x[i] * steps[5, i]
        s[C, i] += c0 * x[i]
        s[C + 1, i] += c1 * x[i]
        v[C, i] += c1 * x[i]
        v[C + 1, i] += c2 * x[i]


@leaf
def slope(work: Work, expert: int, y: float, tau: float) -> float:
    """e / (1 + tau p (1 - p)): the step cannot overshoot."""
    p = sigmoid(work.margin[expert])
    return (y - p) / (1.0 + tau * p * (1.0 - p))


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
    n, _ = scaled_row(rounds, row, state.scale, work.x, work.feature)
    gather(rounds.task[row], n, False, state, work)
    return forecast(rounds.task[row], n, settings, state, work)


@leaf
def learn_row(rounds: Rounds, row: int, settings: Settings, state: State, work: Work) -> float:
    """Answer the row (a logit), then learn it."""
    task, y = rounds.task[row], 0.5 * (rounds.y[row] + 1.0)
    n, norm = scaled_row(rounds, row, state.scale, work.x, work.feature)
    gather(task, n, True, state, work)
    logit = forecast(task, n, settings, state, work)
    q = sigmoid(logit)
    learn_scale(rounds, row, state.scale, work.x, n, norm)
    step_experts(n, y, q, state.scale.sums[L1] / state.scale.sums[ROWS], settings, work)
    scatter(n, state, work)
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
        entries = rounds.width * (last - first) if rounds.width > 0 else rounds.indptr[last] - rounds.indptr[first]
        if not has_room(state.own, entries + last - first):
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
        own = new_pairs(NUMBERS) if self._state is None else self._state.own
        start = np.zeros(N_INPUTS)
        start[9] = 1.0  # the regression begins as the task's mixture
        return State(
            np.zeros((1 + n_features, NUMBERS)), new_pairs(NUMBERS, len(own.keys)), new_scale(n_features),
            np.zeros(n_tasks, np.int64), np.full((n_tasks, 9), 1.0 / 9.0), np.full(9, 1.0 / 9.0),
            start, np.eye(N_INPUTS), np.zeros(n_tasks, np.int64), np.zeros(2, np.int64),
        )  # fmt: skip

    def _loops(self) -> tuple[Any, Any]:
        return learn, decide

    def _call(self, loop: int, rounds: Rounds, decisions: FloatArray) -> Any:
        done = super()._call(loop, rounds, decisions)
        while loop == 0 and done < len(rounds.starts) - 1:
            self._state = self._state._replace(own=doubled(self._state.own))
            rounds = rounds._replace(starts=rounds.starts[done:])
            done = super()._call(loop, rounds, decisions)
        return done

    def _leave(self, state: State, k: int, n_tasks: int) -> None:
        self._state = state._replace(own=without_task(state.own, k))

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
