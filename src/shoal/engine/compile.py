"""How the project compiles its loops: one decorator, calls without numba's type dispatch, and a notice to the user.

The classes of numba that this needs are internals of it: written for numba 0.61 to 0.68, and `make numba` runs the
tests with both.
"""

import gc
import logging
import os
import pickle
import threading
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar, cast, overload

import numba
from llvmlite import binding as llvm
from numba.core import caching, event, targetconfig, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher

F = TypeVar("F", bound=Callable[..., Any])

SUMS: dict[str, set[str]] = {
    "any order": {"reassoc", "nsz", "contract"},  # vectorised; NaN and inf keep their meaning
    "in order": {"contract"},  # not vectorised: for loops that SIMD gathers would make 2 to 3 times slower
    "exact": set(),  # products are rounded before they are added: the same bits however it is compiled
}


@overload
def kernel(function: F, /) -> F: ...


@overload
def kernel(
    *,
    entry: bool | Literal["too"] = False,
    allocates: bool = False,
    inline: bool = True,
    sums: Literal["any order", "in order", "exact"] = "any order",
    disjoint: bool = False,
    alone: bool = True,
) -> Callable[[F], F]: ...


def kernel(
    function: Any = None,
    /,
    *,
    entry: bool | Literal["too"] = False,
    allocates: bool = False,
    inline: bool = True,
    sums: Literal["any order", "in order", "exact"] = "any order",
    disjoint: bool = False,
    alone: bool = True,
) -> Any:
    """Compile a function: cached on disk, without the GIL, division by zero as in NumPy.

    Parameters
    ----------
    entry : bool or "too"
        Who calls it. False: compiled code; a call from Python raises TypeError, because the wrapper for Python would
        take a third of the time to compile. True: Python; a call from compiled code raises TypeError, because its
        bitcode, which such a caller needs, would take half of the time to load from the disk. "too": both.
    allocates : bool
        It makes arrays. Otherwise it counts no references, which would cost 6 ns for each array and call.
    inline : bool
        True: LLVM inlines it. False: it is called, for rare or long work, whose copies in all callers take minutes
        to compile.
    sums : {"any order", "in order", "exact"}
        How the compiler may reorder sums of floats; see `SUMS`.
    disjoint : bool
        None of its arrays overlap. Without that promise, loops over more than three are not vectorised.
    alone : bool
        False: unless Python calls it, it is optimised, and becomes machine code, only within its callers. A caller of
        many such functions compiles in two thirds of the time; a loop over all tasks may be 20 % slower there.
    """

    def compiled(function: F) -> F:
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": allocates}
        # Even if empty or False: numba would inherit the caller's.
        options |= {"fastmath": SUMS[sums], "forceinline": inline}
        if entry is True:
            return cast(F, Entry.of(function, _DisjointTops if disjoint else _Tops, **options))
        if alone or entry:
            pipeline = _Disjoint if disjoint else _Kernels
        else:
            pipeline = _DisjointPieces if disjoint else _Pieces
        if entry:
            return cast(F, Compiled.of(function, pipeline, **options))
        return cast(F, CompiledOnly.of(function, pipeline, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options))

    return compiled if function is None else compiled(function)


@cache
def _entry_points(function: Any, kind: Hashable) -> dict[str, Any]:
    return {}


def by_kind(function: Any, kind: Hashable, *arguments: Any) -> Any:
    """function(*arguments) without numba's type dispatch: 1 us a call instead of 5. The kind fixes all their types."""
    found = _entry_points(function, kind)
    if not found:
        found["entry"] = function.compile(tuple(map(numba.typeof, arguments)))
    return found["entry"](*arguments)


def call(function: Any, rounds: Any, settings: Any, state: Any, out: Any, dtype: Hashable, *more: Any) -> Any:
    """function(rounds, settings, state, out, *more) by the kinds of named tuple and what weights are stored in."""
    found = _entry_points(function, (type(settings), type(state), dtype))
    if found:  # a call more would take a tenth of the time of a row
        return found["entry"](rounds, settings, state, out, *more)
    return by_kind(function, (type(settings), type(state), dtype), rounds, settings, state, out, *more)


# ---- numba's classes, changed --------------------------------------------------------------------------------------

ENVIRONMENT = "_ZN08NumbaEnv"  # how the name of a function's environment begins


class _Piece(JITCodeLibrary):
    """Code that is optimized, and becomes machine code, only within its callers.

    The engine gets only its environment, because numba stores a pointer there at once.
    """

    def _optimize_final_module(self) -> None:
        """Its callers do."""

    def _finalize_final_module(self) -> None:
        self._finalized = True  # else it could not be linked
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        whole: Any = self._get_module_for_linking()  # type: ignore[no-untyped-call]
        name = self._final_module.name
        environments = [str(each) for each in whole.global_variables if each.name.startswith(ENVIRONMENT)]
        self._final_module = llvm.parse_assembly("\n".join(environments))
        self._final_module.name = name
        super()._finalize_final_module()  # type: ignore[no-untyped-call]


