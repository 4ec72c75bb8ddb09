"""`--guard`: the learner, guarded so that no task loses by sharing, and the tasks that it would have harmed."""

from typing import Any

from shoal.files.messages import plural
from shoal.learner import Learner
from shoal.wrappers.guarded import Guarded
from shoal.wrappers.inner import wrappers_of
from shoal.wrappers.multi_class import MultiClass

SHOWN = 5  # tasks


def with_guard(learner: Any) -> Guarded:
    """The learner, guarded. Raises ValueError if it has no baseline to be guarded by, or more than two labels."""
    if isinstance(learner, MultiClass) or not isinstance(learner, Learner):
        raise ValueError("--guard takes learners of shoal for numbers or two labels")
    guarded = Guarded(learner)
    guarded.new_core()  # raises now if it shares nothing that could harm
    return guarded


def guard_of(learner: Any) -> Guarded | None:
    """The guard within other wrappers, if there is one."""
    return next((one for one in wrappers_of(learner) if isinstance(one, Guarded)), None)


def harmed(learner: Any) -> list[str]:
    """A sentence on the tasks that sharing alone would have harmed, of a guarded learner."""
    guard = guard_of(learner)
    if guard is None:
        return []
    found = guard.harmed_
    if not found:
        return ["the guard found no task that sharing would have harmed by more than ln 2 nats"]
    some = ", ".join(map(str, found[:SHOWN])) + (", ..." if len(found) > SHOWN else "")
    return [f"without the guard, sharing would have harmed {plural(len(found), 'task')} by more than ln 2 nats: {some}"]
