"""A linear learner on a feature map: what stands between rows as they come and the jitted loops.

The learner's `features` names the map, its state holds a `MapState`'s fields and the generator `random`; its loops
see rows of features and know nothing of this.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from shoal.engine.arrays import FloatArray
from shoal.engine.rounds import Rounds
from shoal.learner import Learner
from shoal.model.features import Table, read_table
from shoal.online import _feature_maps as maps


class Mapped(Learner):
    """What learners on feature maps share."""

    features: Any

    def _check_map(self) -> None:
        """Raise unless `features` is a map, with its numbers in range, or a fitted transformer."""
        if maps.read(self.features).kind == maps.TRANSFORMER:
            check_is_fitted(self.features)

    def _n_mapped(self, n_features: int) -> int:
        """D, the features after the map."""
        feature_map = maps.read(self.features)
        if feature_map.kind == maps.TRANSFORMER:
            return self._transform(np.zeros((1, self.features.n_features_in_))).n_features
        return n_features if feature_map.kind == maps.LINEAR else feature_map.size

    def _keep(self, settings: Any) -> None:
        feature_map = maps.read(self.features)
        if self._state.kernel.tolist() != [feature_map.gamma, feature_map.ridge]:
            raise ValueError("this hyper-parameter shapes the state: it can only change before fit")
        super()._keep(settings)

    def _reserve(self, n_tasks: int, n_features: int) -> None:
        expected = getattr(self.features, "n_features_in_", n_features)
        if n_features != expected:
            raise ValueError(f"X has {n_features} features, but the transformer is expecting {expected} features")
        super()._reserve(n_tasks, n_features)

    def _call(self, loop: int, rounds: Rounds, decisions: FloatArray) -> None:
        if isinstance(self.features, str) and self.features == "linear":
            super()._call(loop, rounds, decisions)
            return
        self._current()
        if hasattr(self.features, "transform"):
            super()._call(loop, self._transformed(rounds), decisions)
            return
        learns = loop == 0
        starts = rounds.starts if learns else np.arange(len(rounds.task) + 1)
        for a, b in maps.blocks(starts):
            first, last = starts[a], starts[b]
            phi = self._mapped(rounds, first, last, grow=learns)
            piece = maps.dense_rounds(phi, rounds, first, last, starts[a : b + 1] - first)
            super()._call(loop, piece, decisions[first:last])

    def _mapped(self, rounds: Rounds, first: int, last: int, *, grow: bool) -> FloatArray:
        """(last - first, D) features of some rows; the dictionary may take them in first."""
        state = self._state
        kept = maps.MapState(*(getattr(state, name) for name in maps.MapState._fields))
        phi = np.empty((last - first, len(kept.offsets)))
        if maps.read(self.features).kind == maps.RFF:
            maps.fourier(rounds, first, kept, phi)
        else:
            maps.nystrom(rounds, first, grow, kept, state.random, phi)
        return phi

    def _transform(self, X: Any) -> Table:
        return read_table(self.features.transform(X))

    def _transformed(self, rounds: Rounds) -> Rounds:
        n, d = len(rounds.task), self.features.n_features_in_
        if rounds.width > 0:
            X: Any = rounds.values.reshape(n, d)
        else:
            X = sp.csr_matrix((rounds.values, rounds.indices, rounds.indptr), shape=(n, d))
        table = self._transform(X)
        return rounds._replace(width=table.width, indptr=table.indptr, indices=table.indices, values=table.values)
