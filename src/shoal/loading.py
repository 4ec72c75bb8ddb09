"""Learners from files."""

from __future__ import annotations

import os
from typing import Any

from shoal.learner import Learner
from shoal.model import persistence


def load(path: str | os.PathLike[str]) -> Learner:
    """The model that `learner.save(path)` wrote; learning on from it equals never having stopped, bit for bit.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not a shoal model, is truncated or damaged, or holds what no learner could have saved.
    """
    return load_with_companion(path)[0]


def load_with_companion(path: str | os.PathLike[str]) -> tuple[Learner, Any]:
    """The model, and what was saved next to it (None if nothing was)."""
    with persistence.opened(path) as (header, arrays):
        kind = persistence.learner_class(header["class"])
        learner: Learner = kind(**persistence.from_json(header["parameters"], arrays))
        learner._restore(persistence.known_from(header, arrays), persistence.state_arrays(arrays))
    return learner, header["companion"]
