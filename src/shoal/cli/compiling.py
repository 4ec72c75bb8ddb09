"""The first run of the default learner compiles in two processes: groups of experts in one, the rest in the other.

Each takes some 20 s, and numba compiles one function at a time in a process. The code is on disk when both are done.
Nothing is learned here: models are thrown away.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier

from shoal.engine.handles import Handle
from shoal.engine.rounds import NO_INDICES, NO_INDPTR, Chunk, Rounds
from shoal.learner import Learner
from shoal.model.slicing import len_of
from shoal.online.hedged_sharing import algorithm, dense
from shoal.online.hedged_sharing.experts import FEATURES, SEEN_ROWS
from shoal.online.hedged_sharing.learner import HedgedSharing, HedgedSharingRegressor
from shoal.online.kalman_filters.low_rank import WAIT
from shoal.parallel.cores import n_threads

BESIDE = "import shoal; from shoal.cli.compiling import compile_beside; compile_beside(shoal.{learner!r})"
MADE_UP = Chunk(np.ones((8, 1)), None, np.array(["a", "b"] * 4))


@contextmanager
def compiled_in_two(learner: Any) -> Iterator[Callable[[Learner, Chunk | None], None]]:
    """Have another process compile the groups while the data is opened here; it has ended when this ends.

    None starts for another learner, where there is code already, or on one core.

    Yields
    ------
    compile_rest : callable
        Compile the rest for a learner, before it learns its first rows, if they are known. If their features are many,
        the other process also compiles what the groups do then.
    """
    kernels: list[Any] = [algorithm.learn, dense.run_groups]
    pays = isinstance(learner, HedgedSharing | HedgedSharingRegressor) and n_threads() > 1
    if not (pays and all(kernel.awaits_compiling() for kernel in kernels)):
        yield lambda *_: None
        return
    words = [sys.executable, "-c", BESIDE.format(learner=_of_mean(learner))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as other:

        def rest(learner: Learner, first: Chunk | None) -> None:
            assert other.stdin is not None
            with suppress(BrokenPipeError), other.stdin as told:
                told.write(b"many\n" if first is not None and has_many_features(first.X, learner) else b"")
            compile_rest(_of_mean(learner), MADE_UP if first is None else first)

        try:
            yield rest
        except BaseException:
            other.kill()
            raise


def compile_beside(learner: Learner) -> None:
    """The other process: the groups, then what they do when many features have come, if it is told so."""
    compile_groups(learner)
    if sys.stdin.readline():
        compile_groups(learner, many=True)


def has_many_features(X: Any, learner: Learner) -> bool:
    """Whether these are more features than groups take at most, but for low-rank filters."""
    n = len(np.unique(X.indices)) if issparse(X) else X.shape[1]
    return bool(n > _new_core(learner).setup.settings.dense.most)


def compile_groups(learner: Learner, *, many: bool = False) -> None:
    """Have the groups of experts learn a row, as the first one or when many features have come."""
    core = _new_core(learner)
    if many:
        core.state.dense.columns.seen[FEATURES] = core.setup.settings.dense.most + 1
    rounds = Rounds(1, NO_INDPTR, NO_INDICES, np.ones(1), np.zeros(1, np.int64), np.ones(1), np.arange(2))
    algorithm.pieces(core.setup, Handle(core.state), rounds, True)


def compile_rest(learner: Learner, first: Chunk) -> None:
    """Validate a learner all of whose groups sleep on a few rows with targets made up; this takes the metrics, too."""
    from shoal.cli.streams import warm_up  # the other process needs none of it

    def new_core(_: Any) -> Any:
        core = _new_core(learner)
        core.state.dense.columns.seen[[FEATURES, SEEN_ROWS]] = core.setup.settings.dense.most + 1, WAIT
        return core

    asleep: Any = type("Asleep", (type(learner),), {"new_core": new_core})
    i = np.arange(len_of(first.X))
    y = i % 2 if is_classifier(learner) else i.astype(float)
    warm_up(Chunk(first.X, y, first.task), {"": asleep(dtype=learner.dtype)})


def _of_mean(learner: Any) -> Learner:
    """A new learner of the mean that compiles the same; what quantiles need besides compiles at once."""
    made: Learner = type(learner)(dtype=learner.dtype)
    return made


def _new_core(learner: Learner) -> Any:
    core = learner.new_core()
    core.reserve(1, 1)
    return core
