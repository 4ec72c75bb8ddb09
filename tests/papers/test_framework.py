"""The machinery on a small made experiment: what is run, kept, compared and said."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from joblib.parallel import ThreadingBackend
from scipy.sparse import csr_matrix, issparse
from sklearn.linear_model import Ridge

from shoal import PassiveAggressive
from shoal.datasets import Dataset, make_related_tasks
from shoal.papers import Data, Entrant, Experiment, Metric, Tuning, experiments, reproduce, state, write_page
from shoal.papers.cache import store
from shoal.papers.claims.table import claims
from shoal.papers.learners import Spec, build, modules
from shoal.papers.origin import code, machine, origin
from shoal.papers.outcome import Outcome
from shoal.papers.page import ROW_SIGNS, tables
from shoal.papers.pictures import beside
from shoal.papers.protocols import progressive
from shoal.papers.ranks import rankings
from shoal.papers.runner import Job, recall
from shoal.papers.text import lines, number
from shoal.report.style import DARK


def related(n_tasks: int, seed: int = 0) -> Dataset:
    return make_related_tasks(n_tasks=n_tasks, n_features=5, n_rows=200, seed=seed)


def absent() -> Dataset:
    raise FileNotFoundError("the data set absent needs a file that is not there")


def without_nsv(data: Dataset, learner: Any, seed: int) -> dict[str, Any]:
    """As if one kind of learner had no such number."""
    numbers = progressive(data, learner, seed)
    return {k: v for k, v in numbers.items() if k != "nsv" or not isinstance(learner, PassiveAggressive)}


def refusing(data: Dataset, learner: Any, seed: int) -> dict[str, float]:
    raise ValueError("this measure refuses")


FEW, MANY = Data("few", related, {"n_tasks": 2}), Data("many", related, {"n_tasks": 8}, quick_rows=50)
EXPERIMENT = Experiment(
    id="made/table1",
    title="A made table",
    source="nobody",
    protocol="as published",
    data=(FEW, MANY, replace(MANY, name="many, other", options={"n_tasks": 8, "seed": 1}, variant_of="many")),
    entrants=(
        Entrant("alone", "MultitaskPerceptron", {"relation": "independent"}),
        Entrant("together", "MultitaskPerceptron", {}, {"relation": (0.0, 2.0, 8.0)}),
        Entrant("PA", "PassiveAggressive"),
        Entrant("to come", "NoSuchLearner"),
    ),
    metrics=(Metric("error", "error %", -1, ".2f", scale=100), Metric("seconds", "s", 0, given=("PA",))),
    measure=progressive,
    seeds=4,
    variant_seeds=2,
    seconds=1,
    published={
        ("alone", "few", "error"): (0.0, 0.1), ("alone", "many", "error"): (99.0, 0.1),
        ("together", "many", "error"): (50.0, 49.9), ("PA", "many", "error"): (20.0, None),
        ("to come", "many", "error"): (1.0, None), ("PA", "many", "seconds"): (5.0, None),
    },
    tuning=Tuning(progressive, "error", -1, budget=2),
    champion="together",
    notes=("A note.",),
)  # fmt: skip

REPRODUCED = {("together", "many", "error"): (50.0, 49.9)}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The jobs that were really run."""
    jobs: list[Job] = []
    run = Job.run

    def noted(job: Job) -> Any:
        jobs.append(job)
        return run(job)

    monkeypatch.setattr(Job, "run", noted)
    return jobs


def numbers(outcome: Outcome) -> dict[Any, Any]:
    return {
        key: [
            {k: v for k, v in result.items() if k not in ("seconds", "wall", "rows_per_second", "origin")}
            for _, result in runs
        ]
        for key, runs in outcome.runs.items()
    }


