"""The papers' claims as data, a file a paper. A rule decides each from stored runs; no verdict is written by hand,
but for what a rule that was changed had said before.

Read `claim` first, then `evidence`, `rules` and a paper.
"""
