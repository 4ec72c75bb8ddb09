"""
From MALSAR
===========

MALSAR is the MATLAB package of batch multi-task learning: a function for each penalty, all rows at hand. Some of its
objectives are here, to the factor; others have no twin, and the table says which. The build runs our side; MALSAR's
numbers were printed once, by GNU Octave, which runs it unchanged.
"""

# %%
# What stands for what
# --------------------
#
# .. list-table::
#    :header-rows: 1
#
#    * - MALSAR
#      - shoal
#    * - ``X``, ``Y``: cells, a matrix and a vector a task
#      - ``X``, ``y``, ``task``: the rows of all tasks below each other
#    * - ``Logistic_Trace(X, Y, rho1)``
#      - ``TraceNorm(rho=rho1)``: the mean of each task's losses, in both
#    * - ``Least_Trace(X, Y, rho1)``
#      - ``TraceNorm(loss="squared", rho=rho1 / n)``, n rows a task: MALSAR has the sum of these losses, we their mean
#    * - ``Logistic_L21(X, Y, rho1)``
#      - ``MTFL(penalty="l21", gamma=rho1 * n)``: here we have the sum, MALSAR the mean
#    * - ``Least_L21(X, Y, rho1)``
#      - ``MTFL(penalty="l21", loss="squared", gamma=rho1)``
#    * - ``Least_SRMTL``, ``Logistic_SRMTL`` with ``R = eye(t) - ones(t) / t``
#      - ``RegMTLRegressor``, ``RegMTL`` with a small ``mu``; their losses are those of support vector machines
#    * - ``SRMTL`` with a graph in ``R``
#      - ``relations.graph``, for :class:`~shoal.MultitaskPerceptron`, which learns row by row
#    * - ``Least_CMTL``, ``Logistic_CMTL``: clusters of tasks
#      - ``SHAMO`` is near: tasks share a few hypotheses
#    * - ``Least_RMTL``, ``Least_rMTFL``, ``Least_Dirty``: a shared part and that of odd tasks
#      - none in batch; online ``ROMCO``
#    * - ``CASO``, ``Lasso``, ``TGL``, ``CFGLasso``, ``iMSF``
#      - none
#    * - none
#      - ``SMTL``: attention of tasks to each other; ``SparseMTL``: kernel machines with few vectors
#    * - ``opts.tol`` with ``opts.tFlag = 1``, ``opts.maxIter``
#      - ``tol``, ``max_iter``
#    * - ``opts.init``, ``opts.W0``
#      - none: all begin at zero
#    * - ``W``, a column a task
#      - ``coef_``, a row a task
#    * - ``C``, intercepts without penalty
#      - none; a constant among the features is penalized as the others are
#    * - ``funcVal``
#      - ``objective_``
#
# The same job on both sides
# --------------------------
# Thirty people choose between products, 96 rows each to learn from. For each row :math:`(x, 1)` there is the row
# :math:`(-x, -1)`, so the intercepts of MALSAR are zero, and both sides minimize the same function.

import time

import numpy as np

from shoal import MTFL, HedgedSharing, IndependentTasks, PooledTasks, RegMTL, TraceNorm
from shoal.datasets import make_conjoint

train, test = make_conjoint("high", seed=1)
print(train)

# %%
# In MATLAB or Octave, in the folder of MALSAR:
#
# .. code-block:: matlab
#
#    addpath(genpath("MALSAR"));
#    load job.mat                                  % X and Y, cells of 30 tasks
#    opts.init = 2; opts.tFlag = 1; opts.tol = 1e-8; opts.maxIter = 5000;
#    tic; [W, C, funcVal] = Logistic_Trace(X', Y', 0.03, opts); seconds = toc;
#    printf("Logistic_Trace objective %.5f, rank %d, %.2f s\n", funcVal(end), rank(W), seconds);
#    [W, funcVal] = Least_Trace(X', Y', 0.03 * 96, opts);
#    printf("Least_Trace    objective %.5f, rank %d\n", funcVal(end), rank(W));
#    [W, C, funcVal] = Logistic_L21(X', Y', 0.02, opts);
#    printf("Logistic_L21   objective %.5f\n", funcVal(end));
#    [W, funcVal] = Least_L21(X', Y', 5, opts);
#    printf("Least_L21      objective %.5f\n", funcVal(end));
#
# On 2026-11-28 GNU Octave 7.3.0 printed, with MALSAR at fb97515 (its last commit), on an AMD EPYC of two cores:
#
# .. code-block:: none
#
#    Logistic_Trace objective 4.01337, rank 11, 0.43 s
#    Least_Trace    objective 317.25464, rank 12
#    Logistic_L21   objective 3.99792
#    Least_L21      objective 380.70156
#
# The file for it, and our side, by the factors of the table; each of our minima is a little lower:

