"""HedgedSharing in plain NumPy: dense weights for every task, one row at a time, nothing shared with the fast path."""

from __future__ import annotations

from typing import Any

import numpy as np


def sigmoid(m: Any) -> Any:
    return 1 / (1 + np.exp(-m))


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

    def learn(self, x: np.ndarray, y: float, k: int) -> float:
        f = self.answer(x, k)
        y, q, z = (y + 1) / 2, sigmoid(f), self.z
        used = x != 0
        self.squares[used] += x[used] ** 2
        self.counts[used] += 1
        self.entries_squared += x @ x
        self.entries += used.sum()
        self.norms += self.norm
        self.l1 += np.abs(z).sum()
        self.rows += 1
        for H, G in ((self.H, self.G), (self.Hk[k], self.Gk[k])):
            H += q * (1 - q) * z**2
            G += (y - self.everybody) ** 2 * z**2
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
                p = sigmoid(self.margins[3 * i + sharing])
                tau = sum(step @ z**2 for step, _ in moving)
                for step, weights in moving:
                    weights += step * z * (y - p) / (1 + tau * p * (1 - p))
        self.mix(y, q, k)
        self.n[k] += 1
        return f

    def mix(self, y: float, q: float, k: int) -> None:
        p = sigmoid(self.experts)
        happened = p if y else 1 - p
        if not self.n[k]:
            self.pi_k[k] = self.pi
        self.pi = 0.99 * self.pi * happened / (self.pi @ happened) + 0.01 / 9
        self.pi_k[k] = 0.99 * self.pi_k[k] * happened / (self.pi_k[k] @ happened) + 0.01 * self.pi
        self.P += 1e-6 * np.eye(12)
        h, Pz = q * (1 - q), self.P @ self.inputs
        self.w += Pz * (y - q) / (1 + h * self.inputs @ Pz)
        self.P -= h * np.outer(Pz, Pz) / (1 + h * self.inputs @ Pz)


class RegressionTwin(Twin):
    """Squared loss on targets less their running mean."""

    shorten = False

    def __init__(self, K: int, d: int) -> None:
        super().__init__(K, d)
        self.seen: list[float] = []
        self.largest = self.errors = 0.0

    def unit(self) -> float:
        return float(np.std(self.seen)) if self.seen else 0.0

    def mean(self) -> float:
        return float(np.mean(self.seen)) if self.seen else 0.0

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

    def learn(self, x: np.ndarray, y: float, k: int) -> float:
        answer, before = self.answer(x, k), self.unit()
        y0, y, z, used = y, y - self.mean() if self.seen else 0.0, self.z, x != 0
        self.squares[used] += x[used] ** 2
        self.counts[used] += 1
        self.entries_squared += x @ x
        self.entries += used.sum()
        self.norms += self.norm
        self.l1 += np.abs(z).sum()
        self.rows += 1
        self.seen.append(y0)
        self.largest = max(self.largest, abs(y))
        self.errors += (y - self.everybody) ** 2
        for H, G in ((self.H, self.G), (self.Hk[k], self.Gk[k])):
            H += z**2
            G += (y - self.everybody) ** 2 * z**2
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
                    weights += step * z * (y - self.margins[3 * i + sharing]) / (1 + tau)
        variance = self.errors / len(self.seen)
        if variance > 0 and before > 0:
            self.mix_real(y, variance, before, k)
        self.n[k] += 1
        return answer

    def mix_real(self, y: float, variance: float, unit: float, k: int) -> None:
        squares = (y - self.experts) ** 2
        likelihood = np.exp((squares.min() - squares) / (2 * variance))
        if not self.n[k]:
            self.pi_k[k] = self.pi
        self.pi = 0.99 * self.pi * likelihood / (self.pi @ likelihood) + 0.01 / 9
        self.pi_k[k] = 0.99 * self.pi_k[k] * likelihood / (self.pi_k[k] @ likelihood) + 0.01 * self.pi
        self.P += 1e-6 * np.eye(12)
        h, Pz = unit**2 / variance, self.P @ self.inputs
        self.w += Pz * h * (y - self.f) / unit / (1 + h * self.inputs @ Pz)
        self.P -= h * np.outer(Pz, Pz) / (1 + h * self.inputs @ Pz)


def learn(
    X: np.ndarray, y: np.ndarray, task: np.ndarray, rounds: np.ndarray | None, K: int, kind: type[Twin] = Twin
) -> tuple[np.ndarray, Any]:
    """Decisions before each round, and the twin after the stream."""
    twin, decisions = kind(K, X.shape[1]), np.zeros(len(y))
    ids = np.arange(len(y)) if rounds is None else rounds
    for r in dict.fromkeys(ids.tolist()):
        rows = np.flatnonzero(ids == r)
        decisions[rows] = [twin.answer(X[i], task[i]) for i in rows]
        for i in rows:
            twin.learn(X[i], y[i], task[i])
    return decisions, twin
