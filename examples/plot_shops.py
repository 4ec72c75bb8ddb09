"""
Shops: from a data frame to forecasts
=====================================

Five shops sell the same thing. Will it be sold out tomorrow? The table has dates, prices, words and gaps, and goes in
as it is.
"""

# %%
# A table of days, made up; ``shoal datasets --write .`` writes the same files.

import tempfile

import pandas as pd

from shoal import TabularClassifier
from shoal.datasets.samples import write_samples

with tempfile.TemporaryDirectory() as folder:
    sales, tomorrow = (pd.read_csv(path) for path in write_samples(folder)[3:5])
sales.loc[::50, "price"] = None  # a till was broken
print(sales.head(3).to_string(index=False))

# %%
# The column ``units`` is not known beforehand, so it is no feature. The model says how it reads each column.

model = TabularClassifier(task="shop", label="sold_out", ignore=["id", "units"])
X, y = sales.drop(columns="sold_out"), sales["sold_out"]
decisions = model.test_then_train(X, y)  # each row is forecast, then learned
print(f"error {((decisions >= 0) != (y == 'yes')).mean():.3f}, of always saying no {(y == 'yes').mean():.3f}")
print(*model.notes_, sep="\n")

# %%
# Tomorrow, shop by shop:

chances = model.predict_proba(tomorrow)[:, list(model.classes_).index("yes")]
print(tomorrow.assign(chance=chances.round(2)).head(5).to_string(index=False))

# %%
# A picture: how the chance depends on the price, in each shop.

import matplotlib.pyplot as plt
import numpy as np

prices = np.linspace(1.5, 3.5, 21)
figure, ax = plt.subplots(figsize=(7, 3.2))
for shop in sorted(sales["shop"].unique()):
    asked = pd.DataFrame({"shop": shop, "day": "2026-03-02", "price": prices, "promotion": "no"})
    ax.plot(prices, model.predict_proba(asked)[:, 1], label=shop)
ax.set(xlabel="price", ylabel="chance to be sold out")
ax.legend()
figure.tight_layout()
