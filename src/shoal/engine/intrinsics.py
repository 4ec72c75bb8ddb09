"""What numba does not offer by itself: the only file that imports llvmlite or numba's internals.

Written for numba 0.61 to 0.68: `make numba` runs the tests with both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, event, types
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher
from numba.cpython.unsafe.numbers import trailing_zeros
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numpy.typing import NDArray

from shoal.engine.arrays import LINE, FloatArray, IntArray
from shoal.engine.notice import CompileNotice


class _Compiling(event.Listener):
    """Tells the notice when numba compiles a function of ours."""

    def __init__(self) -> None:
        self._notice = CompileNotice()

    def on_start(self, found: Any) -> None:
        """A function is about to be compiled."""
        if self._is_ours(found):
            self._notice.start()

    def on_end(self, found: Any) -> None:
        """It has been compiled."""
        if self._is_ours(found):
            self._notice.stop()

    @staticmethod
    def _is_ours(found: Any) -> bool:
        return str(found.data["dispatcher"].py_func.__module__).startswith("shoal.")


event.register("numba:compile", _Compiling())  # type: ignore[no-untyped-call]


class NoAlias(Compiler):
    """Compile a function none of whose array arguments overlap."""

    def define_pipelines(self) -> Any:
        """The usual passes, with LLVM told that pointers do not alias."""
        self.state.flags.noalias = True
        return super().define_pipelines()  # type: ignore[no-untyped-call]


class CompiledOnly(CPUDispatcher):
    """A compiled function without a wrapper for Python."""

    @classmethod
    def of(cls, function: Callable[..., Any], pipeline_class: Any = Compiler, **options: Any) -> CompiledOnly:
        """The function, to be compiled when compiled code first calls it, and cached on disk."""
        made = cls(py_func=function, targetoptions={"nopython": True, **options}, pipeline_class=pipeline_class)
        made.enable_caching()
        return made

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile for the type of an argument and not for its value: else a call with `n`, which was 0 a few lines
        before, compiles the function twice."""
        of_type: Any = types.unliteral
        named = {name: of_type(kind) for name, kind in kws.items()}
        return super().get_call_template([of_type(kind) for kind in args], named)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Refuse: without a wrapper the process would end here."""
        name = f"{self.py_func.__module__}.{self.py_func.__name__}"
        raise TypeError(
            f"{name} is a kernel for compiled code; from Python call `.py_func`, or compile it with entry=True"
        )


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


# ---- records of eight numbers ----------------------------------------------------------------------------
# LLVM vectorises across iterations, not within one record, so these two loops are written as vector instructions.

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
