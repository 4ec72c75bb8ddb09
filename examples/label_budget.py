"""
Mails with a budget of labels
=============================

Labels cost money: ask for those that are worth it, and learn from no others.

Data: ECML/PKDD 2006 spam, 15 users (`$SHOAL_DATA`, or downloaded).
"""

from shoal import HedgedSharing, LabelQuery
from shoal.datasets import load
from shoal.evaluation import progressive_validate

data = load("ecml_spam")
learners = {"all labels": HedgedSharing(), "a budget": LabelQuery(budget=0.2, random_state=0)}
for name, found in progressive_validate(learners, data).items():
    asked = data.y.size if found.n_queries is None else found.n_queries
    print(f"{name:12} error {found.overall['error']:.4f}, {asked:,} of {data.y.size:,} labels")
