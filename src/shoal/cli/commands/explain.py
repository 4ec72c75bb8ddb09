"""`shoal explain`: a saved model's strongest features, its most similar tasks, and the reasons for single forecasts."""

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix, vstack
from sklearn.base import is_classifier

from shoal.cli.commands.learners import modules_from_here, nearest
from shoal.cli.options import ExplainOptions, RowOptions
from shoal.cli.outputs import check_folder
from shoal.cli.streams import DATASET, in_ids_of, is_dataset, read_options, reading_of, title
from shoal.engine.arrays import IntArray
from shoal.engine.rounds import Chunk
from shoal.files import open_stream
from shoal.files.messages import plural
from shoal.files.opening import saved_without_words
from shoal.files.options import CONSTANT
from shoal.files.stream import FileStream
from shoal.learner import Learner, model_of, view
from shoal.model.explanations import MOST_TASKS, UNSEEN, Explanation, strongest, table, with_rest
from shoal.model.features import Features
from shoal.model.importances import MOST_ROWS, changes
from shoal.model.slicing import as_wide
from shoal.model_file import Reading, load_named
from shoal.tabular.since import Since, column_of_times
from shoal.tabular.table_model import TableModel

WEIGHT_TITLES = ("spread", "shared", "own", "total")
N_ALIKE = 5
N_TASKS, N_COLUMNS = 5, 4  # of which columns are named, and how many
WIDEST = 40  # characters of a task's name
OF_ROWS = ("importance", "dependence")


def explain_model(data: Sequence[str], options: ExplainOptions) -> None:
    """The whole command."""
    for option, value in (("--rows", options.rows), ("--top", options.top)):
        if value < 1:
            raise ValueError(f"{option} must be 1 or more, got {value}")
    with modules_from_here():
        learner, reading, names_of = load_named(options.model, options.trusted)
    known = cache(names_of)

    def names(j: int) -> Any:
        return known()[j] if j < len(known()) else j

    of_rows = next((name for name in OF_ROWS if getattr(options, name)), None)
    if of_rows and not data:
        raise ValueError(f"--{of_rows} is the mean over rows: name a file of them")
    if options.since and not options.importance:
        raise ValueError("--since compares two parts of a file by --importance: give both")
    if options.export and not of_rows:
        raise ValueError("--export writes the table of --importance or --dependence: give one")
    check_folder("--export", options.export)
    if not data:
        _explain_weights(learner, names, [] if reading is None else saved_without_words(reading.state), options)
    elif options.dependence or options.since:
        if reading is None or is_dataset(data):
            raise ValueError("--dependence and --since take a file, and the model of a table")
        table = TableModel.loaded(learner, reading)
        rows = _open(data, learner, reading, options, _times(table, options))
        (_explain_dependence if options.dependence else _explain_changes)(data, table, rows, options)
    else:
        rows = _open(data, learner, reading, options)
        if options.importance:
            _explain_columns(data, learner, rows, names, options)
        elif isinstance(rows, FileStream) and rows.is_table and reading is not None:
            _explain_table(data, TableModel.loaded(learner, reading), rows, options)
        else:
            _explain_rows(data, learner, rows, names, options)


def _open(
    data: Sequence[str], learner: Learner, reading: Reading | None, options: ExplainOptions, keep: Sequence[str] = ()
) -> Any:
    """The rows, read as the model takes them, and columns to keep as they are."""
    if is_dataset(data):
        from shoal.datasets import load

        found = load(data[0].removeprefix(DATASET))
        if found.X.shape[1] != learner.n_features_in_:
            raise ValueError(f"{data[0]} has {found.X.shape[1]} features, but the model {learner.n_features_in_}")
        return found.stream()
    rows = RowOptions(format=options.format)
    reading = reading_of(data, rows, options.model, learner, reading)
    read = read_options(rows, reading, labeled=False, keep=list(keep))
    stream = open_stream(list(data), read, state=reading.state)
    return stream if stream.is_table else in_ids_of(learner, stream)


# ---- weights -----------------------------------------------------------------------------------------------


