"""The notebook runs from top to bottom, and its cells show tables, pictures and progress."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "results.ipynb"


@pytest.fixture(scope="module")
def cells() -> list[Any]:
    """The outputs of the code cells, in order."""
    missing = "a notebook needs nbclient and ipykernel, which the extra dev brings"
    nbclient = pytest.importorskip("nbclient", reason=missing)
    pytest.importorskip("ipykernel", reason=missing)
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=250, kernel_name="python3").execute()
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


def html(output: Any) -> str:
    return str(output.data.get("text/html", ""))


def test_every_result_shows_itself(cells: list[Any]) -> None:
    _, passed, verdict, picture, frame, orders, files = cells
    assert html(passed[0]).startswith('<progress value="4000" max="4000"></progress> 4,000 of 4,000 rows, ')
    assert "error 0." in html(passed[0])
    assert html(passed[-1]).count("<tr>") == 5  # titles, all rows, ±, the mean over tasks, the last rows
    assert "gain over one per task" in html(verdict[0])
    assert html(picture[0]).count("<svg") == html(picture[0]).count('role="img" aria-label="') == 1
    assert not re.search(r"vega|<script|(src|href)=|@import", str(picture[0].data))  # nothing that a network must bring
    assert "<table" in html(frame[0])
    assert html(orders[-1]).count("<tr>") == 4
    assert "luck" not in html(orders[-1])
    assert "ranks.pdf" in files[0].data["text/plain"]


def test_nothing_is_warned_of_and_no_cell_is_long(cells: list[Any]) -> None:
    """Finding 23: an `Evaluation` printed 34,000 characters, and a bar asked for ipywidgets."""
    for outputs in cells:
        for output in outputs:
            assert output.output_type != "error"
            if output.output_type == "stream":
                assert output.name == "stderr"
                assert re.fullmatch(r"(shoal: )?compiling for this computer.*\s*", output.text)
            else:
                assert len(html(output)) < (60_000 if "<svg" in html(output) else 10_000)
                assert len(output.data.get("text/plain", "")) < 5_000
