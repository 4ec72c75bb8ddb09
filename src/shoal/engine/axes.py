"""Marks for the axes of a state's arrays, in the annotations of its fields: see `shoal.model.state`."""

from typing import Final, NamedTuple


class Axis(NamedTuple):
    """The things that an axis of an array counts."""

    counts: str


TASK: Final = Axis("task")
FEATURE: Final = Axis("feature")
ROW: Final = Axis("stored row")  # its length is the state's own: neither tasks nor features tell it
OTHER: Final = Axis("other")
LATER: Final = Axis("came later")  # no axis: files saved before this array came do not hold it, which means a blank one
INFINITE: Final = Axis("may be infinite")  # no axis: the array may hold infinities (logarithms of zero)
