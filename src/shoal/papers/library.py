"""All experiments, by id."""

from __future__ import annotations

from importlib import import_module

from shoal.papers.experiment import Experiment

PAPERS = ("osmtl", "romco", "sparse_mtl", "cavallanti", "yang_li", "theory", "leaderboard")


def experiments() -> dict[str, Experiment]:
    """The tables and figures of all papers, in their order."""
    found = [experiment for paper in PAPERS for experiment in import_module(f"shoal.papers.{paper}").EXPERIMENTS]
    return {experiment.id: experiment for experiment in found}
