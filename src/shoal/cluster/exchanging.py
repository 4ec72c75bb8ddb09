"""When shards merge what tasks share, and what they had after the last time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from shoal.cluster.link import Link
from shoal.cluster.merging import Shared, merged
from shoal.engine.arrays import IntArray
from shoal.model.algorithm import Exchange


class Exchanging:
    """The exchanges of a cluster.

    Parameters
    ----------
    kinds : Exchange
        How copies of the learner's state merge.
    every : int or None
        Rows of the stream between two exchanges; None: never.

    Attributes
    ----------
    base : dict of arrays
        What all shards had after the last exchange.
    """

    def __init__(self, kinds: Exchange, every: int | None) -> None:
        self.every, self._kinds = every, kinds
        self.base: Shared = {}
        self._happens = every is not None and bool(kinds.mean or kinds.sum)

    def segments(self, starts: IntArray, before: int) -> list[tuple[int, int, bool]]:
        """Rows up to each exchange: from, to, and whether one follows.

        Parameters
        ----------
        starts : (n_rounds + 1,) row offsets: no exchange cuts a round
        before : int
            Rows of the stream before these.
        """
        n, cuts = int(starts[-1]), [0]
        if self.every is not None:
            due = np.arange(self.every - before % self.every, n + 1, self.every)
            cuts += np.unique(starts[np.searchsorted(starts, due)]).tolist()
        found = [(a, b, True) for a, b in pairwise(cuts)]
        return [*found, (cuts[-1], n, False)]

    def fit(self, links: Sequence[Link]) -> None:
        """Shards begin, or have room for other features than before: beyond the base nothing has moved yet."""
        if not self._happens:
            return
        found = links[0].ask("shared")
        fitting = {name: array.copy() for name, array in found.items()}  # what Ray hands over may only be read
        for name, known in self.base.items():
            both = tuple(slice(min(pair)) for pair in zip(known.shape, fitting[name].shape, strict=True))
            fitting[name][both] = known[both]
        self.base = fitting

    def merge(self, links: Sequence[Link]) -> None:
        """An exchange: all shards do the same at the same row of the stream."""
        if not self._happens or len(links) == 1:
            return
        asked = [(link, link.asked("shared")) for link in links]
        copies = [link.answer(reference, "shared") for link, reference in asked]
        self.base = merged(self._kinds, self.base, copies)
        nbytes = sum(array.nbytes for array in self.base.values())
        for link in links:
            link.send("merge", self.base, nbytes=nbytes)
