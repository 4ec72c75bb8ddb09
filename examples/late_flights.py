"""
Late flights: does sharing pay?
===============================

Does sharing pay? One model per airport, one for all, and one that learns how much to share.

Data: 327,346 flights out of New York in 2013 (`pip install "shoal[data]"`).
"""

from shoal import HedgedSharing
from shoal.datasets import load_flights
from shoal.evaluation import compare, progressive_validate

learner = HedgedSharing()
found = progressive_validate({"HedgedSharing": learner, **learner.baselines()}, load_flights())
for name, evaluation in found.items():
    print(f"{name:14} error {evaluation.overall['error']:.4f}, macro-AUC {evaluation.macro['auc']:.4f}")
main, independent, pooled = found.values()
print(compare(main, independent=independent, pooled=pooled))
