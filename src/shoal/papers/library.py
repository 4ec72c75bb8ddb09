"""All experiments, by id."""

from __future__ import annotations

from importlib import import_module

from shoal.papers.experiment import Experiment

MODULES = ("osmtl", "romco", "sparse_mtl", "cavallanti", "yang_li", "theory", "controls", "leaderboard")
PAPERS = ("osmtl", "romco", "sparse_mtl", "cavallanti", "yang_li", "theory", "leaderboard")


def experiments() -> dict[str, Experiment]:
    """The tables and figures of all papers, in their order."""
    found = [experiment for name in MODULES for experiment in import_module(f"shoal.papers.{name}").EXPERIMENTS]
    found.sort(key=lambda experiment: PAPERS.index(experiment.paper))  # controls come after the tables they belong to
    return {experiment.id: experiment for experiment in found}
