"""Sparse text, LIBSVM and VW: lines of features, read by compiled scans. The door is `open_sparse_text`."""

from __future__ import annotations

from shoal.files.bad_rows import BadRows
from shoal.files.source import ByteSource
from shoal.files.sparse_text.libsvm import LibsvmReader
from shoal.files.sparse_text.reader import SparseReader
from shoal.files.sparse_text.vw import VWReader
from shoal.files.targets import Labels, State


def open_sparse_text(
    source: ByteSource,
    format: str,
    bad: BadRows,
    labels: Labels,
    features: State | None,
    *,
    task: str | None,
    chunk_rows: int | None,
) -> SparseReader:
    """The reader of a file in "libsvm" or "vw" format; `features` is what an earlier reader saved."""
    if labels.numeric is False:
        raise ValueError(f"labels is {labels.classes}, expected numbers, as the labels of {format} text are")
    labels.numeric = True
    make = LibsvmReader if format == "libsvm" else VWReader
    return make(source, bad, labels, task=task, chunk_rows=chunk_rows, **(features or {}))


__all__ = ["open_sparse_text"]
