"""The papers' claims as data, a file a paper. A rule decides each from stored runs. The only verdicts written
by hand are those of earlier forms of a rule.

Read `claim` first, then `evidence`, `rules` and a paper.
"""
