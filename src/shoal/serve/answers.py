"""Predictions of the model as it is now. Single rows are read without making a frame."""

import random
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from shoal.files.ids import id_of
from shoal.files.tables.encode_one import Row, Unread
from shoal.learner import Classifier, logistic, model_of
from shoal.model.explanations import most_alike
from shoal.model.slicing import as_wide
from shoal.online.hedged_sharing.learner import by_sharing
from shoal.serve import promises
from shoal.serve.apply import Fold, Group
from shoal.serve.contract import Answer, Fault, Refused, Rows, UnknownTask, Worth
from shoal.serve.row_codec import from_dicts
from shoal.serve.served_model import ServedModel, part_of
from shoal.tabular.reasons import Reasons
from shoal.wrappers.label_query import LabelQuery, ask_within
from shoal.wrappers.multi_class import MultiClass

ROWS_A_TURN = 512  # predicted before learning has its turn again
N_SIMILAR = 5
MOST_EXPLAINED = 100  # rows of a request
MOST_LATEST, LATEST_OF_TABLE = 1_000, 20  # tasks, and rows of a table, of which the latest is kept for its reasons
BUDGET = 0.1  # share of labels; a LabelQuery has its own


class Query:
    """Advice which labels to ask for, by the margin rule of `LabelQuery`. Neither the model nor the log knows of it."""

    def __init__(self, budget: float) -> None:
        self._budget, self._log_b = budget, 0.0
        self._random, self._lock = random.Random(0), threading.Lock()
        self.asked = 0  # labels

    def wants(self, margin: float) -> bool:
        """Whether to ask for the label of a row of this margin."""
        with self._lock:
            wanted, self._log_b = ask_within(self._budget, margin, self._log_b, lambda p: self._random.random() < p)
            self.asked += wanted
        return wanted


