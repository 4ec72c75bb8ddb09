"""Sparse text, LIBSVM and VW: lines of features, read by compiled scans. The door is `open_sparse_text`.

Reading order: `reader` (common to both formats), `libsvm` or `vw` (a scan and a parser each), then the parts of the
scans: `scan` (rows under construction), `bytes`, `numbers`, `names`. The parser of each format is the plain twin of its
scan; tests/files/sparse_text holds both to the same rows.
"""

from shoal.files.ids import id_of
from shoal.files.labels import Labels
from shoal.files.messages import BadRows
from shoal.files.options import ReadOptions
from shoal.files.saved_state import State, check_state
from shoal.files.source import Sources
from shoal.files.sparse_text.libsvm import LARGEST_INDEX, LibsvmReader
from shoal.files.sparse_text.reader import SparseReader
from shoal.files.sparse_text.vw import VWReader

TABLE_OPTIONS = ("label", "weight", "time", "keep", "text", "category", "numeric", "date", "ignore", "sort")


def open_sparse_text(
    sources: Sources, format: str, bad: BadRows, labels: Labels, options: ReadOptions, state: State | None = None
) -> SparseReader:
    """The reader of files in "libsvm" or "vw" format; `state` is the `to_dict` of an earlier reader."""
    named = [name for name in TABLE_OPTIONS if getattr(options, name)]
    if named:
        raise ValueError(
            f"{bad.name} is {format} text without columns: leave out {' and '.join(f'{name}=' for name in named)}"
        )
    if not labels.numeric and not all(map(_is_number, labels.classes)):
        raise ValueError(f"labels={labels.classes}, expected numbers, as the labels of {format} text are")
    if state is not None:
        _check(format, state)
    make = LibsvmReader if format == "libsvm" else VWReader
    frozen = state is not None and not options.labeled
    return make(sources, bad, labels, options, frozen=frozen, **(state or {}))


def _is_number(text: str) -> bool:
    """Whether the text is the id of a number."""
    try:
        return id_of(float(text)) == text
    except ValueError:
        return False


def _check(format: str, state: State) -> None:
    if format == "libsvm":
        check_state(isinstance(state, dict) and state.keys() - {"from_one"} == {"width", "zero"}, "width")
        width, zero = state["width"], state["zero"]
        check_state(type(width) is int and 0 <= width <= LARGEST_INDEX, "width")
        return check_state(zero is None or (type(zero) is int and 0 <= zero < width), "column of feature 0")
    names = state.get("names") if isinstance(state, dict) and len(state) == 1 else None
    right = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return check_state(right and len(set(names or [])) == len(names or []), "names of features")


__all__ = ["open_sparse_text"]
