"""Comparators for bound tests: any, equal ones, and the best in hindsight."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from tests.streams import Stream

kinds = st.sampled_from(["equal", "random", "best"])
scales = st.sampled_from([0.0, 0.1, 1.0, 3.0, 10.0])


def comparator_for(stream: Stream, kind: str, scale: float, seed: int, K: int) -> np.ndarray:
    """(K, d) weights; "best" fits every task by least squares."""
    rng = np.random.default_rng(seed)
    d = stream.X.shape[1]
    if kind == "equal":
        return np.tile(rng.normal(size=d) * scale, (K, 1))
    if kind == "random":
        return rng.normal(size=(K, d)) * scale
    own = [stream.task == k for k in range(K)]
    return scale * np.stack([np.linalg.lstsq(stream.X[rows], stream.y[rows])[0] for rows in own])
