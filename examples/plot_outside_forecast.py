"""
An outside forecast: LightGBM retrained every night
===================================================

A model of trees that is retrained every night knows yesterday and not today; a learner of a stream knows each row, but
no trees as deep. ``OutsideForecast`` takes the forecast of the one as an input of the other, and judges it row by row.
"""

# %%
# Every night LightGBM is trained anew on all rows so far, the task among its columns. Its forecasts of the next day
# stand in a column of the rows; on the first day there is none. Of labels a forecast is a probability.

import sys
from pathlib import Path

import lightgbm
import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from shoal import HedgedSharing, HedgedSharingRegressor, OutsideForecast

SETTINGS = {"n_estimators": 100, "learning_rate": 0.05, "num_leaves": 31, "min_child_samples": 20, "verbose": -1}


def nightly(table, y, nights, categories, labels):
    """(n,) forecasts; NaN on the first day. `nights` are the rows before which it is retrained."""
    kind = lightgbm.LGBMClassifier if labels else lightgbm.LGBMRegressor
    found = np.full(len(y), np.nan)
    for first, last in zip(nights, [*nights[1:], len(y)]):
        model = kind(**SETTINGS, random_state=0, n_jobs=1).fit(table[:first], y[:first], categorical_feature=categories)
        day = table[first:last]
        found[first:last] = model.predict_proba(day)[:, 1] if labels else model.predict(day)
    return found


def three(X, y, task, table, nights, categories, labels):
    """The loss of each row from the second day on: of LightGBM alone, of the learner alone, and of both together."""
    outside = nightly(table, y, nights, categories, labels)
    learner = HedgedSharing if labels else HedgedSharingRegressor
    column = np.nan_to_num(outside)[:, None]  # 0 is no forecast
    alone = learner().test_then_train(X, y, task)
    together = OutsideForecast(learner(), columns=[X.shape[1]]).test_then_train(
        sparse.csr_matrix(sparse.hstack([sparse.csr_matrix(X), sparse.csr_matrix(column)])), y, task
    )
    y, outside, alone, together = (one[nights[0] :] for one in (y, outside, alone, together))
    if labels:
        p = np.clip(outside, 1e-6, 1.0 - 1e-6)
        sign, logits = np.where(y > 0, 1.0, -1.0), (np.log(p / (1.0 - p)), alone, together)
        losses = [np.logaddexp(0.0, -sign * one) for one in logits]
    else:
        losses = [(one - y) ** 2 for one in (outside, alone, together)]
    return dict(zip(("LightGBM, nightly", "alone", "together"), losses))


def say(name, losses, labels):
    scores = ", ".join(f"{who} {loss.mean():.4f}" for who, loss in losses.items())
    print(f"{name}: {'log-loss' if labels else 'mean squared error'} of {scores}")


# %%
# Sales of 20 shops for 30 days: a curve of the price that trees find, a level of each shop that wanders.

rng = np.random.default_rng(0)
n, shops = 6000, 20
price, day = rng.uniform(1.0, 3.0, n), np.arange(n) // (n // 30)
shop = rng.integers(shops, size=n)
level = np.cumsum(rng.normal(scale=0.3, size=(30, shops)), axis=0)
units = 5.0 * (np.sin(3.0 * price) > 0.0) + level[day, shop] + rng.normal(scale=0.5, size=n)
X = np.column_stack([np.ones(n), price])
nights = [int(np.argmax(day == one)) for one in range(1, 30)]
losses = three(X, units, shop, np.column_stack([price, shop]), nights, [1], labels=False)
say("shops", losses, labels=False)

# %%
# The mean loss of the last 500 rows, in order:

figure, ax = plt.subplots(figsize=(7, 3))
for name, loss in losses.items():
    ax.plot(np.convolve(loss, np.ones(500) / 500, "valid"), label=name)
ax.set(xlabel="rows", ylabel="squared error", ylim=0)
ax.legend(frameon=False)
figure.tight_layout()

# %%
# The same on real streams: ``python examples/plot_outside_forecast.py flights``, retrained every week of the year, and
# ``python examples/plot_outside_forecast.py FOLDER/vocab.npz`` of a panel, retrained 20 times. Both together are better
# than either where each knows what the other does not; where the trees know little, as of questionnaires (verbagg) and
# pupils (hsb82), their forecast costs a little.


def flights():
    from shoal.datasets import load_flights

    data = load_flights()
    _, code = np.unique(data.task, return_inverse=True)
    nights = [*range(len(data.y) // 52, len(data.y), len(data.y) // 52)]
    table = sparse.csr_matrix(sparse.hstack([data.X, code[:, None]])).astype(np.float32)
    return data.X, data.y, data.task, table, nights, [data.X.shape[1]], True


def panel(path):
    found = np.load(path, allow_pickle=True)
    X = sparse.csr_matrix((found["data"], found["indices"], found["indptr"]), shape=tuple(found["shape"]))
    y, table = found["y"], found["table"]
    nights = [*range(len(y) // 21, len(y), len(y) // 21)]
    return X, y, found["task"], table, nights, [*map(int, found["categories"])], str(found["kind"]) == "classification"


for argument in sys.argv[1:]:
    if argument == "flights" or argument.endswith(".npz"):
        *rows, is_label = flights() if argument == "flights" else panel(argument)
        say(Path(argument).stem, three(*rows, is_label), is_label)
