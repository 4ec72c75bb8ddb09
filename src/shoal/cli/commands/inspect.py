"""`shoal inspect`: a saved model's class, hyper-parameters, tasks and updates."""

import os
from collections.abc import Sequence

from shoal.cli.commands.learners import modules_from_here
from shoal.model_file import load_model


def print_model(path: str, trusted: Sequence[str]) -> None:
    """Print class, hyper-parameters, tasks, features, labels and updates of a model."""
    with modules_from_here():
        model, reading = load_model(path, trusted)
    parameters = ", ".join(f"{name}={value!r}" for name, value in model.get_params(deep=False).items())
    updates = model.task_updates_
    lines = {
        "learner": f"{type(model).__name__}({parameters})",
        "file": f"{path}, {os.path.getsize(path):,} bytes",
        "tasks": f"{len(model.tasks_):,}: {_some(model.tasks_)}",
        "features": f"{model.n_features_in_:,}{_names(model)}",
        "updates": f"{model.n_updates_:,}",
    }
    if hasattr(model, "classes_"):
        labels = model.classes_.tolist()
        signs = ("-1", "+1") if len(labels) == 2 else [str(i) for i in range(len(labels))]
        lines["labels"] = _some([f"{label!r} ({sign})" for label, sign in zip(labels, signs, strict=True)])
    if len(updates):
        most = updates.argsort()[::-1][:5]
        lines["most updates"] = ", ".join(f"{model.tasks_[k]} {updates[k]:,}" for k in most)
    if reading is not None:
        lines["read with"] = ", ".join(f"{name}={value!r}" for name, value in reading.options.items())
        lines["used by"] = "shoal run --load, shoal predict, shoal serve; shoal.load in Python"
    for name, value in lines.items():
        print(f"{name:14}{value}")


def _names(model: object) -> str:
    names = getattr(model, "feature_names_in_", None)
    return "" if names is None else f": {_some(list(names))}"


def _some(items: list[object], most: int = 8) -> str:
    more = "" if len(items) <= most else ", ..."
    return ", ".join(map(str, items[:most])) + more
