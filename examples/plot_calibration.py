"""
The task as a column: cross-validation and calibration
======================================================

scikit-learn's tools know rows and columns, and no tasks. With the task as a column they all work.
"""

# %%
# A Perceptron shared among 20 tasks gives margins and no probabilities.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict

from shoal import MultitaskPerceptron, TaskColumn
from shoal.datasets import make_related_tasks

data = make_related_tasks(n_tasks=20, n_rows=4000, relatedness=0.9, noise=0.05, seed=0)
X, y = np.column_stack([data.task, data.X]), (data.y > 0).astype(int)

# %%
# How much should the tasks share? A grid search over the number b of the interaction matrix:

grid = {"estimator__relation": [0.0, 1.0, 8.0, 64.0]}
search = GridSearchCV(TaskColumn(MultitaskPerceptron(), task=0), grid, scoring="roc_auc", cv=3).fit(X, y)
for b, score in zip(grid["estimator__relation"], search.cv_results_["mean_test_score"]):
    print(f"b {b:4}  AUC {score:.3f}")

# %%
# Calibration turns the margins of the best one into probabilities, on rows that its folds have not learned:

calibrated = CalibratedClassifierCV(search.best_estimator_, cv=3)
chances = cross_val_predict(calibrated, X, y, cv=3, method="predict_proba")[:, 1]
print(f"log-loss {log_loss(y, chances):.3f}, of one half for all {np.log(2):.3f}")
figure, ax = plt.subplots(figsize=(4, 4))
CalibrationDisplay.from_predictions(y, chances, n_bins=8, ax=ax, name="calibrated")
figure.tight_layout()
