"""
Shops: from a data frame to forecasts to a service
==================================================

Five shops sell the same thing. Will it be sold out tomorrow? The table has dates, prices, words and gaps, and goes in
as it is.
"""

# %%
# A table of days, made up; ``shoal datasets --write .`` writes the same files.

import atexit
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import pandas as pd

from shoal import TabularClassifier
from shoal.datasets.samples import write_samples
from shoal.serve import Client

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

# %%
# The model as a file, and the file as a service: ``shoal serve shops.shoal`` in a shell. It answers as the model does,
# and learns when it is said what was true.

folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "shops.shoal")
model.save(path)
with socket.socket() as one:
    one.bind(("127.0.0.1", 0))
    port = str(one.getsockname()[1])
service = subprocess.Popen(
    [sys.executable, "-m", "shoal", "serve", str(path), "--port", port], stderr=subprocess.DEVNULL
)
atexit.register(service.kill)  # if something below fails
with Client(f"http://127.0.0.1:{port}") as client:
    while True:  # until it listens
        try:
            row = tomorrow.iloc[0].to_dict()
            answer = client.predict_one(row)
            break
        except httpx.TransportError:
            assert service.poll() is None
            time.sleep(0.1)
    print(f"{row['shop']}: {answer.probability:.2f}, in Python {chances[0]:.2f}")
    print("labels learned:", client.label({answer.id: "no"}).accepted)
service.terminate()
print("exit code", service.wait(60))
folder.cleanup()

# %%
# Late labels, another model in its place, and back: :doc:`plot_service`.