class _Top(JITCodeLibrary):
    """Code that no compiled function calls: the disk keeps no bitcode of it, only the names of its functions."""

    def serialize_using_object_code(self) -> Any:
        """What the cache keeps."""
        name, kind, (machine_code, _) = super().serialize_using_object_code()  # type: ignore[no-untyped-call]
        found = [each.name for each in self._final_module.functions if not each.is_declaration]
        names = "\n".join(f'define void @"{each}"() {{ ret void }}' for each in found)
        return name, kind, (machine_code, llvm.parse_assembly(names).as_bitcode())


_Function: Any = types.functions.BaseFunction
_call_type: Any = _Function.get_call_type
_call_types: dict[Any, tuple[Any, Any]] = {}  # signature and implementation
MANY_OBJECTS = 20_000  # between two searches for garbage


def _known_call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
    """How one of numba's functions, such as `+`, takes arguments of these types.

    Numba would try all implementations again at each call in a kernel: 8,355 in groups of experts, 7,406 of them known.
    """
    flags: Any = targetconfig.ConfigStack.top_or_none()  # type: ignore[no-untyped-call]
    key = function, context, tuple(args), tuple(kws.items()), flags and flags.summary()
    if key not in _call_types:
        signature = _call_type(function, context, args, kws)
        _call_types[key] = signature, function.get_impl_key(signature)
    signature, function._impl_keys[signature.args] = _call_types[key]  # other flags may have changed the latter
    return signature


class _Kernels(Compiler):
    def compile_extra(self, function: Any) -> Any:
        """As numba compiles, but for `_known_call_type`, and with few searches for garbage, a tenth of the time."""
        call_type, objects = _Function.get_call_type, gc.get_threshold()
        _Function.get_call_type = _known_call_type
        if 0 < objects[0] < MANY_OBJECTS:  # 0: there are none
            gc.set_threshold(MANY_OBJECTS)
        try:
            return super().compile_extra(function)  # type: ignore[no-untyped-call]
        finally:
            _Function.get_call_type = call_type
            gc.set_threshold(*objects)


class _Pieces(_Kernels):
    def define_pipelines(self) -> Any:
        """The usual passes; their result is a piece."""
        state = self.state
        state.library = _Piece(state.targetctx.codegen(), state.func_id.func_qualname)  # type: ignore[no-untyped-call]
        state.library.enable_object_caching()
        return super().define_pipelines()  # type: ignore[no-untyped-call]


class _Tops(_Kernels):
    def define_pipelines(self) -> Any:
        """The usual passes; their result is a top."""
        state = self.state
        state.library = _Top(state.targetctx.codegen(), state.func_id.func_qualname)  # type: ignore[no-untyped-call]
        state.library.enable_object_caching()
        return super().define_pipelines()  # type: ignore[no-untyped-call]


class _Disjoint(_Kernels):
    def define_pipelines(self) -> Any:
        """The usual passes; LLVM is told that pointers do not alias."""
        self.state.flags.noalias = True
        return super().define_pipelines()  # type: ignore[no-untyped-call]


class _DisjointPieces(_Disjoint, _Pieces):
    pass


class _DisjointTops(_Disjoint, _Tops):
    pass


# numba 0.61 marks this name as private.
_InTreeCacheLocator: Any = getattr(caching, "InTreeCacheLocator", None) or vars(caching)["_InTreeCacheLocator"]


class _BesidePackage(_InTreeCacheLocator):  # type: ignore[misc]
    def ensure_cache_path(self) -> None:
        """It is read and not written."""


class _Index(caching.IndexDataCacheFile):
    def _load_index(self) -> Any:
        """The names of files with code; none if the index has types that are gone, as after an upgrade in place.

        Numba reads those types before it compares the stamp, by which the index is out of date.
        """
        try:
            return super()._load_index()  # type: ignore[no-untyped-call]
        except (AttributeError, ImportError, TypeError, ValueError, EOFError, pickle.UnpicklingError):
            return {}


class _Cache(caching.FunctionCache):
    _impl_class: Any = caching.CompileResultCacheImpl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        found = self._impl
        stamp = found.locator.get_source_stamp()
        self._cache_file = _Index(self._cache_path, found.filename_base, stamp)  # type: ignore[no-untyped-call]


class _FoundBesidePackage(caching.CompileResultCacheImpl):
    _locator_classes = [_BesidePackage]  # noqa: RUF012 - numba declares it as an attribute of instances


class _ReadOnlyCache(_Cache):
    """Compiled code beside a package that this process may not write, as in an image; new code goes elsewhere.

    Parameters
    ----------
    elsewhere : FunctionCache, optional
        In `$NUMBA_CACHE_DIR` or the user's home. None: new code stays in memory.
    """

    _impl_class = _FoundBesidePackage

    def __init__(self, function: Callable[..., Any], elsewhere: caching.FunctionCache | None) -> None:
        super().__init__(function)
        self.elsewhere = elsewhere

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for a signature; None if there is none."""
        found = None
        with suppress(OSError):
            found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if found is None and self.elsewhere is not None:
            found = self.elsewhere.load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep new code where that is possible."""
        if self.elsewhere is not None:
            self.elsewhere.save_overload(sig, data)  # type: ignore[no-untyped-call]


