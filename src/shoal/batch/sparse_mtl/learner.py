"""Sparse multi-task kernel machines (Srijith, Shevade, ICONIP 2012).

The output of task t uses few kernel columns, some common to all tasks and some its own (eq. 1):

    f_t(x) = Σ_{c in C} α_c k(x, c) + Σ_{j in J_t} β_tj k(x, j)

with any kernel k, in the paper's experiments exp(-||x - z||² / (2 σ²)), and all coefficients minimise (eq. 2; eq. 5
with the least squares ½(y - f)²)

    E = (γ/2) αᵀK_CC α + (λ/2) Σ_t β_tᵀ K_JtJt β_t + ½ Σ [1 - y f]₊².

The sets C and J_t grow greedily (Algorithm 2): for the common set, then for each task's own, draw candidates among the
training rows, add the one that lowers the objective most while all other coefficients are frozen, and estimate all
coefficients anew (Algorithm 1, `coefficients`), "until relative decrease in objective function value is small". One
weak vector is no sign of that, for it is only the best of the candidates drawn: a set is complete after `PATIENCE` of
them in a row, and they are taken back.
"""

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from shoal.batch.base import BatchLearner, Rows, split_by_task
from shoal.batch.sparse_mtl import coefficients
from shoal.batch.sparse_mtl.coefficients import Family, Fit, add_vector, alternate, family
from shoal.engine import kernel_functions
from shoal.engine.arrays import FloatArray, IntArray
from shoal.model.parameters import Readers, below_one, between, from_keywords, one_of, positive, whole

BLOCK = 1024  # rows of a kernel matrix at a time
MOST_SWEEPS = 500  # of one estimation
PATIENCE = 3  # weak vectors in a row that complete a set
SPANNED = 1e-10  # of k(c, c): a smaller remainder of a row is rounding error, so the set spans the row


# ---- selection -----------------------------------------------------------------------------------------------


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
        self,
        rows: Rows,
        hinge: bool,
        gamma: float,
        lam: float,
        kernel_matrix: Callable[[Any, Any], FloatArray],
        limits: Limits,
        random: Any,
    ) -> None:
        by_task = list(rows.of_tasks())
        self.order: IntArray = np.concatenate(by_task)  # the training row of each row here: sorted by task
        self.X, y = rows.X[self.order], rows.y[self.order]
        self.kernel_matrix, self.limits, self.random = kernel_matrix, limits, random
        n = len(y)
        starts = np.concatenate([[0], np.cumsum([len(task) for task in by_task])])
        self.common, self.own = family(gamma, np.array([0, n]), 8), family(lam, starts, 8)
        self.fit = Fit(hinge, y, np.zeros(n), np.zeros(n), np.zeros(8), np.zeros(8), np.zeros(1 + rows.n_tasks, bool))
        self.support: dict[tuple[bool, int], list[int]] = {}  # (is it a task's?, number) -> rows here
        self.objective = [coefficients.objective(self.common, self.own, self.fit)]
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
        e, in_loss = (part[first:last] for part in coefficients.errors(self.fit))
        g = sets.reg * (sets.K[rows, :size] @ sets.coef[k, :size]) - e @ columns
        P = np.einsum("i,ij,ij->j", in_loss, columns, columns)
        P += sets.reg * columns[rows - first, np.arange(len(rows))]  # k(c, c)
        gains: FloatArray = np.where(P > 0.0, g * g / (2.0 * np.where(P > 0.0, P, 1.0)), 0.0)
        return gains

    def _moved(self) -> list[NDArray[Any]]:
        """Arrays that a new vector changes, without the factors: they follow the rows in the loss when next used."""
        return [self.common.size, self.own.size, self.common.coef, self.own.coef, self.fit.o, self.fit.stale]

    def _go_back(self, before: list[NDArray[Any]]) -> None:
        for part, then in zip(self._moved(), before, strict=True):
            part[..., : then.shape[-1]] = then  # there may be capacity for more by now

    def _add(self, is_own: bool, k: int, column: FloatArray, row: int) -> None:
        before = self._sets(is_own)
        sets = coefficients.with_capacity(before, int(before.size[k]) + 1)
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


# ---- the learners --------------------------------------------------------------------------------------------


