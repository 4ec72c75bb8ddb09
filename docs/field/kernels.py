"""
Kernels: rules that are not lines, and basis vectors that tasks share
=====================================================================

A kernel k(x, z) says how alike two rows are. A kernel learner answers by the rows that it keeps: their labels vote,
weighted by how alike they are to the new row. For many tasks a vote also counts how related the two tasks are.

`KernelPerceptron` keeps the rows on which it erred :footcite:p:`cavallanti2010`. `SparseMTL` chooses few rows with all
of them at hand, some for all tasks and some for each :footcite:p:`srijith2012`; `RegMTL` is the support vector machine
that it is compared with :footcite:p:`evgeniou2004`.
"""

# %%
# The idea in a picture
# ---------------------
# Each task is a ring of its own size. Dots are the rows that were kept, the line is where the first and the last task
# change their answer: both are learned from the rows of all 20.

import matplotlib.pyplot as plt
import numpy as np

from shoal import KernelPerceptron

rng = np.random.default_rng(0)
X, task = rng.normal(size=(2000, 2)), rng.integers(20, size=2000)
y = np.where(np.linalg.norm(X, axis=1) < np.linspace(1.0, 1.4, 20)[task], 1, -1)
for kernel, relation in [("linear", "pairwise"), ("rbf", "independent"), ("rbf", "pairwise")]:
    learner = KernelPerceptron(relation=relation, kernel=kernel)
    decisions = learner.test_then_train(X, y, task)
    print(f"{kernel:6} {relation:11} error {((decisions >= 0) != (y > 0)).mean():.3f}, {learner.n_updates_} rows kept")

side = np.linspace(-2.5, 2.5, 60)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 2, figsize=(7, 3.5), sharey=True)
for ax, k in zip(axes, (0, 19)):
    values = learner.decision_function(grid, np.full(len(grid), k)).reshape(60, 60)
    own = task == k
    ax.scatter(*X[own].T, c=np.where(y[own] > 0, "tab:blue", "tab:orange"), s=12)
    ax.contour(side, side, values, levels=[0.0], colors="black")
    ax.set(title=f"task {k}", aspect="equal", xlim=(-2.5, 2.5), ylim=(-2.5, 2.5))
figure.tight_layout()

# %%
# The formula
# -----------
# The kernel of rows is multiplied by the rate of tasks, so that a row (x, i) is answered by
#
# .. math:: f(x, i) = \sum_{s} y_s\, B_{i_s i}\, k(x_s, x)
#
# over the mistakes s. `SparseMTL` writes the model of task t with a set C of basis vectors of all tasks and a set
# :math:`J_t` of its own:
#
# .. math::
#    f_t(x) = \sum_{c \in C} \alpha_c\, k(x, x_c) + \sum_{j \in J_t} \beta_{tj}\, k(x, x_j)
#
# It adds the row that lowers the objective most, common ones first, until little is gained.
#
# The code
# --------
#
# .. literalinclude:: /../src/shoal/online/kernel_perceptron.py
#    :pyobject: margin
#    :caption: shoal/online/kernel_perceptron.py
#
# .. literalinclude:: /../tests/twins/sparse_mtl.py
#    :pyobject: SparseMTL.grow
#    :caption: tests/twins/sparse_mtl.py: which row is chosen next
#
# How few rows are enough
# -----------------------
# Choices between products, by 40 people; the test set has other choices.

from shoal import RegMTL, SparseMTL
from shoal.datasets import make_conjoint

train, test = make_conjoint("high", seed=5)
for sharing in ("both", "common", "task"):
    learner = SparseMTL(gamma=0.1, lam=0.3, sigma=6.0, sharing=sharing, random_state=0)
    learner.fit(train.X, train.y, train.task)
    error = 1 - learner.score(test.X, test.y, test.task)
    print(f"SparseMTL, {sharing:7} error {error:.2f}, {learner.n_basis_common_} common vectors")
machine = RegMTL(mu=0.1, C=0.1).fit(train.X, train.y, train.task)
print(f"RegMTL             error {1 - machine.score(test.X, test.y, test.task):.2f}")

# %%
# History
# -------
# The Perceptron with a kernel is nearly as old as the Perceptron: Aizerman, Braverman and Rozonoer (1964). It keeps
# every row on which it errs, so that budgets came: to forget the oldest, or one at random (Cavallanti, Cesa-Bianchi
# and Gentile, 2007). Evgeniou, Micchelli and Pontil :footcite:p:`evgeniou2005` gave kernels over tasks. Greedy choice
# of few basis vectors is of the sparse support vector machines of Keerthi, Chapelle and DeCoste (2006), to which the
# paper of 2012 gives two kinds of basis vectors.
#
# What the paper claims, what we found
# ------------------------------------
#
# .. claims:: sparse_mtl-1 sparse_mtl-2 sparse_mtl-3 sparse_mtl-4 sparse_mtl-5 sparse_mtl-6
#
# Exercises
# ---------
# 1. A stream never ends, and a kernel Perceptron keeps each mistake. What can be done?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    Keep the last ones: ``budget`` drops the oldest row, so that memory and time per row are bounded.
#
#    >>> import numpy as np
#    >>> from shoal import KernelPerceptron
#    >>> rng = np.random.default_rng(0)
#    >>> X, task = rng.normal(size=(500, 2)), rng.integers(5, size=500)
#    >>> y = np.where(np.linalg.norm(X, axis=1) < 1.2, 1, -1)
#    >>> len(KernelPerceptron(budget=20).fit(X, y, task).support_)
#    20
#
# 2. With the linear kernel, which learner is `KernelPerceptron`?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    `MultitaskPerceptron`, at a higher price:
#
#    >>> from shoal import MultitaskPerceptron
#    >>> pair = KernelPerceptron(kernel="linear"), MultitaskPerceptron()
#    >>> bool(np.allclose(*(learner.test_then_train(X, y, task) for learner in pair)))
#    True
#
# References
# ----------
# .. footbibliography::
