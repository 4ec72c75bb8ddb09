"""`open_stream`: files of any format and size as an iterator of chunks.

`ReadOptions` declares each option once. `open_stream` takes them as keywords or as one object, which the command line
builds from its own options::

    options = ReadOptions(task="shop,country".split(","), label="sold", kind="auto", decimal=",")
    stream = open_stream(["2023.csv.gz", "2024-*.csv"], options, read_ahead=True)

An example of each option (`s = open_stream(...)`):

=====================================  ===============================================================================
`task=["shop", "country"]`             the values of both columns are the id: "Berlin,DE"
`weight="w"`                           `chunk.weight` is an array; None without the option
`time="when"`, `sort=True`             rows must come in the order of `when`; the file is sorted first
`keep=["id"]`                          `s.kept` is a frame with the ids of the last chunk's rows
`text=["body"]`, `category=["zip"]`    hashed words; one-hot values. By default the first 1,000 rows decide
`numeric=["price"]`                    `$5`, `1,234` and `5 %` are numbers in that column
`date=["at"]`                          times of day such as 10:30 are read
`date_format="%d/%m/%Y"`               dates in that form are dates; others are found where they cannot be mistaken
`delimiter="|"`, `decimal=","`         by default the first lines tell the delimiter, and each column its mark
`encoding="shift_jis"`                 by default UTF-8, UTF-16 or Windows-1252, as the bytes say
`missing=["-", "."]`                     further words for missing values
`kind="auto"`                          `s.kind` is then "binary", "multiclass" or "regression"
`labels=["ham", "spam"]`               other labels are refused
`labeled=False, state=saved`           rows to be predicted: y is None, X as wide as the saved stream's
`skip_bad=True`                        `s.skipped` and `s.bad_rows` count them
`hash_bits=20`                         2^20 features for the words of each text column
=====================================  ===============================================================================

An open stream knows `s.kind`, `s.notes` and `s.rows_total` or `s.total_bytes`. Save `s.to_dict()` with the model and
pass it as `state` to go on with another file.
"""

from collections.abc import Iterable
from typing import Any

from shoal.files.labels import Labels
from shoal.files.messages import BadRows
from shoal.files.options import ReadOptions
from shoal.files.paths import SPARSE, TYPED, Paths, choose_format, find_files
from shoal.files.saved_state import State, check_state, reading_state
from shoal.files.source import STDIN, Sources
from shoal.files.stream import FileStream

ROWS = 10_000  # of a chunk from standard input, whose rows may come slowly


def open_stream(
    path: Paths,
    options: ReadOptions | None = None,
    /,
    *,
    state: State | None = None,
    read_ahead: bool = False,
    **changes: Any,
) -> FileStream:
    """Open a file, or several, as a stream of chunks; it may be larger than memory.

    Columns of tables become features: numbers are scaled by their running mean and variance, categories and parts of
    dates are one-hot, words of texts and pairs of them are hashed to log(1 + how often they occur), missing values (in
    text formats: an empty field, ? and the words of pandas such as NA, #N/A, NULL and None) get an indicator, and the
    first feature is constant. The first 1,000 rows decide the kind of a column: numeric (or a date) if at least nine in
    ten values are (the others are then bad rows); text if most values are distinct and have three words or more on
    average. A number beyond 10 deviations is clipped, and the notes count it; a column that changes level or scale is
    followed. LIBSVM and VW features are taken as they are. Chunks of another size change no value.

    Labels are integers if all labels of the first rows are (also `1.0`, `+1` and `true`). If one is not (`01234`,
    `1.50`), all are strings as they are written. The id of a task is its text; in typed formats a number without a
    fraction has the id of its integer, so 3, 3.0 and "3" are one task.

    Parameters
    ----------
    path : path, pattern such as ``2024-*.csv``, folder, URL, "-" (standard input), or a list of these
        Text may be packed by gzip, bzip2, xz, Zstandard or zip. Several files, in an archive or not, have one format
        and the same columns. NDJSON may be one array of objects instead of an object a line.
        Standard input is CSV unless `format` says otherwise. URLs (s3://, https://) are read by polars.
    options : ReadOptions, optional
        How to read it.
    state : dict, optional
        `to_dict()` of an earlier stream: features, statistics, labels and the roles of columns go on from there.
    read_ahead : bool
        Make the chunks of a table in a thread while the last one is used. Columns, labels and bad rows of the stream
        are then those of all chunks made so far, a few more than were returned.
    **changes
        Options by name, as `ReadOptions` has them.

    Returns
    -------
    FileStream
        An iterator of `shoal.Chunk`: X is a CSR matrix of (rows, features so far), y an array of int64 or str (labels)
        or float64 (targets), None if the rows are not labeled, task an array of str objects or None, weight an array
        or None.

    Raises
    ------
    FileNotFoundError
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
    (3, 5) [0 1 1] ['IAH' 'MIA' 'IAH']
    >>> stream.feature_names
    ['constant', 'hour', 'carrier=UA', 'carrier=AA', 'carrier=missing']
    >>> stream.notes[1]
    'carrier: category, 2 values one-hot, 1 missing'
    """
    options = (options or ReadOptions()).changed(**changes)
    paths = find_files(path)  # before the format: a typo in the path is reported first
    has_columns = options.label is not None or (isinstance(state, dict) and state.get("family") == "table")
    format = choose_format(paths, options.format, has_columns=has_columns)
    family = format if format in SPARSE else "table"
    names = ["standard input" if path == STDIN else path for path in paths]
    labels = _labels(options, state, family, names[0])
    if paths == [STDIN] and options.chunk_rows is None:
        options = options.changed(chunk_rows=ROWS)
    bad = BadRows(names, "row" if format in TYPED else "line", skip=options.skip_bad)
    saved = state["reader"] if state else None
    if format in SPARSE:
        from shoal.files.sparse_text import open_sparse_text

        sources = Sources(paths, options.encoding)
        try:
            lines = open_sparse_text(sources, format, bad, labels, options, saved)
        except BaseException:
            sources.close()
            raise
        return FileStream(lines, labels, bad, family=format, sources=sources)
    from shoal.files.tables import open_table

    table, bytes_of = open_table(paths, format, bad, labels, options, saved, read_ahead=read_ahead)
    return FileStream(table, labels, bad, family="table", sources=bytes_of, rows_total=table.rows_total)