@from_keywords
class _SparseMTL(BatchLearner):
    """The base of the classifier and the regressor."""

    gamma: float = 1.0
    lam: float = 1.0
    kernel: Any = "rbf"
    sigma: float = 1.0
    n_common: int = 50
    n_task: int = 10
    n_candidates: int = 59
    tol: float = 1e-3
    inner_tol: float = 1e-6
    sharing: str = "both"
    random_state: Any = None

    basis_: Any = field(init=False)  # (n_basis, n_features) the common vectors, then each task's
    support_: IntArray = field(init=False)  # (n_basis,) their rows in the training data
    dual_coef_: FloatArray = field(init=False)  # (n_basis,)
    basis_starts_: IntArray = field(init=False)  # (1 + n_tasks + 1,) where the common ones and each task's begin

    parameters: ClassVar[Readers] = {
        **dict.fromkeys(("gamma", "lam"), positive()),
        "sigma": between(1e-150, 1e150),  # numbers whose squares are numbers
        **dict.fromkeys(("n_common", "n_task", "n_candidates"), whole(1)),
        **dict.fromkeys(("tol", "inner_tol"), below_one()),
        "sharing": one_of(("both", "common", "task")),
    }

    def check_parameters(self) -> None:
        super().check_parameters()
        kernel_functions.resolve(self.kernel, 1.0)

    def solve(self, rows: Rows) -> dict[str, Any]:
        from sklearn.utils import check_random_state

        limits = Limits(self.n_candidates, self.tol, self.inner_tol)
        random = check_random_state(self.random_state)
        selection = Selection(rows, self.classifies(), self.gamma, self.lam, self._kernel_matrix, limits, random)
        if self.sharing != "task":
            selection.grow(False, 0, self.n_common)
        if self.sharing != "common":
            for k in range(rows.n_tasks):
                selection.grow(True, k, self.n_task)
        if not selection.converged:
            self._warn_not_converged(f"{MOST_SWEEPS} sweeps left a decrease above inner_tol; raise it")
        return self._learned_from(selection, rows)

    def _kernel_matrix(self, X: Any, Z: Any) -> FloatArray:
        """(n, m) k(x, z)."""
        return kernel_functions.matrix(self.kernel, 0.5 / self.sigma**2, X, Z)

    def _learned_from(self, selection: Selection, rows: Rows) -> dict[str, Any]:
        blocks = [(False, 0), *((True, k) for k in range(rows.n_tasks))]
        chosen = [selection.support.get(block, []) for block in blocks]
        coef = [
            (selection.own if is_own else selection.common).coef[k, : len(vectors)]
            for (is_own, k), vectors in zip(blocks, chosen, strict=True)
        ]
        support = selection.order[np.concatenate(chosen).astype(np.int64)]
        return {
            "basis_": rows.X[support],
            "support_": support,
            "dual_coef_": np.concatenate(coef),
            "basis_starts_": np.concatenate([[0], np.cumsum([len(vectors) for vectors in chosen])]),
            "objective_": np.array(selection.objective),
            "n_iter_": selection.n_iter,
        }

    def decide(self, X: Any, task: IntArray) -> FloatArray:
        """Eq. 1; an unseen task by the common part, or without one by the mean of the tasks' parts."""
        f = self._part(0, X)
        n_tasks = len(self.basis_starts_) - 2
        for k, rows in enumerate(split_by_task(task + 1, n_tasks + 1)):
            if not len(rows):
                continue
            if k:
                f[rows] += self._part(k, X[rows])
            elif self.n_basis_common_ == 0:
                f[rows] = sum(self._part(1 + t, X[rows]) for t in range(n_tasks)) / n_tasks
        return f

    def _part(self, block: int, X: Any) -> FloatArray:
        """Σ coef k(x, z) over the common vectors (0) or those of task `block` - 1."""
        own = self._block(block)
        f = np.zeros(X.shape[0])
        if own.start < own.stop:
            for first in range(0, len(f), BLOCK):
                part = slice(first, first + BLOCK)
                f[part] = self._kernel_matrix(X[part], self.basis_[own]) @ self.dual_coef_[own]
        return f

    def _block(self, block: int) -> slice:
        return slice(int(self.basis_starts_[block]), int(self.basis_starts_[block + 1]))

    def _by_task(self, values: Any) -> Iterator[Any]:
        return (values[self._block(1 + k)] for k in range(len(self.tasks_)))

    # ---- learned attributes ------------------------------------------------------------------------------

    @property
    def n_basis_common_(self) -> int:
        """Number of common basis vectors."""
        self._known_tasks("n_basis_common_")
        return int(self.basis_starts_[1])

    @property
    def n_basis_task_(self) -> int:
        """Number of tasks' own basis vectors, over all tasks."""
        self._known_tasks("n_basis_task_")
        return int(self.basis_starts_[-1] - self.basis_starts_[1])

    @property
    def support_common_(self) -> IntArray:
        """Training rows that are the common basis vectors, in the order of selection."""
        self._known_tasks("support_common_")
        return self.support_[self._block(0)]

    @property
    def dual_coef_common_(self) -> FloatArray:
        """Their coefficients α."""
        self._known_tasks("dual_coef_common_")
        return self.dual_coef_[self._block(0)]

    @property
    def support_task_(self) -> dict[Any, IntArray]:
        """For each task id the training rows that are its own basis vectors."""
        return dict(zip(self.tasks_, self._by_task(self.support_), strict=True))

    @property
    def dual_coef_task_(self) -> dict[Any, FloatArray]:
        """For each task id their coefficients β_t."""
        return dict(zip(self.tasks_, self._by_task(self.dual_coef_), strict=True))


