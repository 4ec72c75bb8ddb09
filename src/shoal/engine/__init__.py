"""The compiled engine: the building blocks of the algorithms' loops.

Read `rounds` first (the table that kernels take), then `rows` (operations on a row), `compile` (the decorator `kernel`)
and `losses`; `task_weights` is a door of its own. README.md beside this file says why.
"""
