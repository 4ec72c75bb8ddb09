"""Newton steps on all coefficients of common and own basis sets at once: the joint form of Algorithm 1.

The Hessian is shaped like an arrow: tasks meet only through the common set. Each task's block is eliminated,

    S = P_α - Σ_t A_tᵀ P_βt⁻¹ A_t,   A_t = Σ_{i in I_t} K_iJt K_iCᵀ,

then S d_α = -(g_α - Σ_t A_tᵀ P_βt⁻¹ g_βt) and P_βt d_t = -(g_βt + A_t d_α).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.batch._basis_sets import Family, Fit, follow, gradient, in_loss, line_search, objective, products
from shoal.batch._cholesky import factorise, solve_transposed, solve_upper
from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel


class Cross(NamedTuple):
    """What the joint Newton step needs besides."""

    S: FloatArray  # (room, room) Schur complement of the tasks' blocks
    R: FloatArray  # (room, room) its factor
    Z: FloatArray  # (tasks, own room, common room) R_t⁻ᵀ times the cross block of the Hessian
    z: FloatArray  # (tasks, own room) R_t⁻ᵀ g_t, then the task's direction


def cross(common: Family, own: Family) -> Cross:
    """Room for joint Newton steps."""
    n, m = common.K.shape[1], own.K.shape[1]
    sets = len(own.size)
    return Cross(np.zeros((n, n)), np.zeros((n, n)), np.zeros((sets, m, n)), np.zeros((sets, m)))


@kernel(inline=False)
def eliminate(common: Family, own: Family, fit: Fit, joint: Cross, k: int) -> None:
    """Take task k's block out of the arrow-shaped system: S -= ZᵀZ, g -= Zᵀz."""
    N, M = common.size[0], own.size[k]
    Z, z = joint.Z[k], joint.z[k]
    Z[:] = 0.0
    for i in range(own.starts[k], own.starts[k + 1]):
        if in_loss(fit.hinge, fit.y[i], fit.o[i]):
            for c in range(M):
                for j in range(N):
                    Z[c, j] += own.K[i, c] * common.K[i, j]
    gradient(own, k, fit, z)
    solve_transposed(own.R[k], M, z)
    for c in range(M):
        pivot = own.R[k, c, c]
        for j in range(N):
            Z[c, j] /= pivot
        for i in range(c + 1, M):
            for j in range(N):
                Z[i, j] -= own.R[k, c, i] * Z[c, j]
        for a in range(N):
            fit.g[a] -= Z[c, a] * z[c]
            for j in range(a + 1):
                joint.S[a, j] -= Z[c, a] * Z[c, j]


@kernel(inline=False)
def joint_direction(common: Family, own: Family, fit: Fit, joint: Cross) -> float:
    """-P⁻¹g over all coefficients: the common part to `fit.g`, the tasks' to `joint.z`; returns gᵀP⁻¹g."""
    N = common.size[0]
    follow(common, 0, fit)
    gradient(common, 0, fit, fit.g)
    for a in range(N):
        for b in range(a + 1):
            joint.S[a, b] = 0.0
            for c in range(b + 1):
                joint.S[a, b] += common.R[0, c, a] * common.R[0, c, b]
    promise = 0.0
    for k in range(len(own.size)):
        follow(own, k, fit)
        eliminate(common, own, fit, joint, k)
        for c in range(own.size[k]):
            promise += joint.z[k, c] ** 2
    factorise(joint.S, N, joint.R, fit.w)
    solve_transposed(joint.R, N, fit.g)
    for a in range(N):
        promise += fit.g[a] ** 2
        fit.g[a] = -fit.g[a]
    solve_upper(joint.R, N, fit.g)
    for k in range(len(own.size)):
        for c in range(own.size[k]):
            joint.z[k, c] = -joint.z[k, c]
            for a in range(N):
                joint.z[k, c] -= joint.Z[k, c, a] * fit.g[a]
        solve_upper(own.R[k], own.size[k], joint.z[k])
    return promise


@kernel(entry=True)
def joint_newton(
    common: Family, own: Family, fit: Fit, joint: Cross, inner_tol: float, max_iter: int
) -> tuple[float, int, bool]:
    """Newton steps on all coefficients at once; returns as `alternate`."""
    E = objective(common, own, fit)
    for step in range(max_iter):
        promise = joint_direction(common, own, fit, joint)
        if not 0.5 * promise > 0.01 * inner_tol * E:
            return E, step, True
        linear = products(common, 0, common.coef[0], fit.g)
        quadratic = products(common, 0, fit.g, fit.g)
        for k in range(len(own.size)):
            linear += products(own, k, own.coef[k], joint.z[k])
            quadratic += products(own, k, joint.z[k], joint.z[k])
            for i in range(own.starts[k], own.starts[k + 1]):
                fit.u[i] = 0.0
                for j in range(common.size[0]):
                    fit.u[i] += common.K[i, j] * fit.g[j]
                for j in range(own.size[k]):
                    fit.u[i] += own.K[i, j] * joint.z[k, j]
        s = line_search(fit, 0, len(fit.y), linear, quadratic) if fit.hinge else 1.0
        for i in range(len(fit.o)):
            fit.o[i] += s * fit.u[i]
        for j in range(common.size[0]):
            common.coef[0, j] += s * fit.g[j]
        for k in range(len(own.size)):
            for j in range(own.size[k]):
                own.coef[k, j] += s * joint.z[k, j]
        before, E = E, objective(common, own, fit)
        if before - E <= inner_tol * E:
            return E, step + 1, True
    return E, max_iter, False