def test_a_second_run_reads_what_the_first_kept(ran: list[Job]) -> None:
    assert str(state(EXPERIMENT)) == "not started"
    first = reproduce(EXPERIMENT)
    # Tuning: 3 data sets x 2 settings (the budget), and b = 8, chosen on all, moved off the end of its grid. Then 3
    # learners x (4 + 4 + 2 shuffles).
    assert len(ran) == 3 * (2 + 1) + 3 * (4 + 4 + 2) == state(EXPERIMENT).total
    assert str(state(EXPERIMENT)) == "cached"
    second = reproduce(EXPERIMENT)
    assert len(ran) == 39
    assert first.runs == second.runs
    assert first.moved == second.moved == recall(EXPERIMENT).moved
    assert [one.spec.parameters for moved in first.moved.values() for one in moved] == 3 * [{"relation": 2.0}]
    assert lines(first) == lines(second)


def test_a_killed_run_goes_on_where_it_was(ran: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    def kill_at_20(done: int, total: int) -> None:
        if done == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(EXPERIMENT, on_progress=kill_at_20)
    assert state(EXPERIMENT).done == 3 * (2 + 1) + 20
    assert str(state(EXPERIMENT)) == "74% cached"
    reproduce(EXPERIMENT)
    assert len(ran) == 39


def test_only_what_changed_is_run_again(ran: list[Job]) -> None:
    reproduce(EXPERIMENT)
    alone, together, pa, to_come = EXPERIMENT.entrants
    other = replace(pa, parameters={"C": 0.5})
    reproduce(replace(EXPERIMENT, entrants=(alone, together, other, to_come), seeds=5))
    assert len(ran) == 39 + 10 + 2 * (5 - 4) + 2 * 1 + 2 * 1  # all of PA; the fifth shuffle of all on two data sets
    again = len(ran)
    reproduce(replace(EXPERIMENT, data=(replace(FEW, options={"n_tasks": 3}),), published={}))
    assert len(ran) == again + 2 + 1 + 3 * 4


def test_what_is_kept_is_recalled_without_a_run(ran: list[Job]) -> None:
    assert recall(EXPERIMENT).runs == {}
    outcome = reproduce(EXPERIMENT)
    before = len(ran)
    assert recall(EXPERIMENT).runs == outcome.runs
    longer = recall(replace(EXPERIMENT, seeds=5))
    assert {data for _, data in longer.runs} == {"many, other"}  # the others lack a shuffle
    assert len(ran) == before


def test_a_change_of_the_code_is_a_change(ran: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    reproduce(EXPERIMENT, quick=True)
    before = len(ran)
    monkeypatch.setattr("shoal.papers.runner.version_of", lambda modules: "changed")
    reproduce(EXPERIMENT, quick=True)
    assert len(ran) == 2 * before


def sparse_and_named() -> Dataset:
    data = related(3)
    return replace(data, X=csr_matrix(np.where(data.X > 0, data.X, 0)), task=np.array(["a", "Öre", "ccc"])[data.task])


def not_in_one_piece(n_tasks: int) -> Dataset:
    data = related(n_tasks)
    return replace(data, X=np.asfortranarray(data.X)[::2], y=data.y[::2], task=data.task.astype(str)[::2])


@pytest.mark.parametrize("loader", [related, sparse_and_named, not_in_one_piece])
def test_prepared_data_come_back_as_they_were(loader: Any) -> None:
    data = Data("data", loader, {} if loader is sparse_and_named else {"n_tasks": 3})
    new, kept = store.prepare(data, quick=False), store.prepare(data, quick=False)
    assert new == kept
    loaded, asked = store.load(kept), data.load(**data.options)
    assert type(loaded.X) is type(asked.X)
    np.testing.assert_array_equal(_dense(loaded.X), _dense(asked.X))
    for one, other in ((loaded.y, asked.y), (loaded.task, asked.task)):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    assert (loaded.name, loaded.kind) == ("data", asked.kind)


def _dense(X: Any) -> Any:
    return X.toarray() if issparse(X) else X


def test_processes_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = reproduce(EXPERIMENT, quick=True)
    monkeypatch.setenv("SHOAL_CACHE", str(tmp_path / "other"))
    two = reproduce(EXPERIMENT, quick=True, n_jobs=2)
    assert numbers(one) == numbers(two)


def test_a_backend_that_gives_results_all_at_once_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """As Ray does, and processes that fork."""
    one = reproduce(EXPERIMENT, quick=True)
    monkeypatch.setenv("SHOAL_CACHE", str(tmp_path / "other"))
    with parallel_config(backend="threading"):
        monkeypatch.setattr(ThreadingBackend, "supports_return_generator", False)
        two = reproduce(EXPERIMENT, quick=True, n_jobs=-1)
    assert numbers(one) == numbers(two)


def test_parameters_are_those_best_on_the_held_out_shuffle() -> None:
    chosen = reproduce(EXPERIMENT).runs["together", "many"][0][0]
    points = EXPERIMENT.entrants[1].points(MANY, 2)
    errors = [progressive(related(8), _built(point), 1000)["error"] for point in points]
    assert len(points) == 2
    assert errors[0] != errors[1]
    assert chosen == points[int(np.argmin(errors))]


def _built(spec: Any) -> Any:
    return build(spec, 0)


def test_verdicts() -> None:
    rows = {(row.entrant, row.data, row.metric.name): row for row in reproduce(EXPERIMENT).rows()}
    assert rows["alone", "few", "error"].verdict == "worse"
    assert rows["alone", "many", "error"].verdict == "better"
    assert rows["together", "many", "error"].verdict == "reproduced"
    assert rows["PA", "few", "error"].verdict == "not in the paper"
    assert rows["to come", "many", "error"].verdict == "not yet"
    assert rows["PA", "many", "seconds"].verdict == "given"
    mine = rows["alone", "few", "error"]
    values = [100 * progressive(related(2), _built(EXPERIMENT.entrants[0].spec(FEW)), s)["error"] for s in range(4)]
    assert mine.ours == pytest.approx(np.mean(values))
    assert mine.deviation == pytest.approx(np.std(values, ddof=1))
    assert mine.difference == mine.ours


def test_relative_to_a_reference() -> None:
    """Whose own number is not compared; the others within the metric's factor."""
    error = EXPERIMENT.metrics[0]
    ours = {row.entrant: row.ours for row in reproduce(EXPERIMENT).rows() if (row.data, row.metric) == ("few", error)}
    published = {
        ("alone", "few", "error"): (10.0, None),
        ("PA", "few", "error"): (10 * ours["PA"] / ours["alone"], None),
    }
    one = replace(EXPERIMENT, published=published, reference=lambda entrant, data, metric: [("alone", data, metric)])
    rows = {row.entrant: row for row in reproduce(one).rows() if row.paper is not None}
    assert (rows["alone"].verdict, rows["PA"].verdict) == ("reference", "reproduced")
    assert rows["PA"].relative == pytest.approx((ours["PA"] / ours["alone"],) * 2)
    for factor, verdict in ((0.8, "worse"), (1.2, "better")):
        other = {**published, ("PA", "few", "error"): (factor * published["PA", "few", "error"][0], None)}
        rows = {row.entrant: row for row in reproduce(replace(one, published=other)).rows() if row.paper is not None}
        assert rows["PA"].verdict == verdict


def test_what_variants_give_is_said_for_published_numbers() -> None:
    said = lines(reproduce(replace(EXPERIMENT, published=REPRODUCED)))
    tried = [line for line in said if line.startswith("- tried for")]
    assert len(tried) == 1
    assert "many / together" in tried[0]
    assert "many, other" in tried[0]


def test_a_number_that_a_learner_does_not_have_is_no_row() -> None:
    one = replace(EXPERIMENT, data=(FEW,), metrics=(*EXPERIMENT.metrics, Metric("nsv", "nSV", -1)), published={})
    one = replace(one, measure=without_nsv)
    assert {row.entrant for row in reproduce(one).rows() if row.metric.name == "nsv"} == {"alone", "together"}
    paper = replace(one, published={("PA", "few", "nsv"): (1.0, None)})
    assert [row.verdict for row in reproduce(paper).rows() if (row.entrant, row.metric.name) == ("PA", "nsv")] == [
        "failed"
    ]


def test_a_data_set_that_goes_without_a_learner_has_no_row_of_it() -> None:
    one = replace(EXPERIMENT, data=(replace(FEW, without=("PA",)), MANY), published={}, seeds=2)
    rows = {(row.data, row.entrant) for row in reproduce(one).rows() if row.entrant != "to come"}
    assert rows == {(data, name) for data in ("few", "many") for name in ("alone", "together", "PA")} - {("few", "PA")}
    with pytest.raises(ValueError, match=r"'few' is without \['nobody'\], which are no entrants"):
        replace(one, data=(replace(FEW, without=("nobody",)),))


def test_a_learner_of_another_package_goes_by_its_full_name() -> None:
    ridge = Spec("sklearn.linear_model.Ridge", {"alpha": 3.0})
    learner = build(Spec("IndependentTasks", {"estimator": ridge}), 0)
    assert isinstance(learner.estimator, Ridge)
    assert learner.estimator.alpha == 3.0
    assert modules(Spec("IndependentTasks", {"estimator": ridge})) == {
        "shoal.batch.independent_tasks", "sklearn.linear_model._ridge",
    }  # fmt: skip


def test_data_that_is_not_there_and_measures_that_refuse_are_said() -> None:
    outcome = reproduce(
        replace(EXPERIMENT, data=(FEW, Data("gone", absent)), published={("PA", "gone", "error"): (1.0, None)})
    )
    (row,) = [row for row in outcome.rows() if row.data == "gone"]
    assert (row.verdict, row.why) == ("no data", "the data set absent needs a file that is not there")
    assert {row.verdict for row in outcome.rows() if row.data == "few"} == {"not in the paper"}
    outcome = reproduce(replace(EXPERIMENT, data=(FEW,), measure=refusing, published={}))
    assert {(row.verdict, row.why) for row in outcome.rows()} == {("failed", "this measure refuses")}


def test_quick_runs_are_small_apart_and_compared_with_nothing(ran: list[Job]) -> None:
    outcome = reproduce(EXPERIMENT, quick=True)
    assert len(ran) == 2 * 2 + 2 * 3 * 2  # no variants
    assert state(EXPERIMENT).done == 0
    assert {row.verdict for row in outcome.rows()} == {"not comparable", "not in the paper", "not yet"}
    assert any("QUICK" in line for line in lines(outcome))


def test_ranks() -> None:
    few, many = rankings(reproduce(replace(EXPERIMENT, seeds=12)))
    assert many.names == ["alone", "together", "PA"]
    assert many.ranks.sum() == pytest.approx(6)
    assert many.ranks[1] < many.ranks[0]
    assert many.against["alone"] < 0.05
    assert (many.n, many.of) == (12, "shuffles")
    assert np.isnan(few.agreement)
    assert -1 <= many.agreement <= 1


def test_ranks_over_data_sets() -> None:
    data = tuple(Data(f"{n} tasks", related, {"n_tasks": n}) for n in (4, 8, 12))
    *each, overall = rankings(reproduce(replace(EXPERIMENT, data=data, published={})))
    assert len(each) == 3
    assert (overall.data, overall.n, overall.of) == ("all data sets", 3, "data sets")
    assert overall.ranks[1] < overall.ranks[0]


def test_the_page_holds_every_row_and_says_why(tmp_path: Path) -> None:
    outcome = reproduce(replace(EXPERIMENT, figure=beside))
    write_page(tmp_path / "page.html", [outcome])
    page = (tmp_path / "page.html").read_text()
    rows = outcome.rows()
    assert page.count("<td title=") == len(rows)
    assert page.count('class="theirs"') == sum(row.paper is not None for row in rows) == len(EXPERIMENT.published)
    for row in rows:
        assert (
            number(row.ours, row.deviation if row.shuffles > 1 and row.metric.better else None, row.metric.form) in page
        )
    for words in (
        "shoal reproduce made/table1",
        "A note.",
        "6 printed numbers. Compared are 5",
        "1 more are given",
        "not yet: this",
    ):
        assert words in page
    assert f"{origin()['date']} on {machine()}, {code()} &middot; <code>" in page
    assert ROW_SIGNS["worse"] in page  # a verdict is never a color alone
    picture = page[page.index("<figure>") : page.index("</figure>")]
    assert re.search(r'<svg role="img" aria-label="[^"]+"', picture)
    assert "graphics-" not in picture  # marks are no pictures of their own
    assert set(re.findall(r'="(#[0-9a-f]{6})"', picture)) <= DARK.keys()
    assert all(f'figure [stroke="{light}"] {{ stroke: {dark}; }}' in page for light, dark in DARK.items())
    assert 'aria-label="papers"><a href="#claims">' in page
    with pytest.raises(ValueError, match="at least one"):
        write_page(tmp_path / "page.html", [])
    with pytest.raises(FileNotFoundError, match="make it first"):
        write_page(tmp_path / "no" / "page.html", [outcome])


def test_a_paper_opens_with_its_claims_judged(tmp_path: Path) -> None:
    """From what is there: these runs are none, so every claim says which command would judge it."""
    known = experiments()["cavallanti/table3"]
    write_page(tmp_path / "page.html", [Outcome(known, {}, {}, quick=False)])
    page = (tmp_path / "page.html").read_text()
    assert page.index("13 claims: 2 cannot be tested here, 11 not run yet.") < page.index("printed numbers")
    for claim in claims():
        assert (f'id="claim-{claim.id}"' in page) == (claim.paper == "cavallanti")
    assert "Not run yet: <code>shoal reproduce cavallanti/table3</code>" in page
    assert "the paper's</th><th>ours" in page


def test_a_table_has_the_papers_layout() -> None:
    """A line a learner and a column a number; with one learner a column a data set; cut where it would be too wide."""
    (wide,) = tables(reproduce(EXPERIMENT))
    assert [name for name, _ in wide.lines] == ["alone", "together", "PA", "to come"]
    assert (wide.groups, wide.columns) == ([("few", 2), ("many", 2)], ["error %", "s", "error %", "s"])
    many = tuple(Data(f"{n} tasks", related, {"n_tasks": n}) for n in range(2, 12))
    one = replace(EXPERIMENT, data=many, entrants=EXPERIMENT.entrants[:1], published={}, seeds=1)
    first, second = tables(reproduce(one))
    assert (len(first.columns), len(second.columns)) == (8, 2)
    assert [name for name, _ in first.lines] == ["error %", "s"]


def test_without_published_numbers_there_are_no_columns_for_them() -> None:
    outcome = reproduce(replace(EXPERIMENT, data=(FEW,), published={}), quick=True)
    headings = next(line for line in lines(outcome) if line.startswith("data"))
    assert headings.split() == ["data", "learner", "ours"]
    seconds = sum(outcome.seconds.values())
    assert len(outcome.seconds) > 0 < seconds
    assert lines(outcome)[-1].endswith(f"of one core; run {origin()['date']} on {machine()}, {code()}")


def test_names_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"no entrant, data set and metric are called \('PA', 'far', 'error'\)"):
        replace(EXPERIMENT, published={("PA", "far", "error"): (1.0, None)})
    with pytest.raises(ValueError, match="has a grid but there is no tuning"):
        replace(EXPERIMENT, tuning=None)
