"""Tables and a learner in one object: what Python, the program and the service save, load and ask.

Reading order: `table_model` (a learner and the reader of its rows), `reasons` (why its forecasts are what they are),
`estimators` (the same as scikit-learn estimators), `loading` (`shoal.load`).
"""
