"""Which learners can be cut by tasks, and what to say of the others."""

from __future__ import annotations

from shoal.learner import Learner
from shoal.model.algorithm import Algorithm, Exchange

BLOCKS = (
    "Give assign= (blocks of tasks that live on one shard) and exchange_every=None: then each block has a learner of "
    "its own, whose relation spans the block and nothing beyond it"
)


def exchange_of(learner: Learner, *, exchanges: bool, is_assigned: bool) -> Exchange:
    """How copies of the learner's state merge.

    Raises
    ------
    ValueError
        If they cannot, and tasks are not assigned in blocks that are learned apart.
    """
    name, core = type(learner).__name__, learner.new_core()
    algorithm = getattr(core, "algorithm", None)
    if not isinstance(algorithm, Algorithm):
        raise ValueError(f"{name} holds other learners; a cluster takes a learner of two labels or of real targets")
    if core.named_tasks:
        raise ValueError(f"{name} cannot be cut by tasks: its relation names them, so all have to be in one model")
    if core.may_fail:
        raise ValueError(f"{name} with these hyper-parameters may fail on valid rows, which shards cannot take back")
    if isinstance(algorithm.exchange, Exchange):
        return algorithm.exchange
    if exchanges or not is_assigned:
        raise ValueError(f"{name} cannot be cut by tasks: {algorithm.exchange}. {BLOCKS}")
    return Exchange()