import tempfile
from pathlib import Path

from scipy.io import savemat

cells = {"X": np.empty(30, object), "Y": np.empty(30, object)}
for k, task in enumerate(np.unique(train.task)):
    cells["X"][k], cells["Y"][k] = train.X[train.task == task], train.y[train.task == task][:, None]
with tempfile.TemporaryDirectory() as folder:
    savemat(Path(folder, "job.mat"), cells)
    print(f"job.mat: {Path(folder, 'job.mat').stat().st_size:,} bytes")

TraceNorm(rho=0.03).fit(train.X[:200], train.y[:200], train.task[:200])  # compiles
exact, n = {"tol": 1e-8, "max_iter": 5000}, 96
start = time.perf_counter()
learner = TraceNorm(rho=0.03, **exact).fit(train.X, train.y, train.task)
seconds = time.perf_counter() - start
print(f"Logistic_Trace objective {learner.objective_[-1]:.5f}, rank {learner.rank_}, {seconds:.2f} s")
squared = TraceNorm(loss="squared", rho=0.03, **exact).fit(train.X, train.y, train.task)
print(f"Least_Trace    objective {squared.objective_[-1] * n:.5f}, rank {squared.rank_}")
l21 = MTFL(penalty="l21", gamma=0.02 * n, **exact).fit(train.X, train.y, train.task)
print(f"Logistic_L21   objective {l21.objective_[-1] / n:.5f}")
squared = MTFL(penalty="l21", loss="squared", gamma=5.0, **exact).fit(train.X, train.y, train.task)
print(f"Least_L21      objective {squared.objective_[-1]:.5f}")

# %%
# What the head of ``Logistic_Trace.m`` says, computed from our weights:

signs = np.where(train.y > 0, 1.0, -1.0)
margins = signs * np.einsum("nd,nd->n", train.X, learner.coef_[np.searchsorted(learner.tasks_, train.task)])
means = [np.logaddexp(0, -margins[train.task == task]).mean() for task in learner.tasks_]
singular_values = np.linalg.svd(learner.coef_, compute_uv=False)
print(f"{np.sum(means) + 0.03 * singular_values.sum():.5f}")

# %%
# Other ideas, one line each
# --------------------------
# Hyper-parameters are guesses; :func:`shoal.evaluation.search` looks for better ones. The default learns row by row, in
# the order in which rows come: these are shuffled for it, because person after person, and every second label the
# other one, is an order that it would learn.

for name, learner in {
    "TraceNorm": TraceNorm(rho=0.03),
    "MTFL, squared nuclear norm": MTFL(gamma=0.01),
    "MTFL, l21": MTFL(gamma=1.0, penalty="l21"),
    "RegMTL": RegMTL(mu=1.0, C=0.1),
    "a model per task": IndependentTasks(),
    "one model for all": PooledTasks(),
}.items():
    learner.fit(train.X[:200], train.y[:200], train.task[:200])  # compiles
    start = time.perf_counter()
    learner.fit(train.X, train.y, train.task)
    seconds = time.perf_counter() - start
    print(f"{name:28} error {1 - learner.score(test.X, test.y, test.task):.3f}, {seconds:.2f} s")

order = np.random.default_rng(0).permutation(len(train))
start = time.perf_counter()
learner = HedgedSharing().fit(train.X[order], train.y[order], train.task[order])
seconds = time.perf_counter() - start
print(f"{'HedgedSharing, one pass':28} error {1 - learner.score(test.X, test.y, test.task):.3f}, {seconds:.2f} s")

# %%
# Formulas and papers of these: :doc:`/learners`. MALSAR: https://github.com/jiayuzhou/MALSAR; the calls above are those
# of its files ``MALSAR/functions/low_rank/Logistic_Trace.m`` and its neighbors.
