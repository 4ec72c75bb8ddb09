"""`shoal learners` and `shoal datasets`: learners by name, made with their hyper-parameters, and data sets."""

import difflib
import importlib
import inspect
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from typing import Any

import shoal
from shoal.evaluation import ModelAdapter
from shoal.learner import Learner
from shoal.wrappers.inner import AroundAnyLearner
from shoal.wrappers.multi_class import MultiClass


def learner_kinds() -> dict[str, type[Any]]:
    """All public online learners by name."""
    return {name: kind for name, kind in _kinds().items() if issubclass(kind, Learner)}


def batch_kinds() -> dict[str, type[Any]]:
    """All public batch learners by name."""
    return {name: kind for name, kind in _kinds().items() if not issubclass(kind, Learner) and not reads_tables(kind)}


def table_kinds() -> dict[str, type[Any]]:
    """All public estimators that bring a table to a learner, by name."""
    return {name: kind for name, kind in _kinds().items() if reads_tables(kind)}


def reads_tables(kind: type[Any]) -> bool:
    """Is the task a column of its tables, and no argument of its methods?"""
    return "task" in inspect.signature(kind).parameters


def _kinds() -> dict[str, type[Any]]:
    public = {name: getattr(shoal, name) for name in sorted(shoal.__all__)}
    return {name: kind for name, kind in public.items() if _is_learner(kind)}


def _is_learner(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "predict") and kind is not Learner


def find_learner(name: str) -> type[Any]:
    """The public learner of that name, online or batch. Raises ValueError with the nearest name."""
    kind: Any = getattr(shoal, name) if name in shoal.__all__ else None  # imports this one only
    if not _is_learner(kind):
        raise ValueError(f"there is no learner {name!r}{nearest(name, list(_kinds()))}; `shoal learners` lists them")
    found: type[Any] = kind
    return found


def make_learner(name: str, settings: list[str]) -> Any:
    """An online learner with settings such as `["alpha=0.9"]`. Raises ValueError with the nearest right name.

    Parameters
    ----------
    name : str
        A public learner, or `my_file:MyLearner`: a class of one's own in a module that can be imported from here, a
        `shoal.Learner` or what `ModelAdapter` takes.
    """
    is_own = ":" in name
    kind = _own_kind(name) if is_own else find_learner(name)
    if is_own:
        model = kind(**_parameters(name, kind, settings))
        return model if isinstance(model, Learner) else ModelAdapter(model)
    if reads_tables(kind):
        raise ValueError(f"{name} is for Python: a run reads tables by itself, so name the learner inside")
    if not issubclass(kind, Learner):
        raise ValueError(f"{name} is a batch learner: it needs all rows at once, and a stream gives one at a time")
    learner: Learner = kind(**_parameters(name, kind, settings))
    learner.new_core()  # a wrong value is refused before the data is opened
    return learner


def name_of(learner: Any) -> str:
    """Its name in results: the class; of an own model, and of what goes around a learner, the one within."""
    plain = learner_within(learner)
    return type(plain.model if isinstance(plain, ModelAdapter) else plain).__name__


def learner_within(learner: Any) -> Any:
    """What wrappers go around; a learner without any is its own."""
    while isinstance(learner, AroundAnyLearner):
        learner = learner.plain
    if isinstance(learner, MultiClass) and learner.estimator is not None:
        learner = learner.estimator
    return learner


@contextmanager
def modules_from_here() -> Iterator[None]:
    """Let imports find the modules of the current folder, too."""
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)


def _own_kind(path: str) -> type[Any]:
    module, _, name = path.partition(":")
    try:
        with modules_from_here():
            kind: Any = getattr(importlib.import_module(module.removesuffix(".py")), name, None)
    except ImportError as error:
        raise ValueError(f"--learner {path}: {error}") from None
    if not isinstance(kind, type):
        raise ValueError(f"--learner {path}: {module} has no class {name}")
    return kind


def _parameters(name: str, kind: type[Any], settings: list[str]) -> dict[str, Any]:
    known = list(inspect.signature(kind).parameters)
    parameters = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"--set takes name=value, got {setting!r}")
        if key not in known:
            raise ValueError(f"{name} has no hyper-parameter {key!r}{nearest(key, known)}; it has {', '.join(known)}")
        parameters[key] = parse_value(value)
    return parameters


def parse_value(text: str) -> Any:
    """The number, true, false or null that the text spells, or else the text."""
    words = {"none": None, "null": None, "true": True, "false": False, "inf": float("inf")}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return json.loads(text)
    except ValueError:
        return text


def nearest(name: str, known: list[str]) -> str:
    """` (did you mean ...?)`, or nothing."""
    lower = {other.lower(): other for other in known}
    close = difflib.get_close_matches(name.lower(), list(lower), n=1)
    return f" (did you mean {lower[close[0]]}?)" if close else ""


def print_learners() -> None:
    """Print two lines a learner: its name and summary, and its hyper-parameters with their defaults."""
    print("Online")
    _print_kinds(learner_kinds())
    print("\nBatch (in Python only)")
    _print_kinds(batch_kinds())
    print("\nFor tables, around a learner (in Python only)")
    _print_kinds(table_kinds())
    print("\nshoal learners NAME explains one: its idea, its hyper-parameters, its paper.")


def _print_kinds(kinds: Mapping[str, type]) -> None:
    for name, kind in kinds.items():
        summary = (inspect.getdoc(kind) or "").splitlines()[0]
        print(f"  {name:28}{summary}")
        parameters = inspect.signature(kind).parameters.values()
        if parameters:
            shown = [str(parameter.replace(annotation=parameter.empty)) for parameter in parameters]
            print(f"  {'':28}{', '.join(shown)}")


def print_learner(name: str) -> None:
    """Print the docstring of a learner."""
    kind = find_learner(name)
    print(f"{name}{inspect.signature(kind)}\n\n{inspect.getdoc(kind)}")


def print_citation(name: str | None) -> None:
    """Print BibTeX of the library, and of the papers that a learner comes from: keywords of entries name learners."""
    entries = resources.files("shoal.cli.commands").joinpath("references.bib").read_text(encoding="utf-8").split("\n\n")
    shoal_itself, *papers = (entry.strip() for entry in entries)
    print(shoal_itself)
    if name is not None:
        find_learner(name)
        for entry in papers:
            if name in re.findall(r"\w+", entry.partition("keywords")[2]):
                print(f"\n{entry}")


def print_datasets() -> None:
    """Print a line a data set."""
    from shoal.datasets import names

    for name, description in names().items():
        print(f"dataset:{name:18}{description}")


def write_tables(folder: str) -> None:
    """Write the tables of README and docs, and say which."""
    from shoal.datasets.samples import write_samples

    for path in write_samples(folder):
        print(path)
