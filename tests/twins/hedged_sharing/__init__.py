"""HedgedSharing in plain NumPy: dense weights, one row at a time, nothing shared with the fast path."""

from __future__ import annotations

from tests.twins.hedged_sharing.kalman import Kalman
from tests.twins.hedged_sharing.low_rank import LowRank
from tests.twins.hedged_sharing.steps import Now
from tests.twins.hedged_sharing.twin import RegressionTwin, Twin, learn

__all__ = ["Kalman", "LowRank", "Now", "RegressionTwin", "Twin", "learn"]
