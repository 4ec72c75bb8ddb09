"""The Python of the page on clusters prints what stands below it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pages import ROOT, assert_its_python_prints_what_stands_below_it

from shoal.datasets.samples import write_samples

pytestmark = [
    pytest.mark.xdist_group("cluster"), pytest.mark.timeout(300), pytest.mark.usefixtures("shared_actors"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),  # of Ray Data's own defaults
]  # fmt: skip


def test_its_python_prints_what_stands_below_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray.data

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shoal.cluster.actors._share_of", lambda n: 0)  # actors that stay would keep their cores
    ray.data.DataContext.get_current().enable_progress_bars = False
    write_samples(tmp_path)
    assert_its_python_prints_what_stands_below_it(ROOT / "docs" / "cluster.md")
