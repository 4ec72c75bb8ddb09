"""
Schatten norms: tasks that live in few dimensions
=================================================

Some people like a product the more it costs, and others the less. Their rules are opposite: the mean over people is
zero, and an interaction matrix that treats all pairs alike has nothing to share. But all rules lie on one line. The
2p-norm matrix Perceptron looks at the matrix of all weights and favours few directions, whatever they are
:footcite:p:`cavallanti2010`.
"""

# %%
# The idea in a picture
# ---------------------
# Thirty tasks with equal or opposite rules. The bars are the singular values of the learned weights, over the largest:
# p = 1 is independent learning, with noise in all directions; larger p leave the one direction that tasks share.

import matplotlib.pyplot as plt
import numpy as np

from shoal import MultitaskPerceptron, SchattenPerceptron

rng = np.random.default_rng(0)
X, task = rng.normal(size=(3000, 20)), np.tile(np.arange(30), 100)
y = np.where((X @ rng.normal(size=20)) * np.where(task % 2, 1, -1) > 0, 1, -1)
figure, axes = plt.subplots(1, 3, figsize=(8, 2.6), sharey=True)
for ax, p in zip(axes, (1, 2, 4)):
    learner = SchattenPerceptron(p=p)
    error = ((learner.test_then_train(X, y, task) >= 0) != (y > 0)).mean()
    values = np.linalg.svd(learner.coef_, compute_uv=False)
    ax.bar(range(len(values)), values / values[0])
    ax.set(title=f"p = {p}, error {error:.3f}", xlabel="direction")
axes[0].set_ylabel("singular value")
figure.tight_layout()

# %%
# The constant relation finds nothing to share here:

for learner in (MultitaskPerceptron(relation="independent"), MultitaskPerceptron(relation="pairwise")):
    print(f"{learner!r:46} error {((learner.test_then_train(X, y, task) >= 0) != (y > 0)).mean():.3f}")

# %%
# The formula
# -----------
# V holds the sums of tasks' mistakes, a column a task. With :math:`G = V^\top V`:
#
# .. math::
#    W = \nabla \tfrac12 \lVert V \rVert_{S_{2p}}^2 = \mathrm{tr}(G^p)^{1/p - 1}\; V\, G^{p-1}
#
# The norm is the 2p-norm of the singular values of V. :math:`G^{p-1}` says how much of task j's sum goes into the
# weights of task k: it is a relation that the stream itself makes. In a round all tasks may have a row; those that err
# move.
#
# The code
# --------
#
# .. literalinclude:: /../tests/twins/schatten_perceptron.py
#    :pyobject: gradient
#    :caption: tests/twins/schatten_perceptron.py, the plain form
#
# The fast form never forms W. It keeps G and its power, which a mistake changes in one row and column:
#
# .. literalinclude:: /../src/shoal/online/schatten_perceptron.py
#    :pyobject: step_gram
#    :caption: shoal/online/schatten_perceptron.py
#
# History
# -------
# That few directions serve many tasks is the thought of Ando and Zhang (2005) and, with the trace norm as penalty, of
# Argyriou, Evgeniou and Pontil :footcite:p:`argyriou2008`, for rows that are all at hand. Agarwal, Rakhlin and
# Bartlett (2008) took norms of matrices to online experts, Cavallanti, Cesa-Bianchi and Gentile to the Perceptron,
# where no matrix has to be decomposed for integer p.
#
# What the paper claims, what we found
# ------------------------------------
#
# .. claims:: cavallanti-3 cavallanti-4 cavallanti-7 cavallanti-8 cavallanti-12
#
# Exercises
# ---------
# 1. Show that p = 1 is a Perceptron per task.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    :math:`G^0 = I` and the factor is :math:`\mathrm{tr}(G)^0 = 1`, so W = V:
#
#    >>> import numpy as np
#    >>> from shoal import MultitaskPerceptron, SchattenPerceptron
#    >>> from shoal.datasets import make_related_tasks
#    >>> data = make_related_tasks(n_rows=500)
#    >>> one = SchattenPerceptron(p=1).test_then_train(data.X, data.y, data.task, rounds=np.arange(500))
#    >>> alone = MultitaskPerceptron(relation="independent").test_then_train(data.X, data.y, data.task)
#    >>> bool(np.allclose(one, alone))
#    True
#
# 2. The weights of two tasks are orthogonal. What does one learn from the other?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    Nothing: G is diagonal, and so is each power of it. It takes a common direction to share.
#
#    >>> V = np.eye(3)[:, :2]
#    >>> np.linalg.matrix_power(V.T @ V, 3)
#    array([[1., 0.],
#           [0., 1.]])
#
# References
# ----------
# .. footbibliography::
