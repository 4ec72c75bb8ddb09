"""How near learning comes to what the memory and the arithmetic of this machine allow.

    python -m benchmarks.roofline

The bytes of an example are its own (12 a non-zero), the weights it reads and, if it is learned, those it writes; its
operations are the multiplications and additions of the formulas. Both are counted, not measured. The limits are
measured in the same run: a loop that copies an array ten times the size of the last cache, and NumPy's product of two
matrices. Weights of 15 tasks fit in the last cache, so more than the whole bandwidth of memory can be seen; a learner
that comes near to neither limit waits for single cache lines or divisions.

The second table says where the time goes: before the compiled loop, answering, and learning; and how long answering and
learning take for rows of 256 words, whose weights all lie in the caches next to the core: the rest is waiting for them.
Before the loop tasks and labels are read and rows are checked. Here all is done in one thread; in the first table
HedgedSharing prepares rows in a second one.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from benchmarks.data import NNZ, text_like
from benchmarks.timing import REPEATS, machine, seconds
from shoal import OSMTL, HedgedSharing, MultitaskPerceptron, PassiveAggressive
from shoal.engine.arrays import FloatArray
from shoal.engine.compile import call, kernel
from shoal.model import core
from shoal.parallel import cores

N_ROWS, N_TASKS = 60_000, 15
COPIED = 2**26  # numbers, half a GiB
SIZE = 1_500
FEW = 256  # words; 15 tasks' weights of them take 30 KB


class Case(NamedTuple):
    """Bytes and operations of an example with n non-zeros, and those more of one that is learned."""

    make: Callable[[], Any]
    bytes: Callable[[int], int]
    learned_bytes: Callable[[int], int]
    flops: Callable[[int], int]
    learned_flops: Callable[[int], int]


K = N_TASKS
CASES = {
    "MultitaskPerceptron": Case(
        lambda: MultitaskPerceptron(relation=1.0), lambda n: 28 * n, lambda n: 16 * n, lambda n: 4 * n, lambda n: 4 * n
    ),
    "MultitaskPerceptron, logistic": Case(
        lambda: MultitaskPerceptron(relation=1.0, loss="logistic"),
        lambda n: 28 * n, lambda n: 16 * n, lambda n: 4 * n, lambda n: 4 * n,
    ),
    "PassiveAggressive": Case(
        PassiveAggressive, lambda n: 20 * n, lambda n: 8 * n, lambda n: 4 * n, lambda n: 2 * n
    ),
    "OSMTL, rounds of 15": Case(
        OSMTL, lambda n: 12 * n + 8 * n * K, lambda n: 8 * n * K, lambda n: 2 * n * K, lambda n: 2 * n * K
    ),
    # Records of 64 and 32 bytes, and two sums of scales; 15 products a non-zero, six columns of steps, 19 numbers that
    # move, and two regressions of 16 inputs a row. As on text, whichever rows come.
    "HedgedSharing": Case(
        lambda: HedgedSharing(interactions=False), lambda n: (12 + 96 + 16) * n, lambda n: (96 + 16) * n,
        lambda n: 30 * n, lambda n: (36 + 38) * n + 2_500,
    ),
}  # fmt: skip


@kernel(entry=True, allocates=True)
def _copy(source: FloatArray, target: FloatArray) -> None:
    for i in range(len(source)):
        target[i] = source[i]


def bandwidth() -> float:
    """Bytes a second of a copy, read and written."""
    source, target = np.ones(COPIED), np.ones(COPIED)
    return 16 * COPIED / seconds(lambda _: _copy(source, target))


def arithmetic() -> float:
    """Operations a second of one core in NumPy's product of two matrices, which is as near to the peak as code gets."""
    A = np.ones((SIZE, SIZE))
    with threadpool_limits(1):
        return 2 * SIZE**3 / seconds(lambda _: A @ A)


def few_words(rng: np.random.Generator) -> tuple[sp.csr_matrix, FloatArray]:
    """Rows of 100 of 256 words, and the labels of a linear score."""
    words = np.sort(rng.permuted(np.tile(np.arange(FEW), (N_ROWS, 1)), axis=1)[:, :NNZ], axis=1)
    values = np.full(words.size, NNZ**-0.5)
    X = sp.csr_matrix((values, words.ravel().astype(np.int32), np.arange(0, words.size + 1, NNZ)), shape=(N_ROWS, FEW))
    return X, np.where(X @ rng.normal(size=FEW) >= 0, 1.0, -1.0)


def parts(make: Callable[[], Any], X: Any, y: FloatArray, task: Any) -> tuple[float, float, float]:
    """Nanoseconds a row: before the compiled loop, of answering, and of learning on top; medians."""

    def ready() -> Any:
        return make().add_tasks(range(N_TASKS)).add_features(X.shape[1])

    compiled, found = 0.0, []

    def timed(*arguments: Any) -> Any:
        nonlocal compiled
        start = time.perf_counter()
        answer = call(*arguments)
        compiled += time.perf_counter() - start
        return answer

    with patch.object(core, "call", timed), patch.object(cores, "n_cores", return_value=1):
        for _ in range(REPEATS + 1):
            model, compiled = ready(), 0.0
            start = time.perf_counter()
            model.partial_fit(X, y, task)
            total, learning = time.perf_counter() - start, compiled
            model.decision_function(X, task)
            answering = compiled - learning
            found.append((total - learning, answering, learning - answering))
    before, answering, learning = np.median(found[1:], axis=0) * 1e9 / N_ROWS
    return float(before), float(answering), float(learning)


def main() -> None:
    """Print the tables."""
    memory, peak = bandwidth(), arithmetic()
    print(f"Medians of 5. {machine()}")
    print(f"Copying: {memory / 1e9:.1f} GB/s. One core multiplies and adds {peak / 1e9:.1f} billion times a second.\n")
    print(f"{'learner':32}{'M rows/s':>9}{'updates':>8}{'bytes':>8}{'of memory':>15}{'flops':>8}{'of the peak':>13}")
    X, y, task = text_like(N_ROWS, N_TASKS)
    for name, case in CASES.items():

        def ready(make: Callable[[], Any] = case.make) -> Any:
            return make().add_tasks(range(N_TASKS)).add_features(X.shape[1])

        speed = N_ROWS / seconds(lambda model: model.partial_fit(X, y, task), ready)
        share = ready().partial_fit(X, y, task).n_updates_ / N_ROWS
        size = case.bytes(NNZ) + share * case.learned_bytes(NNZ)
        flops = case.flops(NNZ) + share * case.learned_flops(NNZ)
        print(
            f"{name:32}{speed / 1e6:>9.2f}{share:>8.0%}{size:>8,.0f}{size * speed / memory:>15.0%}"
            f"{flops:>8,.0f}{flops * speed / peak:>13.0%}"
        )
    print(f"\n{'ns a row':32}{'before':>9}{'answering':>11}{'learning':>10}{'both, of 256 words':>21}{'updates':>8}")
    near, labels = few_words(np.random.default_rng(0))
    for name, case in CASES.items():
        before, answering, learning = parts(case.make, X, y, task)
        _, *cached = parts(case.make, near, labels, task)
        share = case.make().partial_fit(near, labels, task).n_updates_ / N_ROWS
        print(f"{name:32}{before:>9,.0f}{answering:>11,.0f}{learning:>10,.0f}{sum(cached):>21,.0f}{share:>8.0%}")


if __name__ == "__main__":
    main()
