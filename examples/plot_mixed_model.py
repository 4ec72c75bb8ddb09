"""
A panel: mixed effects beside a mixed model
===========================================

Grunfeld's panel, in every book of econometrics: what eleven firms invested in each of twenty years, from their value
and their capital. A mixed model has common weights and a deviation of each firm. statsmodels fits it anew each year to
all years so far; `MixedEffectsRegressor` learns it row by row.
"""

# %%
# The panel comes with statsmodels. Years are in order; logarithms, because firms are of very different sizes.

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import grunfeld
from statsmodels.regression.mixed_linear_model import MixedLM

from shoal import MixedEffectsRegressor

panel = grunfeld.load_pandas().data.sort_values(["year", "firm"], kind="stable")
firm, year = panel["firm"].to_numpy(), panel["year"].to_numpy(int)
logs = np.log(panel[["invest", "value", "capital"]].to_numpy(float))
y, X = logs[:, 0], logs[:, 1:] - logs[:11, 1:].mean(axis=0)  # centered at the first year
print(f"{len(y)} rows, {len(set(firm))} firms, {year[0]} to {year[-1]}")

# %%
# The same model on both sides: ``y ~ value + capital + (1 + value + capital | firm)``. From 1940 on, both forecast a
# year before they learn it.

later = year >= 1940
design, forecasts, seconds = np.column_stack([np.ones(len(y)), X]), {}, {}
theirs, start = np.full(len(y), np.nan), time.perf_counter()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # a variance of zero, in some years
    for now in np.unique(year[later]):
        past, present = year < now, year == now
        fitted = MixedLM(y[past], design[past], groups=firm[past], exog_re=design[past]).fit()
        own = np.array([np.asarray(fitted.random_effects[name]) for name in firm[present]])
        theirs[present] = design[present] @ fitted.fe_params + np.einsum("nd,nd->n", design[present], own)
forecasts["MixedLM, fitted each year"], seconds["MixedLM, fitted each year"] = theirs, time.perf_counter() - start

MixedEffectsRegressor().fit(X[:11], y[:11], firm[:11]).predict(X[:11], firm[:11])  # compiles
ours, pooled = MixedEffectsRegressor(), MixedEffectsRegressor(covariance=0.0)
for name, model in {"MixedEffectsRegressor": ours, "one model for all": pooled}.items():
    said, start = np.full(len(y), np.nan), time.perf_counter()
    model.fit(X[~later], y[~later], firm[~later])
    for now in np.unique(year[later]):
        present = year == now
        said[present] = model.predict(X[present], firm[present])
        model.partial_fit(X[present], y[present], firm[present])
    forecasts[name], seconds[name] = said, time.perf_counter() - start

for name, said in forecasts.items():
    print(f"{name:26} RMSE {np.sqrt(np.mean((said - y)[later] ** 2)):.3f} from 1940 on, {seconds[name]:.3f} s")

# %%
# What each believes at the end. MixedLM maximizes the likelihood of all rows at once; one pass over 220 rows does not
# come as far: the common weights are near, the variances between firms much smaller. With sixty groups and more rows
# the two agree (:doc:`/coming-from/from_mixed_models`).

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    fitted = MixedLM(y, design, groups=firm, exog_re=design).fit()
covariance = np.asarray(fitted.cov_re)
print("                        value  capital  variance of level   of value   of capital   noise")
print(
    f"MixedLM                 {fitted.fe_params[1]:5.2f}  {fitted.fe_params[2]:7.2f}  {covariance[0, 0]:17.2f}"
    f"  {covariance[1, 1]:9.3f}  {covariance[2, 2]:11.3f}  {fitted.scale:6.3f}"
)
spread = np.diag(ours.covariance_)
print(
    f"MixedEffectsRegressor   {ours.coef_shared_[0]:5.2f}  {ours.coef_shared_[1]:7.2f}  {spread[0]:17.2f}"
    f"  {spread[1]:9.3f}  {spread[2]:11.3f}  {ours.noise_:6.3f}"
)

figure, ax = plt.subplots(figsize=(7, 3.2))
for name, said in forecasts.items():
    by_year = [np.sqrt(np.mean((said - y)[year == now] ** 2)) for now in np.unique(year[later])]
    ax.plot(np.unique(year[later]), by_year, label=name)
ax.set(xlabel="year", ylabel="RMSE of the year's forecasts", ylim=(0, None))
ax.legend()
figure.tight_layout()

# %%
# What stands for what in lme4, statsmodels and shoal: :doc:`/coming-from/from_mixed_models`.
