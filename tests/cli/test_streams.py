"""A question at a terminal about labels that are many numbers, and the warm-up before the first chunk."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from tests.cli.conftest import Program

from shoal import HedgedSharing, MultitaskPerceptron
from shoal.cli.streams import FEW_ROWS, warmed_up
from shoal.engine.rounds import Chunk


@pytest.mark.parametrize(
    ("answer", "learner"), [("n", "MultiClass(estimator=HedgedSharing())"), ("", "HedgedSharingRegressor()")]
)
def test_who_sits_at_a_terminal_is_asked_once(
    answer: str, learner: str, shoal: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many.csv"
    path.write_text("x,shop,label\n" + "".join(f"{i % 7},s{i % 2},{i % 25}\n" for i in range(100)))
    arguments = ("run", path, "--task", "shop", "--label", "label", "--no-baselines")
    answers = iter([answer])  # a second question has no answer
    monkeypatch.setattr("builtins.input", lambda *_: next(answers))
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    code, out, err = shoal(*arguments)
    assert code == 0
    assert "label has many values: is it a number to predict (--regression)?" in " ".join(err.split())
    assert out.startswith(learner)
    assert "label has" not in out  # what was asked is not said again
    for said in (("--regression",), ("--learner", "PassiveAggressiveRegressor"), ("--json", "-")):
        assert "[y/n]" not in shoal(*arguments, *said)[2]


@pytest.mark.parametrize("labels", [[-1.0, 1.0], [3.0, 5.0], [5.0]])
def test_warming_up_teaches_nothing_and_loses_no_row(labels: list[float]) -> None:
    rng = np.random.default_rng(0)
    X = csr_matrix(rng.normal(size=(200, 5)))
    chunks = [Chunk(X[i : i + 100], rng.choice(labels, 100), rng.integers(0, 3, 100)) for i in (0, 100)]
    assert len(chunks[0].y) > FEW_ROWS
    learners = {"a": MultitaskPerceptron(), "b": HedgedSharing()}
    options = {"window": 10, "delay": 0, "classes": None}
    seen = list(warmed_up(iter(chunks), learners, **options))
    assert all(one is other for one, other in zip(seen, chunks, strict=True))
    assert not any(hasattr(learner, "n_features_in_") for learner in learners.values())
    assert list(warmed_up(iter([]), learners, **options)) == []
