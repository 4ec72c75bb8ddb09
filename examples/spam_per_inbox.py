"""
Spam per inbox, on real mails
=============================

A spam filter per user that learns from all: a model per inbox, saved and loaded on the way.

Data: ECML/PKDD 2006 spam, 15 users (`$SHOAL_DATA`, or downloaded).
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import shoal
from shoal.datasets import load

data = load("ecml_spam")
half = len(data) // 2
filter_ = shoal.HedgedSharing()
before = filter_.test_then_train(data.X[:half], data.y[:half], data.task[:half])

with TemporaryDirectory() as folder:  # the process ends, and another goes on
    filter_.save(Path(folder, "filter.shoal"))
    filter_ = shoal.load(Path(folder, "filter.shoal"))
after = filter_.test_then_train(data.X[half:], data.y[half:], data.task[half:])

for name, decisions, y in (("first half", before, data.y[:half]), ("second half", after, data.y[half:])):
    print(f"{name:12} error {((decisions >= 0) != (y > 0)).mean():.4f}")
