"""Operations that numba does not offer, written in LLVM: prefetching, comparing eight numbers at once, records.

Written for numba 0.61 to 0.68: `make numba` runs the tests with both.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.cpython.unsafe.numbers import trailing_zeros
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numpy.typing import NDArray

from shoal.engine.arrays import LINE, FloatArray, IntArray


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


# The number of the lowest bit that is set; one must be.
lowest_bit = cast("Callable[[np.uint64], np.uint64]", trailing_zeros)


# ---- records of numbers ----------------------------------------------------------------------------------
# LLVM vectorises across iterations, not within one record, so these two loops are written as vector instructions.

INDEX, DOUBLE = ir.IntType(64), ir.DoubleType()
FUSED = ("contract",)  # a product and its sum may be one operation, as elsewhere
STAYS = -1  # in a pattern: the number of a record that no column moves
Products: TypeAlias = Callable[[int, FloatArray, IntArray, NDArray[Any], NDArray[Any], int, FloatArray], None]
Moves: TypeAlias = Callable[[int, IntArray, NDArray[Any], int, FloatArray, NDArray[Any]], None]


def _collected(builder: Any, pieces: list[Any]) -> Any:
    """A vector of these numbers."""
    vector = ir.Constant(ir.VectorType(pieces[0].type, len(pieces)), ir.Undefined)
    for lane, piece in enumerate(pieces):
        vector = builder.insert_element(vector, piece, ir.IntType(32)(lane))
    return vector


def _everywhere(builder: Any, number: Any, width: int) -> Any:
    """A vector of one number."""
    one = builder.insert_element(
        ir.Constant(ir.VectorType(number.type, width), ir.Undefined), number, ir.IntType(32)(0)
    )
    kind = ir.VectorType(ir.IntType(32), width)
    return builder.shuffle_vector(one, one, ir.Constant(kind, [0] * width))


def _data(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Where the numbers of the arguments lie that are arrays; the others as they are."""
    return [
        context.make_array(kind)(context, builder, argument).data if isinstance(kind, types.Array) else argument
        for kind, argument in zip(signature.args, arguments, strict=True)
    ]


def _refuse_other_type(numbers: Any, records: Any) -> None:
    if numbers.dtype != records.dtype:
        raise TypingError(f"numbers of {numbers.dtype} for records of {records.dtype}")


class _Record:
    """The numbers at a place, float64 or float32."""

    def __init__(self, builder: Any, records: Any, place: Any, width: int) -> None:
        number = records.type.pointee
        first = builder.gep(records, [builder.mul(place, INDEX(width))])
        self._builder = builder
        self._address = builder.bitcast(first, ir.VectorType(number, width).as_pointer())
        self._align = 8 if number == DOUBLE else 4

    def load(self) -> Any:
        return self._builder.load(self._address, align=self._align)

    def store(self, vector: Any) -> None:
        self._builder.store(vector, self._address, align=self._align)


def record_products(width: int, n_kept: int) -> Products:
    """sums[:width] <- sum_i x[i] records[place[i]], of n records; their last numbers go into columns, the last first.

    The columns have so much room each, one after the other, and the type of records; sums are float64.
    """

    @intrinsic
    def products(typing: Any, n: Any, x: Any, place: Any, records: Any, kept: Any, room: Any, sums: Any) -> Any:
        _refuse_other_type(kept, records)

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            n, x, place, records, kept, room, sums = _data(context, builder, signature, arguments)
            numbers = ir.VectorType(DOUBLE, width)
            zero = ir.Constant(numbers, [0.0] * width)
            # Two, for a sum waits for the one before.
            totals = [cgutils.alloca_once_value(builder, zero) for _ in range(2)]  # type: ignore[no-untyped-call]

            def multiply(i: Any, total: Any) -> None:
                record = _Record(builder, records, builder.load(builder.gep(place, [i])), width).load()
                value = _everywhere(builder, builder.load(builder.gep(x, [i])), width)
                exact = record if record.type == numbers else builder.fpext(record, numbers)
                product = builder.fmul(exact, value, flags=FUSED)
                builder.store(builder.fadd(builder.load(total), product, flags=FUSED), total)
                for column in range(n_kept):
                    number = builder.extract_element(record, ir.IntType(32)(width - 1 - column))
                    at = builder.add(builder.mul(room, INDEX(column)), i)
                    builder.store(number, builder.gep(kept, [at]))

            with cgutils.for_range(builder, builder.lshr(n, INDEX(1))) as loop:
                for odd in range(2):
                    multiply(builder.add(builder.shl(loop.index, INDEX(1)), INDEX(odd)), totals[odd])
            with builder.if_then(builder.trunc(n, ir.IntType(1))):
                multiply(builder.sub(n, INDEX(1)), totals[0])
            total = builder.fadd(builder.load(totals[0]), builder.load(totals[1]))
            builder.store(total, builder.bitcast(sums, numbers.as_pointer()), align=8)
            return context.get_dummy_value()

        return types.void(types.int64, x, place, records, kept, types.int64, sums), emit

    return cast(Products, products)


def record_moves(pattern: tuple[int, ...], keep: tuple[float, ...]) -> Moves:
    """records[place[i], l] <- keep[l] records[place[i], l] + scales[l] columns[pattern[l], i], i < n, one by one.

    The columns have so much room each, one after the other. They and the scales have the type of records, in which all
    is computed. Of a number that STAYS only `keep` counts.
    """
    width = len(pattern)

    @intrinsic
    def move(typing: Any, n: Any, place: Any, columns: Any, room: Any, scales: Any, records: Any) -> Any:
        _refuse_other_type(columns, records)
        _refuse_other_type(scales, records)

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            n, place, columns, room, scales, records = _data(context, builder, signature, arguments)
            number = records.type.pointee
            scale = builder.load(builder.bitcast(scales, ir.VectorType(number, width).as_pointer()), align=4)
            starts = {c: builder.gep(columns, [builder.mul(room, INDEX(c))]) for c in {*pattern} - {STAYS}}
            kept = ir.Constant(ir.VectorType(number, width), list(keep))
            with cgutils.for_range(builder, n) as loop:
                numbers = {c: builder.load(builder.gep(start, [loop.index])) for c, start in starts.items()}
                pieces = [numbers.get(c, number(0.0)) for c in pattern]
                step = builder.fmul(_collected(builder, pieces), scale, flags=FUSED)
                record = _Record(builder, records, builder.load(builder.gep(place, [loop.index])), width)
                old = record.load()
                old = old if min(keep) == 1.0 else builder.fmul(old, kept)
                record.store(builder.fadd(old, step, flags=FUSED))
            return context.get_dummy_value()

        return types.void(types.int64, place, columns, types.int64, scales, records), emit

    return cast(Moves, move)
