"""What requests will do, done once with a copy of the model, so that nobody waits for a compiler."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np

from shoal.serve.answers import Answers
from shoal.serve.bodies import from_dicts
from shoal.serve.fold import Fold, Group
from shoal.serve.served import Served


def rehearse(path: Path, *, with_shadows: bool = True) -> None:
    """Answer and learn a row. A file that is no model is left to whoever serves it."""
    with suppress(ValueError, OSError):
        served = Served(path, with_shadows=with_shadows)
        roles, tasks = served.roles, list(served.learner.tasks_)
        row = dict.fromkeys(served.encoder.column_names)
        asked = {**row, **dict.fromkeys(roles.tasks, str(tasks[0]) if tasks else "task")}
        label = 0 if served.labels.kind == "regression" else served.labels.classes[0]
        learned = {**asked, str(roles.label): label}
        if roles.weight is not None:
            learned[roles.weight] = 1
        fold = Fold(served)
        answers = Answers(fold)
        answers.of(from_dicts([asked]))
        answers.of_each([asked])
        checked, faults = served.check(from_dicts([learned]))
        if not faults:
            fold.apply(Group(1, np.zeros(1), checked))
