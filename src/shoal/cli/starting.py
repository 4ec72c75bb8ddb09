"""What makes the program start fast, and what it says when the first run ever cannot."""

from __future__ import annotations

import atexit
import gc
import importlib.util
import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.engine.rounds import Chunk
    from shoal.learner import Learner

UNUSED = ("scipy.stats", "pandas")  # scikit-learn imports them for functions that are hardly ever called
COMPILING = "compiling for this computer: up to a minute, once"
FEW_ROWS = 64  # enough for every branch that looks at the number of rows


class _Deferred(ModuleType):
    """A module that is loaded when something is sought in it. (The standard LazyLoader loads at every import.)"""

    def __getattr__(self, name: str) -> Any:
        self.__class__ = ModuleType  # type: ignore[assignment]
        assert self.__spec__ is not None
        assert self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def defer(names: tuple[str, ...] = UNUSED) -> None:
    """Load these modules when something is sought in them, not when they are imported: a third of the start-up time."""
    for name in names:
        spec = None if name in sys.modules else importlib.util.find_spec(name)
        if spec is not None:
            sys.modules[name] = module = _Deferred(name)
            module.__spec__, module.__file__, module.__package__ = spec, spec.origin, name
            module.__path__ = spec.submodule_search_locations or []


def collect_later() -> None:
    """Garbage is not collected before `collect`, nor when the program ends: it takes a third of a short run's time.

    Modules refer to themselves in many ways, and whenever some more are loaded, all are looked through for nothing.
    """
    gc.disable()
    atexit.register(gc.freeze)  # what is frozen is not looked at


def collect() -> None:
    """From now on garbage is collected, except for what is there: modules, which stay."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


@contextmanager
def announced_compiling() -> Iterator[None]:
    """Say so, on stderr, if a function of ours is compiled and not found on disk."""
    from numba.core import event

    class Announcement(event.Listener):
        said = False

        def on_start(self, found: event.Event) -> None:
            module = found.data["dispatcher"].py_func.__module__
            if not self.said and module.startswith("shoal."):
                self.said = True
                print(COMPILING, file=sys.stderr, flush=True)

        def on_end(self, found: event.Event) -> None:
            pass

    with event.install_listener("numba:compile", Announcement()):
        yield


class Helper:
    """A second process that compiles the main learner's loops for both, once the first has to compile the reader.

    Within a process the compiler does one thing at a time; what the helper compiles, the first finds on disk.

    Attributes
    ----------
    others : dict
        Learners of another kind, with other loops: baselines, for the first process to compile meanwhile.
    """

    def __init__(self, learners: Mapping[str, Learner]) -> None:
        self._learner = next(iter(learners.values()))
        self.others = {name: other for name, other in learners.items() if type(other) is not type(self._learner)}
        self._process: subprocess.Popen[bytes] | None = None

    @contextmanager
    def ready(self) -> Iterator[Helper]:
        """The helper, to be called when the reader is compiled; it ends with the block."""
        from numba.core import event

        helper = self

        class Call(event.Listener):
            def on_start(self, found: event.Event) -> None:
                if found.data["dispatcher"].py_func.__module__.startswith("shoal.files."):
                    helper.start()

            def on_end(self, found: event.Event) -> None:
                pass

        with event.install_listener("numba:compile", Call()):
            try:
                yield self
            finally:
                if self._process is not None:
                    self._process.kill()
                    self._process.wait()

    @property
    def started(self) -> bool:
        """Was there something to compile?"""
        return self._process is not None

    def start(self) -> None:
        """Begin, unless it has begun or there is one core only."""
        from sklearn.base import clone

        from shoal.parallel.cores import n_cores

        if self._process is None and n_cores() > 1:
            code = "from shoal.cli.starting import compile_loops; compile_loops()"
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            assert self._process.stdin is not None
            new = clone(self._learner)  # what a loaded model knows may be large
            with suppress(OSError), self._process.stdin as pipe:  # if it died, this process compiles all itself
                pickle.dump(new, pipe)

    def wait(self) -> None:
        """Until it is done, or has failed."""
        if self._process is not None:
            self._process.wait()


def compile_loops() -> None:
    """The helper's work: a new learner, on standard input, learns two rows."""
    import numpy as np

    with suppress(ValueError):  # such as tasks that a relation does not name: then the first process compiles
        pickle.load(sys.stdin.buffer).test_then_train(np.eye(2), np.array([-1.0, 1.0]), np.arange(2))


def warmed(
    chunks: Iterator[Chunk], learners: Mapping[str, Learner], helper: Helper | None = None, **options: Any
) -> Iterator[Chunk]:
    """The chunks; before the first, clones of the learners meet a few of its rows, so that no clock counts compiling.

    Parameters
    ----------
    helper : who may be compiling the learners' loops already
    options :
        Of `progressive_validate`.
    """
    for first in chunks:
        if helper is not None and helper.started:
            if helper.others:
                warm_up(first, helper.others, **options)
            helper.wait()
        warm_up(first, learners, **options)
        yield first
        break
    yield from chunks


def warm_up(chunk: Chunk, learners: Mapping[str, Learner], **options: Any) -> None:
    """Compile, or load, what the learners need for rows of this kind; they stay as they are."""
    import numpy as np
    from sklearn.base import clone, is_classifier

    from shoal.engine.rounds import Chunk
    from shoal.evaluation import progressive_validate
    from shoal.evaluation.stream import rows_of

    if options.get("classes") is None and all(is_classifier(learner) for learner in learners.values()):
        labels = np.unique(np.asarray(chunk.y))
        options["classes"] = labels if len(labels) == 2 else None
    few = Chunk(*(rows_of(part, 0, FEW_ROWS) for part in chunk))
    try:
        progressive_validate({name: clone(learner) for name, learner in learners.items()}, [few], **options)
    except ValueError:  # such as a first label of unknown kind: the run itself will say what is wrong
        return
