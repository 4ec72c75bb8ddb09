"""`open_stream`: a file of any format and size as an iterator of chunks."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import Any

from shoal.files.bad_rows import BadRows
from shoal.files.formats import SPARSE, TYPED, choose_format
from shoal.files.source import STDIN, ByteSource, check_exists
from shoal.files.stream import FileStream
from shoal.files.targets import Labels, State, Target

ROWS = 10_000  # of a chunk from standard input, which may come slowly


def open_stream(
    path: str | os.PathLike[str],
    *,
    task: str | None = None,
    label: str | None = None,
    kind: Target = "binary",
    format: str | None = None,
    chunk_rows: int | None = None,
    skip_bad: bool = False,
    text: Collection[str] = (),
    numeric: Collection[str] = (),
    ignore: Collection[str] = (),
    labels: Sequence[Any] | None = None,
    state: State | None = None,
    ahead: bool = False,
) -> FileStream:
    """Open a file as a stream of chunks; it may be larger than memory.

    Columns of tables become features as `TableEncoder` says: numbers are scaled by their running mean and
    variance, text and parts of dates are one-hot, missing values (in text formats: an empty field, NA, N/A,
    NaN, nan, null, None or ?) get an indicator, and the first feature is constant. The first 1,000 rows
    decide what a column is: numeric (or a date) if at least nine in ten of its values are, the others are
    then bad rows. LIBSVM and VW features are taken as they are. Chunks of another size change no value.

    Parameters
    ----------
    path : path or "-"
        The file, or "-" for standard input (CSV unless `format` says otherwise; not Parquet or Arrow).
    task : str, optional
        Tables: the column of the task ids. LIBSVM: "qid" (the default where the file has it) or the index of
        a feature. VW: a namespace. Without it all rows belong to one task. Ids are given as strings.
    label : str
        Tables: the column of the labels. LIBSVM and VW have the label at the start of the line.
    kind : "binary" or "regression"
        Two labels, numbers or text, or a real number.
    format : str, optional
        One of `FORMATS`; by default the ending of the file name says it.
    chunk_rows : int, optional
        Rows of a chunk; by default 10,000 of standard input, and of a file at most 30,000: as many as have 600,000
        fields (and 1,000 at least), or, in LIBSVM and VW text, about 500,000 features.
    skip_bad : bool
        Count bad rows (`skipped`, `bad_rows`) instead of raising `BadRow` at the first.
    text, numeric, ignore : collections of str
        Columns to read as text, as numbers, or not at all.
    labels : two values, optional
        The two labels; by default the first two that appear.
    state : dict, optional
        `to_dict()` of an earlier stream: features, statistics and labels go on from there.
    ahead : bool
        Make the chunks of a table in a thread while the last one is used. What the stream says of columns, labels and
        bad rows is then that of the chunks made, a few more than those given, until the end.

    Returns
    -------
    FileStream
        An iterator of `shoal.Chunk`: X is a CSR matrix of (rows, features so far), y an array of
        float64 or str, task an array of str objects or None.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        No such file.
    ValueError
        An unknown format, a damaged file, a column that is not there.
    BadRow
        (While iterating.) A row that cannot be read, with its line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "flights.csv")
    >>> _ = path.write_text("dest,hour,carrier,late\\nIAH,5,UA,0\\nMIA,6,AA,1\\nIAH,7,,1\\n")
    >>> stream = open_stream(path, task="dest", label="late")
    >>> for chunk in stream:
    ...     print(chunk.X.shape, chunk.y, chunk.task)
    (3, 5) [0. 1. 1.] ['IAH' 'MIA' 'IAH']
    >>> stream.feature_names
    ['constant', 'hour', 'carrier=UA', 'carrier=AA', 'carrier=missing']
    >>> stream.notes[1]
    'carrier: text, 2 values one-hot, 1 missing'
    """
    path = os.fspath(path)
    if chunk_rows is not None and chunk_rows < 1:
        raise ValueError(f"chunk_rows is {chunk_rows}, expected at least 1")
    if path != STDIN:
        check_exists(path)  # before the options, so that a typo in it is reported first
    format = choose_format(path, format)
    family = format if format in SPARSE else "table"
    if state is not None and state["family"] != family:
        raise ValueError(f"{path} is read as {family}, but the saved state is of {state['family']}: formats differ")
    target = Labels.from_dict(state["labels"]) if state else Labels(kind, labels)
    features = state["features"] if state else None
    bad = BadRows("standard input" if path == STDIN else path, "row" if format in TYPED else "line", skip=skip_bad)
    if format in SPARSE:
        if label or text or numeric or ignore:
            raise ValueError(f"{bad.name} is {format} text without columns: leave out label, text, numeric and ignore")
        return _open_sparse_text(path, format, bad, target, features, task=task, chunk_rows=chunk_rows)
    if label is None:
        raise ValueError(f"{bad.name} is a table: label is missing, expected the column of the labels")
    return _open_table(
        path, format, bad, target, features,
        task=task, label=label, text=text, numeric=numeric, ignore=ignore, chunk_rows=chunk_rows,
        ahead=ahead,
    )  # fmt: skip


def _open_sparse_text(
    path: str, format: str, bad: BadRows, labels: Labels, features: State | None, **options: Any
) -> FileStream:
    from shoal.files.sparse_text import open_sparse_text

    source = ByteSource(path)
    if options["chunk_rows"] is None and source.is_standard_input:
        options["chunk_rows"] = ROWS
    try:
        reader = open_sparse_text(source, format, bad, labels, features, **options)
    except BaseException:
        source.close()
        raise
    return FileStream(reader, labels, bad, family=format, source=source)


def _open_table(
    path: str, format: str, bad: BadRows, labels: Labels, features: State | None, **options: Any
) -> FileStream:
    from shoal.files.tables import open_table

    source = ByteSource(path) if format not in TYPED else None
    if options["chunk_rows"] is None and source is not None and source.is_standard_input:
        options["chunk_rows"] = ROWS
    try:
        reader = open_table(path, source, format, bad, labels, features, **options)
    except BaseException:
        if source is not None:
            source.close()
        raise
    return FileStream(reader, labels, bad, family="table", source=source, rows_total=reader.rows_total)
