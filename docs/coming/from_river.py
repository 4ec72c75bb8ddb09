"""
From river
==========

river learns a row at a time, with ``learn_one`` and ``predict_one`` on dicts; learners of shoal have the same verbs,
with the task as one more argument. ``shoal.river`` wraps a learner as a river estimator that reads the task from a
feature, so that it takes part in river's pipelines and ``progressive_val_score``.
"""

# %%
# What stands for what
# --------------------
#
# .. list-table::
#    :header-rows: 1
#
#    * - river
#      - shoal
#    * - ``model.learn_one(x, y)``
#      - ``model.learn_one(x, y, task)``, or ``TaskClassifier(model, task="shop").learn_one(x, y)``
#    * - ``predict_proba_one(x)``
#      - ``predict_proba_one(x, task)``
#    * - a dict of models, or ``compose.Grouper``
#      - ``relation="independent"``
#    * - ``evaluate.progressive_val_score``
#      - the same, or ``shoal.evaluation.progressive_validate`` for several learners in one pass
#    * - ``preprocessing.StandardScaler() | ...``
#      - ``TabularClassifier`` scales; :class:`~shoal.HedgedSharing` needs no scaling
#    * - ``drift.ADWIN``
#      - experts that forget, within :class:`~shoal.HedgedSharing`
#    * - pickle
#      - ``save``, ``shoal.load``
#
# The same job on both sides
# --------------------------

import time
from collections import defaultdict

from river import linear_model, metrics

from shoal import HedgedSharing, MultitaskPerceptron
from shoal.datasets import make_related_tasks
from shoal.river import TaskClassifier

data = make_related_tasks(n_tasks=50, n_features=20, n_rows=4000, relatedness=0.8, seed=0)
rows = [
    ({"shop": int(k)} | {f"x{j}": float(v) for j, v in enumerate(x)}, bool(y > 0))
    for x, y, k in zip(data.X, data.y, data.task)
]

# %%
# river: a logistic regression for each key, and one for all:

models = defaultdict(linear_model.LogisticRegression)
for name, key in {"river, a model a key": lambda x: x["shop"], "river, one model": lambda x: None}.items():
    models.clear()
    metric, start = metrics.Accuracy(), time.perf_counter()
    for x, y in rows:
        features = {name: value for name, value in x.items() if name != "shop"}
        model = models[key(x)]
        metric.update(y, model.predict_one(features))
        model.learn_one(features, y)
    print(f"{name:22} error {1 - metric.get():.3f}, {time.perf_counter() - start:.1f} s")

# %%
# shoal in river's loop, with the wrapper:

for learner in (MultitaskPerceptron(relation=16, loss="logistic", eta=1.0), HedgedSharing()):
    warm = TaskClassifier(learner, task="shop")
    for x, y in rows[:50]:
        warm.predict_one(x), warm.learn_one(x, y)
    model, metric, start = TaskClassifier(learner, task="shop"), metrics.Accuracy(), time.perf_counter()
    for x, y in rows:
        metric.update(y, model.predict_one(x))
        model.learn_one(x, y)
    print(f"{type(learner).__name__:22} error {1 - metric.get():.3f}, {time.perf_counter() - start:.1f} s")

# %%
# And in one call, which does not pay Python's price for each row:

start = time.perf_counter()
decisions = MultitaskPerceptron(relation=16, loss="logistic", eta=1.0).test_then_train(data.X, data.y, data.task)
error = ((decisions >= 0) != (data.y > 0)).mean()
print(f"test_then_train        error {error:.3f}, {time.perf_counter() - start:.3f} s")
