"""Mistake and regret bounds of the papers, as functions of a comparator and a stream.

A bound says what a learner can lose at most against *any* fixed weights u_1..u_K, however the stream was chosen. The
tests look for streams and comparators that break them; users see what relatedness is worth.

Read `stream` first (comparators, mistaken rows), then the bound of a learner.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
