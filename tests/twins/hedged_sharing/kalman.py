"""A Kalman filter."""

from __future__ import annotations

import numpy as np
from tests.twins.hedged_sharing.steps import Now, sigmoid


class Kalman:
    """w and P over d features and the constant, which is the first."""

    def __init__(self, d: int, drift: float) -> None:
        self.w, self.P, self.drift = np.zeros(1 + d), 10 * np.eye(1 + d), drift

    def learn(self, z: np.ndarray, m: float, now: Now) -> None:
        p = sigmoid(m)
        c = now.h * (1.0 if now.real else max(p * (1 - p), 1e-3))
        v = self.P @ z
        tau = z @ v
        pull = (now.y - (m if now.real else p)) / (1 + c * tau) if now.h == 1 else now.pull(m, tau)
        self.w += v * pull
        self.P -= c * np.outer(v, v) / (1 + c * tau)
        self.P += self.drift * np.diag(z**2)