class Answers:
    """Predictions of a model that learns meanwhile."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        learner = fold.served.learner
        self._query = Query(float(learner.budget) if isinstance(learner, LabelQuery) else BUDGET)
        self._latest: OrderedDict[str | None, Rows | Mapping[str, Any]] = OrderedDict()  # by task, the newest last

    def of(self, rows: Rows) -> list[Answer]:
        """Answers in the order of the rows. Raises Refused."""
        fold, (served, readers) = self._fold, self._fold.live
        chunk = served.rows_of(rows, readers.table)
        note, found = served.note(rows.frame), list[Answer]()
        for first in range(0, chunk.X.shape[0], ROWS_A_TURN):
            part = part_of(chunk, first, first + ROWS_A_TURN)
            with fold.turns.answering():
                predictions = served.predict(part)
            n = len(predictions.predicted)
            tasks = predictions.task or [None] * n
            chances = [None] * n if predictions.probability is None else predictions.probability.tolist()
            known = [True] * n if predictions.is_known is None else predictions.is_known
            predicted = served.labels.as_written(predictions.predicted)
            answers = [Answer(None, *one) for one in zip(tasks, predicted, chances, known, strict=True)]
            if predictions.interval is not None:
                ends = zip(answers, predictions.interval.tolist(), strict=True)
                answers = [answer._replace(low=low, high=high) for answer, (low, high) in ends]
            if predictions.labels is not None:
                sets = zip(answers, predictions.labels, strict=True)
                answers = [answer._replace(set=served.labels.as_written(labels)) for answer, labels in sets]
            if predictions.quantiles is not None:
                names, by_row = list(predictions.quantiles), np.column_stack([*predictions.quantiles.values()]).tolist()
                levels = (dict(zip(names, values, strict=True)) for values in by_row)
                answers = [answer._replace(quantiles=one) for answer, one in zip(answers, levels, strict=True)]
            found += answers
        found[0] = found[0]._replace(note=note)
        for i in range(max(0, len(found) - LATEST_OF_TABLE), len(found)):
            self._keep(found[i].task, Rows(rows.frame[i : i + 1], rows.strings))
        return found

    def of_each(self, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The answer to each row, or its error; the rows are of different requests."""
        found: list[Any] = [None] * len(rows)
        places: list[int] = []
        tasks: list[str | None] = []
        read: list[Row] = []
        served, readers = self._fold.live
        one_row, learner = readers.one_row, served.learner
        for i, row in enumerate(rows):
            try:
                task = _task_of(row, served)
                read.append(one_row.read(row))
            except Unread:  # needs a frame, or is at fault
                try:
                    found[i] = self.of(from_dicts([row]))[0]
                except Exception as error:  # any error is of this row only
                    found[i] = error
            except ValueError as error:  # its columns, where they must be those of the model
                found[i] = Refused(Fault(None, None, str(error)))
            else:
                places.append(i)
                tasks.append(task)
        if not places:
            return found
        with self._fold.turns.answering():
            decisions = learner.decide_sparse(read, tasks)
            known = [task is None or learner.knows_task(task) for task in tasks]
        labels = served.labels.as_written(learner.classes_.tolist())
        chances, has_probabilities = logistic(decisions), hasattr(learner, "predict_proba")
        for i, task, decision, chance, is_known in zip(
            places, tasks, decisions.tolist(), chances.tolist(), known, strict=True
        ):
            probability = chance if has_probabilities else None
            self._keep(task, rows[i])
            found[i] = Answer(None, task, labels[int(decision >= 0.0)], probability, is_known, one_row.note(rows[i]))
        return found

    def explain(self, rows: Rows) -> list[Reasons]:
        """Why the forecast of each row is what it is. Raises Refused."""
        if (n := rows.frame.height) > MOST_EXPLAINED:
            raise Refused(Fault(None, None, f"{n:,} rows; at most {MOST_EXPLAINED} are explained at once"))
        served, readers = self._fold.live
        return served.reasons_of(rows, readers.table, self._fold.turns.looking)

    def _keep(self, task: str | None, row: Rows | Mapping[str, Any]) -> None:
        """Remember the row that was asked about last, of the tasks that were asked about last."""
        self._latest[task] = row
        with suppress(KeyError):  # it was forgotten meanwhile
            self._latest.move_to_end(task)
        if len(self._latest) > MOST_LATEST:
            self._latest.popitem(last=False)

    def forget(self, task: str) -> None:
        """Forget the row of a task."""
        self._latest.pop(task, None)

    def _why_latest(self, task: str) -> dict[str, Any]:
        """The forecast that was asked for last, and its reasons, as far as both are there."""
        if (row := self._latest.get(task)) is None:
            return {}
        with suppress(Refused):
            return {"latest": self.explain(row if isinstance(row, Rows) else from_dicts([row]))[0].to_dict()}
        return {}

    @property
    def labels_asked(self) -> int:
        """The number of labels that `worth` advised to ask for."""
        return self._query.asked

    def worth(self, rows: Rows) -> list[Worth]:
        """Say which labels are worth asking for. Raises Refused, also for a regressor."""
        fold, (served, readers) = self._fold, self._fold.live
        learner = served.learner
        if not is_classifier(learner):
            raise Refused(Fault(None, None, "this model predicts numbers: there is no margin to say how sure it is"))
        chunk = served.rows_of(rows, readers.table)
        with fold.turns.answering():
            X = as_wide(chunk.X, learner.n_features_in_)
            values = np.asarray(learner.decision_function(X, chunk.task))
        margins = np.abs(values) if values.ndim == 1 else np.diff(np.sort(-values, axis=1)[:, :2])[:, 0]
        tasks = [None] * len(margins) if chunk.task is None else chunk.task.tolist()
        return [Worth(task, self._query.wants(float(m)), float(m)) for task, m in zip(tasks, margins, strict=True)]

    def about(self, task: str) -> Mapping[str, Any]:
        """Describe one task. Raises UnknownTask."""
        learner, turn = self._fold.served.learner, self._fold.turns.looking
        with turn():
            if not learner.knows_task(task):
                raise UnknownTask(f"there is no task {task!r}")
            kept, learner = promises.of_task(learner, task), promises.within(learner)
            weights = by_sharing(learner.expert_weights(task)) if hasattr(learner, "expert_weights") else {}
            model, cores = model_of(learner), [*learner.deciding_cores().values()]
        try:
            alike = most_alike(cores, model.tasks.column, task, model.features.count, N_SIMILAR, turn)
        except ValueError:  # a kernel learner has no weights to compare; or the task is forgotten by now
            alike = []
        similar = [{"task": other, "similarity": value} for other, value in alike]
        ways = [{"way": way, "weight": weight} for way, weight in weights.items()]
        return {"task": task, **self._why_latest(task), **kept, "similar": similar, "ways": ways}


def _task_of(row: Mapping[str, Any], served: ServedModel) -> str | None:
    """The task of a row. Raises Unread if that needs a frame."""
    tasks = served.roles.tasks
    if not isinstance(served.learner, Classifier) or isinstance(served.learner, MultiClass) or len(tasks) > 1:
        raise Unread
    task = id_of(row.get(tasks[0])) if tasks else None
    if task == "" or (task is None and tasks):
        raise Unread
    return task


def rehearse(path: Path, *, with_shadows: bool = True) -> None:
    """Predict and learn one row with a copy of the model, so that no request waits for the compiler.

    A file that cannot be read is ignored here; the engine reports it.
    """
    with suppress(ValueError, OSError):
        served = ServedModel(path, with_shadows=with_shadows)
        roles, tasks = served.roles, list(served.learner.tasks_)
        row = dict.fromkeys(served.encoder.column_names)
        unlabeled = {**row, **dict.fromkeys(roles.tasks, str(tasks[0]) if tasks else "task")}
        label = 0 if served.labels.kind == "regression" else served.labels.classes[0]
        labeled = {**unlabeled, str(roles.label): label}
        if roles.weight is not None:
            labeled[roles.weight] = 1
        fold = Fold(served)
        answers = Answers(fold)
        answers.of(from_dicts([unlabeled]))
        answers.of_each([unlabeled])
        checked, faults = served.check(from_dicts([labeled]))
        if not faults:
            fold.apply(Group(1, np.zeros(1), checked))
        if tasks:
            answers.about(tasks[0])
            served.forget(tasks[0])
