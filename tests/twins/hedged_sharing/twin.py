"""All experts and both mixings."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.twins.hedged_sharing.crossing import Crossing
from tests.twins.hedged_sharing.dense import DenseRows
from tests.twins.hedged_sharing.steps import Now, Table, moved, sigmoid

PLAIN = [
    ("N", "pooled", 0.1, False), ("N", "pooled", 0.1, True), ("N", "together", 1.0, True), ("N", "own", 0.1, False),
    ("A", "pooled", 3.0, True), ("A", "together", 3.0, True), ("A", "own", 3.0, True),
    ("C", "pooled", 0.4, True), ("C", "together", 0.1, True), ("C", "own", 1.6, True), ("C", "pooled", 1.6, True),
    ("A", "pooled", 0.3, True),
]  # fmt: skip
CROSSED = [
    ("N", "pooled", 0.1, True), ("N", "together", 1.0, True), ("A", "together", 1.0, True), ("A", "own", 3.0, True),
    ("F", "pooled", 0.1, True), ("F", "together", 1.0, True),
]  # fmt: skip
LEANS = {3: 1, 6: 4, 9: 7, 15: 1, 25: 22}  # an own expert: the pooled one
N_SHARED, N_OWN = 2**16, 2**18
N = 28  # experts


class Level:
    """Mean squares, of all values and of the last 30; and what is clipped for being far beyond them."""

    def __init__(self, reach: float) -> None:
        self.reach, self.squares, self.n, self.recent, self.clipped, self.all = reach, 0.0, 0.0, 0.0, 0.0, 0.0

    def clip(self, e: float, square: float, h: float, least: float = 0.0) -> float:
        farther = (1 + max(self.clipped - self.all / 1000, 0)) ** 0.25  # one in a thousand may be an accident
        limit = max(self.reach * np.sqrt(square) * farther, least)
        if self.n < 10 or square == 0 or abs(e) <= limit:
            return e
        self.clipped += h
        return float(np.copysign(limit, e))

    def learn(self, e: float, h: float) -> None:
        self.recent += h / (min(self.n, 29) + h) * (e**2 - self.recent)
        self.squares, self.n, self.all = self.squares + h * e**2, self.n + h, self.all + h


def logit(p: float) -> float:
    return float(np.clip(np.log(p) - np.log1p(-p), -15, 15))


class Stack:
    """One regression of the second mixing."""

    def __init__(self, variance: float, per_row: float) -> None:
        self.w, self.P, self.per_row = np.zeros(N + 3), variance * np.eye(N + 3), per_row
        self.w[N] = 1  # it begins as the task's mixture

    def ask(self, inputs: np.ndarray, limit: float, unit: float = 1.0) -> float:
        self.inputs, self.forecast = inputs, float(np.clip(unit * (self.w @ inputs), -limit, limit))
        return self.forecast

    def drift(self, rows: float) -> float:
        """Return z'Pz."""
        self.P = self.P + self.per_row / (rows + 1) * np.eye(N + 3)
        return float(self.inputs @ self.P @ self.inputs)

    def learn(self, pull: float, curvature: float) -> None:
        Pz = self.P @ self.inputs
        self.w += Pz * pull
        self.P -= curvature * np.outer(Pz, Pz) / (1 + curvature * self.inputs @ Pz)


