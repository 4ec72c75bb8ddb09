"""
Exam scores of 139 schools
==========================

Exam scores of 139 schools: regression, a row at a time, with tasks that appear on the way.

Data: School (`$SHOAL_DATA`, or downloaded).
"""

from shoal import HedgedSharingRegressor
from shoal.datasets import load_school
from shoal.evaluation import progressive_validate

data = load_school()
found = progressive_validate(HedgedSharingRegressor(), data)
print(found)
learner, row = found.learner, data.X[0]
print(f"school {data.task[0]}: {learner.predict_one(row, data.task[0]):.1f}")
print(f"a school never seen: {learner.predict_one(row, 'new'):.1f}")
