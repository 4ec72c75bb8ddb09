"""Regularised multi-task learning (Evgeniou, Pontil, KDD 2004; kernel form of Evgeniou, Micchelli, Pontil, JMLR 2005).

A model of task t is a common part and an own one, w_t = w_0 + v_t, and the common part is the cheaper the smaller mu:

    min  sum_i loss_i C + (mu/2)||w_0||² + ½ sum_t ||v_t||²

This is one kernel machine over all tasks, without a bias, with the kernel

    K((x, s), (z, t)) = (1/mu + [s = t]) k(x, z).

It is solved by libsvm, which always fits a bias, or by Newton's method.
"""

import warnings
from collections.abc import Iterator
from dataclasses import field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from shoal.batch.base import BatchLearner, Rows, task_margins
from shoal.engine import kernel_functions
from shoal.engine.arrays import FloatArray, IntArray
from shoal.model.parameters import Readers, from_keywords, non_negative, one_of, positive, read, whole

BLOCK = 256  # rows of a kernel matrix at a time
MOST_STEPS, STEPS_A_ROW = 10_000_000, 100  # libsvm's own limit: the larger; where rounding errors rule, it never ends
ROUNDING = 1e-15  # an objective that falls by less than this share does not fall any more


# ---- machines without a bias, from a kernel matrix -----------------------------------------------------------


class Machine(NamedTuple):
    """The solution in the dual: f(x) = sum_i b_i K(x_i, x)."""

    b: FloatArray
    n_iter: int
    converged: bool
    objective: tuple[float, ...] = ()  # after each iteration, where the solver tells


