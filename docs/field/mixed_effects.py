"""
Mixed effects: how far a task may differ from all
=================================================

Statisticians have shared between groups for long. In a mixed model each task has weights :math:`\\mu + u_k`: common
ones, the *fixed effects*, and a deviation of its own, a *random effect*, whose spread over tasks is estimated from all
tasks :footcite:p:`laird1982`. A task of few rows stays near the common weights, and one of many goes its own way. How
fast, the data say; there is no strength of sharing to choose. That such a rule is better for every prior is the point
of empirical Bayes :footcite:p:`robbins1956`.

`MixedEffectsRegressor` and `MixedEffects` do this by the row. `TaskLevelsRegressor` and `TaskLevels` have a level per
task only, which may drift :footcite:p:`harvey1989`.
"""

# %%
# The idea in a picture
# ---------------------
# Sixty schools with means of their own and 2 to 60 pupils each. An arrow goes from the mean of a school's pupils to
# what the model says: short for many pupils, long for few.

import matplotlib.pyplot as plt
import numpy as np

from shoal import MixedEffectsRegressor, MultitaskRegressor, TaskLevelsRegressor

rng = np.random.default_rng(0)
pupils = np.linspace(2, 60, 60).astype(int)
truth = 20 + 3 * rng.normal(size=60)
school = rng.permutation(np.repeat(np.arange(60), pupils))
score = truth[school] + 8 * rng.normal(size=len(school))
learner = TaskLevelsRegressor().fit(np.zeros((len(school), 1)), score, school)
means = np.array([score[school == k].mean() for k in range(60)])
said = learner.predict(np.zeros((60, 1)), np.arange(60))
figure, ax = plt.subplots(figsize=(7, 3.2))
ax.axhline(score.mean(), color="gray", linestyle=":", label="mean of all pupils")
for k in range(60):
    ax.annotate("", (pupils[k], said[k]), (pupils[k], means[k]), arrowprops={"arrowstyle": "->", "color": "tab:blue"})
ax.scatter(pupils, means, s=10, color="tab:orange", label="mean of a school's pupils")
ax.set(xlabel="pupils of the school", ylabel="score")
ax.legend()
figure.tight_layout()
print(f"error of the schools' means: {np.sqrt(np.mean((means - truth) ** 2)):.2f}")
print(f"error of the model's levels: {np.sqrt(np.mean((said - truth) ** 2)):.2f}")

# %%
# The formula
# -----------
# Targets are :math:`y = \langle x, \mu + u_k \rangle + \text{noise}` with :math:`u_k \sim N(0, s^2 \Omega)`. While Ω
# stays, the posterior of μ and of every :math:`u_k` is Gaussian, and a row updates it as in a Kalman filter. Ω itself
# is the mean over tasks of what is known about the deviations:
#
# .. math:: \Omega = \frac1K \sum_k \left(P_k + u_k u_k^\top / s^2\right)
#
# with :math:`P_k` the posterior covariance of task k. For a level alone and variances :math:`\sigma_u^2` and
# :math:`\sigma^2`, a task of n rows with the mean :math:`\bar y` is answered by
#
# .. math:: \frac{n}{n + \sigma^2 / \sigma_u^2}\, \bar y + \frac{\sigma^2 / \sigma_u^2}{n + \sigma^2 / \sigma_u^2}\, \mu
#
# For labels the logistic loss is matched by a normal one with the same mean and variance.
#
# The code
# --------
#
# .. literalinclude:: /../src/shoal/online/mixed_effects/effects.py
#    :pyobject: ask
#    :caption: shoal/online/mixed_effects/effects.py: a forecast with its variance
#
# .. literalinclude:: /../src/shoal/online/mixed_effects/effects.py
#    :pyobject: step
#    :caption: shoal/online/mixed_effects/effects.py: what a row changes
#
# .. literalinclude:: /../src/shoal/online/mixed_effects/effects.py
#    :pyobject: learn_omega
#    :caption: shoal/online/mixed_effects/effects.py: the spread of tasks
#
# With features
# -------------
# Thirty tasks whose weights differ a little.

X, task = rng.normal(size=(3000, 5)), rng.integers(30, size=3000)
y = np.einsum("nd,nd->n", X, (rng.normal(size=5) + 0.4 * rng.normal(size=(30, 5)))[task]) + rng.normal(size=3000)
for learner in (
    MixedEffectsRegressor(),
    MixedEffectsRegressor(covariance=0.0),  # no random effects: one model for all
    MultitaskRegressor(relation="pairwise", eta=0.05),
):
    errors = learner.test_then_train(X, y, task) - y
    print(f"{learner!r:44} RMSE {np.sqrt(np.mean(errors**2)):.3f}")

# %%
# History
# -------
# Henderson predicted the breeding value of cattle with random effects from 1950 on :footcite:p:`henderson1975`. Stein
# found in 1956 that separate means are beaten by shrunken ones, whatever the truth is, and Robbins in the same year
# what to shrink to, from the data. Laird and Ware made it the model of repeated measurements, fitted with all rows at
# hand, and programs such as lme4 made it everyday work. Levels that drift are of the structural time series
# :footcite:p:`harvey1989`.
#
# What the papers claim, what we found
# ------------------------------------
# None of the reproduced papers is about mixed effects. :doc:`The page on mixed models
# </coming-from/from_mixed_models>` compares forecasts with those of a batch program.
#
# Exercises
# ---------
# 1. Scores have a standard deviation of 8 within and of 3 between schools. A school has 10 pupils with the mean 26, all
#    schools have the mean 20. What is the forecast?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    >>> n, ratio = 10, 8**2 / 3**2
#    >>> round(n / (n + ratio) * 26 + ratio / (n + ratio) * 20, 2)
#    23.51
#
# 2. What is the forecast for a school of which no pupil has been seen?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    The common part, with all the spread between schools as additional doubt:
#
#    >>> import numpy as np
#    >>> from shoal import TaskLevelsRegressor
#    >>> rng = np.random.default_rng(0)
#    >>> school = rng.integers(40, size=4000)
#    >>> score = 20 + 3 * rng.normal(size=40)[school] + 8 * rng.normal(size=4000)
#    >>> learner = TaskLevelsRegressor().fit(np.zeros((4000, 1)), score, school)
#    >>> bool(abs(learner.predict_one([0.0], "new") - score.mean()) < 1)
#    True
#
# References
# ----------
# .. footbibliography::
