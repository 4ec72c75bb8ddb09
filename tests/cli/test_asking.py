"""At a terminal the program asks what many numbers as labels are; elsewhere it says what it took them for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Program


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
