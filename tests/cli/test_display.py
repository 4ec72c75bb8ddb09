"""The table and the bar of a run: what they say of the rows so far."""

from __future__ import annotations

import pytest

from shoal import PassiveAggressive
from shoal.cli.display import Display
from shoal.evaluation.result import Checkpoint


def test_a_line_of_the_table_and_the_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with Display("a table", PassiveAggressive(), {"PA": PassiveAggressive()}, lambda n: n / 4000, []) as display:
        for rows, seconds in ((1000, 0.0), (3000, 1.5)):
            scores = {"error": 0.25}
            display.checkpoint({"PA": Checkpoint(rows, 7, scores, scores, {"error": 0.125}, scores, seconds)})
            display.rows(rows)
        task = display._bar.tasks[0]
        assert (task.completed, task.total, task.fields["rows"]) == (0.75, 1.0, 3000)
    *_, titles, first, second = (line.split() for line in capsys.readouterr().out.splitlines())
    assert titles[-1] == "rows/s"
    assert first == ["1,000", "7", "0.2500", "0.1250", "0.2500", "nan"]
    assert second == ["3,000", "7", "0.2500", "0.1250", "0.2500", "2,000"]
