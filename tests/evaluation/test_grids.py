"""The grids: they name online learners and values that these take."""

from __future__ import annotations

import pytest
from sklearn.model_selection import ParameterGrid

import shoal
from shoal.evaluation.grids import GRIDS


@pytest.mark.parametrize("name", GRIDS)
def test_every_combination_is_a_learner(name: str) -> None:
    for parameters in ParameterGrid(dict(GRIDS[name])):
        getattr(shoal, name)(**parameters).new_core()  # raises if a value is out of range
