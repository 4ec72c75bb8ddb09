"""
Cross-validation, calibration and SHAP
======================================

`TaskColumn` takes the task out of a column of the table. scikit-learn's tools, and SHAP, then work as with any
estimator: none of them has to know what a task is.
"""

# %%
# Thirty shops, made up, with a few rows each.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import shap
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.model_selection import TimeSeriesSplit, cross_validate

from shoal import MultitaskPerceptron, TaskColumn

rng = np.random.default_rng(0)
sales = pd.DataFrame(
    {"shop": rng.integers(30, size=3000), "price": rng.normal(size=3000), "rain": rng.normal(size=3000)}
)
level = rng.normal(size=30)
sold_out = (level[sales["shop"]] - sales["price"] + 0.3 * sales["rain"] + rng.logistic(size=3000) > 0).astype(int)
sales["one"] = 1.0  # learners add no constant

# %%
# Cross-validation in the order of time, with any scorer:

models = {}
for relation in ("independent", "pairwise", "pooled"):
    models[relation] = TaskColumn(MultitaskPerceptron(relation=relation, loss="logistic", eta=0.3), "shop")
    found = cross_validate(
        models[relation], sales, sold_out, scoring=["roc_auc", "neg_log_loss"], cv=TimeSeriesSplit(5)
    )
    print(f"{relation:12} AUC {found['test_roc_auc'].mean():.3f}, log-loss {-found['test_neg_log_loss'].mean():.3f}")

# %%
# Probabilities of one pass of steps, before and after isotonic calibration:

train, test = slice(0, 2000), slice(2000, 3000)
raw = models["pairwise"].fit(sales[train], sold_out[train])
calibrated = CalibratedClassifierCV(models["pairwise"], method="isotonic", cv=5).fit(sales[train], sold_out[train])
figure, ax = plt.subplots(figsize=(5, 4))
for name, model in {"as learned": raw, "calibrated": calibrated}.items():
    CalibrationDisplay.from_estimator(model, sales[test], sold_out[test], n_bins=8, name=name, ax=ax)
figure.tight_layout()

# %%
# SHAP's values of five forecasts; the shop is a column like the others, and values of a row add up to its forecast.

explain = shap.PermutationExplainer(lambda X: raw.predict_proba(X)[:, 1], sales[train][:50], seed=0)
values = explain(sales[test][:5], silent=True)
table = pd.DataFrame(values.values, columns=sales.columns).round(3)
print(table.assign(base=values.base_values.round(3), forecast=raw.predict_proba(sales[test][:5])[:, 1].round(3)))
