"""
From Vowpal Wabbit
==================

VW shares by crossing features with the task: ``-q tf`` gives each task weights of its own beside the common ones. In
shoal the task is no feature. It has its own place in every call, and a relation says how tasks are related.
"""

# %%
# Option by option
# ----------------
#
# .. list-table::
#    :header-rows: 1
#
#    * - VW
#      - shoal
#    * - ``-q tf``, the task in namespace t
#      - ``task=`` and ``relation=``; :class:`~shoal.HedgedSharing` learns how much to share
#    * - no crossing; one model
#      - ``relation="pooled"``
#    * - a process or a ``--bfgs`` model per key
#      - ``relation="independent"``
#    * - ``--loss_function logistic``, ``hinge``, ``squared``, ``quantile``, ``poisson``
#      - ``loss="logistic"``, ``"hinge"``, ``"squared"``, ``"quantile"``, ``"poisson"``
#    * - ``-l 0.5 --power_t 0``
#      - ``eta=0.5, step="constant"``
#    * - ``--power_t 0.5``
#      - ``step="sqrt"``
#    * - ``--adaptive``, ``--normalized``, ``--invariant``
#      - experts of :class:`~shoal.HedgedSharing`; there is no switch
#    * - ``--oaa K``
#      - :class:`~shoal.MultiClass`; labels need not be known beforehand
#    * - ``--active``
#      - :class:`~shoal.LabelQuery`
#    * - ``-b 24``
#      - ``hash_bits=24`` of :class:`~shoal.TabularClassifier`; numeric features are not hashed
#    * - ``-f``, ``-i``, ``--save_resume``
#      - ``save``, ``shoal.load``; a model always resumes exactly
#    * - ``-p``, ``-t``
#      - ``shoal predict``
#    * - progressive loss
#      - ``test_then_train``, ``shoal run``
#    * - ``--daemon``
#      - ``shoal serve``
#    * - VW text files
#      - read as they are: ``shoal run rows.vw``; a namespace or a feature is the task
#    * - ``--passes``, ``--cb``, ``--lrq``
#      - none
#
# The same job on both sides
# --------------------------
# 20,000 rows of 50 related tasks, each forecast before it is learned.

import time

import numpy as np
from vowpalwabbit import Workspace

from shoal import HedgedSharing, MultitaskPerceptron
from shoal.datasets import make_related_tasks

data = make_related_tasks(n_tasks=50, n_features=30, n_rows=20_000, relatedness=0.8, seed=0)
lines = [
    f"{y:.0f} |t k{k} |f " + " ".join(f"{j}:{v:.6g}" for j, v in enumerate(x))
    for x, y, k in zip(data.X, data.y, data.task)
]
print("a row of VW:", lines[0][:60], "...")


def tell(name: str, decisions: np.ndarray, seconds: float) -> None:
    """Error and time."""
    print(f"{name:28} error {((decisions >= 0) != (data.y > 0)).mean():.3f}, {seconds:.1f} s")


# %%
# VW, by its Python package, which parses each line:

for name, options in {"VW, one model": "", "VW, crossed with the task": "-q tf"}.items():
    vw = Workspace(f"--loss_function logistic --quiet {options}")
    start = time.perf_counter()
    decisions = np.empty(len(lines))
    for i, line in enumerate(lines):
        example = vw.example(line)
        decisions[i] = vw.predict(example)
        vw.learn(example)
        vw.finish_example(example)
    tell(name, decisions, time.perf_counter() - start)
    vw.finish()

# %%
# shoal, which takes the arrays:

for learner in (MultitaskPerceptron(relation=16, loss="logistic", eta=1.0), HedgedSharing()):
    learner.fit(data.X[:300], data.y[:300], data.task[:300])  # compiles
    learner = type(learner)(**learner.get_params())
    start = time.perf_counter()
    decisions = learner.test_then_train(data.X, data.y, data.task)
    tell(type(learner).__name__, decisions, time.perf_counter() - start)

# %%
# :doc:`Benchmarks </benchmarks>` have larger streams, whole files, and VW in its own C++ with several settings each.
