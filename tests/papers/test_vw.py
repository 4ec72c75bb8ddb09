"""Vowpal Wabbit as an entrant."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from shoal.datasets import make_related_tasks
from shoal.papers.learners import Spec, build, is_there
from shoal.papers.protocols import progressive

pytestmark = pytest.mark.skipif(not is_there("VW"), reason="the optional package vowpalwabbit is not installed")


def test_it_answers_before_it_learns_and_shares_by_crossing() -> None:
    data = make_related_tasks(n_tasks=5, n_features=10, n_rows=1000, relatedness=0.3, noise=0.0, seed=0)
    single, crossed = (build(Spec("VW", {"setting": "-l 0.5", "crossed": crossed}), 0) for crossed in (False, True))
    answers = single.test_then_train(data.X, data.y, data.task)
    assert answers.shape == (1000,)
    assert answers[0] == 0
    shorter = single.test_then_train(data.X[:500], data.y[:500], data.task[:500])
    np.testing.assert_allclose(answers[:500], shorter, atol=1e-5)
    assert progressive(data, crossed, 0)["error"] < progressive(data, single, 0)["error"] < 0.5


@pytest.mark.parametrize(("n_tasks", "crossed", "bits"), [(8, False, 18), (7, True, 19), (8, True, 20)])
def test_there_are_twice_as_many_places_as_weights(
    n_tasks: int, crossed: bool, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2^15 features, for all and for each of 7 tasks, are 2^18 weights."""
    said = []

    def answer(options: str) -> SimpleNamespace:
        said.append(int(re.findall(r"-b (\d+)", options)[0]))
        Path(re.findall(r"-p (\S+)", options)[0]).write_text("0\n" * n_tasks, encoding="utf-8")
        return SimpleNamespace(finish=lambda: None)

    monkeypatch.setitem(sys.modules, "vowpalwabbit", SimpleNamespace(Workspace=answer))
    learner = build(Spec("VW", {"setting": "", "crossed": crossed}), 0)
    learner.test_then_train(sp.csr_matrix((n_tasks, 2**15)), np.ones(n_tasks), np.arange(n_tasks))
    assert said == [bits]
