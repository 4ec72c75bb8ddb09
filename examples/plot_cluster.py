"""
Two shards on Ray
=================

Tasks are shared out to two processes, which merge what all tasks share every so many rows. Here both are on one
machine; with ``ray.init(address="ray-head:6379")`` before, they are where that cluster has room.
"""

# %%
# Two thousand made tasks of ten rows each.

import os
import tempfile

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # nothing is sent

import matplotlib.pyplot as plt
import numpy as np
import ray

from shoal import MultitaskPerceptron
from shoal.cluster import Cluster
from shoal.datasets import make_related_tasks

data = make_related_tasks(n_tasks=2000, n_rows=20_000, n_features=10, relatedness=0.9, seed=0)
rows = data.X, data.y, data.task
learner = MultitaskPerceptron(loss="logistic")
_ = ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error", object_store_memory=10**8)

# %%
# One process, two shards that exchange, and two that do not. Each row is forecast before it is learned.

folder = tempfile.TemporaryDirectory()
decisions = {"one process": MultitaskPerceptron(loss="logistic").test_then_train(*rows)}
for every in (1_000, None):
    with Cluster(learner, shards=2, exchange_every=every) as cluster:
        name = f"2 shards, exchange every {every:,} rows" if every else "2 shards, no exchange"
        decisions[name] = cluster.test_then_train(*rows)
        cluster.save(f"{folder.name}/{name}")
        before = cluster.decision_function(data.X, data.task)
print("tasks of each shard:", np.bincount([cluster.shard_of(task) for task in cluster.tasks_]))

figure, ax = plt.subplots(figsize=(7, 3))
for name, margins in decisions.items():
    wrong = (margins >= 0) != (data.y > 0)
    ax.plot(np.cumsum(wrong) / np.arange(1, len(wrong) + 1), label=name)
    print(f"{name:36} error of the second half {wrong[10_000:].mean():.4f}")
ax.set(xlabel="rows", ylabel="error so far", ylim=(0.18, 0.32))
ax.legend()
figure.tight_layout()

# %%
# With a thousand tasks, each shard sees enough of them to learn what all share, so that exchanges change little. They
# count where tasks are few and drift together. What was saved goes on, on more shards if there are more machines:

with Cluster.load(f"{folder.name}/2 shards, no exchange") as cluster:
    print("the same forecasts:", np.array_equal(cluster.decision_function(data.X, data.task), before))
    cluster.add_shards(1)
    print("tasks of each shard:", np.bincount([cluster.shard_of(task) for task in cluster.tasks_]))
ray.shutdown()
folder.cleanup()

# %%
# When it pays, what is exact, what it costs: :doc:`/cluster`.