def _explain_weights(
    learner: Learner, names: Callable[[int], Any], texts: Sequence[str], options: ExplainOptions
) -> None:
    """The features that matter most; `texts` are columns whose words have no names."""
    tasks = learner.tasks_
    one_task = options.task is None and len(tasks) == 1
    k = 0 if one_task else UNSEEN if options.task is None else _task_number(options.task, tasks)
    of = "" if one_task else " in all tasks" if k == UNSEEN else f" in task {_short(tasks[k])}"
    shown: list[str] = []
    for label, core in _chosen(learner.deciding_cores(), options.class_).items():
        found = strongest(core, k, learner.n_features_in_, names, options.top + 1)
        found = [one for one in found if one.feature != CONSTANT][: options.top]
        shown += [str(one.feature) for one in found]
        what = "forecasts" if label is None else f"decisions for {_written(label)}"
        print(f"what moves {what} most{of}")
        if found:
            print("\n".join(table(found, titles=WEIGHT_TITLES)))
            print("total is what the feature adds where it has its spread (1 if that is not known)\n")
        else:
            print(
                "nothing: all weights are 0" + (", for tasks share none; --task names one\n" if k == UNSEEN else "\n")
            )
    if word := next((name for name in shown if name.startswith(tuple(f"{text}#" for text in texts))), None):
        print(f"{word} is a word or a pair of words; a model trained with --keep-names (keep_names=True) says which\n")
    if k == UNSEEN:
        some = ", ".join(map(_short, tasks[:5])) + ", ..." * (len(tasks) > 5)
        print(f"{plural(len(tasks), 'task')} ({some}): --task explains one")
    elif len(tasks) > 1:
        _print_alike(learner, tasks[k])


def _print_alike(learner: Learner, task: Any) -> None:
    alike = learner.similar_tasks(task, N_ALIKE)
    if not alike:
        print("no task is alike: the task, or every other, has no weights of its own")
        return
    width = max(len(_short(other)) for other, _ in alike)
    print("tasks most alike" + (f", of {MOST_TASKS} drawn at random" if len(learner.tasks_) > MOST_TASKS else ""))
    for other, similarity in alike:
        print(f"  {_short(other):<{width}}{similarity:>9.3f}")


def _task_number(task: str, tasks: list[Any]) -> int:
    """The number of a task that the user wrote as text."""
    written = {str(known): k for k, known in enumerate(tasks)}
    if task not in written:
        raise ValueError(f"the model has no task {task!r}{nearest(task, list(written))}")
    return written[task]


def _chosen(cores: dict[Any, Any], label: str | None) -> dict[Any, Any]:
    if label is None:
        return cores
    found = {known: core for known, core in cores.items() if _written(known) == label}
    if not found:
        raise ValueError(f"--class {label}: expected one of {', '.join(map(_written, cores))}")
    return found


# ---- rows of a table ---------------------------------------------------------------------------------------


def _explain_table(data: Sequence[str], table: TableModel, stream: FileStream, options: ExplainOptions) -> None:
    label = None if options.class_ is None else next(iter(_chosen(table.learner.deciding_cores(), options.class_)))
    known, shown = set(table.learner.tasks_), 0
    for row, i, chunk in islice(_rows_of(stream, options.task), options.rows):
        found = table.reasons_of(chunk, i, stream.meanings(i), label)
        task = None if chunk.task is None else chunk.task[i]
        print(f"row {row:,}{_of_task(task, known)}: {found.text(options.top + 3)}\n")
        shown += 1
    if shown == 0:
        raise _no_rows(data, options)


def _rows_of(chunks: Iterable[Chunk], only: str | None) -> Iterator[tuple[int, int, Chunk]]:
    """Number of each row, or of those of one task, its place in its chunk, and the chunk."""
    first = 1
    for chunk in chunks:
        n = chunk.X.shape[0]
        for i in range(n):
            if only is None or (chunk.task is not None and str(chunk.task[i]) == only):
                yield first + i, i, chunk
        first += n


# ---- columns ------------------------------------------------------------------------------------------------------


def _explain_columns(
    data: Sequence[str], learner: Learner, rows: Iterable[Chunk], names: Callable[[int], Any], options: ExplainOptions
) -> None:
    """Contributions of columns in the mean over the first rows, and in the tasks that most of them are of."""
    n = learner.n_features_in_
    X, tasks = _first_rows(data, rows, n, options)
    columns: list[Any] = [None if name == CONSTANT else name for name in map(names, range(n))]
    if isinstance(rows, FileStream) and rows.is_table:
        columns = _columns_of(rows.feature_columns, n)
    found = learner.importances(X, tasks, columns=columns)
    print(f"what moves the forecasts of {found.rows:,} rows most{_in_task(options.task)}\n{found.text(options.top)}")
    print(f"added is {_unit(learner)}, up or down, in the mean; share is its part of what all columns add\n")
    if len(found.by_task) > 1:
        shares = {task: [f"{one.column} {one.share:.0%}" for one in some] for task, some in found.by_task.items()}
        _print_tasks(tasks, shares)
    _export(found, options)


