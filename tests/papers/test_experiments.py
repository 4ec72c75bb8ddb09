"""Every table and figure of the papers runs, on small pieces of the data."""

from __future__ import annotations

import html
import os
import tarfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from shoal.datasets import enron
from shoal.papers import data_sets, experiments, reproduce, write_page
from shoal.papers.experiment import Experiment

BESIDE_THE_PROJECT = Path(__file__).parents[3] / "shared" / "data"
ALL = experiments()


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One for all experiments, so that data sets are prepared once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOAL_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("SHOAL_DATA", os.environ.get("SHOAL_DATA") or str(BESIDE_THE_PROJECT))
        yield


@pytest.fixture(scope="module", autouse=True)
def fewer_mails() -> Iterator[None]:
    """Every tenth mail of Enron: to read all 33,715 takes longer than any experiment, and a quick one uses few."""

    def every_tenth(path: Path) -> list[enron.Mail]:
        with tarfile.open(path, "r:xz") as archive:
            mails = (one for one in archive if one.name.endswith((".ham.txt", ".spam.txt")))
            return sorted(enron._read_mail(archive, one) for one in islice(mails, 0, None, 10))

    data_sets._mails.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(enron, "_read_inbox", every_tenth)
        yield
    data_sets._mails.cache_clear()


@pytest.mark.parametrize("experiment", ALL.values(), ids=list(ALL))
def test_it_runs(experiment: Experiment, tmp_path: Path) -> None:
    folders = {data.folder for data in experiment.data if data.folder}
    for folder in folders:
        if not (Path(os.environ["SHOAL_DATA"]) / folder).is_dir():
            pytest.skip(f"{folder} may not be redistributed: set SHOAL_DATA to the folder that holds {folder}/")
    outcome = reproduce(experiment, quick=True)
    assert not outcome.missing
    wrong = [row for row in outcome.rows() if row.verdict in ("failed", "no data")]
    assert not wrong
    there = [entrant for entrant in experiment.entrants if entrant.is_there]
    assert len(outcome.rows()) > 0 or not there
    if experiment.figure is not None and outcome.runs:
        figure = experiment.figure(outcome)
        assert figure is not None
        figure.chart.to_dict()  # checked against the grammar of charts
    write_page(tmp_path / "page.html", [outcome])
    assert html.escape(experiment.title) in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("experiment", ALL.values(), ids=list(ALL))
def test_it_says_what_it_is(experiment: Experiment) -> None:
    assert experiment.id == f"{experiment.paper}/{experiment.id.partition('/')[2]}"
    assert experiment.title
    assert experiment.source
    assert experiment.seconds > 0
    assert experiment.protocol in ("as published", "as it should be done")
    names = (
        [d.name for d in experiment.data],
        [e.name for e in experiment.entrants],
        [m.name for m in experiment.metrics],
    )
    for distinct in names:
        assert len(set(distinct)) == len(distinct)
