"""An algorithm is a value: its hyper-parameters, its state and its kernels, at the foot of its file.

Nothing here is a base class, and nothing overrides anything. `Core` runs an algorithm and owns its state.
"""

from collections.abc import Callable, Iterable
from typing import Any, Concatenate, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.rounds import Rounds
from shoal.engine.rows import TASKS
from shoal.model.explanations import Parts
from shoal.model.parameters import Params, Readers

State: TypeAlias = Any  # of any algorithm, where code serves several
Settings: TypeAlias = Any  # a named tuple of numbers and arrays that kernels take

FAILED = -1  # returned by a learn kernel where `Chunks.failure` has happened

ONE_STEP = "a mistake makes one step of a fixed size, and its paper has no meaning for a part of that"


class Counted(Protocol):
    """A state: a named tuple of arrays, see `shoal.model.state`, whose last field is `counters`."""

    @property
    def counters(self) -> IntArray:
        """Tasks, rounds, features."""


S = TypeVar("S", bound=Counted)  # an algorithm's own state
Learn: TypeAlias = Callable[Concatenate[Rounds, Any, Any, FloatArray, ...], int]  # of (rounds, settings, state, out)
Decide: TypeAlias = Callable[Concatenate[Rounds, Any, Any, FloatArray, ...], None]  # of the same


class Setup(NamedTuple):
    """Hyper-parameters."""

    params: Params  # as the user gave them, checked
    settings: Settings  # the part that kernels take


class Size(NamedTuple):
    """The capacity of a state."""

    tasks: int
    features: int


class Piece(NamedTuple):
    """Some rows of a chunk, ready for a kernel."""

    first: int  # rows of the chunk from this one
    last: int  # up to, not with, this one
    rounds: Rounds
    settings: Settings
    changes: dict[str, Any]  # new values of fields of the state before these rows
    more: tuple[Any, ...] = ()  # that the kernels take after `out`


Row: TypeAlias = tuple[dict[str, Any], tuple[Any, ...]]  # `changes` and `more` of one row, to make no piece for it


class Exchange(NamedTuple):
    """How copies of a state that learned different tasks become one again: what to do with each shared array."""

    mean: tuple[str, ...] = ()  # over the copies that moved the entry: of weights, which each copy moves
    sum: tuple[str, ...] = ()  # of what each copy added: of counts, and sums over rows
    local: tuple[str, ...] = ()  # each copy keeps its own
    sums_within: tuple[tuple[str, tuple[int, ...]], ...] = ()  # of an array of `mean`, the last indices of such sums
    settle: Callable[[Setup, Any], None] | None = None  # tasks do what they owe to shared arrays, before these change
    recount: Callable[[Setup, Any], None] | None = None  # recomputes counts after shared arrays have changed


def count_tasks(setup: Setup, state: Counted, n_tasks: int) -> None:
    """Tasks enter; nothing else depends on their number."""
    state.counters[TASKS] = n_tasks


def nothing(setup: Setup, state: Counted, k: int) -> None:
    """Nothing of the other tasks depends on task k."""


def doubled(setup: Setup, have: Size, need: Size) -> Size:
    """At least twice the capacity in what has to grow, so that growth is amortised."""
    return Size(*(old if new <= old else max(new, 2 * old) for old, new in zip(have, need, strict=True)))


def as_needed(setup: Setup, have: Size, need: Size) -> Size:
    """No spare capacity for features, for states that are square in them."""
    return Size(max(have.tasks, need.tasks), max(have.features, need.features))


def as_it_is(state: State) -> State:
    """Kernels see the named tuple."""
    return state


def never(params: Params) -> bool:
    """Valid rows are learned."""
    return False


def no_names(params: Params) -> list[Any]:
    """Tasks may have any ids."""
    return []


