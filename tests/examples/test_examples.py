"""Every script in examples/ on real data runs and prints what it promises; the build of the site runs the others."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROMISED = {
    "label_budget": "of 6,000 labels",
    "late_flights": "Sharing partly is best: ",
    "rare_landmines": "each mine 15 times",
    "school_regression": "a school never seen:",
    "spam_per_inbox": "second half",
}


def test_all_are_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py") if not path.stem.startswith("plot_")} == set(PROMISED)


@pytest.mark.parametrize("name", PROMISED)
def test_it_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        runpy.run_path(str(EXAMPLES / f"{name}.py"))
    except FileNotFoundError as error:
        pytest.skip(f"needs its data: {error}")
    assert PROMISED[name] in capsys.readouterr().out
