"""Jitted row operations that every learner shares; each serves dense and sparse rows.

The branch on `rounds.width` is the same for all rows of a table, so it costs nothing and dense rows never pay
for an index.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.compiler import Compiler
from numba.cpython.unsafe.numbers import trailing_zeros
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numpy.typing import NDArray

if TYPE_CHECKING:
    from shoal.rounds import IndexArray, Rounds

F = TypeVar("F", bound=Callable[..., Any])


LINE = 64  # bytes that come from memory together
INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
REORDERED = {"reassoc", "nsz", "contract"}  # sums may be reordered for SIMD; NaN and inf keep their meaning


def jit(function: F) -> F:
    """Compile with the project's options: cached on disk, without the GIL, inlined, sums reordered for SIMD."""
    return _compile(function, REORDERED, counting=True)


def jit_in_order(function: F) -> F:
    """`jit` whose sums stay in order: for loops that would else be vectorised by gathers, 2-3 times slower."""
    return _compile(function, {"contract"}, counting=True)


def jit_apart(function: F) -> F:
    """`jit` that compiled code calls: for rare or long work, whose copies in all callers take minutes to compile."""
    return _compile(function, REORDERED, counting=True, inlined=False, **INNER)


def leaf(function: F) -> F:
    """`jit` for functions that allocate nothing: they count no references, which would cost 6 ns an array and call.

    Only compiled code may call them, and all that follow: they have no wrapper for Python, whose compiling would take
    a third of the time.
    """
    return _compile(function, REORDERED, counting=False, **INNER)


def leaf_in_order(function: F) -> F:
    """`leaf` whose sums stay in order."""
    return _compile(function, {"contract"}, counting=False, **INNER)


def leaf_exact(function: F) -> F:
    """`leaf_in_order` whose products are rounded before they are added: the same bits however it is compiled."""
    return _compile(function, set(), counting=False, **INNER)


def part(function: F) -> F:
    """The body of two leaf entries, which is compiled only as a part of them, not once more by itself.

    Never that of a `jit`, which would give back arrays that leaves do not count.
    """
    return cast(F, numba.njit(inline="always", cache=True, error_model="numpy")(function))


def leaf_apart(function: F) -> F:
    """`leaf` that is called, not inlined."""
    return _compile(function, REORDERED, counting=False, inlined=False, **INNER)


def leaf_disjoint(function: F) -> F:
    """`leaf` none of whose arrays overlap: without that promise, loops over more than three are not vectorised."""
    return _compile(function, REORDERED, counting=False, pipeline_class=_Disjoint, **INNER)


def leaf_entry(function: F) -> F:
    """`leaf` that Python calls too."""
    return _compile(function, REORDERED, counting=False)


def leaf_entry_apart(function: F) -> F:
    """`leaf_apart` that Python calls too."""
    return _compile(function, REORDERED, counting=False, inlined=False)


def jit_entry_apart(function: F) -> F:
    """`jit_apart` that Python calls too."""
    return _compile(function, REORDERED, counting=True, inlined=False)


class _Disjoint(Compiler):
    def define_pipelines(self) -> Any:
        self.state.flags.noalias = True
        return super().define_pipelines()  # type: ignore[no-untyped-call]


def _compile(function: F, fastmath: set[str], *, counting: bool, inlined: bool = True, **options: Any) -> F:
    options |= {"cache": True, "nogil": True, "error_model": "numpy", "forceinline": inlined}
    options["_nrt"] = counting
    return cast(F, numba.njit(fastmath=fastmath, **options)(function))


@cache
def _machine_code(function: Any, settings: Hashable, state: Hashable, dtype: Hashable) -> dict[str, Any]:
    return {}


def call(
    function: Any,
    rounds: Rounds,
    settings: Any,
    state: Any,
    decisions: NDArray[np.float64],
    dtype: Hashable,
    *more: Any,
) -> Any:
    """function(rounds, settings, state, decisions, *more) without numba's type dispatch: 1 us a call instead of 5.

    The kinds of named tuple, and what the weights are stored in, fix the types of all that they hold, so the compiled
    code is found by them alone.
    """
    kinds: tuple[Any, Any] = (type(settings), type(state))
    found = _machine_code(function, *kinds, dtype)
    if not found:
        types = tuple(map(numba.typeof, (rounds, settings, state, decisions, *more)))
        found["entry"] = function.compile(types)
    return found["entry"](rounds, settings, state, decisions, *more)


