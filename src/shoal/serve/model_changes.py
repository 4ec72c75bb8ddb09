"""Changes of the served model while the log goes on: another one in its place, a candidate beside it, a rollback.

A change is a record of the log that names a file in the folder `models`. The file is whole before its record is
committed, and stays as long as a snapshot lies before the record; so snapshot and log always fold to the same model. A
replaced model is kept as it was when its turn ended, under the position of the change, which the record of a rollback
names.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, get_args

from shoal.files.tables.check_rows import Checked
from shoal.serve.contract import Fault, Refused, Rows
from shoal.serve.served_model import ServedModel
from shoal.whole_file import write_whole

logger = logging.getLogger("shoal")
What = Literal["swap", "shadow", "promote", "rollback", "drop"]
NEW, REPLACED, PART = "new-", "replaced-", ".part"
MODELS = "models"  # in the folder of a service
TAKEN = "taken.json"  # the names of the last files that came
OF_SHARDS = (  # each has a log of its own, and all would have to change at once
    "a service of shards keeps its model: no swap, candidate or rollback; end it, and start it with the new file and "
    "--replace, which begins anew and keeps the old folder"
)


class Change(NamedTuple):
    """A change of the models."""

    what: What  # swap: a new model; shadow: a candidate; promote it; rollback to a replaced model; drop the candidate
    file: str | None = None  # of a swap, shadow or rollback

    def encoded(self) -> bytes:
        """The body of its record."""
        return json.dumps(self._asdict()).encode()

    @classmethod
    def decoded(cls, body: bytes) -> Change:
        """The change of a record."""
        found = cls(**json.loads(body))
        if found.what not in get_args(What):
            raise ValueError(f"the log has the change {found.what!r}, which this shoal does not know")
        return found


class Models(NamedTuple):
    """The models at a position of the log."""

    served: ServedModel
    candidate: ServedModel | None = None  # learns the same rows and answers nothing

    def after(self, change: Change, loaded: ServedModel | None) -> Models:
        """The models behind a change, whose file was loaded."""
        if change.what == "shadow":
            return self._replace(candidate=loaded)
        if change.what == "promote":
            return Models(self.candidate or self.served)
        return self._replace(candidate=None) if change.what == "drop" else self._replace(served=loaded or self.served)

    @property
    def simultaneous(self) -> bool:
        """Whether requests are rounds for one of them."""
        return any(model.learner.simultaneous for model in self.all())

    def all(self) -> Iterator[ServedModel]:
        """The models that there are."""
        return (model for model in self if model is not None)

    def knows_task(self, task: str) -> bool:
        """Whether one of them has a task."""
        return any(model.learner.knows_task(task) for model in self.all())

    def matched(self, rows: Rows, *, new_columns: bool) -> tuple[Rows, str | None]:
        """Rows as `ServedModel.matched` leaves them, with the columns that the candidate knows."""
        kept = () if self.candidate is None else self.candidate.encoder.column_names
        return self.served.matched(rows, new_columns=new_columns, kept=kept)

    def check(self, rows: Rows) -> tuple[Checked, list[Fault], Checked | None]:
        """Check rows to learn as `ServedModel.check` does; last is what the candidate can read of them.

        A column that only one of them knows stays unknown to the other.
        """
        if self.candidate is None:
            return *self.served.check(rows), None
        served, candidate = set(self.served.encoder.column_names), set(self.candidate.encoder.column_names)
        checked, faults = self.served.check(_without(rows, candidate - served))
        if faults:
            return checked, faults, None
        try:
            return checked, faults, self.candidate.check(_without(rows, served - candidate))[0]
        except ValueError:
            return checked, faults, None

    def mark(self) -> list[Any]:
        """The known columns and labels, for `rollback`."""
        return [model.rows_to_learn.mark() for model in self.all()]

    def rollback(self, marks: list[Any]) -> None:
        """Undo all checks since the mark."""
        for model, mark in zip(self.all(), marks, strict=True):
            model.rows_to_learn.rollback(mark)


class ModelFolder:
    """The files that changes name.

    Parameters
    ----------
    folder : Path
        The folder of a service.
    keep : int
        How many replaced models are kept for rollbacks.
    with_shadows : bool
        Whether the files' shadows learn, too.
    scratch : Path, optional
        Written instead, by those who only read what a service has.

    Attributes
    ----------
    replaced : list of str
        The files of replaced models, newest last.
    """

    def __init__(self, folder: Path, keep: int = 3, *, with_shadows: bool = True, scratch: Path | None = None) -> None:
        self._read, self._written = folder / MODELS, scratch or folder / MODELS
        self._keep, self._with_shadows = keep, with_shadows
        self.replaced: list[str] = []
        self._written.mkdir(parents=True, exist_ok=True)

    def tidy(self) -> None:
        """Delete the files that a killed process left."""
        for part in self._written.glob(f"*{PART}"):
            part.unlink()

    def new_file(self) -> Path:
        """A path for a file that shall come; a start deletes it."""
        return self._written / f"{secrets.token_hex(6)}{PART}"

    def name_of(self, path: Path) -> str:
        """The name that a file gets in the folder, by its content."""
        with path.open("rb") as file:
            return f"{NEW}{digest_of(file)}.shoal"

    def take(self, path: Path, change: Change) -> None:
        """Give a file that came its name, before its record is committed."""
        path.replace(self._written / str(change.file))

    def note(self, name: str) -> None:
        """Remember that a file came, through every end."""
        write_whole(self._written / TAKEN, json.dumps([*self._taken(), name][-100:]).encode(), fsync=True)

    def has_taken(self, name: str) -> bool:
        """Whether a file came before."""
        return name in self._taken()

    def _taken(self) -> list[str]:
        try:
            return list(json.loads((self._written / TAKEN).read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return []

    def load(self, change: Change) -> ServedModel | None:
        """The model that a change names. Raises ValueError if its file is missing or damaged."""
        if change.file is None:
            return None
        paths = [folder / change.file for folder in (self._written, self._read)]
        found = next((path for path in paths if path.exists()), None)
        if found is None:
            raise ValueError(
                f"the log names the model {change.file}, which is not in {self._read}: restore the folder and the log "
                "as they were together"
            )
        return ServedModel(found, with_shadows=self._with_shadows)

    def changed(self, position: int, change: Change, save: Callable[[Path], object]) -> None:
        """Keep the model that a change replaced, for which `save` writes it; or keep one no longer that is back."""
        if change.what == "rollback":
            self.replaced = [name for name in self.replaced if name != change.file]
        elif change.what in ("swap", "promote") and self._keep:
            name = f"{REPLACED}{position:016}.shoal"
            self.replaced = [*(one for one in self.replaced if one != name), name][-self._keep :]  # first: `prune`
            try:
                save(self._written / name)
            except (OSError, ValueError) as error:  # the change stands in the log
                logger.error("the replaced model was not kept: %s", error)
                self.replaced.remove(name)

    def forget(self, task: str) -> None:
        """Forget a task in the replaced models."""
        for path in (self._written / name for name in self.replaced):
            if path.exists() and self._knows(path, task):
                model = ServedModel(path)
                model.forget(task)
                model.save(path)

    def knows_task(self, task: str) -> bool:
        """Whether a replaced model has a task."""
        return any(self._knows(self._written / name, task) for name in self.replaced if (self._written / name).exists())

    def _knows(self, path: Path, task: str) -> bool:
        return bool(ServedModel(path, with_shadows=False).learner.knows_task(task))

    def prune(self, named: Collection[str]) -> None:
        """Delete the files that are neither kept nor named by the records that are left."""
        for path in self._written.glob("*.shoal"):
            if path.name not in self.replaced and path.name not in named:
                path.unlink(missing_ok=True)


def digest_of(file: IO[bytes]) -> str:
    """A digest of a file's content from its current position on."""
    return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()  # type: ignore[arg-type]


def refuse_unlike(new: ServedModel, old: ServedModel) -> None:
    """Raise Refused if a model cannot take the place of another, as its rows or answers are other ones."""

    def terms(model: ServedModel) -> dict[str, Any]:
        roles, labels = model.roles, model.labels
        found = {"task columns": roles.tasks, "label column": roles.label, "weight column": roles.weight}
        classes = labels.as_written(labels.classes) if labels.kind == "binary" else None
        return {**found, "kind of target": labels.kind, "labels": classes}

    expected = terms(old)
    for name, value in terms(new).items():
        if value != expected[name]:
            raise Refused(
                Fault(None, None, f"the file's model has the {name} {value!r}, this service {expected[name]!r}")
            )


def _without(rows: Rows, names: Collection[str]) -> Rows:
    return rows._replace(frame=rows.frame.drop(names, strict=False)) if names else rows
