"""How tasks are related: interaction matrices A and their rates B = A^-1 (Cavallanti et al., section 3).

Constant relations need no matrix: B = (I + (b/K) 11^T)/(1 + b) for every number K of tasks (eq. 5). Given
matrices and graphs name their tasks; a graph stands for A = I + Laplacian (section 3.3).

The attention P of Murugesan et al. is another relation, of rows that sum to 1; a given one names its tasks, too.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel

WHOLE = 1e-9  # how far the sum of a row of attention may be from 1
DENSE_LIMIT = 2000  # above, a graph's inverse is never formed: its columns are solved for when needed


@dataclass(frozen=True)
class Constant:
    """Every pair of tasks alike: eq. 5 with b >= 0 (inf: one model for all), or b = K at every K (eq. 4)."""

    b: float
    b_is_n_tasks: bool = False

    def own_share(self, n_tasks: int) -> float:
        """a = 1/(1 + b), so that B = a I + (1 - a)/K 11^T."""
        return 1.0 / (1.0 + (n_tasks if self.b_is_n_tasks else self.b))

    def rates(self, n_tasks: int) -> FloatArray:
        """B for this many tasks."""
        a = self.own_share(n_tasks)
        return a * np.eye(n_tasks) + (1 - a) / n_tasks


class Factors(NamedTuple):
    """The source of any column of B = A^-1 in a compiled loop: B itself, or A's factors P^T L D L^T P."""

    dense: FloatArray  # (K, K) B, or (0, 0)
    indptr: IntArray  # L by columns, unit diagonal left out
    indices: IntArray
    values: FloatArray
    pivots: FloatArray  # (K,) D
    order: IntArray  # (K,) row i of A is row order[i] of L
    scale: float  # B is multiplied by this


@kernel(entry="too", allocates=True)
def rates_column(factors: Factors, task: int, column: FloatArray) -> None:
    """column <- scale B e_task."""
    n = len(column)
    if len(factors.dense) > 0:
        for k in range(n):
            column[k] = factors.scale * factors.dense[task, k]
        return
    z = np.zeros(n)
    z[factors.order[task]] = factors.scale
    for j in range(n):  # L z' = z
        if z[j] != 0.0:
            for p in range(factors.indptr[j], factors.indptr[j + 1]):
                z[factors.indices[p]] -= factors.values[p] * z[j]
    for j in range(n):
        z[j] /= factors.pivots[j]
    for j in range(n - 1, -1, -1):  # L^T x = z
        for p in range(factors.indptr[j], factors.indptr[j + 1]):
            z[j] -= factors.values[p] * z[factors.indices[p]]
    for k in range(n):
        column[k] = z[factors.order[k]]


@kernel(entry=True, allocates=True)
def _largest_diagonal(factors: Factors, n_tasks: int) -> float:
    column = np.empty(n_tasks)
    largest = 0.0
    for k in range(n_tasks):
        rates_column(factors, k, column)
        largest = max(largest, column[k])
    return largest


@dataclass(frozen=True, eq=False)
class Given:
    """A relation between named tasks: a positive definite A, dense or sparse."""

    tasks: tuple[Hashable, ...]
    interaction: Any  # (K, K) A, ndarray or CSC; None if B was given
    rates_given: FloatArray | None = None

    def rates(self, n_tasks: int | None = None) -> FloatArray:
        """B = A^-1 as a dense matrix (for looking at; the learners do not form it above 2,000 tasks)."""
        if self.rates_given is not None:
            return self.rates_given
        return _inverse(_as_dense(self.interaction))

    def factors(self, *, unit_own_rate: bool) -> Factors:
        """For the jitted loops; `unit_own_rate` divides B by its largest diagonal entry."""
        K = len(self.tasks)
        none_i, none_f = np.zeros(0, np.int64), np.zeros(0)
        if sp.issparse(self.interaction) and K > DENSE_LIMIT:
            factors = _sparse_factors(self.interaction)
        else:
            factors = Factors(np.ascontiguousarray(self.rates()), none_i, none_i, none_f, none_f, none_i, 1.0)
        return factors._replace(scale=1.0 / _largest_diagonal(factors, K)) if unit_own_rate else factors


Relation = Constant | Given


@dataclass(frozen=True, eq=False)
class Attention:
    """How much named tasks attend to each other: P of Murugesan et al. (NIPS 2016), eq. 3; it need not be symmetric."""

    tasks: tuple[Hashable, ...]
    P: FloatArray  # (K, K) rows sum to 1


def _as_dense(A: Any) -> FloatArray:
    return np.asarray(A.toarray() if sp.issparse(A) else A)


def _inverse(A: FloatArray) -> FloatArray:
    import scipy.linalg as sl

    try:
        B = sl.cho_solve(sl.cho_factor(A, lower=True), np.eye(len(A)))
    except np.linalg.LinAlgError:
        raise ValueError("the task relation is not positive definite") from None
    return np.asarray((B + B.T) / 2)


