"""A Kalman filter whose matrix is diagonal plus rank."""

from __future__ import annotations

import numpy as np
from tests.twins.hedged_sharing.steps import Now, sigmoid


class LowRank:
    """w and P = diag(D) - B'B over d features and the constant, which is the first; at most 2 m rows in B."""

    def __init__(self, d: int, drift: float, m: int = 8) -> None:
        self.w, self.D, self.drift, self.m = np.zeros(1 + d), np.full(1 + d, 10.0), drift, m
        self.B: list[np.ndarray] = []

    def P(self) -> np.ndarray:
        B = np.reshape(self.B, (-1, len(self.D)))
        return np.asarray(np.diag(self.D) - B.T @ B)

    def learn(self, z: np.ndarray, m: float, now: Now) -> None:
        if len(self.B) == 2 * self.m:
            self.fold()
        p = sigmoid(m)
        c = now.h * (1.0 if now.real else max(p * (1 - p), 1e-3))
        v = self.P() @ z
        tau = z @ v
        pull = (now.y - (m if now.real else p)) / (1 + c * tau) if now.h == 1 else now.pull(m, tau)
        self.w += v * pull
        self.B.append(v * np.sqrt(c / (1 + c * tau)))
        self.D += self.drift * z**2

    def fold(self) -> None:
        """The precision keeps its m largest directions in coordinates of the diagonal, and its diagonal."""
        root = np.sqrt(self.D)
        _, s, Q = np.linalg.svd(np.array(self.B) / root, full_matrices=False)
        gain = s**2 / (1 - s**2)
        W = (Q * np.sqrt(gain)[:, None] / root)[: self.m]  # P^-1 = diag(1/D) + W'W of these
        precision = 1 / self.D + (gain[self.m :, None] * Q[self.m :] ** 2).sum(axis=0) / self.D
        P = np.linalg.inv(np.diag(precision) + W.T @ W)
        self.D = 1 / precision
        values, vectors = np.linalg.eigh(np.diag(self.D) - P)
        self.B = [*(vectors * np.sqrt(np.maximum(values, 0.0))).T[-self.m :]]
