"""Learners by name, so that a job can be written down, hashed and sent to another process.

A name of `shoal`, "VW" for Vowpal Wabbit, "Periodic NAME" for a batch learner that is retrained as the stream goes, or
(for what a learner is built around) a full name such as "sklearn.linear_model.Ridge".
"""

import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import shoal
from shoal.evaluation.periodic import Periodic
from shoal.papers import vw

PERIODIC = "Periodic "  # "Periodic MTFL": a batch learner, retrained as the stream goes


class Spec(NamedTuple):
    """A learner's name and parameters; a parameter that is a learner is itself a Spec."""

    learner: str
    parameters: Mapping[str, Any]

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.parameters.items())

    def to_json(self) -> Any:
        """Plain lists and dicts."""
        plain = {k: v.to_json() if isinstance(v, Spec) else v for k, v in self.parameters.items()}
        return [self.learner, plain]


def is_there(name: str) -> bool:
    """Whether this version of the library has the learner."""
    if name.startswith(PERIODIC):
        return is_there(name.removeprefix(PERIODIC))
    return vw.is_there() if name == "VW" else hasattr(shoal, name)


def _kind(name: str) -> Any:
    if name == "VW":
        return vw.VW
    module, _, short = name.rpartition(".")
    return getattr(import_module(module) if module else shoal, short)


def build(spec: Spec, seed: int) -> Any:
    """A fresh learner; one that draws random numbers is seeded."""
    if spec.learner.startswith(PERIODIC):
        inner = build(Spec(spec.learner.removeprefix(PERIODIC), spec.parameters), seed)
        return Periodic(inner, every=100)
    kind = _kind(spec.learner)
    parameters = {k: build(v, seed) if isinstance(v, Spec) else v for k, v in spec.parameters.items()}
    if "random_state" in inspect.signature(kind).parameters:
        parameters["random_state"] = seed
    return kind(**parameters)


def modules(spec: Spec) -> set[str]:
    """The modules that define the learner."""
    nested = [modules(value) for value in spec.parameters.values() if isinstance(value, Spec)]
    own = {str(_kind(spec.learner.removeprefix(PERIODIC)).__module__)}
    if spec.learner.startswith(PERIODIC):
        own.add(Periodic.__module__)
    return own.union(*nested)
