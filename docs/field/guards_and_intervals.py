"""
Guards and intervals: promises around any learner
=================================================

Sharing may harm a task, and a forecast alone does not say how sure it is. Two wrappers add promises to any learner:

- `Guarded` runs a learner that shares beside one that does not, and weighs both for each task by how well they
  forecast. No task loses more than ln 2 nats in all by sharing.
- `Conformal` gives intervals, or sets of labels, that hold the target in a given share of each task's rows, without
  assumptions about the learner :footcite:p:`angelopoulos2023`.
"""

# %%
# The idea in a picture
# ---------------------
# Seventeen tasks are alike and three have the opposite rule. One model for all serves the first and harms the others.
# The bars are errors of each task.

import matplotlib.pyplot as plt
import numpy as np

from shoal import Conformal, Guarded, MultitaskPerceptron, MultitaskRegressor

rng = np.random.default_rng(0)
X, task = rng.normal(size=(1200, 20)), rng.integers(20, size=1200)
rule, direction = rng.normal(size=20), np.where(np.arange(20) < 17, 1, -1)
y = np.where((X @ rule + 2 * rng.normal(size=1200)) * direction[task] > 0, 1, -1)
pooled = MultitaskPerceptron(relation="pooled", loss="logistic", eta=0.1)
guarded = Guarded(MultitaskPerceptron(relation="pooled", loss="logistic", eta=0.1))
figure, ax = plt.subplots(figsize=(7, 3))
for shift, (name, learner) in zip((-0.2, 0.2), {"one for all": pooled, "guarded": guarded}.items()):
    wrong = (learner.test_then_train(X, y, task) >= 0) != (y > 0)
    ax.bar(np.arange(20) + shift, [wrong[task == k].mean() for k in range(20)], width=0.4, label=name)
ax.set(xlabel="task; 17 to 19 have the opposite rule", ylabel="error", xticks=range(0, 20, 2))
ax.legend()
figure.tight_layout()
print("tasks that sharing would have harmed:", sorted(int(k) for k in guarded.harmed_))

# %%
# The formula
# -----------
# The forecast of a guarded task is a Bayes mixture of both, whose weight w moves with each label:
#
# .. math::
#    q = w\, p_1 + (1 - w)\, p_0, \qquad w \leftarrow \frac{w\, p_1(y)}{w\, p_1(y) + (1 - w)\, p_0(y)}
#
# The sum of its log-losses is at most that of the better one plus ln 2, for w = 1/2 at the start: the mixture of
# probabilities is at least half of either.
#
# A conformal threshold q follows the errors: with the score :math:`s = |y - f|` and the wanted coverage
# :math:`1 - \alpha`
#
# .. math:: \ln q \leftarrow \ln q + \text{step} \cdot \left(\mathbf{1}[s > q] - \alpha\right)
#
# When targets fall outside too often, it widens, whatever the reason. Here ln q is a level of all tasks plus an offset
# of each, so that a new task starts from what is common.
#
# The code
# --------
#
# .. literalinclude:: /../src/shoal/wrappers/guarded.py
#    :pyobject: learn_mixed
#    :caption: shoal/wrappers/guarded.py
#
# .. literalinclude:: /../src/shoal/wrappers/conformal.py
#    :pyobject: follow
#    :caption: shoal/wrappers/conformal.py
#
# Coverage, task by task
# ----------------------
# Targets of 20 tasks that differ in noise. One width for all covers the quiet ones too often and the loud ones too
# rarely.

X, task = rng.normal(size=(8000, 5)), rng.integers(20, size=8000)
y = X.sum(axis=1) + rng.normal(size=8000) * (1 + task)
learner = Conformal(MultitaskRegressor(eta=0.01), coverage=0.9).partial_fit(X[:6000], y[:6000], task[:6000])
low, high = learner.predict_interval(X[6000:], task[6000:]).T
inside = (low <= y[6000:]) & (y[6000:] <= high)
width = np.quantile(np.abs(y[:6000] - learner.predict(X[:6000], task[:6000])), 0.9)
constant = np.abs(y[6000:] - learner.predict(X[6000:], task[6000:])) <= width
for name, found in (("an interval by task", inside), ("one width for all", constant)):
    by_task = [found[task[6000:] == k].mean() for k in range(20)]
    print(f"{name:20} covers {found.mean():.3f}, task by task {min(by_task):.2f} to {max(by_task):.2f}")

# %%
# History
# -------
# That a Bayes mixture of N forecasters loses at most ln N nats is the first fact of prediction with expert advice
# (Littlestone and Warmuth 1994; Vovk 1990). Conformal prediction is of Vovk, Gammerman and Shafer (2005), for rows
# whose order does not matter. Gibbs and Candès (2021) adapted the level online, so that coverage holds for any
# sequence; Angelopoulos, Candès and Tibshirani move the threshold itself, as here.
#
# What the papers claim, what we found
# ------------------------------------
# The promise of `Guarded` follows from Bayes' rule, and a property test looks for a stream that breaks it. The paper of
# `Conformal` bounds how far the long-run coverage is off; no claim of it is reproduced here.
#
# Exercises
# ---------
# 1. A task may lose ln 2 nats. For how many rows of a fair coin's loss does this stand?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    For one: ln 2 is the loss of a forecast of 1/2. A smaller ``prior`` of sharing bounds it by ln 1/(1 - prior):
#
#    >>> import math
#    >>> round(math.log(1 / (1 - 0.1)), 3)
#    0.105
#
# 2. The coverage is 0.9. By which factor do misses move the threshold more than hits?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    A miss moves ln q up by 0.9 steps, a hit down by 0.1: they balance when one row in ten is a miss.
#
#    >>> alpha = 0.1
#    >>> round((1 - alpha) / alpha)
#    9
#
# References
# ----------
# .. footbibliography::
