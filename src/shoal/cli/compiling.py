"""The first run of the default learner compiles in two processes: groups of experts in one, the rest in the other.

Each takes some 20 s, and numba compiles one function at a time in a process. The code is on disk when both are done.
Nothing is learned here: rows are made up, and their model is thrown away.
"""

import subprocess
import sys
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from shoal.engine.handles import Handle
from shoal.engine.rounds import NO_INDICES, NO_INDPTR, Chunk, Rounds
from shoal.learner import Learner
from shoal.online.hedged_sharing import algorithm, dense
from shoal.online.hedged_sharing.experts import FEATURES, SEEN_ROWS
from shoal.online.hedged_sharing.learner import HedgedSharing, HedgedSharingRegressor
from shoal.online.kalman_filters.low_rank import WAIT
from shoal.parallel.cores import n_threads

GROUPS = "import shoal; from shoal.cli.compiling import compile_groups; compile_groups(shoal.{learner!r})"


def compile_in_two(learner: Learner) -> None:
    """Compile what the learner needs for learning, unless there is code already, another learner or one core."""
    kernels: list[Any] = [algorithm.learn, dense.run_groups]
    if not isinstance(learner, HedgedSharing | HedgedSharingRegressor) or n_threads() < 2:
        return
    if all(kernel.awaits_compiling() for kernel in kernels):
        learner = type(learner)(dtype=learner.dtype)  # of the mean: what quantiles need beside it compiles at once
        words = [sys.executable, "-c", GROUPS.format(learner=learner)]
        with subprocess.Popen(words, stderr=subprocess.DEVNULL) as other:
            try:
                compile_rest(learner)
            except BaseException:
                other.kill()
                raise


def compile_groups(learner: Learner) -> None:
    """Have the groups of experts learn a row."""
    core = _new_core(learner)
    rounds = Rounds(1, NO_INDPTR, NO_INDICES, np.ones(1), np.zeros(1, np.int64), np.ones(1), np.arange(2))
    algorithm.pieces(core.setup, Handle(core.state), rounds, True)


def compile_rest(learner: Learner) -> None:
    """Validate a learner all of whose groups sleep on a few rows, which takes the metrics, too."""
    from shoal.evaluation import progressive_validate  # the other process needs none of it

    def new_core(_: Any) -> Any:
        core = _new_core(learner)
        core.state.dense.columns.seen[[FEATURES, SEEN_ROWS]] = core.setup.settings.dense.most + 1, WAIT
        return core

    asleep: Any = type("Asleep", (type(learner),), {"new_core": new_core})
    y = np.arange(8) % 2 if is_classifier(learner) else np.arange(8.0)
    rows = Chunk(np.ones((8, 1)), y, np.array(["a", "b"] * 4))
    progressive_validate({"": asleep(dtype=learner.dtype)}, [rows])


def _new_core(learner: Learner) -> Any:
    core = learner.new_core()
    core.reserve(1, 1)
    return core
