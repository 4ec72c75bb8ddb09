"""
Smoothed learning: each task learns from those it predicts well
===============================================================

Nobody says which tasks are alike. A task can find out: it forecasts the rows of the others, and attends to those on
which its own model errs little. This relation need not be symmetric, and it costs a loss per pair of tasks and round.

`SMTL` does so with all rows at hand, and `OSMTL` round by round :footcite:p:`murugesan2016`.
"""

# %%
# The idea in a picture
# ---------------------
# Twenty tasks in two groups; the rules of one group are alike, those of the two groups are not. Row k is how much task
# k attends to each other task, after the stream.

import matplotlib.pyplot as plt
import numpy as np

from shoal import OSMTL, MultitaskPerceptron

rng = np.random.default_rng(0)
rules = rng.normal(size=(2, 20))[np.arange(20) // 10] + 0.3 * rng.normal(size=(20, 20))
X, task = rng.normal(size=(2000, 20)) / np.sqrt(20), np.tile(np.arange(20), 100)  # a round has a row of each task
y = np.where(np.einsum("nd,nd->n", X, rules[task]) > 0, 1, -1)
learner = OSMTL(alpha=0.5, lam=1.0)
decisions = learner.test_then_train(X, y, task)
figure, ax = plt.subplots(figsize=(4, 3.4))
shown = ax.imshow(learner.attention_, cmap="Blues", vmin=0)
ax.set(xlabel="learns from task", ylabel="task", xticks=range(0, 20, 5), yticks=range(0, 20, 5))
figure.colorbar(shown)
figure.tight_layout()

# %%
# What it is worth, against a model per task and against a relation that treats all pairs alike:

print(f"attention to the own group: {learner.attention_[:10, :10].sum(axis=1).mean():.2f}")
print(f"OSMTL        error {((decisions >= 0) != (y > 0)).mean():.3f}")
for relation in ("independent", "pairwise"):
    decisions = MultitaskPerceptron(relation=relation).test_then_train(X, y, task)
    print(f"{relation:12} error {((decisions >= 0) != (y > 0)).mean():.3f}")

# %%
# The formula
# -----------
# :math:`\ell_{kj} = [1 - y_j \langle w_k, x_j \rangle]_+` is the loss of learner k on the row of task j. The weights
# mix own and others' rows, :math:`R = \alpha I + (1 - \alpha) P`. When task k errs:
#
# .. math::
#    w_k \leftarrow w_k + C \sum_{j:\, \ell_{kj} > 0} R_{kj}\, y_j x_j, \qquad
#    P_{kj} \propto P_{kj} \exp\left(-\frac{C (1 - \alpha)}{\lambda} \ell_{kj}\right)
#
# Attention is a step of exponentiated gradient: it stays a distribution, and λ says how fast it changes. The threshold
# form attends in proportion to :math:`[\lambda - \ell_{kj}]_+`.
#
# The code
# --------
#
# .. literalinclude:: /../src/shoal/online/osmtl.py
#    :pyobject: collect
#    :caption: shoal/online/osmtl.py: what each task takes from the rows of a round
#
# .. literalinclude:: /../src/shoal/online/osmtl.py
#    :pyobject: shift_attention
#    :caption: shoal/online/osmtl.py: attention, kept as its logarithm
#
# .. literalinclude:: /../src/shoal/batch/smtl.py
#    :pyobject: _SMTL.solve
#    :caption: shoal/batch/smtl.py: with all rows at hand, weights and attention in turn
#
# History
# -------
# Crammer and Mansour :footcite:p:`crammer2012` let tasks share a few hypotheses, so that each has to find its group
# (`SHAMO`). Zhang and Yeung :footcite:p:`zhang2010` learn a covariance of tasks beside their weights, Saha and others
# :footcite:p:`saha2011` do so on a stream. Both are symmetric. Murugesan, Liu, Carbonell and Yang weigh by losses
# across tasks, where one task may follow another that does not follow it.
#
# What the paper claims, what we found
# ------------------------------------
#
# .. claims:: osmtl-1 osmtl-2 osmtl-3 osmtl-4 osmtl-6 osmtl-8 osmtl-9
#
# Exercises
# ---------
# 1. Which α makes the tasks independent? What does λ = ∞ do?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    With α = 1 a task takes its own rows alone. With λ = ∞ attention stays uniform:
#
#    >>> import numpy as np
#    >>> from shoal import OSMTL
#    >>> from shoal.datasets import make_related_tasks
#    >>> data = make_related_tasks(n_tasks=4, n_rows=400).interleaved(seed=0)
#    >>> OSMTL(lam=float("inf")).fit(data.X, data.y, data.task).attention_[0].round(3)
#    array([0.25, 0.25, 0.25, 0.25])
#
# 2. You know that task "new" should learn from "old" and not the other way round. Say so.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    Give the attention; it need not be symmetric:
#
#    >>> from shoal import relations
#    >>> given = relations.attention([[1.0, 0.0], [0.7, 0.3]], tasks=["old", "new"])
#    >>> learner = OSMTL(attention=given, classes=[-1, 1])
#    >>> learner.learn_round({"old": ([1.0], 1), "new": ([2.0], -1)})
#    >>> learner.attention_
#    array([[1. , 0. ],
#           [0.7, 0.3]])
#
# References
# ----------
# .. footbibliography::