def open_tables(
    tables: Iterable[Any],
    options: ReadOptions | None = None,
    /,
    *,
    state: State | None = None,
    read_ahead: bool = False,
    **changes: Any,
) -> FileStream:
    """Open tables that are in memory, such as batches of a database, of Arrow or of Ray Data, as a stream of chunks.

    Parameters
    ----------
    tables : iterable of polars, pandas or Arrow tables, or of lists of dicts
        They are taken one after the other, and may together exceed memory. All have the columns of the first.
    options, state, read_ahead, changes
        As for `open_stream`.

    Raises
    ------
    ValueError
        A column that is not there, or that a later table has of another type.
    BadRow
        (While iterating.) A row that cannot be read, with its number over all tables.

    Examples
    --------
    >>> tables = [{"dest": "IAH", "hour": 5, "late": 0}], [{"dest": "MIA", "hour": 6, "late": 1}]
    >>> stream = open_tables(tables, task="dest", label="late")
    >>> [(chunk.X.shape, chunk.y.tolist()) for chunk in stream]
    [((2, 2), [0, 1])]
    >>> stream.feature_names
    ['constant', 'hour']
    """
    from shoal.files.tables import open_given

    options = (options or ReadOptions()).changed(**changes)
    if options.format is not None:
        raise ValueError(f"format={options.format!r} is for files; tables have their columns already")
    labels = _labels(options, state, "table", "tables")
    bad = BadRows(["tables"], "row", skip=options.skip_bad)
    saved = state["reader"] if state else None
    return FileStream(
        open_given(tables, bad, labels, options, saved, read_ahead=read_ahead), labels, bad, family="table"
    )


def saved_feature_names(state: State) -> list[str]:
    """Names of the columns of X, from the dict of `FileStream.to_dict`.

    Raises
    ------
    ValueError
        If it is not the state of a stream.
    """
    with reading_state():
        family, reader = state["family"], state["reader"]
        if family == "libsvm":
            from shoal.files.sparse_text.libsvm import index_names

            return index_names(reader["width"], reader["zero"])
        if family == "vw":
            return list(reader["names"])
        check_state(family == "table", "the format")
        from shoal.files.tables.encoder import StreamEncoder  # and with it polars

        return StreamEncoder.from_dict(reader["encoder"]).feature_names


def saved_without_words(state: State) -> list[str]:
    """Columns of text whose words a saved stream has not kept: their features are called `column#number`.

    Raises
    ------
    ValueError
        If it is not the state of a stream.
    """
    with reading_state():
        if state["family"] != "table":
            return []
        texts = state["reader"]["encoder"]["texts"]
        return [] if "words" in texts else list(texts["names"])


def _labels(options: ReadOptions, state: State | None, family: str, name: str) -> Labels:
    """The labels by the options or by the state of an earlier stream. Raises ValueError."""
    if state is None:
        return Labels(options.kind, options.labels, as_text=options.label in options.category)
    check_state(isinstance(state, dict) and {"family", "labels", "reader"} <= state.keys(), "parts of it are missing")
    if state["family"] != family:
        raise ValueError(f"{name} is read as {family}, but the saved state is of {state['family']}: formats differ")
    labels = Labels.from_dict(state["labels"])
    labels.asked |= options.kind == "multiclass"
    if options.labels is not None:
        labels.check_given(options.labels)
    return labels
