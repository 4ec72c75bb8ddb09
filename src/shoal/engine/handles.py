"""Handles: a named tuple of many arrays that compiled code finds by one address.

A call from Python looks at each array that it is given, and code that takes a hundred arrays is long to compile. A
handle looks at them once. Kernels read its fields as those of the tuple; a field that is a named tuple is a handle
again. Python reads the same fields from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models
from numba.core.imputils import lower_getattr_generic
from numba.core.pythonapi import NativeValue
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, register_model, typeof_impl, unbox

from shoal.engine.arrays import IntArray

T = TypeVar("T")
BEFORE_SHAPE = 5  # words of an array as numba has it: two of its owner, its items, their bytes, its address
INDEX = ir.IntType(64)


class Handle(int, Generic[T]):
    """A named tuple of arrays and such tuples, as compiled code reads it: by one address, the number that this is."""

    of: T
    words: IntArray

    def __new__(cls, of: T) -> Self:
        """Write the words that compiled code reads, and keep them."""
        words = np.array(_words(of), np.int64)
        made = super().__new__(cls, words.ctypes.data)
        made.of, made.words = of, words
        return made

    def __getattr__(self, name: str) -> Any:
        """A field of the tuple."""
        return getattr(self.of, name)

    def __reduce__(self) -> Any:
        """Another process has the arrays elsewhere."""
        return Handle, (self.of,)


def _words(of: Any) -> list[int]:
    """Each array as numba has it: without an owner, for the handle keeps it."""
    if isinstance(of, tuple):
        return [word for part in of for word in _words(part)]
    return [0, 0, of.size, of.itemsize, of.ctypes.data, *of.shape, *of.strides]


class HandleType(types.Type):
    """The type of a handle of a named tuple, or of the part of one that is a named tuple itself."""

    def __init__(self, of: Any) -> None:
        self.of = of
        super().__init__(f"Handle({of})")

    @property
    def key(self) -> Any:
        """Types with equal keys are equal."""
        return self.of

    def field(self, name: str) -> tuple[int, Any]:
        """The word at which a field begins, and its type."""
        i = self.of.fields.index(name)
        found = self.of.types[i]
        return sum(map(_n_words, self.of.types[:i])), _type_within(found)


def _type_within(found: Any) -> Any:
    return HandleType(found) if isinstance(found, types.BaseNamedTuple) else found


def _n_words(kind: Any) -> int:
    return BEFORE_SHAPE + 2 * kind.ndim if isinstance(kind, types.Array) else sum(map(_n_words, kind.types))


@typeof_impl.register(Handle)
def _type_of(handle: Handle[Any], context: Any) -> HandleType:
    return HandleType(typeof_impl(handle.of, context))


@register_model(HandleType)
class _Model(models.OpaqueModel):
    """An address."""


@unbox(HandleType)  # type: ignore[no-untyped-call, untyped-decorator]
def _unboxed(kind: HandleType, handle: Any, c: Any) -> NativeValue:
    return NativeValue(c.pyapi.long_as_voidptr(handle))  # type: ignore[no-untyped-call]


@infer_getattr
class _Fields(AttributeTemplate):
    key = HandleType

    def generic_resolve(self, kind: HandleType, name: str) -> Any:  # type: ignore[override]
        """The type of a field."""
        return kind.field(name)[1]


def _load(context: Any, builder: Any, kind: Any, words: Any, at: int) -> Any:
    """The value that begins at a word."""
    if isinstance(kind, types.BaseNamedTuple):
        of_parts: Any = kind
        parts = []
        for part in of_parts.types:
            parts.append(_load(context, builder, part, words, at))
            at += _n_words(part)
        return context.make_tuple(builder, kind, parts)
    layout = context.get_data_type(kind)
    if context.get_abi_sizeof(layout) != INDEX.width // 8 * _n_words(kind):
        raise NotImplementedError(f"numba's {kind} has another layout than `_words` writes")
    place = builder.bitcast(builder.gep(words, [INDEX(at)], inbounds=True), layout.as_pointer())
    n_before = len(builder.block.instructions)
    found = context.data_model_manager[kind].load_from_data_pointer(builder, place)
    for instruction in builder.block.instructions[n_before:]:
        if isinstance(instruction, ir.LoadInstr):  # nothing is written there
            instruction.set_metadata("invariant.load", builder.module.add_metadata([]))
    return found


@lower_getattr_generic(HandleType)  # type: ignore[no-untyped-call, untyped-decorator]
def _read(context: Any, builder: Any, kind: HandleType, handle: Any, name: str) -> Any:
    at, field = kind.field(name)
    words = builder.bitcast(handle, INDEX.as_pointer())
    if isinstance(field, HandleType):
        return builder.bitcast(builder.gep(words, [INDEX(at)], inbounds=True), handle.type)
    return _load(context, builder, field, words, at)


@intrinsic
def _whole(typing: Any, handle: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _load(context, builder, handle.of, builder.bitcast(arguments[0], INDEX.as_pointer()), 0)

    return handle.of(handle), emit


# The named tuple of a handle, for code that cuts its arrays.
whole = cast("Callable[[T], T]", _whole)
