"""The p-norm link of a growing matrix: W = grad (1/2)||V||_p^2, that is W = sign(V) |V|^(p-1) / ||V||_p^(p-2).

V is never stored where its columns share: V[:, j] = own S[:, j] + shared s. Its p-norm is kept as sums over features,
blocks of features and blocks of blocks, so that a change of n features costs O(n) whatever d is and no error adds
up. All powers are taken of |V|/scale; the scale follows the largest entry, so nothing over- or underflows.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.axes import FEATURE, OTHER, TASK
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import TASKS

BLOCK = 64
P, OWN, SHARED, SCALE, FACTOR = range(5)  # positions in `link`
RANGE = 2.0**300  # a sum of powers beyond this, or below its inverse, calls for a new scale


class State(NamedTuple):
    """Weights lie feature by feature, all tasks together."""

    own: Annotated[FloatArray, FEATURE, TASK]  # S, sums of own steps; V itself under a given relation; empty if pooled
    shared: Annotated[FloatArray, FEATURE]  # s, the sum of all steps; empty if nothing is shared
    powers: Annotated[FloatArray, FEATURE, OTHER]  # sign(V)|V/scale|^(p-1), of all tasks if given, else their sum
    sums: Annotated[FloatArray, FEATURE]  # sum over tasks of |V/scale|^p
    blocks: FloatArray  # sums over 64 features
    superblocks: FloatArray  # sums over 64 blocks
    link: FloatArray  # (5,) p, own, shared, scale, and the factor scale / ||V/scale||_p^(p-2) of the powers
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


@kernel
def power(v: float, link: FloatArray) -> float:
    """sign(v) |v/scale|^(p-1)."""
    return math.copysign((abs(v) / link[SCALE]) ** (link[P] - 1.0), v) if v != 0.0 else 0.0


@kernel
def entry(state: State, a: int, k: int) -> float:
    """V[a, k]; a task without steps of its own (k = -1) has the shared part."""
    v = state.link[SHARED] * state.shared[a] if state.link[SHARED] > 0.0 else 0.0
    return v + state.link[OWN] * state.own[a, k] if state.link[OWN] > 0.0 and k >= 0 else v


@kernel
def refresh(state: State, a: int) -> None:
    """Powers and sum of feature a, after a change of its row of V; a task at the shared value costs no power."""
    K, link = state.counters[TASKS], state.link
    base = entry(state, a, -1)
    common = power(base, link)
    mixed, total = 0.0, 0.0
    for k in range(K):
        v, g = base, common
        if link[OWN] > 0.0 and state.own[a, k] != 0.0:
            v = entry(state, a, k)
            g = power(v, link)
        mixed += g
        total += abs(v) / link[SCALE] * abs(g)
        if len(state.shared) == 0 and state.powers.shape[1] > 0:
            state.powers[a, k] = g
    if len(state.shared) > 0:
        state.powers[a, 0] = mixed
    state.sums[a] = total


@kernel(sums="in order")
def block_sum(values: FloatArray, b: int) -> float:
    """The sum of a block in four strands, whose order does not depend on the capacity behind it."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    first, last = b * BLOCK, min((b + 1) * BLOCK, len(values))
    for i in range(first, last - 3, 4):
        s0 += values[i]
        s1 += values[i + 1]
        s2 += values[i + 2]
        s3 += values[i + 3]
    rest = last - (last - first) % 4
    if rest < last:
        s0 += values[rest]
    if rest + 1 < last:
        s1 += values[rest + 1]
    if rest + 2 < last:
        s2 += values[rest + 2]
    return (s0 + s1) + (s2 + s3)


@kernel
def largest(state: State) -> float:
    """max |V|, or 1 if V = 0."""
    top = 0.0
    for a in range(len(state.sums)):
        top = max(top, abs(entry(state, a, -1)))
        if state.link[OWN] > 0.0:
            for k in range(state.counters[TASKS]):
                top = max(top, abs(entry(state, a, k)))
    return top if top > 0.0 else 1.0


@kernel(entry=True)
def rebuild(state: State, p: float, own: float, shared: float) -> None:
    """Everything anew in O(K d): p, the shares or the scale changed."""
    state.link[P], state.link[OWN], state.link[SHARED] = p, own, shared
    state.link[SCALE] = largest(state)
    for a in range(len(state.sums)):
        refresh(state, a)
    for b in range(len(state.blocks)):
        state.blocks[b] = block_sum(state.sums, b)
    for b in range(len(state.superblocks)):
        state.superblocks[b] = block_sum(state.blocks, b)
    update_factor(state)


@kernel
def update_factor(state: State) -> float:
    """The factor, from the p-norm; returns the sum of powers."""
    total, p = 0.0, state.link[P]
    for b in range(-(-len(state.superblocks) // BLOCK)):
        total += block_sum(state.superblocks, b)
    state.link[FACTOR] = state.link[SCALE] * total ** ((2.0 - p) / p) if total > 0.0 else 0.0
    return total


@kernel
def changed(rounds: Rounds, row: int, state: State) -> None:
    """Bring everything up to date after V changed on the features of the row."""
    dense = rounds.width > 0
    start = row * rounds.width if dense else rounds.indptr[row]
    n = rounds.width if dense else rounds.indptr[row + 1] - start
    for i in range(n):
        refresh(state, i if dense else rounds.indices[start + i])
    done = -1
    for i in range(n):
        b = (i if dense else rounds.indices[start + i]) // BLOCK
        if b != done:
            done = b
            state.blocks[b] = block_sum(state.sums, b)
    done = -1
    for i in range(n):
        b = (i if dense else rounds.indices[start + i]) // BLOCK**2
        if b != done:
            done = b
            state.superblocks[b] = block_sum(state.blocks, b)
    total = update_factor(state)
    if n > 0 and not 1.0 / RANGE <= total <= RANGE:
        rebuild(state, state.link[P], state.link[OWN], state.link[SHARED])


def empty(n_tasks: int, n_features: int, *, own: bool, shared: bool, given: bool) -> State:
    """V = 0."""
    n_blocks = -(-n_features // BLOCK)
    return State(
        np.zeros((n_features, n_tasks if own else 0)), np.zeros(n_features if shared else 0),
        np.zeros((n_features, n_tasks if given else int(shared))), np.zeros(n_features),
        np.zeros(n_blocks), np.zeros(-(-n_blocks // BLOCK)), np.array([0.0, 0.0, 0.0, 1.0, 0.0]),
        np.zeros(n_tasks, np.int64), np.zeros(3, np.int64),
    )  # fmt: skip
