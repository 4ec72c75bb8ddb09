"""How much the answer moves with each expert's margin: both mixings as one sum over the experts."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.online.hedged_sharing.answer import NEAR, constant_input
from shoal.online.hedged_sharing.experts import (
    FIRST_CROSSED,
    FIRST_FULL,
    HEAD,
    LEANING,
    LEANS_ON,
    N_EXPERTS,
    N_INPUTS,
    OF_ALL,
    OF_TASK,
    ONE,
)  # fmt: skip
from shoal.online.hedged_sharing.mixing import LIMIT, doubt, doubted
from shoal.online.hedged_sharing.scaling import FEW
from shoal.online.hedged_sharing.sleeping import (
    ALL_POOLED,
    ALWAYS,
    ENTRIES,
    FEATURES,
    FEW_ENTRIES,
    FEW_FEATURES,
    INDEPENDENT,
    LEARNED,
    NARROW,
    ROWS,
    taking_part,
)  # fmt: skip
from shoal.online.hedged_sharing.state import State
from shoal.online.hedged_sharing.targets import COUNT, LARGEST, MEAN, SCATTER, noise
from shoal.online.hedged_sharing.targets import ROWS as ERROR_ROWS
from shoal.online.hedged_sharing.work import Settings

POINTS, POINT_WEIGHTS = np.polynomial.legendre.leggauss(64)
AT, SHARE = 0.5 * (POINTS + 1.0), 0.5 * POINT_WEIGHTS  # of the integral: exact to rounding for forecasts within LIMIT


class Mixture(NamedTuple):
    """f = offset + Σ_e slopes[e] m_e, m_e the margins of the experts."""

    slopes: FloatArray  # (experts,)
    offset: float


def usual_awake(settings: Settings, state: State, task: int) -> FloatArray:
    """(experts,) who would be awake on a row like those so far."""
    awake, seen = np.empty(N_EXPERTS), state.seen
    taking_part(settings.sharing, settings.interactions, settings.regression, awake)
    narrow = seen[FEATURES] <= FEW_FEATURES or seen[ENTRIES] <= FEW_ENTRIES * seen[ROWS]
    if not (settings.interactions == ALWAYS or (settings.interactions == NARROW and narrow)):
        awake[FIRST_CROSSED:] = 0.0
    if seen[FEATURES] > settings.full_features:
        awake[FIRST_FULL:FIRST_CROSSED] = 0.0
    if task < 0 or state.full.slot[task] == 0:
        awake[FIRST_FULL + 1] = 0.0
    return awake


def mixture_of(settings: Settings, state: State, task: int, awake: FloatArray, margins: FloatArray | None) -> Mixture:
    """Both mixings (`forecast` in `answer`); without margins near no evidence."""
    r, targets = state.regression, state.targets
    rows = int(state.task_rows[task]) if task >= 0 else 0
    lean = _leaning(rows / (rows + settings.young) if settings.sharing == LEARNED else 1.0, awake)
    everybody = _normed(state.weights, awake)
    mine = _normed(state.task_weights[task], awake) if rows > 0 and settings.sharing != ALL_POOLED else everybody
    everybody = mine if settings.sharing == INDEPENDENT else everybody
    if settings.sharing == ALL_POOLED:
        rows = int(state.rows[0])
    trust = rows / (rows + settings.fresh)
    limit = 2.0 * targets[LARGEST] if settings.regression else LIMIT
    kept = awake if margins is None else awake * _kept(limit, margins)
    forecasts = None if margins is None else lean @ (kept * margins)
    unit = math.sqrt(targets[SCATTER] / targets[COUNT]) if targets[COUNT] > 0.0 else 0.0
    pulled = np.zeros(N_EXPERTS)
    if settings.regression:
        if forecasts is not None and margins is not None:
            lean, pulled = _near_the_heaviest(state, awake, lean, forecasts)
            forecasts = lean @ (kept * margins) + pulled
        of_all = everybody
        stack = r[HEAD:N_INPUTS] + r[OF_TASK] * mine + r[OF_ALL] * everybody
        stack, constant = stack if unit > 0.0 else np.zeros(N_EXPERTS), unit * r[ONE] * constant_input(unit, state)
    else:
        of_all, constant = _slopes(everybody, forecasts), r[ONE]
        stack = r[HEAD:N_INPUTS] + r[OF_TASK] * _slopes(mine, forecasts) + r[OF_ALL] * of_all
    whole = constant if forecasts is None else constant + stack @ forecasts
    part = trust * float(_kept(limit, np.array([whole]))[0])
    stretch = 1.0 + (float(state.stretch[task, 0]) if task >= 0 and settings.sharing != ALL_POOLED else 0.0)
    of_forecasts = stretch * (part * stack + (1.0 - trust) * of_all)
    slopes, offset = of_forecasts @ lean * kept, stretch * part * constant + float(of_forecasts @ pulled)
    if settings.regression:
        return Mixture(slopes, offset + targets[MEAN])
    sure = _sure(state, offset if margins is None else offset + slopes @ margins)
    return Mixture(sure * slopes, sure * offset)


def _near_the_heaviest(
    state: State, awake: FloatArray, lean: FloatArray, forecasts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """An expert far from the heaviest counts as that one and a constant (`answer.near_the_heaviest`)."""
    heaviest, reach = int(np.argmax(state.weights * awake)), NEAR * math.sqrt(noise(state.errors))
    off = forecasts - forecasts[heaviest]
    far = (np.abs(off) > reach) & (awake > 0.0) & (state.errors[ERROR_ROWS] >= FEW) & (reach > 0.0)
    return np.where(far[:, None], lean[heaviest], lean), np.where(far, np.copysign(reach, off), 0.0)


def _sure(state: State, f: float) -> float:
    """What is left of the logit f, as a factor, since a label may say nothing about its row."""
    eps = doubt(state.surprises)
    return doubted(f, eps) / f if f != 0.0 else 1.0 - eps


def _normed(weights: FloatArray, awake: FloatArray) -> FloatArray:
    return np.asarray(weights * awake / (weights @ awake))


def _leaning(trust: float, awake: FloatArray) -> FloatArray:
    """(experts, experts) a young task's own experts lean on the pooled ones."""
    lean = np.eye(N_EXPERTS)
    for own, pooled in zip(LEANING, LEANS_ON, strict=True):
        lean[own, own], lean[own, pooled] = trust * awake[own], (1.0 - trust) * awake[own]
    return lean


def _kept(limit: float, values: FloatArray) -> FloatArray:
    """What is left of values that are held within a limit, as a factor."""
    sizes = np.abs(values)
    return np.divide(limit, sizes, out=np.ones(len(values)), where=sizes > limit)


def _slopes(weights: FloatArray, forecasts: FloatArray | None) -> FloatArray:
    """(experts,) mean slopes of logit Σ w_e sigmoid(u_e), held within LIMIT, from u = 0 to these forecasts."""
    if forecasts is None:
        return weights
    p = 1.0 / (1.0 + np.exp(-AT[:, None] * forecasts))
    mixed = p @ weights
    slopes = SHARE / (mixed * ((1.0 - p) @ weights)) @ (weights * p * (1.0 - p))
    return np.asarray(slopes * _kept(LIMIT, np.array([slopes @ forecasts])))
