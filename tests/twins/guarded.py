"""A learner that shares and one that does not, mixed by the trust of each task: one row at a time, in plain NumPy."""

from typing import Any

import numpy as np


class Calibration:
    """Margins as probabilities: sigma(a f/s + c), by online Newton steps."""

    def __init__(self) -> None:
        self.w, self.P = np.array([1.0, 0.0]), np.eye(2)
        self.squares: list[float] = []

    def z(self, f: float) -> Any:
        return np.array([f / np.sqrt(np.mean(self.squares)) if np.sum(self.squares) > 0 else 0.0, 1.0])

    def p(self, f: float) -> float:
        return float(1 / (1 + np.exp(-self.w @ self.z(f))))

    def learn(self, f: float, y: float) -> None:
        if np.sum(self.squares) > 0:
            z, p = self.z(f), self.p(f)
            h = max(p * (1 - p), 1e-3)
            v = self.P @ z
            self.w = self.w + v * (y - p) / (1 + h * z @ v)
            self.P = self.P - h * np.outer(v, v) / (1 + h * z @ v)
        self.squares.append(f * f)


class Guard:
    """`q` answers a row of two margins, `learn` learns it; y is 0 or 1."""

    def __init__(self, prior: float, share: float, *, calibrates: bool) -> None:
        self.prior, self.share = prior, share
        self.calibrations = [Calibration(), Calibration()] if calibrates else None
        self.w: dict[Any, float] = {}
        self.losses: dict[Any, Any] = {}

    def p(self, f: Any) -> Any:
        if self.calibrations is None:
            p = [1 / (1 + np.exp(-one)) for one in f]
        else:
            p = [calibration.p(one) for calibration, one in zip(self.calibrations, f, strict=True)]
        return np.clip(p, 1e-6, 1 - 1e-6)

    def q(self, k: Any, f: Any) -> float:
        w, (p1, p0) = self.w.get(k, self.prior), self.p(f)
        return float(w * p1 + (1 - w) * p0)

    def learn(self, k: Any, f: Any, y: float) -> None:
        w, q = self.w.get(k, self.prior), self.q(k, f)
        p1, p0 = self.p(f) if y == 1 else 1 - self.p(f)
        self.losses[k] = self.losses.get(k, np.zeros(3)) - np.log([p1, p0, q if y == 1 else 1 - q])
        w = w * p1 / (w * p1 + (1 - w) * p0)
        self.w[k] = (1 - self.share) * w + self.share * self.prior
        for calibration, one in zip(self.calibrations or (), f, strict=False):
            calibration.learn(one, y)