class Twin:
    """Dense state for K tasks and d features; column 0 is the constant."""

    real = False

    def __init__(self, K: int, d: int, interactions: bool | str = True, *, trees: bool = False) -> None:
        self.squares, self.counts, self.recent = np.zeros(d), np.zeros(d), np.zeros(d)
        self.n_entries = self.n_rows = 0
        self.entries_squared = self.entries = self.norms = self.l1 = self.rows = 0.0
        self.plain = Table(K, 1 + d, PLAIN)
        self.tables = Table(1, 1 + max(N_SHARED, N_OWN), CROSSED)  # of all tasks, in one
        self.crossing, self.interactions = Crossing(N_SHARED, N_OWN), interactions
        self.serial: dict[int, int] = {}
        self.dense = DenseRows(K, d, self.real, trees)
        self.n, self.is_asleep = np.zeros(K), False
        self.part = np.ones(N)
        self.part[[0, 17] if self.real else 13] = 0
        if not interactions:
            self.part[18:] = 0
        if not trees:
            self.part[18:22] = 0
        self.uniform = self.part / self.part.sum()
        self.pi, self.pi_k, self.slow = self.uniform.copy(), np.tile(self.uniform, (K, 1)), self.uniform.copy()
        self.stacks = [Stack(1.0, 1e-3), Stack(0.1, 1e-4)]
        self.trusts = np.array([0.45, 0.45, 0.1])
        self.surprises = self.weight = self.length = 0.0

    def was_narrow(self) -> bool:
        """Before this row."""
        return self.is_narrow(int(np.count_nonzero(self.counts)), 0)

    def is_narrow(self, n_features: int, new_entries: int) -> bool:
        """After the first 1,000 rows the number of their entries decides."""
        if self.n_rows >= 1000:
            return bool(n_features <= 256 or self.n_entries <= 32 * 1000)
        return bool(n_features <= 256 or self.n_entries + new_entries <= 32 * (self.n_rows + 1))

    def current(self, square: np.ndarray, recent: np.ndarray) -> np.ndarray:
        """Mean squares, of narrow rows within a factor of 36 of those of the last 30 values."""
        return np.maximum(recent / 36, np.minimum(recent * 36, square)) if self.was_narrow() else square

    def clipped(self, x: np.ndarray) -> np.ndarray:
        """Within 10 times the r.m.s. of a feature that has come 10 times."""
        n = np.maximum(self.counts, 1)
        limit = np.where(self.counts >= 10, 10 * np.sqrt(self.current(self.squares / n, self.recent)), np.inf)
        return np.asarray(np.clip(x, -limit, limit))

    def scaled(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        used, x = x != 0, self.clipped(x)
        usual = np.sqrt((self.entries_squared + x @ x) / max(self.entries + used.sum(), 1))
        n = self.counts + 1
        recent = self.recent + (x**2 - self.recent) / np.minimum(n, 30)
        rms = np.sqrt(self.current((self.squares + x**2) / n, recent))
        z = np.zeros(len(x))
        z[used] = x[used] * np.clip(rms[used], usual / 3, usual * 3) / rms[used]
        norm = float(np.linalg.norm(z))
        length = (self.norms + norm) / (self.rows + 1)
        if not self.real:
            length = max(norm, length)
        elif self.rows >= 1000 and abs(length - self.length) <= 0.01 * length:
            length = self.length
        return np.concatenate([[0.3], z / length if length > 0 else z]), norm

    def limit(self) -> float:
        return 15.0

    def wake(self, x: np.ndarray, k: int) -> None:
        """Experts on dense rows while few features have come, crossed rows while rows are narrow."""
        n_features = int(np.count_nonzero((self.counts > 0) | (x != 0)))
        narrow = self.is_narrow(n_features, int(np.count_nonzero(x)))
        self.crosses = narrow if self.interactions == "auto" else bool(self.interactions)
        self.phase = self.phase_with(n_features, int(np.count_nonzero(x)))
        self.of_dense = self.dense.ask(x, self.z, k, n_features, self.phase)
        self.awake = self.part.copy()
        self.awake[12:22] *= ~np.isnan(self.of_dense)
        self.awake[22:] *= self.crosses

    def phase_with(self, n_features: int, entries: int) -> str:
        """Full matrices; low-rank filters on wide dense rows, after ten rows; or none for good."""
        if n_features <= (255 if self.interactions else 31):
            return "full"
        rows = min(self.n_rows + 1, 1000)
        total = self.n_entries + (entries if self.n_rows < 1000 else 0)
        if not self.interactions or self.is_asleep or n_features > 4096:
            return "asleep"
        return "waiting" if rows < 10 else "wide" if total >= 0.9 * n_features * rows else "asleep"

    def ask(self, x: np.ndarray, k: int) -> None:
        """Margins of all experts, their logits, shrunk in tasks of few rows, and their forecasts."""
        self.z, self.norm = self.scaled(x)
        self.wake(x, k)
        self.at = np.concatenate([[0], 1 + np.flatnonzero(x)])
        margins = self.plain.margins(self.at, self.at, self.z[self.at], k)
        margins += [*np.nan_to_num(self.of_dense)]
        if self.crosses:
            serial = self.serial.get(k, 0)  # a task has records from its second row on
            self.crossed = self.crossing.row(x, self.z, serial)
            margins += self.tables.margins(*self.crossed, 0)
        else:
            margins += len(CROSSED) * [0.0]
        self.margins = np.clip(margins, -self.limit(), self.limit()) * self.awake
        trust = self.n[k] / (self.n[k] + 10)
        self.logits = self.margins.copy()
        for own, pooled in LEANS.items():
            self.logits[own] = self.awake[own] * (trust * self.margins[own] + (1 - trust) * self.margins[pooled])

    def answer(self, x: np.ndarray, k: int) -> float:
        self.ask(x, k)
        mine = self.mixtures(sigmoid(self.logits), k)
        inputs = np.concatenate([self.logits, [logit(mine), logit(self.everybody), 1]])
        trust = self.n[k] / (self.n[k] + 2.5)
        mixed = [trust * stack.ask(inputs, 15) + (1 - trust) * logit(self.everybody) for stack in self.stacks]
        self.answers = np.array([*sigmoid(np.array(mixed)), self.slowly])
        self.mixed = logit(self.trusts @ self.answers)
        self.doubt = min((self.surprises + 0.5) / (self.weight + 2), 0.5)
        p = (1 - self.doubt) * sigmoid(self.mixed) + self.doubt / 2
        return float(np.log(p / (1 - p)))

    def mixtures(self, forecasts: np.ndarray, k: int) -> float:
        """Of all tasks, and of this one."""
        weights, of_task = self.pi * self.awake, (self.pi_k[k] if self.n[k] else self.pi) * self.awake
        self.everybody = weights @ forecasts / weights.sum()
        self.slowly = self.slow * self.awake @ forecasts / (self.slow @ self.awake)
        return float(of_task @ forecasts / of_task.sum())

    def take_in(self, x: np.ndarray, h: float) -> None:
        used, x = x != 0, self.clipped(x)
        if self.was_narrow():
            share = h / (np.minimum(self.counts[used], 29) + h)
            self.recent[used] += share * (x[used] ** 2 - self.recent[used])
        self.n_entries += used.sum() if self.n_rows < 1000 else 0
        self.n_rows += 1
        self.squares[used] += h * x[used] ** 2
        self.counts[used] += h
        self.entries_squared += h * (x @ x)
        self.entries += h * used.sum()
        self.norms += h * self.norm
        self.l1 += h * np.abs(self.z).sum()
        self.rows += h
        if self.rows < 1000 or abs(self.norms / self.rows - self.length) > 0.01 * self.norms / self.rows:
            self.length = self.norms / self.rows

    def learn(self, x: Any, y: Any, k: Any, h: Any = 1.0) -> Any:
        f = self.answer(x, k)
        if h == 0:
            return f
        y, q = (y + 1) / 2, sigmoid(f)
        self.take_in(x, h)
        now = Now(y, h, h * q * (1 - q), h * (y - self.everybody) ** 2, 1 / (self.l1 / self.rows), 1e-12, False)
        self.learn_dense(x, k, now, y)
        self.learn_experts(x, k, now)
        self.mix_label(y, k, h)
        return f

    def mix_label(self, y: float, k: int, h: float) -> None:
        """The label says nothing about the row with chance `doubt`, and something with chance `says`."""
        for stack in self.stacks:
            q = sigmoid(stack.forecast)
            happened = (1 - self.doubt) * (q if y else 1 - q)
            says = happened / (happened + self.doubt / 2)
            tau = stack.drift(self.n.sum())
            pull = moved(stack.forecast, y, tau, says * h)
            curvature = h * max(says * q * (1 - q), 1e-5)
            stack.learn(says * (y - q) / (1 + curvature * tau) if h == 1 else pull, curvature)
        happened = [p if y else 1 - p for p in (sigmoid(self.logits), self.answers)]
        of_experts, of_answers = (((1 - self.doubt) * p + self.doubt / 2) ** h for p in happened)
        self.mix(of_experts, of_answers, k)
        self.surprises += h * (sigmoid(self.mixed if y else -self.mixed) * (self.weight + 2) < 1 - 1e-9)
        self.weight += h

    def learn_experts(self, x: np.ndarray, k: int, now: Now) -> None:
        self.plain.learn(self.at, self.at, self.z[self.at], k, self.margins[:12], now)
        if self.crosses:
            self.tables.learn(*self.crossed, 0, self.margins[22:], now)
            for table in (self.tables.v, self.tables.own_sums):
                table[:, 0, 0] = 0.0
            self.crossing.learn(x)
            self.serial.setdefault(k, len(self.serial) + 1)

    def learn_dense(self, x: np.ndarray, k: int, now: Now, target: float) -> None:
        self.is_asleep |= self.phase == "asleep"
        if not self.is_asleep:
            self.dense.learn(x, self.z, k, now, self.margins[14:16], target)

    def moved(self, weights: np.ndarray, likelihood: np.ndarray) -> np.ndarray:
        """Who sleeps has the mixture's likelihood."""
        of_mixture = weights @ (likelihood * self.awake) / (weights @ self.awake)
        return np.asarray(weights * np.where(self.awake > 0, likelihood / of_mixture, 1.0))

    def mix(self, likelihood: np.ndarray, of_answers: np.ndarray, k: int) -> None:
        if not self.n[k]:
            self.pi_k[k] = self.pi
        self.pi_k[k], self.pi = self.moved(self.pi_k[k], likelihood), self.moved(self.pi, likelihood)
        self.pi = 0.995 * self.pi + 0.005 * self.uniform
        self.pi_k[k] = 0.995 * self.pi_k[k] + 0.005 * self.pi
        self.slow = (1 - 1e-4) * self.moved(self.slow, likelihood) + 1e-4 * self.uniform
        trusts = self.trusts * of_answers / (self.trusts @ of_answers)
        self.trusts = (1 - 1e-4) * trusts + 1e-4 * np.array([0.45, 0.45, 0.1])
        self.n[k] += 1


class RegressionTwin(Twin):
    """Squared loss on targets less their running mean."""

    real = True

    def __init__(self, K: int, d: int, interactions: bool | str = True, *, trees: bool = False) -> None:
        super().__init__(K, d, interactions, trees=trees)
        self.center = self.scatter = self.largest = self.previous = self.jumps = 0.0
        self.targets, self.errors = Level(10), Level(7)
        self.least = np.inf

    def unit(self) -> float:
        return float(np.sqrt(self.scatter / self.targets.n)) if self.targets.n else 0.0

    def noise(self) -> float:
        level = self.errors
        return (
            float(np.sqrt(np.clip(level.squares / level.n, level.recent / 36, level.recent * 36))) if level.n else 0.0
        )

    def take_in_target(self, y: float, h: float) -> float:
        """Less the mean, which moves slowly after 1,000 rows; clipped."""
        targets = self.targets
        if not targets.n:
            self.center = y
        self.least = min(self.least, y)
        off = targets.clip(y - self.center, max(self.unit() ** 2, targets.recent / 36) if self.unit() else 0.0, h)
        self.jumps += h / (min(targets.n, 29) + h) * ((off - self.previous) ** 2 - self.jumps)
        targets.learn(off, h)
        most = np.inf if targets.n <= 1000 else h * np.sqrt(self.jumps) / 1000
        step = float(np.clip(h * off / targets.n, -most, most))
        self.center += step
        self.previous = off - step
        self.scatter += h * off * (off - step)
        self.largest = max(self.largest, abs(off))
        return off

    def pull_near_the_heaviest(self) -> None:
        if self.errors.n >= 10 and self.noise() > 0:
            center = self.logits[np.argmax(self.pi * self.awake)]
            self.logits = center + np.clip(self.logits - center, -10 * self.noise(), 10 * self.noise())

    def limit(self) -> float:
        return 2 * self.largest

    def answer(self, x: np.ndarray, k: int) -> float:
        self.ask(x, k)
        self.pull_near_the_heaviest()
        mine = self.mixtures(self.logits, k)
        unit = self.unit()
        inputs = np.concatenate([self.logits * self.awake, [mine, self.everybody]])
        one = min(1, 10 * self.noise() / unit) if unit > 0 else 1
        inputs = np.append(inputs / unit if unit > 0 else 0 * inputs, one)
        trust = self.n[k] / (self.n[k] + 2.5)
        mixed = [trust * stack.ask(inputs, self.limit(), unit) for stack in self.stacks]
        self.answers = np.array([*(np.array(mixed) + (1 - trust) * self.everybody), self.slowly])
        found = float(self.center + self.trusts @ self.answers)
        return max(found, self.least / 2) if self.targets.n >= 10 and self.least >= 0 else found

    def learn(self, x: np.ndarray, y: float, k: int, h: float = 1.0) -> float:
        answer, before = self.answer(x, k), self.unit()
        if h == 0:
            return answer
        before_y = self.center if self.targets.n else y
        y = self.take_in_target(y, h)
        self.dense.mean, target = self.center, before_y + y
        self.take_in(x, h)
        unit = self.unit()
        per_row, tiny = unit / (self.l1 / self.rows), max(1e-12 * unit**2, 1e-37)
        self.learn_dense(x, k, Now(y, h, h, 0.0, per_row, tiny, True), target)
        e = self.errors.clip(y - self.everybody, self.noise() ** 2, h, unit)
        self.errors.learn(e, h)
        if self.errors.n > 300:
            self.errors.squares, self.errors.n = self.errors.squares * 300 / self.errors.n, 300.0
        y = self.everybody + e
        self.learn_experts(x, k, Now(y, h, h, h * e**2, per_row, tiny, True))
        variance = self.noise() ** 2
        if variance > 0 and before > 0:
            precision = h * before**2 / variance
            for stack in self.stacks:
                tau = stack.drift(self.n.sum())
                stack.learn(precision * (y - stack.forecast) / before / (1 + precision * tau), precision)
            squares, of_answers = (y - self.logits) ** 2, (y - self.answers) ** 2
            least = squares[self.awake > 0].min()
            likelihood = np.exp(h * (least - squares) / (2 * variance))
            self.mix(likelihood, np.exp(h * (of_answers.min() - of_answers) / (2 * variance)), k)
        else:
            self.n[k] += 1
        return answer


def learn(
    X: np.ndarray, y: np.ndarray, task: np.ndarray, rounds: np.ndarray | None, K: int, kind: type[Twin] = Twin,
    weight: np.ndarray | None = None, interactions: bool | str = True, *, trees: bool = False,
) -> tuple[np.ndarray, Any]:  # fmt: skip
    """Decisions before each round, and the twin after the stream."""
    weight = np.ones(len(y)) if weight is None else weight
    twin, decisions = kind(K, X.shape[1], interactions, trees=trees), np.zeros(len(y))
    ids = np.arange(len(y)) if rounds is None else rounds
    for r in dict.fromkeys(ids.tolist()):
        rows = np.flatnonzero(ids == r)
        decisions[rows] = [twin.answer(X[i], task[i]) for i in rows]
        for i in rows:
            twin.learn(X[i], y[i], task[i], weight[i])
    return decisions, twin