class SparseMTL(_SparseMTL):
    """Multi-task kernel classifier that answers with few basis vectors, common ones and each task's own (batch).

    ``f_t(x) = Σ_{c in C} α_c k(x, c) + Σ_{j in J_t} β_tj k(x, j)``; the coefficients minimise
    ``(γ/2) αᵀK_CC α + (λ/2) Σ_t β_tᵀK_JtJt β_t + ½ Σ [1 - y f]₊²``. Vectors are added one at a time: of `n_candidates`
    random training rows the one whose coefficient alone lowers the objective most. Cost: time O(n κ (d + N) N) and
    memory O(n N) for n rows and N common vectors, and alike with M for the tasks' own: linear in n.

    Parameters
    ----------
    gamma : float > 0
        Weight γ of the common part's norm. γ/λ -> 0: one model for all tasks.
    lam : float > 0
        Weight λ of the own parts' norms. λ/γ -> 0: independent tasks.
    kernel : {"rbf", "linear"} or function
        exp(-||x - z||² / (2 sigma²)), <x, z>, or a function of two arrays (n, d) and (m, d) that returns the (n, m)
        values (such a model cannot be saved).
    sigma : float, 1e-150 <= sigma <= 1e150
        Width of "rbf": of the order of the distances between rows.
    n_common : int >= 1
        Most common basis vectors, N_max. A row whose kernel function those of the set span, but for 1e-10 k(x, x), is
        no candidate: a set has at most as many vectors as the kernel has rank.
    n_task : int >= 1
        Most basis vectors of a task's own, M_max.
    n_candidates : int >= 1
        κ rows are tried for each new vector; 59 hold one of the best 5 % with probability 95 %.
    tol : float, 0 <= tol < 1
        A vector is weak if it lowers the objective by no more than this part of it. A set is complete after three weak
        vectors in a row or when it is full, and the weak ones at its end are not kept. The objective is that of all
        tasks: the more tasks, the smaller tol has to be for each to get vectors of its own. With 0 no vector is weak,
        and the sets grow to `n_common` and `n_task`, or until no candidate helps.
    inner_tol : float, 0 <= inner_tol < 1
        The coefficients are estimated once a sweep over them lowers the objective by no more than this part of it; with
        0 once only rounding errors are left. No step is taken that would raise it.
    sharing : {"both", "common", "task"}
        SparseMTL; SparseCTL: one model for all tasks, without sets of the tasks' own; SparseSTL: one for each task,
        without a common set.
    random_state : int, RandomState or None
        Draws the candidates.

    Attributes
    ----------
    n_basis_common_, n_basis_task_ : number of common basis vectors, and of tasks' own over all tasks
    basis_ : (n_basis, n_features) the vectors: the common ones, then each task's
    support_common_, dual_coef_common_ : their training rows and coefficients α
    support_task_, dual_coef_task_ : dict of task id -> the same of its own vectors, β_t
    objective_ : (n_basis + 1,) objective without vectors, and after each one that was kept
    n_iter_ : sweeps over all estimations
    tasks_, classes_, n_features_in_, feature_names_in_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters.

    Warns
    -----
    ConvergenceWarning
        If 500 sweeps of an estimation left a decrease above `inner_tol`.

    Notes
    -----
    An unseen task is answered by the common part, or where there is none (sharing="task") by the mean of the tasks'
    parts. Tasks that share their rows (multi-label data) work: give each row once for every label. The kernel is
    computed once for equal rows, and none enters a set twice.

    The paper prints g²/P for the decrease that ranks candidates (section 3.2); it is g²/(2P), which ranks alike. It
    completes a set when the "relative decrease in objective function value is small": here three vectors have to say
    so, because each is only the best of few candidates, and some are of use only with the next.

    References
    ----------
    Srijith, Shevade. Multi-Task Learning Using Shared and Task Specific Information. ICONIP 2012: eqs. 1-5,
    Algorithms 1 and 2. Keerthi, Chapelle, DeCoste. Building Support Vector Machines with Reduced Classifier
    Complexity. JMLR 7, 2006 (one task).

    Examples
    --------
    >>> from shoal import SparseMTL
    >>> from shoal.datasets import make_conjoint
    >>> train, test = make_conjoint("high", seed=5)
    >>> for sharing in ("both", "common", "task"):
    ...     learner = SparseMTL(gamma=0.1, lam=0.3, sigma=6.0, sharing=sharing, random_state=0)
    ...     learner = learner.fit(train.X, train.y, train.task)
    ...     error = 1 - learner.score(test.X, test.y, test.task)
    ...     own = round(learner.n_basis_task_, -1)  # one more or less by the last bits of the computer's BLAS
    ...     print(f"{sharing:7} error {error:.2f}, {learner.n_basis_common_} + about {own} vectors")
    both    error 0.10, 8 + about 150 vectors
    common  error 0.16, 8 + about 0 vectors
    task    error 0.13, 0 + about 170 vectors
    """


