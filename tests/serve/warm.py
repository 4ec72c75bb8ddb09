"""What a process of the tests needs, loaded before it is forked; polars may be imported, but not used before a fork."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from tests.serve.material import default_learner

import shoal.serve.engine  # noqa: F401 (loaded before the fork)

X = sp.csr_matrix(np.eye(8))
default_learner().partial_fit(X, ["no", "yes"] * 4, ["u1", "u2"] * 4, classes=["no", "yes"])
