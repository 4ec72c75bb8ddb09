"""The experts, one line each (on which row, how it shares, by which rule it learns), and which are awake.

With margin m of an expert, error e (of a label y - sigmoid(m), of a real target y - m), curvature c (p (1 - p), or 1)
and per-feature steps r_j,

    w_j <- w_j + r_j x_j e / (1 + tau c),   tau = sum_j r_j x_j^2 over all that the expert moves

which is one Newton iterate of the implicit step; an undivided expert leaves out the division for labels. Rules:

    NEWTON      r = 1/(a + H),    H <- H + c x^2 at the final forecast
    FORGETTING  r = 1/(a + HF),   HF <- 0.99 HF + c x^2
    ADAGRAD     r = a/(l sqrt(G)), G <- G + e^2 x^2 at the mixture of all tasks; l: mean 1-norm of rows
    CONSTANT    r = a
    KALMAN      a full matrix instead of r (`kalman`), whose variances grow by a x^2
    DENSE       their own (`dense`)

H, HF and G take the row in before the step.

Crossed rows and full matrices pay for tables with few numbers a row; on text they would cost much and bring little.
A stream is narrow at a row if its first 1,000 rows, or those so far, this one included, have at most 32 entries on
average, or if at most 256 features have come so far.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel

POOLED, TOGETHER, OWN = range(3)  # the margin is that of s; s + v_k, both step; v_k
X, SQUARE, NEWTON, FORGETTING, ADAGRAD, CONSTANT, KALMAN, DENSE = range(8)  # rules; the first two: of every row
KEPT = 0.99  # of HF in a row


class Expert(NamedTuple):
    """One line of the table."""

    name: str
    sharing: int
    rule: int
    a: float = 0.0
    divided: bool = True
    labels_only: bool = False  # of real targets it would equal another expert
    targets_only: bool = False
    shrinks_to: str = ""  # in a task of few rows


PLAIN = (  # on the scaled row
    Expert("newton-pooled-undivided", POOLED, NEWTON, 0.1, divided=False, labels_only=True),
    Expert("newton-pooled", POOLED, NEWTON, 0.1),
    Expert("newton-together", TOGETHER, NEWTON, 1.0),
    Expert("newton-own", OWN, NEWTON, 0.1, divided=False, shrinks_to="newton-pooled"),
    Expert("adagrad-pooled", POOLED, ADAGRAD, 3.0),
    Expert("adagrad-together", TOGETHER, ADAGRAD, 3.0),
    Expert("adagrad-own", OWN, ADAGRAD, 3.0, shrinks_to="adagrad-pooled"),
    Expert("constant-pooled", POOLED, CONSTANT, 0.4),
    Expert("constant-together", TOGETHER, CONSTANT, 0.1),
    Expert("constant-own", OWN, CONSTANT, 1.6, shrinks_to="constant-pooled"),
    Expert("constant-pooled-fast", POOLED, CONSTANT, 1.6),
    Expert("adagrad-pooled-slow", POOLED, ADAGRAD, 0.3),
)
FULL = (  # on the scaled row, with full matrices
    Expert("full-pooled", POOLED, KALMAN, 0.05),
    Expert("full-own", OWN, KALMAN, 1e-5, shrinks_to="newton-pooled"),
)
DENSE_ROWS = (  # on the row by columns: see `dense`, whose margins come in this order
    Expert("levels", TOGETHER, DENSE),
    Expert("levels-log", TOGETHER, DENSE, targets_only=True),
    *FULL,
    Expert("effects", TOGETHER, DENSE),
    Expert("effects-implicit", TOGETHER, DENSE, labels_only=True),
    Expert("trees-20", TOGETHER, DENSE),
    Expert("trees-60", TOGETHER, DENSE),
    Expert("trees-120", TOGETHER, DENSE),
    Expert("trees-large", TOGETHER, DENSE),
)
CROSSED = (  # on the scaled row, its bins and its pairs
    Expert("crossed-newton-pooled", POOLED, NEWTON, 0.1),
    Expert("crossed-newton-together", TOGETHER, NEWTON, 1.0),
    Expert("crossed-adagrad-together", TOGETHER, ADAGRAD, 1.0),
    Expert("crossed-adagrad-own", OWN, ADAGRAD, 3.0, shrinks_to="crossed-newton-pooled"),
    Expert("crossed-forgetting-pooled", POOLED, FORGETTING, 0.1),
    Expert("crossed-forgetting-together", TOGETHER, FORGETTING, 1.0),
)
EXPERTS = PLAIN + DENSE_ROWS + CROSSED  # those that sleep on text come last
N_EXPERTS = len(EXPERTS)
FIRST_DENSE, FIRST_CROSSED = len(PLAIN), len(PLAIN) + len(DENSE_ROWS)

LINEAR = [e for e, expert in enumerate(EXPERTS) if expert in PLAIN + FULL]  # on the scaled row
_NAMES = [expert.name for expert in EXPERTS]
SHRUNK = tuple(e for e, expert in enumerate(EXPERTS) if expert.shrinks_to)  # own experts ...
TOWARD = tuple(_NAMES.index(EXPERTS[e].shrinks_to) for e in SHRUNK)  # ... and the pooled one of each

# Arrays of a number for each expert begin with three others: logits with the first of those that shrink, inputs of the
# second mixing with the two mixtures and 1. Up to `levels` they fill whole turns of SIMD loops; where the other experts
# sleep, the rest of an array is not used.
OF_TASK, OF_ALL, ONE = range(3)  # of the inputs
HEAD = max(3, sum(e <= FIRST_DENSE for e in SHRUNK))
SHRUNK_AT = tuple(i if i < HEAD else N_EXPERTS + i for i in range(len(SHRUNK)))
N_LOGITS, N_INPUTS = N_EXPERTS + len(SHRUNK), HEAD + N_EXPERTS
FEW = HEAD + FIRST_DENSE + 1


LEARNED, INDEPENDENT, ALL_POOLED = range(3)  # the experts that take part: all, those of own weights, the pooled ones
NEVER, NARROW, ALWAYS = range(3)  # when crossed rows are made
# Positions in `seen`: entries of the first DECIDING rows, rows, features up to one more than matter.
SEEN_ENTRIES, SEEN_ROWS, FEATURES = range(3)
FEW_ENTRIES, FEW_FEATURES, DECIDING = 32, 256, 1000
SHARED_PART, OWN_PART = 1, 2  # the parts that learn
SHARING = np.array([expert.sharing for expert in EXPERTS])
LABELS_ONLY = np.array([expert.labels_only for expert in EXPERTS])
TARGETS_ONLY = np.array([expert.targets_only for expert in EXPERTS])
TREES = np.array([expert.name.startswith("trees") for expert in EXPERTS])


@kernel(entry="too")
def taking_part(sharing: int, interactions: int, trees: bool, regression: bool, out: FloatArray) -> float:
    """1 for experts that may be awake, 0 for the others; return how many may."""
    n = 0.0
    for e in range(N_EXPERTS):
        absent = sharing == INDEPENDENT and SHARING[e] != OWN
        absent |= sharing == ALL_POOLED and SHARING[e] != POOLED and not TREES[e]  # they are told no tasks then
        absent |= LABELS_ONLY[e] if regression else TARGETS_ONLY[e]
        absent |= (interactions == NEVER and e >= FIRST_CROSSED) or (TREES[e] and not trees)
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


@kernel(entry="too")
def is_narrow(n: int, new: int, seen: IntArray) -> bool:
    """Whether the stream is narrow at a row of n entries, the constant included."""
    few = seen[FEATURES] + new <= FEW_FEATURES
    if seen[SEEN_ROWS] >= DECIDING:
        return bool(few or seen[SEEN_ENTRIES] <= FEW_ENTRIES * DECIDING)
    return bool(few or seen[SEEN_ENTRIES] + n - 1 <= FEW_ENTRIES * (seen[SEEN_ROWS] + 1))


@kernel(alone=False)
def is_wide_for_good(new: int, seen: IntArray) -> bool:
    """Whether no row will be narrow again, given the number of new features in this one."""
    return seen[SEEN_ROWS] >= DECIDING and not is_narrow(1, new, seen)


@kernel(alone=False)
def learn_seen(n: int, new: int, seen: IntArray) -> None:
    """Count the row."""
    seen[SEEN_ENTRIES] += n - 1 if seen[SEEN_ROWS] < DECIDING else 0
    seen[SEEN_ROWS] += 1
    seen[FEATURES] += new
