"""Cost of an example against what the docstrings say, as curves over non-zeros, tasks, features and rows seen."""
