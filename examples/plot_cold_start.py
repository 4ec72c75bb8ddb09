"""
Spam per inbox, and an inbox nobody knows
=========================================

Six users call different mails spam. A new user comes: until the first labels of the new inbox arrive, the model answers
from what all share; then it learns what is different here.
"""

# %%
# Mails of six users, made up; ``shoal datasets --write .`` writes the same files.

import tempfile

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from shoal import TabularClassifier
from shoal.datasets.samples import write_samples

with tempfile.TemporaryDirectory() as folder:
    mails = pd.read_csv(write_samples(folder)[0])
print(mails.head(3).to_string(index=False))

# %%
# Five inboxes are known. Anna is new: she wants the mails on discounts that the others call spam.

known, anna = mails[mails["user"] != "anna"], mails[mails["user"] == "anna"]
model = TabularClassifier(task="user", ignore=["id"]).fit(known.drop(columns="spam"), known["spam"])
print("before the first label:", model.predict_proba_one({"user": "anna", "subject": "Discount credit", "hour": 9}))

# %%
# Each mail of Anna's is forecast, then learned. A model of her own begins from nothing.

alone = TabularClassifier(task="user", ignore=["id"])
X, y = anna.drop(columns="spam"), (anna["spam"] == "yes").to_numpy()
wrong = {}
for name, learner in {"with the others": model, "alone": alone}.items():
    said = learner.test_then_train(X, anna["spam"], classes=["no", "yes"]) >= 0
    wrong[name] = said != y

figure, ax = plt.subplots(figsize=(7, 3))
for name, errors in wrong.items():
    ax.plot(np.cumsum(errors), label=name)
    print(f"{name:15} {errors[:50].sum()} errors in the first 50 mails, {errors.sum()} in all {len(errors)}")
ax.set(xlabel="mails of the new inbox", ylabel="errors so far")
ax.legend()
figure.tight_layout()
