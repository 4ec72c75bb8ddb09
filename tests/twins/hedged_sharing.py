"""HedgedSharing in plain NumPy: dense weights for every task, one row at a time, nothing shared with the fast path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def sigmoid(m: Any) -> Any:
    return 1 / (1 + np.exp(-m))


def parts(h: float) -> Iterator[float]:
    """1, 1, 2, 4, ..., and what is left of h."""
    done = 0.0
    while done < h:
        yield min(max(done, 1.0), h - done)
        done += min(max(done, 1.0), h - done)


def moved(m: float, y: float, tau: float, h: float) -> float:
    """What a label of weight h moves a margin by, over tau."""
    total = 0.0
    for part in parts(h):
        p = sigmoid(m + tau * total)
        total += part * (y - p) / (1 + tau * part * p * (1 - p))
    return total


def logit(p: float) -> float:
    return float(np.clip(np.log(p) - np.log1p(-p), -15, 15))


class Twin:
    """Dense state for K tasks and d features; column 0 is the constant."""

    shorten = True

    def __init__(self, K: int, d: int) -> None:
        self.squares, self.counts = np.zeros(d), np.zeros(d)
        self.entries_squared = self.entries = self.norms = self.l1 = self.rows = 0.0

        def zeros() -> np.ndarray:
            return np.zeros(1 + d)

        def own() -> np.ndarray:
            return np.zeros((K, 1 + d))

        self.pooled = {rule: zeros() for rule in "NAC"}
        self.shared = {rule: zeros() for rule in "NAC"}
        self.part = {rule: own() for rule in "NAC"}
        self.own = {rule: own() for rule in "NAC"}
        self.H, self.G, self.Hk, self.Gk = zeros(), zeros(), own(), own()
        self.n = np.zeros(K)
        self.pi, self.pi_k = np.full(9, 1 / 9), np.full((K, 9), 1 / 9)
        self.w, self.P = np.zeros(12), np.eye(12)
        self.w[9] = 1

    def scaled(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        used = x != 0
        usual = np.sqrt((self.entries_squared + x @ x) / max(self.entries + used.sum(), 1))
        rms = np.sqrt((self.squares + x**2) / (self.counts + 1))
        z = np.zeros(len(x))
        z[used] = x[used] * np.clip(rms[used], usual / 3, usual * 3) / rms[used]
        norm = float(np.linalg.norm(z))
        length = (self.norms + norm) / (self.rows + 1)
        if self.shorten:
            length = max(norm, length)
        return np.concatenate([[0.3], z / length if length > 0 else z]), norm

    def logits(self, z: np.ndarray, k: int) -> np.ndarray:
        margins = []
        for r in "NAC":
            margins += [self.pooled[r] @ z, (self.shared[r] + self.part[r][k]) @ z, self.own[r][k] @ z]
        self.margins = np.clip(margins, -15, 15)
        logits: np.ndarray = self.margins.copy()
        trust = self.n[k] / (self.n[k] + 10)
        logits[2::3] = trust * self.margins[2::3] + (1 - trust) * self.margins[0::3]
        return logits

    def answer(self, x: np.ndarray, k: int) -> float:
        self.z, self.norm = self.scaled(x)
        self.experts = self.logits(self.z, k)
        p = sigmoid(self.experts)
        self.everybody = self.pi @ p
        mine = (self.pi_k[k] if self.n[k] else self.pi) @ p
        self.inputs = np.concatenate([self.experts, [logit(mine), logit(self.everybody), 1]])
        return float(np.clip(self.w @ self.inputs, -15, 15))

    def take_in(self, x: np.ndarray, h: float) -> None:
        used = x != 0
        self.squares[used] += h * x[used] ** 2
        self.counts[used] += h
        self.entries_squared += h * (x @ x)
        self.entries += h * used.sum()
        self.norms += h * self.norm
        self.l1 += h * np.abs(self.z).sum()
        self.rows += h

    def learn(self, x: Any, y: Any, k: Any, h: Any = 1.0) -> Any:
        f = self.answer(x, k)
        if h == 0:
            return f
        y, q, z = (y + 1) / 2, sigmoid(f), self.z
        self.take_in(x, h)
        for H, G in ((self.H, self.G), (self.Hk[k], self.Gk[k])):
            H += h * q * (1 - q) * z**2
            G += h * (y - self.everybody) ** 2 * z**2
        eta = 3 / (self.l1 / self.rows)
        touched = z != 0
        A, Ak = (np.where(touched, eta / np.sqrt(G + 1e-12), 0) for G in (self.G, self.Gk[k]))
        one = np.ones_like(z)
        steps = {  # rule -> (pooled, shared part, own part, own)
            "N": (1 / (0.1 + self.H), 1 / (1 + self.H), 1 / (1 + self.Hk[k]), 1 / (0.1 + self.Hk[k])),
            "A": (A, A, Ak, Ak),
            "C": (0.4 * one, 0.1 * one, 0.1 * one, 1.6 * one),
        }
        for i, rule in enumerate("NAC"):
            r = steps[rule]
            moves = (((r[0], self.pooled[rule]),), ((r[1], self.shared[rule]), (r[2], self.part[rule][k])),
                     ((r[3], self.own[rule][k]),))  # fmt: skip
            for sharing, moving in enumerate(moves):
                tau = sum(step @ z**2 for step, _ in moving)
                for step, weights in moving:
                    weights += step * z * moved(self.margins[3 * i + sharing], y, tau, h)
        self.mix(y, f, q, k, h)
        self.n[k] += 1
        return f

    def mix(self, y: float, f: float, q: float, k: int, h: float) -> None:
        p = sigmoid(self.experts)
        happened = (p if y else 1 - p) ** h
        if not self.n[k]:
            self.pi_k[k] = self.pi
        self.pi = 0.99 * self.pi * happened / (self.pi @ happened) + 0.01 / 9
        self.pi_k[k] = 0.99 * self.pi_k[k] * happened / (self.pi_k[k] @ happened) + 0.01 * self.pi
        self.P += 1e-6 * np.eye(12)
        curvature, Pz = h * q * (1 - q), self.P @ self.inputs
        self.w += Pz * moved(f, y, self.inputs @ Pz, h)
        self.P -= curvature * np.outer(Pz, Pz) / (1 + curvature * self.inputs @ Pz)


class RegressionTwin(Twin):
    """Squared loss on targets less their running mean."""

    shorten = False

    def __init__(self, K: int, d: int) -> None:
        super().__init__(K, d)
        self.seen: list[float] = []
        self.often: list[float] = []
        self.largest = self.errors = 0.0

    def unit(self) -> float:
        return float(np.sqrt(np.cov(self.seen, aweights=self.often, ddof=0))) if self.seen else 0.0

    def mean(self) -> float:
        return float(np.average(self.seen, weights=self.often)) if self.seen else 0.0

    def answer(self, x: np.ndarray, k: int) -> float:
        self.z, self.norm = self.scaled(x)
        margins = []
        for r in "NAC":
            margins += [self.pooled[r] @ self.z, (self.shared[r] + self.part[r][k]) @ self.z, self.own[r][k] @ self.z]
        limit = 2 * self.largest
        self.margins = np.clip(margins, -limit, limit)
        self.experts = self.margins.copy()
        trust = self.n[k] / (self.n[k] + 10)
        self.experts[2::3] = trust * self.margins[2::3] + (1 - trust) * self.margins[0::3]
        self.everybody = self.pi @ self.experts
        mine = (self.pi_k[k] if self.n[k] else self.pi) @ self.experts
        unit = self.unit()
        inputs = np.concatenate([self.experts, [mine, self.everybody]])
        self.inputs = np.append(inputs / unit if unit > 0 else 0 * inputs, 1)
        self.f = np.clip(unit * (self.w @ self.inputs), -limit, limit)
        return float(self.mean() + self.f)

    def learn(self, x: np.ndarray, y: float, k: int, h: float = 1.0) -> float:
        answer, before = self.answer(x, k), self.unit()
        if h == 0:
            return answer
        y0, y, z = y, y - self.mean() if self.seen else 0.0, self.z
        self.take_in(x, h)
        self.seen.append(y0)
        self.often.append(h)
        self.largest = max(self.largest, abs(y))
        self.errors += h * (y - self.everybody) ** 2
        for H, G in ((self.H, self.G), (self.Hk[k], self.Gk[k])):
            H += h * z**2
            G += h * (y - self.everybody) ** 2 * z**2
        eta, tiny = 3 * self.unit() / (self.l1 / self.rows), max(1e-12 * self.unit() ** 2, 1e-300)
        A, Ak = (np.where(z != 0, eta / np.sqrt(G + tiny), 0) for G in (self.G, self.Gk[k]))
        one = np.ones_like(z)
        N = (1 / (0.1 + self.H), 1 / (1 + self.H), 1 / (1 + self.Hk[k]), 1 / (0.1 + self.Hk[k]))
        steps = {"N": N, "A": (A, A, Ak, Ak), "C": (0.4 * one, 0.1 * one, 0.1 * one, 1.6 * one)}
        for i, rule in enumerate("NAC"):
            r = steps[rule]
            moves = (((r[0], self.pooled[rule]),), ((r[1], self.shared[rule]), (r[2], self.part[rule][k])),
                     ((r[3], self.own[rule][k]),))  # fmt: skip
            for sharing, moving in enumerate(moves):
                tau = sum(step @ z**2 for step, _ in moving)
                for step, weights in moving:
                    weights += step * z * h * (y - self.margins[3 * i + sharing]) / (1 + h * tau)
        variance = self.errors / sum(self.often)
        if variance > 0 and before > 0:
            self.mix_real(y, variance, before, k, h)
        self.n[k] += 1
        return answer

    def mix_real(self, y: float, variance: float, unit: float, k: int, h: float) -> None:
        squares = (y - self.experts) ** 2
        likelihood = np.exp(h * (squares.min() - squares) / (2 * variance))
        if not self.n[k]:
            self.pi_k[k] = self.pi
        self.pi = 0.99 * self.pi * likelihood / (self.pi @ likelihood) + 0.01 / 9
        self.pi_k[k] = 0.99 * self.pi_k[k] * likelihood / (self.pi_k[k] @ likelihood) + 0.01 * self.pi
        self.P += 1e-6 * np.eye(12)
        precision, Pz = h * unit**2 / variance, self.P @ self.inputs
        self.w += Pz * precision * (y - self.f) / unit / (1 + precision * self.inputs @ Pz)
        self.P -= precision * np.outer(Pz, Pz) / (1 + precision * self.inputs @ Pz)


def learn(
    X: np.ndarray, y: np.ndarray, task: np.ndarray, rounds: np.ndarray | None, K: int, kind: type[Twin] = Twin,
    weight: np.ndarray | None = None,
) -> tuple[np.ndarray, Any]:  # fmt: skip
    """Decisions before each round, and the twin after the stream."""
    weight = np.ones(len(y)) if weight is None else weight
    twin, decisions = kind(K, X.shape[1]), np.zeros(len(y))
    ids = np.arange(len(y)) if rounds is None else rounds
    for r in dict.fromkeys(ids.tolist()):
        rows = np.flatnonzero(ids == r)
        decisions[rows] = [twin.answer(X[i], task[i]) for i in rows]
        for i in rows:
            twin.learn(X[i], y[i], task[i], weight[i])
    return decisions, twin