def _sparse_factors(A: Any) -> Factors:
    """A = P^T L D L^T P by SuperLU in its symmetric mode (diagonal pivots: then U = D L^T)."""
    from scipy.sparse.linalg import splu

    lu = splu(A.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    L, pivots = lu.L.tocsc(), lu.U.diagonal()
    if (lu.perm_r != lu.perm_c).any() or not (pivots > 0).all():
        raise ValueError("the task relation is not positive definite")
    strict = sp.tril(L, -1, format="csc")
    starts, rows, order = (a.astype(np.int64) for a in (strict.indptr, strict.indices, lu.perm_r))
    data, pivots = np.ascontiguousarray(strict.data), np.ascontiguousarray(pivots)
    return Factors(np.zeros((0, 0)), starts, rows, data, pivots, order, 1.0)


def constant(b: float) -> Constant:
    """B = (I + (b/K) 11^T)/(1 + b), b >= 0: 0 independent, K the pairwise distance matrix, inf pooled (eq. 5)."""
    if not b >= 0:
        raise ValueError(f"the sharing parameter b must be a number >= 0, got {b}")
    return Constant(float(b))


def _square(M: Any, what: str, tasks: Sequence[Hashable] | None) -> tuple[FloatArray, tuple[Hashable, ...]]:
    M = np.array(M, dtype=np.float64)
    if M.ndim != 2 or M.shape[0] != M.shape[1] or not len(M):
        raise ValueError(f"{what} must be a square matrix, got shape {M.shape}")
    return M, _named(tasks, len(M))


def _symmetric(M: Any, what: str, tasks: Sequence[Hashable] | None) -> tuple[FloatArray, tuple[Hashable, ...]]:
    M, names = _square(M, what, tasks)
    if not np.isfinite(M).all() or not np.allclose(M, M.T, rtol=1e-10, atol=0):
        raise ValueError(f"{what} must be finite and symmetric")
    return M, names


def _named(tasks: Sequence[Hashable] | None, n: int) -> tuple[Hashable, ...]:
    names = tuple(range(n)) if tasks is None else tuple(tasks)
    if len(names) != n or len(set(names)) != n:
        raise ValueError(f"tasks must name {n} different tasks, one per row, got {len(names)}")
    return names


def matrix(A: Any, *, tasks: Sequence[Hashable] | None = None) -> Given:
    """The interaction matrix A itself, positive definite; its rows belong to `tasks` (default 0..K-1).

    Raises
    ------
    ValueError
        If A is not square, finite, symmetric and positive definite, or `tasks` does not fit.
    """
    A, names = _symmetric(A, "the interaction matrix A", tasks)
    _inverse(A)
    return Given(names, A)


def rates(B: Any, *, tasks: Sequence[Hashable] | None = None) -> Given:
    """The learning rates B = A^-1: on a mistake of task i, task j moves by B[j, i]."""
    B, names = _symmetric(B, "the rates B", tasks)
    return Given(names, _inverse(B), B)


def hierarchy(parents: Mapping[Any, Any]) -> Given:
    """Tasks within groups, groups within larger ones: a task learns from another by the groups that both are in.

    ``B[i, j]`` is the number of nodes, the roots included, that the paths from the roots to tasks i and j share. It is
    the covariance of weights that walk down the tree by one step of variance 1 a node, ``w_node = w_parent + step``,
    and its inverse A measures a comparator by ``min sum_nodes ||u_node - u_parent||^2`` over the weights of all groups.
    This is the Laplacian of the tree as a graph, with 1 at the roots alone, whose groups are minimised away. A task of
    which no row has come is answered as its groups are.

    Parameters
    ----------
    parents : {task or group: the group that it is in}
        The tasks are those that nothing else is in. Groups need no entry: those without one are the roots.

    Raises
    ------
    ValueError
        If there is no task, or a group is within itself.

    References
    ----------
    Cavallanti, Cesa-Bianchi, Gentile. Linear Algorithms for Online Multitask Classification. JMLR 11, 2010:
    section 3.3. Salakhutdinov, Torralba, Tenenbaum. Learning to Share Visual Appearance for Multiclass Object
    Detection. CVPR 2011, have the same prior.

    Examples
    --------
    >>> from shoal import MultitaskPerceptron, relations
    >>> from shoal.datasets import make_related_tasks
    >>> relations.hierarchy({"Lyon": "France", "Nice": "France", "Rome": "Italy"}).rates()
    array([[2., 1., 0.],
           [1., 2., 0.],
           [0., 0., 2.]])
    >>> data = make_related_tasks(n_tasks=60, n_groups=6, n_rows=6000, relatedness=0.7, noise=0.0, seed=0)
    >>> groups = {k: f"group {k % 6}" for k in range(60)} | {f"group {g}": "all" for g in range(6)}
    >>> for name, relation in {"pairwise": "pairwise", "hierarchy": relations.hierarchy(groups)}.items():
    ...     decisions = MultitaskPerceptron(relation=relation).test_then_train(data.X, data.y, data.task)
    ...     print(f"{name:9} error {((decisions >= 0) != (data.y > 0)).mean():.3f}")
    pairwise  error 0.227
    hierarchy error 0.203
    """
    above = set(parents.values())
    tasks = [node for node in parents if node not in above]
    if not tasks:
        raise ValueError("a hierarchy needs a task: {task: the group that it is in}")
    nodes: dict[Hashable, int] = {}
    rows: list[int] = []
    columns: list[int] = []
    for i, task in enumerate(tasks):
        path = [task]
        while path[-1] in parents:
            group = parents[path[-1]]
            if group in path:
                raise ValueError(f"the group {group!r} is within itself")
            path.append(group)
        rows += [i] * len(path)
        columns += [nodes.setdefault(each, len(nodes)) for each in path]
    within = sp.csr_matrix((np.ones(len(rows)), (rows, columns)))
    return rates(_as_dense(within @ within.T), tasks=tasks)


def attention(P: Any, *, tasks: Sequence[Hashable] | None = None) -> Attention:
    """A given attention for `OSMTL` and `SMTL`: task k learns from the data of task j with weight P[k, j].

    Parameters
    ----------
    P : (K, K) array-like or sparse matrix
        Numbers >= 0; each row sums to 1 (to 1e-9; they are taken as they are). Of the weights
        ``eta = alpha I + (1 - alpha) P`` (Murugesan et al., NIPS 2016, eqs. 1 and 3) this is P.
    tasks : sequence of ids, optional
        Names the rows and columns (default 0..K-1). A learner with this attention knows these tasks and no others.

    Raises
    ------
    ValueError
        If P is not square and finite, has a negative entry or a row of another sum, or `tasks` does not fit.

    Examples
    --------
    Tasks a and b follow one rule, c and d the opposite one.

    >>> import numpy as np
    >>> from shoal import OSMTL, relations
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(800, 20)), np.resize(["a", "b", "c", "d"], 800)
    >>> y = np.where((X @ rng.normal(size=20) > 0) == np.isin(task, ["a", "b"]), 1, -1)
    >>> for P in (np.eye(4), np.full((4, 4), 1 / 4), np.kron(np.eye(2), np.full((2, 2), 1 / 2))):
    ...     learner = OSMTL(alpha=0, attention=relations.attention(P, tasks=["a", "b", "c", "d"]))
    ...     decisions = learner.test_then_train(X, y, task)
    ...     print(f"attention of a {P[0]} error {((decisions >= 0) != (y > 0)).mean():.3f}")
    attention of a [1. 0. 0. 0.] error 0.215
    attention of a [0.25 0.25 0.25 0.25] error 0.417
    attention of a [0.5 0.5 0.  0. ] error 0.177
    """
    P, names = _square(_as_dense(P), "the attention P", tasks)
    if not (np.isfinite(P).all() and (P >= 0).all()):
        raise ValueError(f"the attention P must hold finite numbers >= 0, got {P[~(np.isfinite(P) & (P >= 0))][0]}")
    sums = P.sum(axis=1)
    if (off := np.abs(sums - 1.0)).max() > WHOLE:
        k = int(off.argmax())
        raise ValueError(f"each row of the attention P must sum to 1; that of task {names[k]!r} sums to {sums[k]:.12g}")
    return Attention(names, P)


def graph(edges: Any, *, tasks: Sequence[Hashable] | None = None, weight: float | str | None = None) -> Given:
    """A = I + Laplacian of an undirected task graph (section 3.3).

    Parameters
    ----------
    edges : edge list, networkx graph, or (K, K) adjacency matrix, dense or sparse
        An edge is `(task, task)` or `(task, task, weight)`, weights above 0.
    tasks : sequence of ids, optional
        Names the rows of an adjacency matrix (default 0..K-1); for an edge list, adds tasks without an edge.
    weight : float or str, optional
        A number multiplies every edge weight; a name is the edge attribute of a networkx graph.

    Raises
    ------
    ValueError
        On a loop, a weight that is not positive, or an asymmetric adjacency matrix.
    """
    scale = weight if isinstance(weight, int | float) else 1.0
    if is_networkx(edges):
        tasks = [*edges.nodes, *(tasks or ())]
        edges = list(edges.edges(data=weight if isinstance(weight, str) else "weight", default=1.0))
    if sp.issparse(edges) or isinstance(edges, np.ndarray):
        W, names = _adjacency(edges, tasks)
    else:
        W, names = _from_edges(edges, tasks)
    if W.diagonal().any():
        raise ValueError("a task graph has no loops: the diagonal of the adjacency matrix must be zero")
    if not (np.isfinite(W.data).all() and (W.data > 0).all() and scale > 0):
        raise ValueError("the weights of a task graph must be finite and above 0")
    W = W * scale
    degree = np.asarray(W.sum(axis=1)).ravel()
    return Given(names, sp.csc_matrix(sp.diags(1.0 + degree) - W))


def checked(tasks: Any, interaction: Any, rates_given: Any) -> Given:
    """A given relation from its parts, as a file holds them. Raises ValueError if they are none."""
    names = tuple(tasks)
    if rates_given is not None:
        return rates(rates_given, tasks=names)
    if not sp.issparse(interaction):
        return matrix(interaction, tasks=names)
    A = sp.csc_matrix(interaction, dtype=np.float64)
    if A.shape != (len(names), len(names)) or len(set(names)) != len(names):
        raise ValueError(f"a relation of {len(names)} tasks has a matrix of shape {A.shape}")
    if not np.isfinite(A.data).all() or abs(A - A.T).max() > 0 or not (A.diagonal() > 0).all():
        raise ValueError("a task relation must be finite, symmetric and positive definite")
    return Given(names, A)


def is_networkx(value: Any) -> bool:
    """A networkx graph, without importing networkx."""
    return hasattr(value, "edges") and hasattr(value, "nodes")


def _adjacency(W: Any, tasks: Sequence[Hashable] | None) -> tuple[Any, tuple[Hashable, ...]]:
    W = sp.csr_matrix(W, dtype=np.float64)
    if W.shape[0] != W.shape[1] or abs(W - W.T).max() > 0:
        raise ValueError(f"an adjacency matrix must be square and symmetric, got shape {W.shape}")
    W.eliminate_zeros()
    return W, _named(tasks, W.shape[0])


def _from_edges(edges: Iterable[Any], tasks: Sequence[Hashable] | None) -> tuple[Any, tuple[Hashable, ...]]:
    index: dict[Hashable, int] = {task: k for k, task in enumerate(tasks or ())}
    pairs: dict[tuple[int, int], float] = {}
    for edge in edges:
        if not isinstance(edge, Sequence) or len(edge) not in (2, 3):
            raise ValueError(f"an edge is (task, task) or (task, task, weight), got {edge!r}")
        i, j = (index.setdefault(task, len(index)) for task in edge[:2])
        pairs[min(i, j), max(i, j)] = weight = float(edge[2]) if len(edge) == 3 else 1.0
        if weight == 0.0:  # in a sparse matrix it would be no edge
            raise ValueError(f"the weights of a task graph must be finite and above 0, got 0 for {edge!r}")
    if not index:
        raise ValueError("a task graph needs at least one task")
    rows, columns = np.array(list(pairs), np.int64).reshape(-1, 2).T
    W = sp.coo_matrix((list(pairs.values()), (rows, columns)), shape=(len(index), len(index))).tocsr()
    return W + W.T, tuple(index)


def resolve(relation: Any) -> Relation:
    """Read `relation=`: a name, a number b, a graph, a matrix, or an object from this module.

    A plain matrix with a zero diagonal is an adjacency, any other must be positive definite and is A.
    """
    if isinstance(relation, Constant | Given):
        return relation
    if isinstance(relation, str):
        if relation not in ("independent", "pairwise", "pooled"):
            raise ValueError(
                f"relation must be 'independent', 'pairwise', 'pooled', a number or a graph, got {relation!r}"
            )
        return {"independent": Constant(0.0), "pairwise": Constant(0.0, True), "pooled": Constant(np.inf)}[relation]
    if isinstance(relation, int | float | np.number) and not isinstance(relation, bool):
        return constant(float(relation))
    if isinstance(relation, np.ndarray) and relation.ndim == 2 and np.diag(relation).any():
        return matrix(relation)
    if sp.issparse(relation) and relation.diagonal().any():
        return matrix(_as_dense(relation))
    if relation is None or isinstance(relation, bool):
        raise ValueError(f"relation must be a name, a number, a graph or a matrix, got {relation!r}")
    return graph(relation)


def resolve_attention(given: Any) -> Any:
    """Read `attention=`: a matrix becomes given attention; the name of a rule that learns it stays as it is."""
    return given if given is None or isinstance(given, str | Attention) else attention(given)


def interaction(relation: Any, n_tasks: int) -> NDArray[np.float64]:
    """A as a dense matrix (for bounds and tests)."""
    resolved = resolve(relation)
    if isinstance(resolved, Given):
        return _as_dense(resolved.interaction)
    if np.isinf(resolved.b):
        raise ValueError("pooled learning has no interaction matrix: its rates 11^T/K are singular")
    return np.asarray(np.linalg.inv(resolved.rates(n_tasks)))
