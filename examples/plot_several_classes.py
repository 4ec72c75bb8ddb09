"""
Several classes, and one that comes later
=========================================

``MultiClass`` makes any learner of two labels learn more, one against the rest.
"""

# %%
# Four species of trees as seen by 20 sensors, which differ. The oak is seen later than the others.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay

from shoal import MultiClass, MultitaskPerceptron

rng = np.random.default_rng(0)
X, task = rng.normal(size=(3000, 10)), rng.integers(20, size=3000)
w = rng.normal(size=(4, 10)) + 0.2 * rng.normal(size=(20, 4, 10))
kind = np.array(["ash", "elm", "fir", "oak"])[np.einsum("nkd,nd->nk", w[task], X).argmax(axis=1)]
keep = (kind != "oak") | (np.arange(3000) > 1200)
X, task, kind = X[keep], task[keep], kind[keep]
first, last = slice(0, 800), slice(800, None)

model = MultiClass(MultitaskPerceptron(relation="pairwise", loss="logistic"))
model.partial_fit(X[first], kind[first], task[first])
print("labels so far:", *model.classes_)
model.partial_fit(X[last][:-1000], kind[last][:-1000], task[last][:-1000])
print("labels now:   ", *model.classes_)

# %%
# Sharing helps here, too:

for relation in ("independent", "pairwise", "pooled"):
    learner = MultiClass(MultitaskPerceptron(relation=relation, loss="logistic"))
    learner.fit(X[:-1000], kind[:-1000], task[:-1000])
    print(f"{relation:12} error of the last 1,000 rows {1 - learner.score(X[-1000:], kind[-1000:], task[-1000:]):.3f}")

figure, ax = plt.subplots(figsize=(4, 3.6))
ConfusionMatrixDisplay.from_predictions(kind[-1000:], model.predict(X[-1000:], task[-1000:]), ax=ax, colorbar=False)
figure.tight_layout()
