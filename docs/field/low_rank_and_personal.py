"""
Low rank plus personal: what tasks share, and who is different
==============================================================

Most users of a mail provider judge alike up to a few tastes: the matrix of their weights has low rank. A few users are
different from all. `ROMCO` splits the weights into a part of low rank and a part of each task, and makes the second one
zero for tasks that do not need it :footcite:p:`yang2017`.

Its relatives: `OMTRL` learns the matrix of relations itself while the stream runs :footcite:p:`saha2011`; `TraceNorm`
and `MTFL` find weights of low rank with all rows at hand :footcite:p:`ji2009,argyriou2008`.
"""

# %%
# The idea in a picture
# ---------------------
# Sixteen tasks have rules in a plane; the last four have rules of their own. The bars are the sizes of both parts.

import matplotlib.pyplot as plt
import numpy as np

from shoal import OMTRL, ROMCO, MultitaskPerceptron

rng = np.random.default_rng(1)
rules = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 30))
rules[16:] = rng.normal(size=(4, 30))
rules /= np.linalg.norm(rules, axis=1, keepdims=True)
X, task = rng.normal(size=(4000, 30)) / np.sqrt(30), np.tile(np.arange(20), 200)
y = np.where(np.einsum("nd,nd->n", X, rules[task]) > 0, 1, -1)
learner = ROMCO(lambda1=0.3, lambda2=0.5)
decisions = learner.test_then_train(X, y, task)
figure, ax = plt.subplots(figsize=(7, 2.8))
sizes = {"of low rank": learner.coef_low_rank_, "personal": learner.coef_task_}
for shift, (name, part) in zip((-0.2, 0.2), sizes.items()):
    ax.bar(np.arange(20) + shift, np.linalg.norm(part, axis=1), width=0.4, label=name)
ax.set(xlabel="task; 16 to 19 have rules of their own", ylabel="norm of the weights", xticks=range(0, 20, 2))
ax.legend()
figure.tight_layout()

# %%
#

print(f"ROMCO: rank {learner.rank_}, error {((decisions >= 0) != (y > 0)).mean():.3f}")
for other in (ROMCO(lambda1=0.0, lambda2=0.0), OMTRL(), MultitaskPerceptron()):
    decisions = other.test_then_train(X, y, task)
    print(f"{other!r:34} error {((decisions >= 0) != (y > 0)).mean():.3f}")

# %%
# The formula
# -----------
# W = U + V, a column a task. A round takes a step G of the hinge loss and then shrinks both parts:
#
# .. math::
#    \min_{U, V}\; \langle G, U + V \rangle + \frac{\lVert U - U_t \rVert^2}{2 \eta}
#    + \frac{\lVert V - V_t \rVert^2}{2 \rho} + \lambda_1\, g(U) + \lambda_2 \sum_k \lVert v_k \rVert
#
# With g the nuclear norm each singular value s of U becomes :math:`[s - \eta \lambda_1]_+`. With
# :math:`g(U) = \sum_i \log(1 + s_i^2)` it is the root of a cubic: large values shrink less. A personal column becomes
# :math:`[1 - \rho \lambda_2 / \lVert v_k \rVert]_+ v_k`.
#
# OMTRL moves its matrix of rates, :math:`B \leftarrow B + \eta_A W^\top W` for the log-determinant divergence.
#
# The code
# --------
#
# .. literalinclude:: /../tests/twins/romco.py
#    :pyobject: shrink
#    :caption: tests/twins/romco.py, the plain form
#
# .. literalinclude:: /../src/shoal/online/romco.py
#    :pyobject: nuclear_factor
#    :caption: shoal/online/romco.py
#
# .. literalinclude:: /../src/shoal/online/romco.py
#    :pyobject: logdet_factor
#
# .. literalinclude:: /../src/shoal/online/romco.py
#    :pyobject: shrink_common
#    :caption: shoal/online/romco.py: singular values by the small matrix of inner products of tasks
#
# .. literalinclude:: /../tests/twins/omtrl.py
#    :pyobject: next_relation
#    :caption: tests/twins/omtrl.py: four ways to move the relation
#
# .. literalinclude:: /../src/shoal/batch/proximal_gradient.py
#    :pyobject: nuclear
#    :caption: shoal/batch/proximal_gradient.py: the same step in batch
#
# History
# -------
# Low rank as a penalty is of Argyriou, Evgeniou and Pontil; Ji and Ye made it fast by accelerated gradients. Sums of a
# part of low rank and a sparse part were in fashion around 2010 (robust principal components of Candès, Li, Ma and
# Wright; for tasks Chen, Liu and Ye). Yang, Zhao and Gao brought the sum to streams. An online learner has no time for
# a singular value decomposition a row, which is what most of the code here avoids.
#
# What the paper claims, what we found
# ------------------------------------
#
# .. claims:: romco-1 romco-2 romco-3 romco-4 romco-5 romco-8 romco-13
#
# Exercises
# ---------
# 1. A singular value is 3 and the threshold 1. What do both penalties make of it? Of 0.5?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    The nuclear norm subtracts 1, or leaves 0. The log-determinant never gives 0, and takes little from large values:
#
#    >>> import numpy as np
#    >>> for s in (3.0, 0.5):
#    ...     roots = np.roots([1.0, -s, 1.0 + 2.0, -s])  # of the cubic with eta lambda_1 = 1
#    ...     print(f"{s}: {max(s - 1.0, 0.0):.3f} {roots[np.isreal(roots)].real[0]:.3f}")
#    3.0: 2.000 2.260
#    0.5: 0.000 0.170
#
# 2. Which tasks are outliers, by the learner's own account?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    ``outlier_tasks_`` names those whose personal part is not zero. With a λ₂ that is large enough there are none:
#
#    >>> from shoal import ROMCO
#    >>> from shoal.datasets import make_related_tasks
#    >>> data = make_related_tasks(n_tasks=5, n_rows=500).interleaved(seed=0)
#    >>> ROMCO(lambda2=100.0).fit(data.X, data.y, data.task).outlier_tasks_
#    []
#
# References
# ----------
# .. footbibliography::
