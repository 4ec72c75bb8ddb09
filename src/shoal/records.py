"""Records of eight numbers, one line of memory each: all eight are multiplied, or moved, at once.

The compiler makes vectors of loops over many records, not of the numbers of one; so it is told here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from shoal.rounds import FloatArray, IntArray

RECORD = 8  # numbers
INDEX, DOUBLE = ir.IntType(64), ir.DoubleType()
EIGHT = ir.VectorType(DOUBLE, RECORD)
FUSED = ("contract",)  # a product and its sum may be one operation, as elsewhere
Products: TypeAlias = Callable[[int, FloatArray, IntArray, FloatArray, FloatArray, FloatArray, FloatArray], None]
Moves: TypeAlias = Callable[
    [int, IntArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray], None
]


def _eight(builder: Any, pieces: list[Any]) -> Any:
    """A vector of eight numbers."""
    vector = ir.Constant(EIGHT, ir.Undefined)
    for lane, piece in enumerate(pieces):
        vector = builder.insert_element(vector, piece, ir.IntType(32)(lane))
    return vector


def _data(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Where the numbers of the arguments lie that are arrays; the others as they are."""
    return [
        context.make_array(kind)(context, builder, argument).data if isinstance(kind, types.Array) else argument
        for kind, argument in zip(signature.args, arguments, strict=True)
    ]


class _Record:
    """The eight numbers at a place: float64, or float32 in memory."""

    def __init__(self, builder: Any, records: Any, place: Any) -> None:
        number = records.type.pointee
        self._memory = ir.VectorType(number, RECORD)
        first = builder.gep(records, [builder.mul(place, INDEX(RECORD))])
        self._builder, self._address = builder, builder.bitcast(first, self._memory.as_pointer())
        self._align = 8 if number == DOUBLE else 4

    def load(self) -> Any:
        found = self._builder.load(self._address, align=self._align)
        return found if self._memory == EIGHT else self._builder.fpext(found, EIGHT)

    def store(self, vector: Any) -> None:
        kept = vector if self._memory == EIGHT else self._builder.fptrunc(vector, self._memory)
        self._builder.store(kept, self._address, align=self._align)


@intrinsic
def _products(typing: Any, n: Any, x: Any, place: Any, records: Any, sixth: Any, seventh: Any, sums: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        n, x, place, records, sixth, seventh, sums = _data(context, builder, signature, arguments)
        zero = ir.Constant(EIGHT, [0.0] * RECORD)
        # Two, for a sum waits for the one before.
        totals = [cgutils.alloca_once_value(builder, zero) for _ in range(2)]  # type: ignore[no-untyped-call]

        def multiply(i: Any, total: Any) -> None:
            record = _Record(builder, records, builder.load(builder.gep(place, [i]))).load()
            value = builder.load(builder.gep(x, [i]))
            product = builder.fmul(record, _eight(builder, [value] * RECORD), flags=FUSED)
            builder.store(builder.fadd(builder.load(total), product, flags=FUSED), total)
            for lane, column in ((6, sixth), (7, seventh)):
                builder.store(builder.extract_element(record, ir.IntType(32)(lane)), builder.gep(column, [i]))

        with cgutils.for_range(builder, builder.lshr(n, INDEX(1))) as loop:
            for odd in range(2):
                multiply(builder.add(builder.shl(loop.index, INDEX(1)), INDEX(odd)), totals[odd])
        with builder.if_then(builder.trunc(n, ir.IntType(1))):
            multiply(builder.sub(n, INDEX(1)), totals[0])
        total = builder.fadd(builder.load(totals[0]), builder.load(totals[1]))
        builder.store(total, builder.bitcast(sums, EIGHT.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(types.int64, x, place, records, sixth, seventh, sums), emit


@intrinsic
def _move(
    typing: Any, n: Any, place: Any, first: Any, second: Any, third: Any, fourth: Any, fifth: Any, scales: Any,
    records: Any,
) -> Any:  # fmt: skip
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        n, place, *columns, scales, records = _data(context, builder, signature, arguments)
        scale = builder.load(builder.bitcast(scales, EIGHT.as_pointer()), align=8)
        with cgutils.for_range(builder, n) as loop:
            a, b, c, d, e = (builder.load(builder.gep(column, [loop.index])) for column in columns)
            record = _Record(builder, records, builder.load(builder.gep(place, [loop.index])))
            step = builder.fmul(_eight(builder, [a, b, c, c, d, d, e, e]), scale, flags=FUSED)
            record.store(builder.fadd(record.load(), step, flags=FUSED))
        return context.get_dummy_value()

    return types.void(types.int64, place, first, second, third, fourth, fifth, scales, records), emit


# sums[:] <- sum_i x[i] records[place[i]], of n records; numbers 6 and 7 of each go into two columns.
products = cast(Products, _products)

# records[place[i]] += scales (a[i], b[i], c[i], c[i], d[i], d[i], e[i], e[i]) for i < n, one after the other.
move = cast(Moves, _move)