@intrinsic
def _prefetch(typing: Any, array: Any, i: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        flag = ir.IntType(32)
        address = builder.bitcast(builder.gep(numbers, [arguments[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [address.type, flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        builder.call(function, [address, flag(0), flag(3), flag(1)])  # to read; into all caches; data
        return context.get_dummy_value()

    return types.void(array, i), emit


# Has the cache line of the i-th number of an array brought from memory, and does not wait for it.
prefetch = cast("Callable[[NDArray[Any], int | np.uint64], None]", _prefetch)


GROUP = 8  # int32 numbers that one instruction compares


@intrinsic
def _equal(typing: Any, array: Any, i: Any, value: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        kind = ir.VectorType(ir.IntType(32), GROUP)
        address = builder.bitcast(builder.gep(numbers, [arguments[1]]), kind.as_pointer())
        one = builder.insert_element(ir.Constant(kind, ir.Undefined), arguments[2], ir.IntType(32)(0))
        all_alike = builder.shuffle_vector(one, one, ir.Constant(kind, [0] * GROUP))
        bits = builder.icmp_signed("==", builder.load(address, align=4), all_alike)
        return builder.zext(builder.bitcast(bits, ir.IntType(GROUP)), ir.IntType(64))

    return types.uint64(array, i, types.int32), emit


# Bit j: number i + j of an int32 array is the value; of eight numbers.
equal = cast("Callable[[NDArray[Any], int | np.uint64, np.int32], np.uint64]", _equal)


def _double_in(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    words = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    return builder.bitcast(builder.gep(words, [arguments[1]]), ir.DoubleType().as_pointer())


@intrinsic
def _number(typing: Any, words: Any, i: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_double_in(context, builder, signature, arguments), align=8)

    return types.float64(words, i), emit


@intrinsic
def _set_number(typing: Any, words: Any, i: Any, number: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _double_in(context, builder, signature, arguments), align=8)
        return context.get_dummy_value()

    return types.void(words, i, types.float64), emit


# The float64 that words i and i + 1 of an int32 array are, i even.
number_in = cast("Callable[[NDArray[Any], int | np.uint64], float]", _number)
set_number = cast("Callable[[NDArray[Any], int | np.uint64, float], None]", _set_number)


SCRATCH = 512  # numbers


@intrinsic
def _on_stack(typing: Any) -> Any:
    kind = types.Array(types.uint64, 1, "C")

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        memory = cgutils.alloca_once(builder, ir.ArrayType(ir.IntType(64), SCRATCH))  # type: ignore[no-untyped-call]
        memory.align = LINE
        array = context.make_array(kind)(context, builder)
        number_of = partial(context.get_constant, types.intp)
        size = {"shape": [number_of(SCRATCH)], "strides": [number_of(8)], "itemsize": number_of(8)}
        populate_array(array, data=builder.bitcast(memory, array.data.type), meminfo=None, **size)  # type: ignore[no-untyped-call]
        return array._getvalue()

    return kind(), emit


# SCRATCH uint64 numbers, not set, that live until the function ends that calls this; inlined functions must not.
on_stack = cast("Callable[[], NDArray[np.uint64]]", _on_stack)


@leaf
def row_bounds(rounds: Rounds, row: int) -> tuple[int, int]:
    """Where the row's values lie. Loops run over slices: positions in them cannot wrap around, which saves a test."""
    if rounds.width > 0:
        return row * rounds.width, (row + 1) * rounds.width
    return rounds.indptr[row], rounds.indptr[row + 1]


@leaf
def _dot_dense(x: NDArray[np.float64], w: NDArray[np.float64]) -> float:
    total = 0.0
    for j in range(len(x)):
        total += x[j] * w[j]
    return total


SUMS = 4  # side by side, for one addition would wait for the one before


@leaf_exact
def _dot_sparse(columns: IndexArray, x: NDArray[np.float64], w: NDArray[np.float64]) -> float:
    """Wherever the same numbers are to be the same bits, product i belongs to sum `which_sum(i, n)`."""
    a, b, c, d, n = 0.0, 0.0, 0.0, 0.0, len(x)
    for turn in range(n // SUMS):
        i = SUMS * turn
        a += x[i] * w[np.uint32(columns[i])]  # unsigned: no wrap-around to test for
        b += x[i + 1] * w[np.uint32(columns[i + 1])]
        c += x[i + 2] * w[np.uint32(columns[i + 2])]
        d += x[i + 3] * w[np.uint32(columns[i + 3])]
    for i in range(n - n % SUMS, n):
        a += x[i] * w[np.uint32(columns[i])]
    return (a + b) + (c + d)


@leaf
def which_sum(i: np.uint64, n: int) -> np.uint64:
    """Of the four; those of no whole turn belong to the first."""
    return i % np.uint64(SUMS) if i < np.uint64(n - n % SUMS) else np.uint64(0)


@leaf
def dot(rounds: Rounds, row: int, w: NDArray[np.float64]) -> float:
    """<w, x>."""
    if rounds.width > 0:
        return _dot_dense(rounds.values[row * rounds.width : (row + 1) * rounds.width], w)
    first, last = rounds.indptr[row], rounds.indptr[row + 1]
    return _dot_sparse(rounds.indices[first:last], rounds.values[first:last], w)


@leaf_exact
def dot_two(rounds: Rounds, row: int, u: NDArray[np.float64], w: NDArray[np.float64]) -> tuple[float, float]:
    """<u, x> and <w, x> in one pass over a sparse row."""
    start, end = rounds.indptr[row], rounds.indptr[row + 1]
    columns, x, n = rounds.indices[start:end], rounds.values[start:end], end - start
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    e, f, g, h = 0.0, 0.0, 0.0, 0.0
    for turn in range(n // SUMS):
        i = SUMS * turn
        j, k = np.uint32(columns[i]), np.uint32(columns[i + 1])
        p, q = np.uint32(columns[i + 2]), np.uint32(columns[i + 3])
        a, b, c, d = a + x[i] * u[j], b + x[i + 1] * u[k], c + x[i + 2] * u[p], d + x[i + 3] * u[q]
        e, f, g, h = e + x[i] * w[j], f + x[i + 1] * w[k], g + x[i + 2] * w[p], h + x[i + 3] * w[q]
    for i in range(n - n % SUMS, n):
        j = np.uint32(columns[i])
        a, e = a + x[i] * u[j], e + x[i] * w[j]
    return (a + b) + (c + d), (e + f) + (g + h)


@leaf
def add(rounds: Rounds, row: int, scale: float, w: NDArray[np.float64]) -> None:
    """w <- w + scale x."""
    first, last = row_bounds(rounds, row)
    x = rounds.values[first:last]
    if rounds.width > 0:
        for j in range(len(x)):
            w[j] += scale * x[j]
    else:
        columns = rounds.indices[first:last]
        for i in range(len(x)):
            w[np.uint32(columns[i])] += scale * x[i]


@leaf
def largest(rounds: Rounds, row: int) -> float:
    """max_j |x_j|."""
    first, last = row_bounds(rounds, row)
    x, most = rounds.values[first:last], 0.0
    for i in range(len(x)):
        most = max(most, abs(x[i]))
    return most


@leaf
def squared_norm(rounds: Rounds, row: int) -> float:
    """||x||^2."""
    first, last = row_bounds(rounds, row)
    x, total = rounds.values[first:last], 0.0
    for i in range(len(x)):
        total += x[i] * x[i]
    return total


@leaf
def copy_to(target: NDArray[np.float64], source: NDArray[np.float64]) -> None:
    """target <- source, of one length. Numba compiles `target[:] = source` for seconds: its error has text to make."""
    for i in range(len(target)):
        target[i] = source[i]


@leaf
def lowest_bit(bits: np.uint64) -> np.uint64:
    """Which is the lowest bit that is set; one must be."""
    return np.uint64(trailing_zeros(bits))  # type: ignore[call-arg]  # mypy sees the function before it is decorated


TASKS, ROUNDS = 0, 1  # positions in a state's clock: tasks that exist, rounds learnt


@leaf
def open_round(rounds: Rounds, r: int, clock: NDArray[np.int64]) -> tuple[int, int]:
    """Count the round, let its new tasks in, and return its first row and the row after its last."""
    first, last = rounds.starts[r], rounds.starts[r + 1]
    clock[ROUNDS] += 1
    for row in range(first, last):
        clock[TASKS] = max(clock[TASKS], rounds.task[row] + 1)
    return first, last


LANES = 16  # tasks are padded to what one turn of the compiler's AVX loop takes, so that none is left over


def in_lines(shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """Zeros that begin with a cache line, so that no record of a line lies in two: np.zeros may begin anywhere."""
    dtype = np.dtype(dtype)
    n, spare = math.prod(shape), LINE // dtype.itemsize
    numbers = np.zeros(n + spare, dtype)
    first = -numbers.ctypes.data % LINE // dtype.itemsize
    return numbers[first : first + n].reshape(shape)


@leaf_entry
def padded(n: int) -> int:
    """A number, as of tasks, rounded up to whole turns."""
    return (n + LANES - 1) // LANES * LANES


@leaf_in_order
def dot_all(rounds: Rounds, row: int, weights: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """out[k] <- <w_k, x> for all tasks k, the columns of `weights` (features, padded tasks)."""
    first, last = row_bounds(rounds, row)
    x, dense = rounds.values[first:last], rounds.width > 0
    columns = rounds.indices if dense else rounds.indices[first:last]
    out[:] = 0.0
    for i in range(len(x)):
        w, v = weights[np.uint32(i if dense else columns[i])], x[i]
        for k in range(len(w)):
            out[k] += v * w[k]


@leaf_in_order
def add_to_all(rounds: Rounds, row: int, scales: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
    """w_k <- w_k + scales[k] x for all tasks k."""
    first, last = row_bounds(rounds, row)
    x, dense = rounds.values[first:last], rounds.width > 0
    columns = rounds.indices if dense else rounds.indices[first:last]
    for i in range(len(x)):
        w, v = weights[np.uint32(i if dense else columns[i])], x[i]
        for k in range(len(w)):
            w[k] += scales[k] * v