def _explain_changes(data: Sequence[str], table: TableModel, rows: FileStream, options: ExplainOptions) -> None:
    """Contributions of columns before and since a row or a time."""
    n, by_row = table.learner.n_features_in_, str(options.since).isdigit()
    column = next(iter(_times(table, options)), None)
    cut: Since | None = None
    parts, before = [Drawn(), Drawn()], 0
    for chunk in rows:
        frame = rows.kept if column else pl.DataFrame({"row": np.zeros(chunk.X.shape[0])})
        first = int(str(options.since)) if by_row else options.since
        cut = cut or Since(first, column, frame, table.notation)
        after = cut.of(frame, before + 1)
        before += len(after)
        one = options.task
        of_task = np.ones(len(after), bool) if one is None else np.asarray(chunk.task).astype(str) == one
        for part, chosen in zip(parts, (of_task & ~after, of_task & after), strict=True):
            part.update(as_wide(csr_matrix(chunk.X), n), chunk.task, np.flatnonzero(chosen))
    if cut is None or not any(part.n for part in parts):
        raise _no_rows(data, options)
    cut.check(*(part.n for part in parts))
    columns = _columns_of(rows.feature_columns, n)
    first_part, second_part = (table.learner.importances(*part.rows(), columns=columns) for part in parts)
    found = changes(first_part, second_part, options.since)
    of = " and ".join(
        f"{n_rows:,} rows" + (f" drawn of {part.n:,}" if part.n > n_rows else "") + where
        for n_rows, part, where in zip(found.rows, parts, (" before", " since"), strict=True)
    )
    at = f"row {int(str(options.since)):,}" if by_row else f"{options.since} ({column})"
    print(f"what changed since {at} in what moves forecasts{_in_task(options.task)}: {of}\n{found.text(options.top)}")
    print(
        f"before and since are {_unit(table.learner)}, up or down, in the mean; shares are its part of what all add\n"
    )
    if len(found.by_task) > 1:
        texts = {task: [f"{one.column} {one.change:+.3g}" for one in some] for task, some in found.by_task.items()}
        _print_tasks([task for part in parts for task in part.tasks if task in texts], texts)
    _export(found, options)


def _explain_dependence(data: Sequence[str], table: TableModel, rows: FileStream, options: ExplainOptions) -> None:
    """The forecasts of the first rows with a column set to each of its values."""
    X, tasks = _first_rows(data, rows, table.learner.n_features_in_, options)
    label = None if options.class_ is None else next(iter(_chosen(table.learner.deciding_cores(), options.class_)))
    try:
        found = table.dependence(str(options.dependence), X, tasks, label=label)
    except ValueError as error:
        raise ValueError(
            str(error).replace(": say which values to compare (values=)", ", which has none that are typical")
        ) from None
    print(found)
    _export(found, options)


def _unit(learner: Learner) -> str:
    of_labels = "probability" if hasattr(learner, "predict_proba") else "margin"
    return f"what a column adds to the {of_labels if is_classifier(learner) else 'forecast'}"


def _times(table: TableModel, options: ExplainOptions) -> list[str]:
    """The column that --since is about, if it is one."""
    if options.since is None or options.since.isdigit():
        return []
    return [column_of_times(table.roles.time, table.encoder.column_kinds)]


def _first_rows(data: Sequence[str], rows: Iterable[Chunk], n: int, options: ExplainOptions) -> tuple[Any, Any]:
    """Features and tasks of the first rows, or of those of one task."""
    X, tasks = [], []
    for _, i, chunk in islice(_rows_of(rows, options.task), MOST_ROWS):
        X.append(as_wide(csr_matrix(chunk.X[i]), n))
        tasks.append(None if chunk.task is None else chunk.task[i])
    if not X:
        raise _no_rows(data, options)
    return vstack(X, format="csr"), None if tasks[0] is None else tasks


def _columns_of(known: Sequence[Any], n: int) -> list[Any]:
    return [*known[:n], *[None] * (n - len(known))]


def _print_tasks(tasks: Iterable[Any], texts: Mapping[Any, Sequence[str]]) -> None:
    """A line for each of the tasks of most rows."""
    largest = Counter(tasks).most_common(N_TASKS)
    print(f"in the {len(largest)} largest of {len(texts):,} tasks")
    width = max(len(_short(task)) for task, _ in largest)
    for task, _ in largest:
        print(f"  {_short(task):<{width}}  {', '.join(texts[task][:N_COLUMNS])}")


