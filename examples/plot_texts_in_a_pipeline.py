"""
Texts in a scikit-learn pipeline
================================

``TaskColumn`` lets a learner of this library be the last step of a pipeline that makes features from text: the task
travels as one of the columns.
"""

# %%
# Mails of six users, made up.

import tempfile

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from shoal import MultitaskPerceptron, TaskColumn
from shoal.datasets.samples import write_samples

with tempfile.TemporaryDirectory() as folder:
    mails = pd.read_csv(write_samples(folder)[0])

# %%
# The task becomes a number in column 0, the subject TF-IDF weights in the others.

errors = {}
for relation in ("independent", "pairwise", "pooled"):
    features = make_column_transformer(
        (OrdinalEncoder(), ["user"]), (TfidfVectorizer(ngram_range=(1, 2)), "subject"), sparse_threshold=0
    )
    model = make_pipeline(
        features, TaskColumn(MultitaskPerceptron(relation=relation, loss="logistic", eta=3.0), task=0)
    )
    found = cross_validate(model, mails, mails["spam"] == "yes", cv=3, scoring=["accuracy", "roc_auc"])
    errors[relation] = 1 - found["test_accuracy"]
    print(f"{relation:12} error {errors[relation].mean():.3f}, AUC {found['test_roc_auc'].mean():.3f}")

figure, ax = plt.subplots(figsize=(5, 2.6))
ax.bar(list(errors), [error.mean() for error in errors.values()], yerr=[error.std() for error in errors.values()])
ax.set(ylabel="error, with its spread over folds")
figure.tight_layout()
