"""Which experts are awake: by how the user wants to share, and by how wide the rows are.

Crossed rows and full matrices pay for tables with few numbers a row; on text they would cost much and bring little.
A stream is narrow at a row if its rows have had at most 32 entries on average, this one included, or if at most 256
features have come so far.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.online.hedged_sharing.experts import EXPERTS, FIRST_CROSSED, N_EXPERTS, OWN, POOLED

LEARNED, INDEPENDENT, ALL_POOLED = range(3)  # who takes part: all experts, those of own weights, the pooled ones
NEVER, NARROW, ALWAYS = range(3)  # when crossed rows are made
ENTRIES, ROWS, FEATURES = range(3)  # positions in `seen`: of rows that counted; features up to one more than matter
FEW_ENTRIES, FEW_FEATURES = 32, 256
SHARED_PART, OWN_PART = 1, 2  # what learns
SHARING = np.array([expert.sharing for expert in EXPERTS])
LABELS_ONLY = np.array([expert.labels_only for expert in EXPERTS])


@kernel(entry=True)
def taking_part(sharing: int, interactions: int, regression: bool, out: FloatArray) -> float:
    """1 for experts that may be awake, 0 for the others; return how many may."""
    n = 0.0
    for e in range(N_EXPERTS):
        absent = (sharing == INDEPENDENT and SHARING[e] != OWN) or (sharing == ALL_POOLED and SHARING[e] != POOLED)
        absent |= regression and LABELS_ONLY[e]
        absent |= interactions == NEVER and e >= FIRST_CROSSED
        out[e] = 0.0 if absent else 1.0
        n += out[e]
    return n


@kernel(alone=False)
def parts_of(sharing: int) -> int:
    """SHARED_PART, OWN_PART or both."""
    return SHARED_PART if sharing == ALL_POOLED else OWN_PART if sharing == INDEPENDENT else SHARED_PART | OWN_PART


@kernel(alone=False)
def new_features(n: int, feature: IntArray, counts: FloatArray, seen: IntArray) -> int:
    """Entries of a row, the constant first, whose feature has not come before; none matter once many have come."""
    if seen[FEATURES] > FEW_FEATURES:
        return 0
    new = 0
    for i in range(1, n):
        new += int(counts[np.uint64(feature[i] - 1), 1] == 0.0)
    return new


@kernel(alone=False)
def is_narrow(n: int, new: int, seen: IntArray) -> bool:
    """Whether the stream is narrow at a row of n entries, the constant included."""
    few = seen[FEATURES] + new <= FEW_FEATURES
    return bool(few or seen[ENTRIES] + n - 1 <= FEW_ENTRIES * (seen[ROWS] + 1))


@kernel(alone=False)
def learn_seen(n: int, new: int, seen: IntArray) -> None:
    """Count the row."""
    seen[ENTRIES] += n - 1
    seen[ROWS] += 1
    seen[FEATURES] += new