def _export(found: Any, options: ExplainOptions) -> None:
    if options.export:
        from shoal.report import export

        print(f"{len(export(found, options.export))} tables and pictures written to {options.export}")


class Drawn:
    """Rows of a stream, at most 1,000, of which each is as likely as any other: those with the least random numbers."""

    def __init__(self) -> None:
        self.n = 0
        self._random, self._keys = np.random.default_rng(0), np.zeros(0)
        self._X: Any = None
        self.tasks: list[Any] = []

    def update(self, X: Any, task: Any, rows: IntArray) -> None:
        """Take in some of a chunk's rows."""
        self.n += len(rows)
        self._keys = np.append(self._keys, self._random.random(len(rows)))
        self._X = X[rows] if self._X is None else vstack([self._X, X[rows]], format="csr")
        self.tasks += [None] * len(rows) if task is None else [task[i] for i in rows.tolist()]
        if len(self._keys) > MOST_ROWS:
            least = np.sort(np.argpartition(self._keys, MOST_ROWS)[:MOST_ROWS])
            self._keys, self._X, self.tasks = self._keys[least], self._X[least], [self.tasks[i] for i in least.tolist()]

    def rows(self) -> tuple[Any, Any]:
        """Features and tasks."""
        return self._X, None if self.tasks[0] is None else self.tasks


def _in_task(task: str | None) -> str:
    return "" if task is None else f" in task {_short(task)}"


def _no_rows(data: Sequence[str], options: ExplainOptions) -> ValueError:
    return ValueError(f"{title(data)} has no rows" + (f" of task {options.task}" if options.task else ""))


# ---- rows of plain numbers ----------------------------------------------------------------------------------------


def _explain_rows(
    data: Sequence[str], learner: Learner, chunks: Iterable[Chunk], names: Callable[[int], Any], options: ExplainOptions
) -> None:
    label = None if options.class_ is None else next(iter(_chosen(learner.deciding_cores(), options.class_)))
    known, shown = set(learner.tasks_), 0
    n = learner.n_features_in_
    by_name = dict.fromkeys(str(names(j)) for j in range(n))
    if len(by_name) == n:  # pairs of features have their names, too
        model = copy.copy(model_of(learner))
        model.features = Features(n, {name: j for j, name in enumerate(by_name)})
        learner = view(learner, model)
    for row, i, chunk in islice(_rows_of(chunks, options.task), options.rows):
        x, task = _dense(chunk.X[i], learner.n_features_in_), None if chunk.task is None else chunk.task[i]
        explanation = learner.explain_one(x, task, label=label)
        print(f"row {row:,}{_of_task(task, known)}: {_answer(learner, x, task, explanation)}")
        found = [one._replace(feature=_named(one.feature, names)) for one in explanation.contributions]
        print("\n".join(table(with_rest(found, options.top), explanation.decision)) + "\n")
        shown += 1
    if shown == 0:
        raise _no_rows(data, options)


def _dense(row: Any, n_features: int) -> Any:
    """The row as a dense array; features that the model has not learned are left out."""
    if not hasattr(row, "indices"):
        return np.array(row, np.float64)
    x = np.zeros(n_features)
    inside = row.indices < n_features
    x[row.indices[inside]] = row.data[inside]
    return x


def _answer(learner: Any, x: Any, task: Any, explanation: Explanation) -> str:
    if not is_classifier(learner):
        return f"{learner.predict_one(x, task):.4g}"
    text = f"predicted {_written(learner.predict_one(x, task))}"
    if hasattr(learner, "predict_proba_one"):
        chance = learner.predict_proba_one(x, task)[explanation.label]
        text += f", probability of {_written(explanation.label)} {chance:.3f}"
    return text


def _of_task(task: Any, known: set[Any]) -> str:
    if task is None:
        return ""
    return f", task {_short(task)}" + ("" if task in known else " (not seen: explained by what the tasks share)")


def _named(feature: Any, names: Callable[[int], Any]) -> Any:
    return names(feature) if isinstance(feature, int) else feature


def _written(label: Any) -> str:
    """A label as files have it: 1, not 1.0."""
    return f"{label:g}" if isinstance(label, float) else str(label)


def _short(task: Any) -> str:
    text = str(task)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 3]}..."
