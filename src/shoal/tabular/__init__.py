"""Tables and a learner in one object, which Python, the program and the service save, load and ask.

Reading order: `table_model` (a learner and the reader of its rows), `reasons` (why its forecasts are what they are),
`explained` (which columns move forecasts, and how), `since` (rows before and since a time), `estimators` (all of it as
scikit-learn estimators), `loading` (`shoal.load`).
"""
