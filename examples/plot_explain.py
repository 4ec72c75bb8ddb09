"""
Explain a forecast in the words of the table
============================================

A shop asks why it should order more. ``explain_one`` lists what moved a forecast, and says which part all shops share
and which is the shop's own.
"""

# %%
# Days of shops, made up.

import tempfile

import matplotlib.pyplot as plt
import pandas as pd

from shoal import TabularClassifier
from shoal.datasets.samples import write_samples

with tempfile.TemporaryDirectory() as folder:
    sales = pd.read_csv(write_samples(folder)[3])
model = TabularClassifier(task="shop", ignore=["id", "units"]).fit(sales.drop(columns="sold_out"), sales["sold_out"])

# %%
# The same offer in two shops:

offer = {"day": "2026-03-02", "price": 1.9, "promotion": "yes"}
for shop in ("Berlin 4", "Ulm 3"):
    print(model.explain_one({"shop": shop, **offer}).text(), end="\n\n")

# %%
# As a picture, the reasons of the first:

reasons = model.explain_one({"shop": "Berlin 4", **offer}).most(6)[::-1]
names = [reason.what for reason in reasons]
figure, ax = plt.subplots(figsize=(7, 3))
ax.barh(names, [reason.shared for reason in reasons], label="of all shops")
ax.barh(names, [reason.own for reason in reasons], left=[reason.shared for reason in reasons], label="of this shop")
ax.set(xlabel="moves the log-odds by")
ax.legend()
figure.tight_layout()

# %%
# Which shops are most alike, by what was learned:

for other in model.similar_tasks("Berlin 4", 2):
    print(other)
