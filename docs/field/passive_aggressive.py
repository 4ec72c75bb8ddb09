"""
Passive-aggressive steps, collaboration and shared loss
=======================================================

A passive-aggressive learner leaves the weights as they are while the margin is large enough. Otherwise it makes the
smallest step that repairs the margin, up to a cap :footcite:p:`crammer2006`. Two families for many tasks come from it:

- *collaborative*: a global model learns all rows, and each task starts its step between its own weights and the global
  ones (`CollaborativePA`, and with confidences `CollaborativeCW`) :footcite:p:`li2014`;
- *shared loss*: the tasks of a round suffer one loss, a norm of theirs, and the steps share one cap (`SharedLoss`)
  :footcite:p:`dekel2007`.
"""

# %%
# The idea in a picture
# ---------------------
# How strongly a task is pulled to the global model, for tasks that are more and less alike.

import matplotlib.pyplot as plt
import numpy as np

from shoal import CollaborativeCW, CollaborativePA, PassiveAggressive, SharedLoss
from shoal.datasets import make_related_tasks

PULLS = np.linspace(0.0, 1.0, 6)
figure, ax = plt.subplots(figsize=(7, 3))
for cosine in (0.0, 0.5, 0.9):
    data = make_related_tasks(n_tasks=20, n_features=30, n_rows=3000, relatedness=cosine, noise=0.0, seed=1)
    errors = []
    for pull in PULLS:
        decisions = CollaborativePA(pull=pull).test_then_train(data.X, data.y, data.task)
        errors.append(((decisions >= 0) != (data.y > 0)).mean())
    ax.plot(PULLS, errors, marker="o", label=f"cosine {cosine}")
ax.set(xlabel="pull: 0 a model per task, 1 the global model", ylabel="error")
ax.legend()
figure.tight_layout()

# %%
# The last stream, with cosine 0.9, in the order of rounds with a row of each task:

data = data.interleaved(seed=0)
LEARNERS = (
    PassiveAggressive(),
    PassiveAggressive(relation="pooled"),
    CollaborativePA(),
    CollaborativeCW(),
    SharedLoss(),
)
for learner in LEARNERS:
    decisions = learner.test_then_train(data.X, data.y, data.task)
    print(f"{learner!r:38} error {((decisions >= 0) != (data.y > 0)).mean():.3f}")

# %%
# The formula
# -----------
# With :math:`\ell = [1 - y \langle w, x \rangle]_+` the step is the solution of a small problem:
#
# .. math::
#    w \leftarrow \arg\min_{w'} \tfrac12 \lVert w' - w \rVert^2 + C\, [1 - y \langle w', x \rangle]_+
#    = w + \min\left(C, \frac{\ell}{\lVert x \rVert^2}\right) y\, x
#
# The collaborative form starts from :math:`(1 - \pi) w_k + \pi g` with the global model g, which has learned the row.
# The shared loss of a round is :math:`\lVert (\ell_1, \ldots, \ell_K) \rVert`, and its steps are
#
# .. math::
#    w_k \leftarrow w_k + \tau_k y_k x_k, \qquad
#    \tau = \arg\max \left\{ \langle \tau, \ell \rangle : \lVert \tau \rVert_* \le C \right\}
#
# With the maximum as norm, the task that errs most moves alone; with the sum, all move as if they were alone.
#
# The code
# --------
#
# .. literalinclude:: /../src/shoal/online/passive_aggressive.py
#    :pyobject: step
#    :caption: shoal/online/passive_aggressive.py
#
# .. literalinclude:: /../src/shoal/online/collaborative/collaborative_pa.py
#    :pyobject: learn_row
#    :caption: shoal/online/collaborative/collaborative_pa.py
#
# .. literalinclude:: /../src/shoal/online/common/shared_loss_steps.py
#    :pyobject: finite_steps
#    :caption: shoal/online/common/shared_loss_steps.py
#
# History
# -------
# The name is of Crammer, Dekel, Keshet, Shalev-Shwartz and Singer, 2003 and 2006; the smallest step that repairs a
# constraint is older, in relaxation methods for linear inequalities. Dekel, Long and Singer asked in 2006 what changes
# when the tasks of a round suffer together. Dredze, Crammer and Pereira (2008) gave weights a confidence; its soft
# form :footcite:p:`wang2012` is the one that the collaborative learner here takes.
#
# What the papers claim, what we found
# ------------------------------------
# These learners are baselines in the papers whose claims are checked here; `the reproduction <../reproduction.html>`__
# has their rows in every table. OSMTL's paper claims this of the first one:
#
# .. claims:: osmtl-13
#
# Exercises
# ---------
# 1. What does the step do to the margin of the row just learned, if the cap C does not hold it back?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    It becomes 1, no more:
#
#    >>> from shoal import PassiveAggressive
#    >>> learner = PassiveAggressive(variant="PA", classes=[-1, 1])
#    >>> x = [3.0, 4.0]
#    >>> learner.learn_one(x, 1, "a")
#    >>> round(learner.decision_one(x, "a"), 12)
#    1.0
#
# 2. Losses in a round are 3 and 4, and C = 1. What are the steps for the norms l1, l2 and linf?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    1 and 1; 3/5 and 4/5; 0 and 1:
#
#    >>> import numpy as np
#    >>> from shoal.online.common.shared_loss_steps import finite_steps, norm_code
#    >>> for norm in ("l1", "l2", "linf"):
#    ...     tau = np.zeros(2)
#    ...     finite_steps(np.array([3.0, 4.0]), norm_code(norm), 1.0, tau)
#    ...     print(norm, tau.round(3))
#    l1 [1. 1.]
#    l2 [0.6 0.8]
#    linf [0. 1.]
#
# References
# ----------
# .. footbibliography::