class Tasks(NamedTuple, Generic[S]):
    """How tasks come and go."""

    named: Callable[[Params], list[Any]] = no_names  # tasks that the hyper-parameters name; no others may come
    enter: Callable[[Setup, S, int], None] = count_tasks  # declared tasks; kernels do the same at a first row
    leave: Callable[[Setup, S, int], None] = nothing  # make the others independent of a task, before it is removed
    left: Callable[[Setup, S, int], None] = nothing  # after it was removed; the tasks that remain


class Storage(NamedTuple, Generic[S]):
    """How a state grows, and what is saved of it."""

    capacity: Callable[[Setup, Size, Size], Size] = doubled
    grow: Callable[[Setup, S, Size], S] | None = None  # None: the leading block of each array of a new state
    extend: Callable[[Setup, S, Size, Rounds], S] | None = None  # a kernel stopped: rounds did not fit
    pack: Callable[[Setup, S, Size], Any] | None = None  # the state as it is saved; None: without spare capacity
    unpack: Callable[[Setup, Any, Size], S] | None = None  # its inverse
    blank: Callable[[Setup, Size], Any] | None = None  # an empty `pack`, None: that of an empty state
    check: Callable[[Setup, Any, Size], None] | None = None  # raise ValueError unless saved numbers are in range:
    # those that a kernel indexes with, divides by or takes the root of; tests/test_forged_files.py tries them


class Chunks(NamedTuple, Generic[S]):
    """How a chunk becomes rounds, and how they are learned."""

    simultaneous: bool = False  # rows of different tasks form a round unless `rounds=` is given
    seen: Callable[[S], Any] = as_it_is  # the form of the state that kernels and `pieces` take, made once for each
    pieces: Callable[[Setup, Any, Rounds, bool], Iterable[Piece]] | None = None  # None: as a whole
    row: Callable[[Setup, Any, Rounds, bool], Row] | None = None  # the same of one row; None: a piece of it
    run: Callable[[Callable[..., int], tuple[Any, ...], Rounds, Setup], int] | None = None  # calls the learn kernel,
    # maybe in threads, with `Piece.more` or its own; a single row is learned without it
    failure: str = ""  # the error if the learn kernel returns FAILED
    may_fail: Callable[[Params], bool] = never  # may learning valid rows raise? The chunk is then rolled back


class Explain(NamedTuple, Generic[S]):
    """Why a row is decided so, see `shoal.model.explanations`, and how surely."""

    linear: bool = True  # is `decide` a sum over the features of a row?
    confidence: Decide | None = None  # |f| less the doubt of a row, for label queries
    shared: Decide | None = None  # the part of `decide` that all tasks share; None: the decision for an unseen task
    contributions: Callable[[Setup, S, IntArray, IndexArray, FloatArray | None], Parts] | None = None  # of features
    # to the decisions of tasks where `decide` is no such sum: in a row of these values, or (None) of 1 in a usual row
    likeness: Callable[[S, int, int], FloatArray] | None = None  # of task k to the first n, as it was learned


class Algorithm(NamedTuple, Generic[S]):
    """The parts of an algorithm. Its functions see hyper-parameters, rounds and state, and nothing above them.

    `learn` learns rounds in order; `out`, unless it is empty, gets a round's decisions before any of it is learned. It
    returns how many rounds it has learned: all of them; fewer, if the state has to be extended before the next
    (`Storage.extend`); or FAILED.
    """

    parameters: Readers  # the range of each hyper-parameter
    settings: Callable[[Params], Settings]
    allocate: Callable[[Setup, Size], S]  # the state of a learner that has seen nothing
    learn: Learn
    decide: Decide  # answer each row; a task of -1 has not been seen
    exchange: Exchange | str  # how copies of the state merge, or the reason why they cannot
    no_weights: str  # why rows cannot have weights, or "" if the learn kernel reads `rounds.weight`
    retune: Callable[[Setup, Setup, S], None] | None = None  # hyper-parameters changed after the first row
    tasks: Tasks[S] = Tasks[Any]()
    storage: Storage[S] = Storage[Any]()
    chunks: Chunks[S] = Chunks[Any]()
    explain: Explain[S] = Explain[Any]()
