"""Every claim is decided by numbers, and by nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shoal.papers import experiments
from shoal.papers.claims import claim as words
from shoal.papers.claims.claim import Case, Number, decide, judge
from shoal.papers.claims.evidence import Difference, Evidence, as_published
from shoal.papers.claims.table import as_text, claims, conditions, judged, summary
from shoal.papers.experiment import Experiment
from shoal.papers.learners import Spec
from shoal.papers.outcome import Outcome

EXPERIMENTS = experiments()
CLAIMS = claims()
SHUFFLES = 4


def made_up(experiment: Experiment, seed: int) -> Outcome:
    """Runs of invented numbers: a level of each learner, and a slope of its own over the data sets."""
    rng = np.random.default_rng(seed)
    slope = rng.choice([-1.0, 0.0, 1.0])
    names, data = [e.name for e in experiment.entrants], [d.name for d in experiment.data]
    order = rng.permutation(len(names)) if seed % 3 == 0 else np.arange(len(names))[:: 1 if seed % 3 == 1 else -1]
    runs: dict[Any, Any] = {
        (name, where): [(Spec("", {}), {}) for _ in range(SHUFFLES)] for name in names for where in data
    }
    for metric in experiment.metrics:
        reach = rng.choice([0.01, 1.0, 50.0])
        for i, name in zip(order, names, strict=True):
            for j, where in enumerate(data):
                level = max(1e-3, reach * (1 + i + slope * (0.1 + i) * j + 0.2 * rng.normal()))
                level *= rng.choice([0.0, 1.0]) if metric.name == "broken" else 1.0
                for _, result in runs[name, where]:
                    result[metric.name] = level * (1 + 0.01 * rng.random())
    return Outcome(experiment, runs, {}, quick=False)


@pytest.fixture(scope="module")
def worlds() -> list[Evidence]:
    return [Evidence(made_up(experiment, seed) for experiment in EXPERIMENTS.values()) for seed in range(60)]


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.id for claim in CLAIMS])
def test_other_numbers_flip_the_verdict(claim: words.Claim, worlds: list[Evidence]) -> None:
    judgements = [judge(claim, world) for world in worlds]
    assert {judgement.verdict for judgement in judgements} <= {words.HOLDS, words.CONDITIONS, words.FAILS}
    assert len({judgement.verdict for judgement in judgements}) > 1
    for judgement in judgements:
        assert judgement.telling is not None
        assert np.isfinite([case.first.value for case in judgement.cases]).all()
    assert claim.link in EXPERIMENTS


def test_the_papers_numbers_bear_out_their_claims_but_for_two() -> None:
    """What a paper says of its own table should follow from it; these two sentences do not."""
    printed = as_published(EXPERIMENTS)
    verdicts = {claim.id: judge(claim, printed).verdict for claim in CLAIMS}
    assert sum(verdict != words.NOT_RUN for verdict in verdicts.values()) > 10
    assert {id: verdict for id, verdict in verdicts.items() if verdict not in (words.HOLDS, words.NOT_RUN)} == {
        "romco-5": words.CONDITIONS,  # on spam 6.9 times as fast as batch, where the text says 100
        "romco-6": words.FAILS,  # "slightly slower": 12 times CW-COL's time on spam
    }


def cases(*holds: bool) -> list[Case]:
    return [Case(str(i), good, Number("a", 1.0), Number("b", 2.0)) for i, good in enumerate(holds)]


def test_the_verdict_counts_cases() -> None:
    assert decide(cases(True, True)) == words.HOLDS
    assert decide(cases(True, False)) == words.CONDITIONS
    assert decide(cases(True, False, False)) == words.FAILS
    assert decide([]) == words.UNTESTABLE


def test_a_difference_needs_two_standard_errors() -> None:
    assert Difference(1.0, 0.49).above
    assert not Difference(1.0, 0.51).above
    assert Difference(-1.0, 0.1).below
    assert not Difference(0.0, 0.0).above


def test_what_has_not_been_run_is_said_with_the_command() -> None:
    lines = judged([], EXPERIMENTS)
    assert {line.ours.verdict for line in lines} == {words.NOT_RUN}
    text = "\n".join(as_text(lines))
    assert "shoal reproduce osmtl/table1" in text
    assert summary(lines) in text
    assert "its own numbers say: does not hold" in text


def test_a_claim_that_nothing_can_test_says_why() -> None:
    def nothing(_: Evidence) -> Iterator[Case]:
        raise AssertionError("the rule is not asked")

    claim = words.Claim("made-1", "t", "p", "q", "r", nothing, "osmtl/table1", untestable="the data are gone")
    assert judge(claim, Evidence([])).verdict == words.UNTESTABLE


def test_the_page_says_which_rules_were_changed() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reproduction.html").read_text(encoding="utf-8")
    for claim in CLAIMS:
        if claim.revised:
            row = page.partition(f'<tr id="claim-{claim.id}">')[2].partition("</tr>")[0]
            assert escape(claim.revised) in row, claim.id


def test_conditions_are_the_cases_that_hold() -> None:
    judgement = words.Judgement(CLAIMS[0], words.CONDITIONS, tuple(cases(True, False, True)))
    assert conditions(judgement) == "holds in 2 of 3 cases: 0; 2. Not: 1."
    assert judgement.telling == judgement.cases[1]


def test_claims_are_told_apart() -> None:
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS) >= 30
    for claim in CLAIMS:
        assert claim.title
        assert claim.place
        assert claim.quote
        assert claim.reading.endswith(".")


def test_nearly_all_published_numbers_are_compared() -> None:
    """At most a tenth is not, for at most five reasons, whatever the runs give; given numbers do not count."""
    rows = [row for experiment in EXPERIMENTS.values() for row in made_up(experiment, 1).rows()]
    counted = [row for row in rows if row.paper is not None and row.verdict not in ("given", "reference")]
    not_compared = [row for row in counted if row.verdict == "not comparable"]
    assert len(not_compared) <= len(counted) / 10
    assert len({row.why for row in not_compared}) <= 5
    printed = {(row.entrant, row.data, row.metric.name) for row in rows if row.paper is not None}
    assert len(printed) == len({key for experiment in EXPERIMENTS.values() for key in experiment.published})