def regression(
    K: FloatArray, y: FloatArray, box: FloatArray, epsilon: float, tol: float, max_iter: int = -1
) -> Machine:
    """min ½||w||² + sum_i box_i [|y_i - f_i| - epsilon]_+.

    Two rows with a kernel of zero to all, the targets epsilon and -epsilon and a weight that lets neither err pin the
    bias: |epsilon - bias| <= epsilon and |-epsilon - bias| <= epsilon leave 0 alone. In the dual they take up
    sum_i b_i, at no cost, whichever its sign.

    Parameters
    ----------
    K : (n + 2, n + 2) kernel matrix, its last two rows and columns zeros
    box : (n,) numbers > 0
    tol : libsvm's tolerance on the optimality conditions
    max_iter : most steps of libsvm; -1: as many as it takes, up to its own limit
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import SVR

    n, unit = len(y), float(box.max())
    most = max(MOST_STEPS, STEPS_A_ROW * n) if max_iter == -1 else max_iter
    machine = SVR(kernel="precomputed", C=unit, epsilon=epsilon, tol=tol, max_iter=most, cache_size=500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(K, np.append(y, [epsilon, -epsilon]), sample_weight=np.append(box / unit, [n, n]))
    b = np.zeros(n + 2)
    b[machine.support_] = machine.dual_coef_[0]
    return Machine(b[:n], int(machine.n_iter_), machine.fit_status_ == 0)


def classification(K: FloatArray, y: FloatArray, box: FloatArray, tol: float, max_iter: int = -1) -> Machine:
    """min ½||w||² + sum_i box_i [1 - y_i f_i]_+, posed as a regression.

    The hinge is [|y (1 + epsilon) - f| - epsilon]_+ as long as |f| <= 1 + 2 epsilon, which holds at the solution for
    the epsilon here: ½||w||² is at most the objective at 0, sum_i box_i.
    """
    epsilon = float(np.sqrt(0.5 * box.sum() * K.diagonal().max()))
    return regression(K, (1.0 + epsilon) * y, box, epsilon, tol, max_iter)


def least_ridge(K: FloatArray) -> float:
    """The least addition to the diagonal with which rounding errors leave the matrix positive definite."""
    return 4.0 * float(np.finfo(float).eps * K.trace())


def squared_hinge(K: FloatArray, y: FloatArray, C: float, max_iter: int) -> Machine:
    """min F(b) = ½ b'K b + C sum_i [1 - y_i f_i]_+², f = K b, by Newton's method on the primal (Chapelle, 2007, (10)).

    Where the rows with a loss are A, the minimum has (K_AA + I/(2C)) b_A = y_A and b = 0 elsewhere. A step goes in that
    direction as far as F falls; F is a parabola between rows that change sides, so where it ends is found exactly. If
    the whole step leaves A as it is, b is the minimum: that happens after a few steps.

    Parameters
    ----------
    K : (n, n) kernel matrix
    C : beyond 1/(2 `least_ridge(K)`) it is taken to be that
    max_iter : most steps; -1: as many as it takes
    """
    from scipy.linalg import cho_factor, cho_solve

    if 2.0 * C * (ridge := least_ridge(K)) > 1.0:
        C = 0.5 / ridge
    b, f, values = np.zeros(len(y)), np.zeros(len(y)), [C * len(y)]
    while len(values) - 1 != max_iter:
        inside = np.flatnonzero(y * f < 1.0)
        target = np.zeros(len(y))
        factor = cho_factor(K[np.ix_(inside, inside)] + np.eye(len(inside)) / (2.0 * C), overwrite_a=True)
        target[inside] = cho_solve(factor, y[inside])
        direction = target - b
        change = K @ direction
        is_minimum = np.array_equal(inside, np.flatnonzero(y * (f + change) < 1.0))
        step = 1.0 if is_minimum else _exact_step(f, direction, change, y, C)
        then, f = target if is_minimum else b + step * direction, f + step * change
        value = 0.5 * max(0.0, float(then @ f)) + C * float((np.maximum(0.0, 1.0 - y * f) ** 2).sum())
        if not value <= values[-1]:  # rounding errors of the system rule
            return Machine(b, len(values), True, (*values[1:], values[-1]))
        b = then
        values.append(value)
        if is_minimum or values[-2] - values[-1] <= ROUNDING * values[-1]:
            return Machine(b, len(values) - 1, True, tuple(values[1:]))
    return Machine(b, max_iter, False, tuple(values[1:]))


def _exact_step(f: FloatArray, d: FloatArray, Kd: FloatArray, y: FloatArray, C: float) -> float:
    """The t >= 0 at which the slope of F(b + t d) is zero: it grows from piece to piece."""
    margins, speed = 1.0 - y * f, -y * Kd  # losses [margins + t speed]_+²
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = -margins / speed
    order = np.argsort(np.where((crossing > 0) & np.isfinite(crossing), crossing, np.inf))
    inside = (margins > 0) | ((margins == 0) & (speed > 0))
    constant = float(d @ f) + 2.0 * C * float((margins * speed)[inside].sum())  # slope = constant + t growth
    growth = float(d @ Kd) + 2.0 * C * float((speed**2)[inside].sum())
    for i in order:
        end = crossing[i]
        if not (end > 0 and np.isfinite(end)) or constant + end * growth >= 0:
            break
        sign = -1.0 if inside[i] else 1.0
        constant += sign * 2.0 * C * margins[i] * speed[i]
        growth += sign * 2.0 * C * speed[i] ** 2
    return -constant / growth if growth > 0 else 0.0


# ---- the learners --------------------------------------------------------------------------------------------


@from_keywords
class _RegMTL(BatchLearner):
    """The base of the classifier and the regressor."""

    mu: float = 1.0
    C: float = 1.0
    kernel: Any = "linear"
    gamma: float = 1.0
    tol: float = 1e-4
    max_iter: int = -1

    coef_: FloatArray = field(init=False)
    coef_shared_: FloatArray = field(init=False)
    dual_coef_: FloatArray = field(init=False)
    support_vectors_: Any = field(init=False)
    support_task_: IntArray = field(init=False)

    parameters: ClassVar[Readers] = dict.fromkeys(("mu", "C", "tol"), positive())

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.max_iter != -1:
            read({"max_iter": whole(1)}, {"max_iter": self.max_iter})
        kernel_functions.resolve(self.kernel, self.gamma)

    def machine(self, K: FloatArray, y: FloatArray) -> Machine:
        """Solve the dual; K has two more rows and columns than y, of zeros, and may be overwritten."""
        raise NotImplementedError

    def primal_loss(self, f: FloatArray, y: FloatArray) -> FloatArray:
        raise NotImplementedError

    def solve(self, rows: Rows) -> dict[str, Any]:
        n = len(rows.y)
        K = np.zeros((n + 2, n + 2))
        for block in _blocks(n):
            values = kernel_functions.matrix(self.kernel, self.gamma, rows.X[block], rows.X)
            K[block, :n] = (1.0 / self.mu + (rows.task[block, None] == rows.task)) * values
        machine = self.machine(K, rows.y)
        if not machine.converged:
            self._warn_not_converged(
                f"the solver made {machine.n_iter} steps; raise max_iter or tol, or scale the features"
            )
        del K
        support = np.flatnonzero(machine.b)
        learned = {
            "support_": support,
            "dual_coef_": machine.b[support],
            "support_vectors_": rows.X[support],
            "support_task_": rows.task[support],
            "n_iter_": machine.n_iter,
            "relation_": np.eye(rows.n_tasks) + 1.0 / self.mu,
        }
        if self.kernel == "linear":
            shared = learned["dual_coef_"] @ learned["support_vectors_"]
            own = np.zeros((rows.n_tasks, rows.X.shape[1]))
            for k in range(rows.n_tasks):
                i = learned["support_task_"] == k
                own[k] = learned["dual_coef_"][i] @ learned["support_vectors_"][i]
            learned |= {"coef_": shared / self.mu + own, "coef_shared_": shared / self.mu, "coef_task_": own}
        return learned | {"objective_": np.array(machine.objective or [self._objective(rows, machine.b, learned)])}

    def _objective(self, rows: Rows, b: FloatArray, learned: dict[str, Any]) -> float:
        """C sum of losses + ½ (mu ||w_0||² + sum_t ||v_t||²)."""
        f = self._outputs(rows.X, rows.task, learned)
        return 0.5 * max(0.0, float(b @ f)) + self.C * float(self.primal_loss(f, rows.y).sum())

    def decide(self, X: Any, task: IntArray) -> FloatArray:
        return self._outputs(X, task, {name: getattr(self, name) for name in self._learned})

    def _outputs(self, X: Any, task: IntArray, learned: dict[str, Any]) -> FloatArray:
        """f(x, t); of a task without training rows only the common part w_0."""
        if "coef_" in learned:
            return task_margins(X, task, learned["coef_"], learned["coef_shared_"])
        f = np.zeros(len(task))
        if len(learned["dual_coef_"]):
            for block in _blocks(len(task)):
                values = kernel_functions.matrix(self.kernel, self.gamma, X[block], learned["support_vectors_"])
                terms = values * learned["dual_coef_"]
                own = task[block, None] == learned["support_task_"]
                f[block] = terms.sum(axis=1) / self.mu + (terms * own).sum(axis=1)
        return f


def _blocks(n: int) -> Iterator[slice]:
    return (slice(first, min(first + BLOCK, n)) for first in range(0, n, BLOCK))


@from_keywords
class RegMTL(_RegMTL):
    """Multi-task support vector machine: every task's model is a common one and an own correction (batch).

    ``min C sum_i loss(y_i f_i) + (mu/2)||w_0||² + ½ sum_t ||v_t||²`` with f = <w_0 + v_t, phi(x)> for task t: a
    support vector machine without bias with the kernel ``(1/mu + [s = t]) k(x, z)``, solved by libsvm ("hinge") or by
    Newton's method on the primal ("squared_hinge"). Cost: O(n²) memory for the kernel matrix of n rows, and time
    between O(n²) and O(n³).

    Parameters
    ----------
    mu : float > 0
        Price of the common part, the own parts' being 1. mu -> infinity: independent tasks; mu -> 0 with C/mu kept:
        one model for all. mu = K lambda_2/lambda_1 in the paper's terms.
    C : float > 0
        Weight of the losses, and the box of the dual: K/(2 lambda_1) in the paper's terms.
    kernel : {"linear", "rbf"} or function
        <x, z>, exp(-gamma ||x - z||²), or a function of two arrays (n, d) and (m, d) that returns the (n, m) values
        (such a model cannot be saved).
    gamma : float > 0
        Width of "rbf".
    loss : {"hinge", "squared_hinge"}
        [1 - y f]_+, as in the paper, or [1 - y f]_+².
    tol : float > 0
        libsvm's tolerance on the optimality conditions; Newton's method ends at the minimum.
    max_iter : int >= 1, or -1
        Most steps of the solver; -1: as many as it takes, of libsvm up to its own limit of 10 million, or 100 a row if
        that is more.

    Attributes
    ----------
    support_ : (n_support,) numbers of the training rows with a dual coefficient
    dual_coef_ : (n_support,) signed coefficients b_i, between 0 and C y_i ("hinge"), or of the sign of y_i
    support_vectors_, support_task_ : their rows, and the positions of their tasks in `tasks_`
    coef_, coef_shared_, coef_task_ : linear kernel only: (n_tasks, n_features) w_0 + v_t, (n_features,) w_0 and
        (n_tasks, n_features) v_t
    relation_ : (n_tasks, n_tasks) factors of the kernel, 1/mu + [s = t]
    objective_ : primal objective: (n_iter_,) after each of Newton's steps, never rising; (1,) at the end of libsvm's,
        which does not tell it on the way
    n_iter_ : steps of the solver
    tasks_, classes_, n_features_in_, feature_names_in_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters.

    Warns
    -----
    ConvergenceWarning
        If the solver stopped at `max_iter`.

    Notes
    -----
    An unseen task is answered by the common part w_0. There is no bias; with kernel="linear", put a constant among the
    features. libsvm always fits a bias, so the problem is posed to it as an equivalent regression in which two rows
    of zeros pin the bias to 0. It keeps kernel values in single precision: where mu is far below 1 and C is large, the
    objective is met to a few parts in a thousand, whatever `tol` is. Of the squared losses C is at most 1e15 over the
    sum of all rows' K(x, x), beyond which rounding errors of the kernel are larger than its part: scale the features.

    References
    ----------
    Evgeniou, Pontil. Regularized Multi-Task Learning. KDD 2004: sections 2 and 3.
    Evgeniou, Micchelli, Pontil. Learning Multiple Tasks with Kernel Methods. JMLR 6, 2005.
    Chapelle. Training a Support Vector Machine in the Primal. Neural Computation 19, 2007: equation (10).

    Examples
    --------
    >>> from shoal import RegMTL
    >>> from shoal.datasets import make_conjoint
    >>> train, test = make_conjoint("high", seed=1)
    >>> for mu, C in [(1e-4, 1e-5), (0.1, 0.1), (1e4, 0.1)]:
    ...     learner = RegMTL(mu=mu, C=C).fit(train.X, train.y, train.task)
    ...     print(f"mu {mu:7g}  error {1 - learner.score(test.X, test.y, test.task):.3f}")
    mu  0.0001  error 0.153
    mu     0.1  error 0.088
    mu   10000  error 0.115
    """

    loss: str = "hinge"

    parameters: ClassVar[Readers] = {**_RegMTL.parameters, "loss": one_of(("hinge", "squared_hinge"))}

    def machine(self, K: FloatArray, y: FloatArray) -> Machine:
        if self.loss == "squared_hinge":
            return squared_hinge(K[:-2, :-2], y, self.C, self.max_iter)
        return classification(K, y, np.full(len(y), self.C), self.tol, self.max_iter)

    def primal_loss(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.maximum(0.0, 1.0 - y * f)  # of libsvm


@from_keywords
class RegMTLRegressor(_RegMTL):
    """Multi-task kernel regression: every task's model is a common one and an own correction (batch).

    ``min C sum_i loss(f_i, y_i) + (mu/2)||w_0||² + ½ sum_t ||v_t||²`` with f = <w_0 + v_t, phi(x)> for task t: support
    vector regression or ridge regression without bias, with the kernel ``(1/mu + [s = t]) k(x, z)``. Cost: O(n²)
    memory for the kernel matrix of n rows; time between O(n²) and O(n³) of libsvm, or O(n³) of one Cholesky factor.

    Parameters
    ----------
    mu, kernel, gamma, tol, max_iter : as in `RegMTL`
    C : float > 0
        Weight of the losses.
    epsilon : float >= 0
        Half-width of the zone without loss of "epsilon_insensitive".
    loss : {"epsilon_insensitive", "squared"}
        [|f - y| - epsilon]_+ (support vector regression), or ½(f - y)² (kernel ridge regression).

    Attributes
    ----------
    support_, dual_coef_, support_vectors_, support_task_ : as in `RegMTL`; here -C <= b_i <= C, or any b_i ("squared")
    coef_, coef_shared_, coef_task_, relation_, objective_ : as in `RegMTL`
    n_iter_ : steps of libsvm; 1 for "squared"
    tasks_, n_features_in_, feature_names_in_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters.

    Warns
    -----
    ConvergenceWarning
        If libsvm stopped at `max_iter`.

    Notes
    -----
    An unseen task is answered by the common part w_0. There is no bias: centre the targets, or put a constant among
    the features of a linear kernel. Of the squared loss C is at most 1e15 over the sum of all rows' K(x, x), beyond
    which rounding errors of the kernel are larger than its part: scale the features.

    References
    ----------
    Evgeniou, Pontil. Regularized Multi-Task Learning. KDD 2004. Evgeniou, Micchelli, Pontil. Learning Multiple Tasks
    with Kernel Methods. JMLR 6, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import RegMTLRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(600, 5)), rng.integers(20, size=600)
    >>> w = rng.normal(size=5) + 0.3 * rng.normal(size=(20, 5))
    >>> y = np.einsum("ij,ij->i", X, w[task]) + rng.normal(size=600)
    >>> for mu, C in [(1e-4, 1e-4), (0.1, 0.1), (1e4, 1.0)]:
    ...     learner = RegMTLRegressor(mu=mu, C=C, loss="squared").fit(X[:300], y[:300], task[:300])
    ...     print(f"mu {mu:7g}  R2 {learner.score(X[300:], y[300:], task[300:]):.3f}")
    mu  0.0001  R2 0.732
    mu     0.1  R2 0.766
    mu   10000  R2 0.722
    """

    epsilon: float = 0.1
    loss: str = "epsilon_insensitive"

    parameters: ClassVar[Readers] = {
        **_RegMTL.parameters,
        "epsilon": non_negative(infinite=True),
        "loss": one_of(("epsilon_insensitive", "squared")),
    }

    def classifies(self) -> bool:
        return False

    def machine(self, K: FloatArray, y: FloatArray) -> Machine:
        if self.loss == "epsilon_insensitive":
            return regression(K, y, np.full(len(y), self.C), self.epsilon, self.tol, self.max_iter)
        from scipy.linalg import cho_factor, cho_solve

        K.flat[:: len(K) + 1] += max(1.0 / self.C, least_ridge(K))
        targets = np.append(y, [0.0, 0.0])
        return Machine(cho_solve(cho_factor(K.T, overwrite_a=True), targets)[:-2], 1, True)  # (K + I/C) b = y

    def primal_loss(self, f: FloatArray, y: FloatArray) -> FloatArray:
        error = np.abs(f - y)
        return 0.5 * error**2 if self.loss == "squared" else np.maximum(0.0, error - self.epsilon)
