"""The papers' claims as data, a file a paper. A rule decides each from stored runs; no verdict is written by hand.

Read `claim` first, then `evidence`, `rules` and a paper.
"""
