"""Compile, or load from disk, what a run needs before its clock starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from shoal.engine.rounds import Chunk
from shoal.evaluation import progressive_validate
from shoal.learner import Learner
from shoal.model.slicing import rows_of

FEW_ROWS = 64  # enough for every branch that depends on the number of rows


def warmed_up(chunks: Iterator[Chunk], learners: Mapping[str, Learner], **options: Any) -> Iterator[Chunk]:
    """The chunks; before the first, clones of the learners learn a few of its rows.

    Parameters
    ----------
    options :
        Of `progressive_validate`.
    """
    for first in chunks:
        warm_up(first, learners, **options)
        yield first
        break
    yield from chunks


def warm_up(chunk: Chunk, learners: Mapping[str, Learner], **options: Any) -> None:
    """Run clones of the learners on a few rows of this kind; the learners themselves do not change."""
    if options.get("classes") is None and all(is_classifier(learner) for learner in learners.values()):
        labels = np.unique(np.asarray(chunk.y))
        options["classes"] = labels if len(labels) == 2 else None
    few = Chunk(*(rows_of(part, 0, FEW_ROWS) for part in chunk))
    try:
        progressive_validate({name: clone(learner) for name, learner in learners.items()}, [few], **options)
    except ValueError:  # such as a first label of unknown kind: the run itself says what is wrong
        return
