"""Learners within a learner."""

from __future__ import annotations

from typing import Any

from shoal.learner import Learner
from shoal.model import persistence as storage


def untaught(learner: Learner) -> Learner:
    """One like it that has learnt nothing. It shares the hyper-parameters: `clone` would copy graphs and unfit maps."""
    return type(learner)(**learner.get_params(deep=False))


def restored(learner: Learner, header: dict[str, Any], arrays: storage.Arrays, field: str) -> Learner:
    """One like it with the state that was saved as a field of the outer learner's."""
    within, inner = f"state.{field}.", untaught(learner)
    own = {"state." + name.removeprefix(within): a for name, a in arrays.items() if name.startswith(within)}
    inner._restore(header, own)
    return inner
