"""
Local and global Gaussians, and labels worth asking for
=======================================================

A Gaussian over weights says more than weights: in directions that rows have seen often it is narrow, in others wide. It
learns in large steps where it is wide. And it knows when it does not know, so that it can choose the rows whose labels
are worth their price.

`LocalGlobalGaussian` has one for all tasks and one for each :footcite:p:`yang2020`. `LabelQuery` asks for labels around
any learner, by its margin or by such a variance :footcite:p:`cesabianchi2006`.
"""

# %%
# The idea in a picture
# ---------------------
# Errors on all rows against the share of labels that were asked for, for three rules: at random, by the margin, and by
# the margin less the variance.

import matplotlib.pyplot as plt

from shoal import LabelQuery, LocalGlobalGaussian
from shoal.datasets import make_related_tasks

data = make_related_tasks(n_tasks=20, n_features=30, n_rows=3000, relatedness=0.9, noise=0.0, seed=1)
BUDGETS = (0.05, 0.1, 0.2, 0.4)
figure, ax = plt.subplots(figsize=(7, 3))
for rule in ("fixed", "margin", "variance"):
    errors, shares = [], []
    for budget in BUDGETS:
        learner = LabelQuery(LocalGlobalGaussian(), rule=rule, budget=budget, random_state=0)
        decisions = learner.test_then_train(data.X, data.y, data.task)
        errors.append(((decisions >= 0) != (data.y > 0)).mean())
        shares.append(learner.n_queries_ / len(data))
    print(f"{rule:8} " + ", ".join(f"{share:.0%} {error:.3f}" for share, error in zip(shares, errors)))
    ax.plot(shares, errors, marker="o", label="at random" if rule == "fixed" else rule)
everything = LocalGlobalGaussian().test_then_train(data.X, data.y, data.task)
ax.axhline(((everything >= 0) != (data.y > 0)).mean(), color="gray", linestyle=":", label="all labels")
ax.set(xlabel="share of labels asked for", ylabel="error")
ax.legend()
figure.tight_layout()

# %%
# The formula
# -----------
# The decision is :math:`\langle \mu_0 + \mu_k, x \rangle`. A row shrinks its task's covariance, and a mistake moves the
# mean along it:
#
# .. math::
#    S_k^{-1} \leftarrow S_k^{-1} + \frac{x x^\top}{\lambda}, \qquad
#    \mu_k \leftarrow \mu_k + g\, y\, S_k x
#
# The global Gaussian does the same with the rows of all tasks. How sure the model is of a row:
#
# .. math:: \theta = |\langle \mu_0 + \mu_k, x \rangle| - \frac{x^\top (S_0 + S_k)\, x}{4 \varepsilon}
#
# A label is asked for with probability :math:`b / (b + [\theta]_+)`. The paper fixes b; ``budget=`` adapts it so that
# the share asked for is the one you pay for.
#
# The code
# --------
#
# .. literalinclude:: /../src/shoal/online/local_global_gaussian/learner.py
#    :pyobject: confidence
#    :caption: shoal/online/local_global_gaussian/learner.py
#
# .. literalinclude:: /../src/shoal/online/local_global_gaussian/learner.py
#    :pyobject: learn
#
# .. literalinclude:: /../src/shoal/wrappers/label_query.py
#    :pyobject: ask_within
#    :caption: shoal/wrappers/label_query.py
#
# History
# -------
# Gaussians over weights came to online classification with the confidence-weighted learners of Dredze, Crammer and
# Pereira (2008) and AROW of Crammer, Kulesza and Dredze (2009); for least squares they are the Kalman filter of 1960.
# Asking for labels by the margin, with a bound on mistakes for any order of rows, is of Cesa-Bianchi, Gentile and
# Zaniboni. Yang and Li put a Gaussian of all tasks beside each task's own.
#
# What the paper claims, what we found
# ------------------------------------
#
# .. claims:: yang_li-1 yang_li-2 yang_li-3 yang_li-4 yang_li-5
#
# Exercises
# ---------
# 1. A covariance has d² numbers. What does ``covariance="diagonal"`` cost and give up?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    d numbers, and the correlations between features. A number r keeps r directions:
#
#    >>> from shoal import LocalGlobalGaussian
#    >>> from shoal.datasets import make_related_tasks
#    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
#    >>> data = data.interleaved(seed=0)
#    >>> for covariance in ("diagonal", 30, "full"):
#    ...     decisions = LocalGlobalGaussian(covariance=covariance).test_then_train(data.X, data.y, data.task)
#    ...     print(f"{covariance!s:8} error {((decisions >= 0) != (data.y > 0)).mean():.3f}")
#    diagonal error 0.169
#    30       error 0.157
#    full     error 0.157
#
# 2. The margin of a row is 2 and b = 1. With which probability is its label asked for?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    >>> b, theta = 1.0, 2.0
#    >>> round(b / (b + theta), 3)
#    0.333
#
# References
# ----------
# .. footbibliography::