class Compiled(CPUDispatcher):
    """A compiled function, cached on disk."""

    def enable_caching(self) -> None:
        """As numba does if this process may write beside the package, else as `_ReadOnlyCache` says."""
        found = None
        with suppress(RuntimeError):  # there is no place to write
            found = _Cache(self.py_func)
        if not os.access(Path(self.py_func.__code__.co_filename).parent, os.W_OK):
            CompileNotice.is_kept = found is not None
            found = _ReadOnlyCache(self.py_func, found)
        self._cache = found

    def awaits_compiling(self) -> bool:
        """Whether a first call compiles, and keeps the code where another process finds it."""
        cache: Any = self._cache
        kept = cache.elsewhere if isinstance(cache, _ReadOnlyCache) else cache
        known = kept is None or any(each._cache_file._load_index() for each in (cache, kept))
        return not (self.overloads or known)

    @classmethod
    def of(cls, function: Callable[..., Any], pipeline_class: type[Compiler], **options: Any) -> Self:
        """The function; it is compiled for each kind of arguments when it is first called with them."""
        made = cls(py_func=function, targetoptions={"nopython": True, **options}, pipeline_class=pipeline_class)
        made.enable_caching()
        return made

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile for the type of an argument and not for its value.

        Otherwise a call with `n`, if `n = 0` stands a few lines above, compiles the function a second time.
        """
        of_type: Any = types.unliteral
        named = {name: of_type(kind) for name, kind in kws.items()}
        return super().get_call_template([of_type(kind) for kind in args], named)


class Entry(Compiled):
    """A compiled function that only Python calls."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Refuse: its bitcode is not on the disk."""
        name = f"{self.py_func.__module__}.{self.py_func.__name__}"
        raise TypeError(f'{name} is a kernel that Python calls; for kernels compile it with entry="too"')


class CompiledOnly(Compiled):
    """A compiled function without a wrapper for Python."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Refuse: without a wrapper the process would end here."""
        name = f"{self.py_func.__module__}.{self.py_func.__name__}"
        raise TypeError(
            f'{name} is a kernel for compiled code; from Python call `.py_func`, or compile it with entry="too"'
        )


# ---- the notice ------------------------------------------------------------------------------------------------------

MESSAGE = "compiling for this computer, once: up to a minute (`shoal compile` does it in advance)"
NOT_KEPT = (
    "compiling for this computer, up to a minute at each start: there is no place to keep it (NUMBA_CACHE_DIR names a "
    "folder; `shoal compile` does it in advance, where the package is installed)"
)

logger = logging.getLogger("shoal")


class CompileNotice:
    """Logs one warning as soon as compiling has taken a second in all: a first `partial_fit` would look as if it hung.

    `start` and `stop` enclose each compilation, nested ones included. The caller holds the compiler's lock, so they
    never run concurrently. A timer logs while the compiler works, because afterwards the warning would be too late.

    Parameters
    ----------
    patience : float
        Seconds of compiling before the warning.
    """

    is_kept: ClassVar[bool] = True  # what is compiled, for the next start

    def __init__(self, patience: float = 1.0) -> None:
        self._left = patience
        self._depth = 0
        self._since = 0.0
        self._timer: threading.Timer | None = None
        self._is_logged = threading.Event()

    def start(self) -> None:
        """A function is being compiled."""
        self._depth += 1
        if self._depth == 1 and not self._is_logged.is_set():
            self._since = time.monotonic()
            self._timer = threading.Timer(max(self._left, 0.0), self._say)
            self._timer.daemon = True
            self._timer.start()

    def stop(self) -> None:
        """It has been compiled."""
        self._depth -= 1
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._left -= time.monotonic() - self._since

    def _say(self) -> None:
        if not self._is_logged.is_set():
            self._is_logged.set()
            logger.warning(MESSAGE if self.is_kept else NOT_KEPT)


class _Compiling(event.Listener):
    """Tells the notice when numba compiles a function of the project."""

    def __init__(self) -> None:
        self._notice = CompileNotice()

    def on_start(self, found: Any) -> None:
        """A function is about to be compiled."""
        if self._is_of_shoal(found):
            self._notice.start()

    def on_end(self, found: Any) -> None:
        """It has been compiled."""
        if self._is_of_shoal(found):
            self._notice.stop()

    @staticmethod
    def _is_of_shoal(found: Any) -> bool:
        return str(found.data["dispatcher"].py_func.__module__).startswith("shoal.")


event.register("numba:compile", _Compiling())  # type: ignore[no-untyped-call]
