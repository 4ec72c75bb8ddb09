"""Numbers that one thread of compiled code leaves for another: a plain read or write may be moved or left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from numba.core import types
from numba.extending import intrinsic

from shoal.rounds import IntArray


def _address(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    numbers = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    return builder.gep(numbers, [arguments[1]])


@intrinsic
def _seen(typing: Any, numbers: Any, i: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_address(context, builder, signature, arguments), "acquire", 8)

    return types.int64(numbers, i), emit


@intrinsic
def _tell(typing: Any, numbers: Any, i: Any, number: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], _address(context, builder, signature, arguments), "release", 8)
        builder.fence("release")
        return context.get_dummy_value()

    return types.void(numbers, i, types.int64), emit


# numbers[i] as another thread told it; what that thread had written before is seen after.
seen = cast("Callable[[IntArray, int], int]", _seen)

# numbers[i] <- number, after all that was written before it, and before all that is written after it.
tell = cast("Callable[[IntArray, int, int], None]", _tell)
