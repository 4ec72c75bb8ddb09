"""
Save, ship, resume
==================

A model is one file of arrays and JSON, without pickle. Who loads it goes on as if nothing had happened, to the last
bit.
"""

# %%
# The first half of a stream, on one machine:

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import shoal
from shoal.datasets import make_related_tasks

data = make_related_tasks(n_tasks=20, n_rows=4000, seed=0)
half = len(data) // 2
model = shoal.MultitaskPerceptron(loss="logistic")
before = model.test_then_train(data.X[:half], data.y[:half], data.task[:half])  # each row is forecast, then learned

# %%
# The file, on another one:

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "model.shoal")
    model.save(path)
    print(f"{path.stat().st_size:,} bytes")
    other = shoal.load(path)

rest = data.X[half:], data.y[half:], data.task[half:]
went_on, resumed = model.test_then_train(*rest), other.test_then_train(*rest)
print("the same to the last bit:", np.array_equal(went_on, resumed))
print(f"error {((resumed >= 0) != (rest[1] > 0)).mean():.3f}")

figure, ax = plt.subplots(figsize=(7, 3))
for decisions, y, first, who in (
    (before, data.y[:half], 0, "here"),
    (resumed, rest[1], half, "on the other machine"),
):
    wrong = ((decisions >= 0) != (y > 0)).reshape(-1, 100).mean(axis=1)
    ax.plot(first + 100 * np.arange(1, len(wrong) + 1), wrong, marker="o", label=who)
ax.set(xlabel="rows", ylabel="error of the last 100", ylim=(0, None))
ax.legend()
figure.tight_layout()

# %%
# A file that was damaged on the way is refused:

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "model.shoal")
    model.save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    try:
        shoal.load(path)
    except ValueError as error:
        print(f"{type(error).__name__}: {str(error).replace(folder, '...')}")

# %%
# In a shell, the same file goes to ``shoal predict``, ``shoal run --load`` and ``shoal serve`` if the model was learned
# from a table, as by ``shoal run`` or :class:`~shoal.TabularClassifier`.
