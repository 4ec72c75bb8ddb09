"""Greedy selection of basis vectors: Algorithm 2 of Srijith and Shevade.

For the common set, then for each task's own: draw candidates among the training rows, add the one that lowers the
objective most while all other coefficients are frozen, estimate all coefficients anew (Algorithm 1), "until relative
decrease in objective function value is small". One weak vector is no sign of that, for it is only the best of the
candidates drawn: a set is complete after `PATIENCE` of them in a row, and they are taken back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from shoal.batch import _basis_sets as basis_sets
from shoal.batch._basis_sets import Family, Fit, add_vector, alternate, family
from shoal.batch.base import Rows
from shoal.engine.arrays import FloatArray, IntArray

MOST_SWEEPS = 500  # of one estimation
PATIENCE = 3  # so many weak vectors in a row complete a set
SPANNED = 1e-10  # of k(c, c): what a set leaves of a row that it spans is rounding error


class Limits(NamedTuple):
    """When to stop."""

    n_candidates: int
    tol: float
    inner_tol: float


class Selection:
    """Basis sets that grow on given rows.

    Parameters
    ----------
    rows : Rows
    hinge : bool
        Squared hinge, or else least squares.
    gamma, lam : float
        Weights of the common and the own parts' norms.
    kernel_matrix : function
        (n, m) kernel values of the rows of two matrices.
    limits : Limits
    random : RandomState
        Draws the candidates.
    """

    def __init__(
        self, rows: Rows, hinge: bool, gamma: float, lam: float, kernel_matrix: Callable[[Any, Any], FloatArray],
        limits: Limits, random: Any,
    ) -> None:  # fmt: skip
        by_task = list(rows.of_tasks())
        self.order: IntArray = np.concatenate(by_task)  # the training row of each row here: sorted by task
        self.X, y = rows.X[self.order], rows.y[self.order]
        self.kernel_matrix, self.limits, self.random = kernel_matrix, limits, random
        n = len(y)
        starts = np.concatenate([[0], np.cumsum([len(task) for task in by_task])])
        self.common, self.own = family(gamma, np.array([0, n]), 8), family(lam, starts, 8)
        self.fit = Fit(hinge, y, np.zeros(n), np.zeros(n), np.zeros(8), np.zeros(8), np.zeros(1 + rows.n_tasks, bool))
        self.support: dict[tuple[bool, int], list[int]] = {}  # (is it a task's?, number) -> rows here
        self.objective = [basis_sets.objective(self.common, self.own, self.fit)]
        self.n_iter, self.converged = 0, True

    def grow(self, is_own: bool, k: int, most: int) -> None:
        """Repeat: draw, score, add, estimate; until the objective falls too little or the set has `most` vectors.

        Candidates are the rows the set serves; of equal rows the first, and none that the set spans. A vector is weak
        if the objective falls by no more than `tol` of it; the weak ones at the end are taken back.
        """
        first, last = self._sets(is_own).starts[k : k + 2]
        firsts, copy_of = distinct_rows(self.X[first:last])
        X = self.X[first + firsts]
        chosen = self.support[is_own, k] = []
        free, weak, span = np.arange(len(firsts)), 0, Span()
        while len(chosen) < most and len(free) and weak < PATIENCE:
            if weak == 0:
                before = [part.copy() for part in self._moved()]
            drawn = self._draw(free)
            columns = self.kernel_matrix(X, X[drawn])[copy_of]
            rows = first + firsts[drawn]
            span.compare(self._sets(is_own).K[rows, : len(chosen)], columns[firsts[drawn], np.arange(len(drawn))])
            free = np.setdiff1d(free, drawn[span.holds], assume_unique=True)
            if span.holds.all():
                continue
            gains = np.where(span.holds, 0.0, self._decreases(is_own, k, columns, rows))
            best = int(gains.argmax())
            if not gains[best] > 0.0:
                break
            free = free[free != drawn[best]]
            chosen.append(int(rows[best]))
            span.add(best)
            self._add(is_own, k, columns[:, best], chosen[-1])
            self._estimate()
            fell = self.objective[-2] - self.objective[-1]
            weak = weak + 1 if self.limits.tol > 0.0 and fell <= self.limits.tol * self.objective[-2] else 0
        if weak > 0:
            del chosen[-weak:], self.objective[-weak:]
            self._go_back(before)

    def _draw(self, free: IntArray) -> IntArray:
        if len(free) <= self.limits.n_candidates:
            return free
        drawn: IntArray = free[self.random.choice(len(free), self.limits.n_candidates, replace=False)]
        return drawn

    def _sets(self, is_own: bool) -> Family:
        return self.own if is_own else self.common

    def _decreases(self, is_own: bool, k: int, columns: FloatArray, rows: IntArray) -> FloatArray:
        """(candidates,) what the objective falls by if only the new coefficient moves and I stays: g²/(2P) (eq. 4).

        The paper prints g²/P, which ranks alike.
        """
        sets = self._sets(is_own)
        first, last, size = sets.starts[k], sets.starts[k + 1], sets.size[k]
        e, in_loss = (part[first:last] for part in basis_sets.errors(self.fit))
        g = sets.reg * (sets.K[rows, :size] @ sets.coef[k, :size]) - e @ columns
        P = np.einsum("i,ij,ij->j", in_loss, columns, columns)
        P += sets.reg * columns[rows - first, np.arange(len(rows))]  # k(c, c)
        gains: FloatArray = np.where(P > 0.0, g * g / (2.0 * np.where(P > 0.0, P, 1.0)), 0.0)
        return gains

    def _moved(self) -> list[NDArray[Any]]:
        """What a new vector moves. The factors are left out: they follow the rows in the loss when next used."""
        return [self.common.size, self.own.size, self.common.coef, self.own.coef, self.fit.o, self.fit.stale]

    def _go_back(self, before: list[NDArray[Any]]) -> None:
        for part, then in zip(self._moved(), before, strict=True):
            part[..., : then.shape[-1]] = then  # there may be capacity for more by now

    def _add(self, is_own: bool, k: int, column: FloatArray, row: int) -> None:
        before = self._sets(is_own)
        sets = basis_sets.with_capacity(before, int(before.size[k]) + 1)
        if sets is not before:
            self.common, self.own = (self.common, sets) if is_own else (sets, self.own)
            capacity = max(self.common.K.shape[1], self.own.K.shape[1])
            self.fit = self.fit._replace(g=np.zeros(capacity), w=np.zeros(capacity))
        add_vector(sets, k, np.ascontiguousarray(column), row, self.fit.w)
        self.fit.stale[1 + k if is_own else 0] = True

    def _estimate(self) -> None:
        """Algorithm 1 from the coefficients so far."""
        found = alternate(self.common, self.own, self.fit, self.limits.inner_tol, MOST_SWEEPS)
        self.objective.append(found[0])
        self.n_iter += found[1]
        self.converged &= found[2]


class Span:
    """Which rows a set's vectors span: by the Cholesky factor L of their kernel values.

    A row c has the coordinates w = L⁻¹ k(set, c), and the pivot k(c, c) - w·w is what is outside the span. A vector
    from inside adds no function to the set; its coefficient would be what rounding errors make of 0/0.
    """

    def __init__(self) -> None:
        self.L = np.zeros((0, 0))

    def compare(self, K: FloatArray, diagonal: FloatArray) -> None:
        """Look at candidates, given their kernel values with the set and with themselves: which `holds` it?"""
        self.w = solve_triangular(self.L, K.T, lower=True, check_finite=False) if len(self.L) else K.T
        self.pivot = diagonal - (self.w * self.w).sum(axis=0)
        self.holds = ~(self.pivot > SPANNED * np.abs(diagonal))

    def add(self, c: int) -> None:
        """One of the candidates enters the set."""
        n = len(self.L)
        self.L = np.pad(self.L, (0, 1))
        self.L[n, :n], self.L[n, n] = self.w[:, c], np.sqrt(self.pivot[c])


def distinct_rows(X: Any) -> tuple[IntArray, IntArray]:
    """The first row of each content, in order, and for each row the position of its content there."""
    if isinstance(X, np.ndarray):
        keys: list[Any] = [row.tobytes() for row in X + 0.0]  # -0.0 is 0.0
    else:
        bounds = zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True)
        keys = [(X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in bounds]
    position: dict[Any, int] = {}
    copy_of = np.array([position.setdefault(key, len(position)) for key in keys])
    firsts = np.full(len(position), len(keys))
    np.minimum.at(firsts, copy_of, np.arange(len(keys)))
    return firsts, copy_of
