"""
From scikit-learn with a model for each key
===========================================

``{shop: LogisticRegression().fit(rows of the shop)}`` is how most people begin, and ``GroupedPredictor`` of
scikit-lego is the same with a nicer name. Small shops get poor models, and a new shop gets none.
"""

# %%
# What stands for what
# --------------------
#
# .. list-table::
#    :header-rows: 1
#
#    * - scikit-learn
#      - shoal
#    * - a dict of models
#      - ``IndependentTasks(LogisticRegression())``, the same as an estimator; or ``relation="independent"``
#    * - one model, the key one-hot
#      - ``PooledTasks`` with a level per task: :class:`~shoal.TaskLevels`
#    * - ``pd.get_dummies`` and ``StandardScaler``
#      - :class:`~shoal.TabularClassifier` reads the table
#    * - ``cross_val_score(model, X, y)``
#      - the same, with the task as a column: :class:`~shoal.TaskColumn`
#    * - fit every night
#      - ``learn_one`` when the label comes
#
# The same job on both sides
# --------------------------
# A hundred shops, from 5 to 100 rows each to learn from, and 50 of each to judge.

import time

import numpy as np
from sklearn.linear_model import LogisticRegression

from shoal import HedgedSharing, IndependentTasks, MixedEffects

rng = np.random.default_rng(0)
sizes = np.linspace(5, 100, 100).astype(int)
rules = rng.normal(size=10) + 0.6 * rng.normal(size=(100, 10))


def rows_of(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of all shops in a random order."""
    shop = rng.permutation(np.repeat(np.arange(100), counts))
    X = rng.normal(size=(len(shop), 10))
    return X, np.einsum("nd,nd->n", X, rules[shop]) + rng.logistic(size=len(shop)) > 0, shop


X, y, shop = rows_of(sizes)
X_new, y_new, shop_new = rows_of(np.full(100, 50))


def tell(name: str, predicted: np.ndarray, seconds: float) -> None:
    """Errors in small shops, in large ones, and the time."""
    wrong, small = predicted != y_new, sizes[shop_new] < 30
    print(f"{name:22} error: small shops {wrong[small].mean():.3f}, others {wrong[~small].mean():.3f}, {seconds:.1f} s")


# %%
# A model for each shop, by hand. A shop with one label alone has no model: it gets this label.

start = time.perf_counter()
models = {}
for k in range(100):
    labels = y[shop == k]
    models[k] = LogisticRegression().fit(X[shop == k], labels) if len(set(labels)) == 2 else labels[0]
predicted = np.empty(len(y_new), bool)
for k, model in models.items():
    rows = shop_new == k
    predicted[rows] = model.predict(X_new[rows]) if isinstance(model, LogisticRegression) else model
tell("a dict of models", predicted, time.perf_counter() - start)

# %%
# The same as one estimator, one model for all, and learners that share:

for learner in (IndependentTasks(LogisticRegression()), MixedEffects(), HedgedSharing()):
    if not isinstance(learner, IndependentTasks):
        type(learner)().fit(X[:100], y[:100], shop[:100])  # compiles
    start = time.perf_counter()
    predicted = learner.fit(X, y, shop).predict(X_new, shop_new)
    tell(type(learner).__name__, predicted, time.perf_counter() - start)

start = time.perf_counter()
predicted = LogisticRegression().fit(X, y).predict(X_new)
tell("one model for all", predicted, time.perf_counter() - start)
