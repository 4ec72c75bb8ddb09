"""
From mixed models
=================

``lmer(y ~ x + (1 + x | school))`` in R, or ``MixedLM`` in statsmodels, fits common weights and deviations of groups
with a covariance, by maximum likelihood, with all rows at hand. `MixedEffectsRegressor` has the same model and learns
it by the row; it gives forecasts and no tests of significance.
"""

# %%
# What stands for what
# --------------------
#
# .. list-table::
#    :header-rows: 1
#
#    * - lme4, statsmodels
#      - shoal
#    * - ``y ~ x + (1 + x | school)``
#      - ``MixedEffectsRegressor()``, ``task=school``
#    * - ``y ~ x + (1 | school)``
#      - ``TaskLevelsRegressor()``
#    * - ``glmer(..., family = binomial)``
#      - ``MixedEffects()``, ``TaskLevels()``
#    * - ``fixef``, ``ranef``
#      - ``coef_shared_``, ``coef_task_`` and their intercepts
#    * - ``VarCorr``
#      - ``covariance_``, ``noise_``
#    * - ``predict(..., allow.new.levels = TRUE)``
#      - always
#    * - nested groups
#      - ``relations.hierarchy``, for :class:`~shoal.MultitaskRegressor`
#    * - standard errors, tests, REML
#      - none
#
# The same job on both sides
# --------------------------
# Sixty schools, 40 pupils each to learn from, and 10 to judge.

import time
import warnings

import numpy as np
from statsmodels.regression.mixed_linear_model import MixedLM

from shoal import MixedEffectsRegressor

rng = np.random.default_rng(0)
school, X = np.repeat(np.arange(60), 50), rng.normal(size=(3000, 2))
own = rng.multivariate_normal([0, 0], [[4.0, 1.0], [1.0, 0.5]], size=60)  # a school's level, and its slope of X[:, 0]
y = 20 + X @ [2.0, -1.0] + own[school, 0] + own[school, 1] * X[:, 0] + 3 * rng.normal(size=3000)
train = np.tile(np.arange(50) < 40, 60)
order = rng.permutation(np.flatnonzero(train))

# %%
# statsmodels, all rows at once:

start = time.perf_counter()
design = np.column_stack([np.ones(3000), X])
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    fitted = MixedLM(y[train], design[train], groups=school[train], exog_re=design[train]).fit()
seconds = time.perf_counter() - start
effects = np.array([np.asarray(fitted.random_effects[k]) for k in range(60)])
theirs = design @ fitted.fe_params + np.einsum("nd,nd->n", design, effects[school])

# %%
# shoal, row by row in a random order:

MixedEffectsRegressor().fit(X[order[:100]], y[order[:100]], school[order[:100]])  # compiles
start = time.perf_counter()
model = MixedEffectsRegressor().fit(X[order], y[order], school[order])
own_seconds = time.perf_counter() - start
ours = model.predict(X, school)

for name, said, spent in (("MixedLM", theirs, seconds), ("MixedEffectsRegressor", ours, own_seconds)):
    print(f"{name:22} RMSE of new pupils {np.sqrt(np.mean((said - y)[~train] ** 2)):.3f}, {spent:.2f} s")
print(f"forecasts differ by {np.sqrt(np.mean((ours - theirs)[~train] ** 2)):.3f} on average, noise is 3")

# %%
# The variances, of the level and of the slope that differs:

covariance = np.asarray(fitted.cov_re)
print(f"MixedLM               level {covariance[0, 0]:.2f}, slope {covariance[1, 1]:.2f}, noise {fitted.scale:.2f}")
print(
    f"MixedEffectsRegressor level {model.covariance_[0, 0]:.2f}, slope {model.covariance_[1, 1]:.2f}, "
    f"noise {model.noise_:.2f}"
)
print("true                  level 4.00, slope 0.50, noise 9.00")

# %%
# lme4 and GPBoost
# ----------------
# The same in R reads these pupils from a file:
#
# .. code-block:: python
#
#    import polars as pl
#
#    rows = {"school": school, "x1": X[:, 0], "x2": X[:, 1], "y": y, "train": train}
#    pl.DataFrame(rows).write_csv("pupils.csv")
#
# .. code-block:: r
#
#    library(lme4)
#    pupils <- read.csv("pupils.csv")
#    train <- pupils[pupils$train == "true", ]
#    new <- pupils[pupils$train != "true", ]
#    seconds <- system.time(fitted <- lmer(y ~ x1 + x2 + (1 + x1 + x2 | school), data = train))["elapsed"]
#    error <- sqrt(mean((predict(fitted, new, allow.new.levels = TRUE) - new$y)^2))
#    cat(sprintf("lmer RMSE of new pupils %.3f, %.2f s\n", error, seconds))
#    variances <- as.data.frame(VarCorr(fitted))
#    cat(sprintf("lmer level %.2f, slope %.2f, noise %.2f\n", variances$vcov[1], variances$vcov[2], sigma(fitted)^2))
#
# The build has no R. On 2026-11-28 R 4.2.2 with lme4 1.1-31 printed, on an AMD EPYC of two cores:
#
# .. code-block:: none
#
#    lmer RMSE of new pupils 3.038, 0.12 s
#    lmer level 3.51, slope 0.40, noise 9.21
#
# GPBoost estimates variances by its own optimizer; with its boosted trees the common part need not be linear:

import gpboost

start = time.perf_counter()
mixed = gpboost.GPModel(
    group_data=school[train],
    group_rand_coef_data=X[train],
    ind_effect_group_rand_coef=[1, 1],
    likelihood="gaussian",
    num_parallel_threads=2,
)
mixed.fit(y=y[train], X=design[train])
said = mixed.predict(
    group_data_pred=school[~train],
    group_rand_coef_data_pred=X[~train],
    X_pred=design[~train],
    predict_var=False,
)["mu"]
seconds = time.perf_counter() - start
print(f"{'GPBoost':22} RMSE of new pupils {np.sqrt(np.mean((said - y[~train]) ** 2)):.3f}, {seconds:.2f} s")

# %%
# lme4 and MixedLM estimate the correlation of level and slopes, GPBoost takes them for independent. Its forecasts on
# panels, and those of MixedLM, stand row by row beside the default's in :doc:`/benchmarks`.
