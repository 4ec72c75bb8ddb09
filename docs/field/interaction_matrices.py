"""
Interaction matrices: a mistake of one task moves the others
============================================================

Ten shops have ten models, and a row of one shop arrives. An independent learner moves the model of this shop alone. A
pooled learner has one model, so that the row moves all shops alike. An *interaction matrix* lies between: it says how
far each task moves when another one errs.

`MultitaskPerceptron` is the Perceptron with such a matrix. It was the first algorithm of the field with a mistake bound
that counts how alike the tasks are :footcite:p:`cavallanti2010`.
"""

# %%
# The idea in a picture
# ---------------------
# Each square is a matrix of learning rates for eight tasks. Row j, column i: how far task j moves on a mistake of task
# i. The diagonal is a task's own step.

import matplotlib.pyplot as plt
import numpy as np

from shoal import relations

PARENTS = {k: f"group {k // 4}" for k in range(8)} | {"group 0": "all", "group 1": "all"}
SHOWN = {
    "independent, b = 0": relations.interaction("independent", 8),
    "alike, b = 8": relations.interaction(8, 8),
    "a ring": relations.interaction([(k, (k + 1) % 8) for k in range(8)], 8),
    "two groups": relations.interaction(relations.hierarchy(PARENTS), 8),
}
figure, axes = plt.subplots(1, 4, figsize=(9, 2.6))
for ax, (title, A) in zip(axes, SHOWN.items()):
    B = np.linalg.inv(A)
    ax.imshow(B / B.max(), cmap="Blues", vmin=0, vmax=1)
    ax.set(title=title, xticks=[], yticks=[])
figure.tight_layout()

# %%
# The formula
# -----------
# The positive definite matrix :math:`A` of size :math:`K \times K` measures weights :math:`u_1, \ldots, u_K`; its
# inverse :math:`B = A^{-1}` holds the rates. On a mistake on the row :math:`(x, y)` of task i, every task j moves:
#
# .. math:: w_j \leftarrow w_j + y\, B_{ji}\, x
#
# The family of equation 5 of the paper has one number b and treats all pairs of tasks alike:
#
# .. math::
#    B = \frac{1}{1 + b}\left(I + \frac{b}{K} \mathbf{1}\mathbf{1}^\top\right), \qquad
#    \mathrm{tr}(U A U^\top) = \sum_k \lVert u_k \rVert^2 + b\, K\, \mathrm{VAR}[u]
#
# So b = 0 is a model per task, and one model for all is the limit of large b. The number of mistakes is bounded for
# every stream: with L the hinge loss of any weights U and :math:`D = \max_i B_{ii}\, \mathrm{tr}(U A U^\top)` it is at
# most :math:`L + D + \sqrt{D L}` for rows of norm 1. The more alike the tasks, the larger the b with the best bound.
#
# The code
# --------
# Nobody stores K steps for each mistake. A task keeps the sum v of its own steps and all tasks one sum s, so that a row
# costs as much as its non-zeros, for any number of tasks:
#
# .. literalinclude:: /../src/shoal/online/multitask_perceptron.py
#    :pyobject: shares
#    :caption: shoal/online/multitask_perceptron.py
#
# .. literalinclude:: /../src/shoal/online/multitask_perceptron.py
#    :pyobject: margin
#
# The plain form writes B down and is what tests hold the fast one to:
#
# .. literalinclude:: /../tests/twins/multitask_perceptron.py
#    :pyobject: kernel_decisions
#    :caption: tests/twins/multitask_perceptron.py
#
# How much to share
# -----------------
# Twenty tasks whose rules have a given cosine. The best b grows with the cosine; unrelated tasks gain nothing.

from shoal import MultitaskPerceptron
from shoal.datasets import make_related_tasks

NUMBERS = [0, 1, 4, 16, 64, 256]
figure, ax = plt.subplots(figsize=(7, 3.2))
for cosine in (0.0, 0.5, 0.9):
    data = make_related_tasks(n_tasks=20, n_rows=4000, relatedness=cosine, noise=0.05, seed=0)
    errors = []
    for b in NUMBERS:
        decisions = MultitaskPerceptron(relation=b).test_then_train(data.X, data.y, data.task)
        errors.append(((decisions >= 0) != (data.y > 0)).mean())
    print(
        f"cosine {cosine}: best b {NUMBERS[int(np.argmin(errors))]:3}, error {min(errors):.3f}; alone {errors[0]:.3f}"
    )
    ax.plot(range(len(NUMBERS)), errors, marker="o", label=f"cosine {cosine}")
ax.set(xlabel="b", ylabel="error", xticks=range(len(NUMBERS)), xticklabels=NUMBERS)
ax.legend()
figure.tight_layout()

# %%
# History
# -------
# Evgeniou and Pontil :footcite:p:`evgeniou2004` penalized how far the support vector machines of tasks are from their
# mean. Evgeniou, Micchelli and Pontil :footcite:p:`evgeniou2005` showed that each quadratic penalty of this kind, a
# graph of tasks among them, is a kernel over pairs of task and row. Cavallanti, Cesa-Bianchi and Gentile took these
# matrices to the Perceptron and to streams, at COLT 2008 and in the paper of 2010. Mirror descent with such matrices,
# and regret that shrinks with the variance of tasks, came in 2022 :footcite:p:`cesabianchi2022`.
#
# What the paper claims, what we found
# ------------------------------------
#
# .. claims:: cavallanti-1 cavallanti-2 cavallanti-5 cavallanti-6 cavallanti-10
#
# Exercises
# ---------
# 1. The bound is smallest at
#    :math:`b^* = \max\left(0, \sqrt{(K-1) \lVert \bar u \rVert^2 / \mathrm{VAR}[u]} - 1\right)`. What is it when all
#    tasks are the same, and what when their mean is 0? Compute it for four tasks that share the weight 1 and differ by
#    ±0.5 in another one.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    With equal tasks the variance is 0 and b is infinite: one model for all. With mean 0 it is 0: a model per task. For
#    the four tasks the mean has squared norm 1 and the variance is 0.25, so b is :math:`\sqrt{3 / 0.25} - 1`:
#
#    >>> from shoal import theory
#    >>> round(theory.optimal_sharing([[1, 0.5], [1, -0.5], [1, 0.5], [1, -0.5]]), 3)
#    2.464
#
# 2. Two of three tasks are neighbours in a graph. By how much does the third move when the first errs? And in the graph
#    with a path 1 - 2 - 3?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    Without a path between them, not at all. On the path it moves, though the two are no neighbours, because B is the
#    inverse of A:
#
#    >>> import numpy as np
#    >>> from shoal import relations
#    >>> edge = relations.graph([(1, 2)], tasks=[1, 2, 3])
#    >>> path = relations.graph([(1, 2), (2, 3)])
#    >>> [float(relation.rates()[2, 0].round(3)) for relation in (edge, path)]
#    [0.0, 0.125]
#
# References
# ----------
# .. footbibliography::