class SparseMTLRegressor(_SparseMTL):
    """Multi-task kernel regression that answers with few basis vectors, common ones and each task's own (batch).

    ``f_t(x) = Σ_{c in C} α_c k(x, c) + Σ_{j in J_t} β_tj k(x, j)`` as in `SparseMTL`; the coefficients minimise
    ``(γ/2) αᵀK_CC α + (λ/2) Σ_t β_tᵀK_JtJt β_t + ½ Σ (y - f)²``. Cost as of `SparseMTL`.

    Parameters
    ----------
    gamma, lam, kernel, sigma, n_common, n_task, n_candidates, tol, inner_tol, sharing, random_state :
        as in `SparseMTL`

    Attributes
    ----------
    n_basis_common_, n_basis_task_, basis_, support_common_, dual_coef_common_, support_task_, dual_coef_task_,
    objective_, n_iter_, tasks_, n_features_in_, feature_names_in_ :
        as in `SparseMTL`

    Raises
    ------
    ValueError
        On bad input or hyper-parameters.

    Warns
    -----
    ConvergenceWarning
        If 500 sweeps of an estimation left a decrease above `inner_tol`.

    Notes
    -----
    There is no bias: centre the targets. Unseen tasks are answered as by `SparseMTL`.

    References
    ----------
    Srijith, Shevade. Multi-Task Learning Using Shared and Task Specific Information. ICONIP 2012: eq. 5.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import SparseMTLRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.uniform(-3, 3, size=(900, 1)), rng.integers(30, size=900)
    >>> y = np.sin(2 * X[:, 0]) + rng.normal(size=30)[task] * X[:, 0] / 3 + 0.2 * rng.normal(size=900)
    >>> for sharing in ("both", "common", "task"):
    ...     learner = SparseMTLRegressor(gamma=0.1, lam=0.3, sigma=0.7, sharing=sharing, random_state=0)
    ...     learner = learner.fit(X[:450], y[:450], task[:450])
    ...     R2 = learner.score(X[450:], y[450:], task[450:])
    ...     print(f"{sharing:7} R2 {R2:.3f}, {learner.n_basis_common_} + {learner.n_basis_task_} vectors")
    both    R2 0.908, 12 + 99 vectors
    common  R2 0.520, 12 + 0 vectors
    task    R2 0.816, 0 + 133 vectors
    """

    def classifies(self) -> bool:
        return False
