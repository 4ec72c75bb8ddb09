"""Metrics of a stream of answers, each in one pass and with a value for every task.

Read `metric` first, the protocol of all. Then the metrics by kind of target: `binary`, `multiclass`, `regression`; the
AUC and the calibration have files of their own. `registry` has all by name, `scoreboard` keeps them for one learner
while the stream goes on. The tests hold them to scikit-learn and to numbers made by hand.
"""
