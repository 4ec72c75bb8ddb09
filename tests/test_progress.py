"""Progress on a terminal, in a notebook, and nowhere."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.evaluation.test_orders import Always

from shoal.evaluation import progressive_validate
from shoal.progress import EVERY, Bar, progress_line, shown


def test_the_line() -> None:
    assert progress_line(90_000, 100_000, "rows", 1.0) == "90,000 of 100,000 rows, 90,000 rows/s, 0:00 left"
    assert progress_line(10, 700, "tries", 10.0, "auc 0.5") == "10 of 700 tries, 1.0 tries/s, 11:30 left, auc 0.5"
    assert progress_line(0, 5, "orders", 0.0) == "0 of 5 orders"
    assert progress_line(5, 5, "orders", 1.0) == "5 of 5 orders, 5.0 orders/s"


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """What a cell shows, one after the other, as IPython's `display` gets it."""
    found: list[dict[str, str]] = []

    def display(bundle: dict[str, str], **options: Any) -> Any:
        assert options == {"raw": True, "display_id": True}
        found.append(bundle)
        return SimpleNamespace(update=lambda bundle, raw: found.append(bundle))

    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    return found


def test_a_cell_of_a_notebook_changes_and_needs_no_widgets(cells: list[dict[str, str]]) -> None:
    """Finding 23: it warned "install ipywidgets", and progressive validation had none."""
    stream = (np.eye(30), np.arange(30) % 2, np.arange(30) % 2)
    progressive_validate(Always(), stream, metrics=["error"], checkpoints=10, progress=True)
    assert cells[0]["text/html"].startswith('<progress value="0" max="30"')
    assert cells[-1]["text/html"].startswith('<progress value="30" max="30"></progress> 30 of 30 rows, ')
    assert cells[-1]["text/plain"].endswith("error 0.5000")


def test_it_changes_a_few_times_a_second(cells: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(np.arange(0.0, 100.0, 0.1).tolist())
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    assert list(shown(range(10), 10, "tries", when=True)) == list(range(10))
    assert len(cells) == 2 + int(1.0 / (0.1 * np.ceil(EVERY / 0.1)))


def test_a_terminal_shows_it_and_a_file_does_not(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    assert list(shown("ab", 2, "orders", when=True)) == ["a", "b"]
    assert capsys.readouterr().err.strip() == ""
    monkeypatch.setenv("FORCE_COLOR", "1")  # what rich takes for a terminal
    with Bar(4, "orders") as bar:
        bar.update(3, "best")
        bar._bar.refresh()
    assert "3 of 4 orders" in capsys.readouterr().err
    assert list(shown("ab", 2, "orders", when=False)) == ["a", "b"]
    assert capsys.readouterr().err == ""
