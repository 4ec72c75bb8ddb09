"""`shoal reproduce`: the list, one experiment, errors."""

from __future__ import annotations

import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.cli.conftest import Program

from shoal import PassiveAggressive
from shoal.datasets import Dataset, make_related_tasks
from shoal.papers import Data, Entrant, Experiment, Metric, Tuning
from shoal.papers.pictures import beside
from shoal.papers.protocols import progressive


@pytest.fixture(autouse=True)
def made_papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two made experiments in place of the papers', and a cache of their own."""
    monkeypatch.setenv("SHOAL_CACHE", str(tmp_path / "cache"))
    made = [
        Experiment(
            id=f"made/table{i}", title=f"Made table {i}", source="nobody", protocol="as published",
            data=(Data("related", make_related_tasks, {"n_tasks": i + 2}),),
            entrants=(Entrant("PA", "PassiveAggressive"), Entrant("later", "NoSuchLearner")),
            metrics=(Metric("error", "error", -1),), measure=progressive, seeds=2, seconds=30, figure=beside,
            published={("PA", "related", "error"): (0.25, 0.3)},
        )
        for i in (1, 2)
    ]  # fmt: skip
    monkeypatch.setattr(
        "shoal.cli.commands.reproduce.experiments", lambda: {experiment.id: experiment for experiment in made}
    )


def test_without_arguments_it_lists_states_and_times(shoal: Program) -> None:
    code, out, _ = shoal("reproduce")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if line.startswith("made/")] == ["made/table1", "made/table2"]
    assert "not started" in out
    assert "30 s" in out
    assert "without later (not yet)" in out


def test_one_is_run_and_then_known(shoal: Program) -> None:
    code, out, err = shoal("reproduce", "made/table1")
    assert (code, err) == (0, "")
    assert "0.2500 ± 0.3000" in out
    assert "reproduced" in out
    assert "Made table 2" not in out
    assert shoal("reproduce", "made/table1")[1] == out
    listed = shoal("reproduce")[1].splitlines()
    assert "cached" in listed[1]
    assert "not started" in next(line for line in listed if line.startswith("made/table2"))


def test_claims_are_judged_by_what_is_kept(shoal: Program) -> None:
    code, out, err = shoal("reproduce", "--claims")
    assert (code, err) == (0, "")
    assert "claims: " in out.splitlines()[-2]
    assert "chosen settings" not in out  # nothing was tuned
    assert out.count("not run yet") > 30  # the made experiments are none of the papers'


def by_c(data: Dataset, learner: PassiveAggressive, seed: int) -> dict[str, float]:
    """The larger C the better."""
    return {"error": 1.0 / learner.C}


def test_a_setting_on_an_edge_is_the_exit_code(shoal: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = Experiment(
        id="made/tuned", title="t", source="s", protocol="as published",
        data=(Data("related", make_related_tasks, {"n_tasks": 2}),),
        entrants=(Entrant("PA", "PassiveAggressive", {}, {"C": (0.1, 1.0, 10.0)}),),
        metrics=(Metric("error", "error", -1),), measure=by_c, seeds=1, seconds=1, tuning=Tuning(by_c, "error", -1),
    )  # fmt: skip
    monkeypatch.setattr("shoal.cli.commands.reproduce.experiments", lambda: {wide.id: wide})
    said = ["1 of 1 chosen settings lie on an edge of their grid.",
            "- related / PA: C=10 is the end of its grid (0.1, inside 1)"]  # fmt: skip
    assert shoal("reproduce", "--all", "--quick")[0] == 0  # two settings tell nothing
    for arguments in ("--all", "--claims"):
        code, out, err = shoal("reproduce", arguments)
        assert (code, err) == (1, "")
        assert out.splitlines()[-2:] == said


def test_a_paper_or_all_with_page_and_pictures(shoal: Program, tmp_path: Path) -> None:
    page, figures = tmp_path / "page.html", tmp_path / "figures"
    code, out, _ = shoal("reproduce", "made", "--quick", "--report", page, "--figures", figures)
    assert code == 0
    assert out.count("A QUICK RUN") == 2
    assert {path.name for path in figures.iterdir()} == {
        f"made-table{i}.{ending}" for i in (1, 2) for ending in ("png", "svg")
    }
    assert "made-table2" in page.read_text()
    assert shoal("reproduce", "--all", "--quick")[1].splitlines() == out.splitlines()[:-2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["made/table3"], "there is no experiment 'made/table3' (did you mean made/table2?); `shoal reproduce` lists"),
        (["made", "--report", "/no/such/page.html"], "the folder /no/such for --report does not exist; make it first"),
        (["made", "--cluster", "local", "--jobs", "2"], "--cluster takes all cores of the cluster: leave out --jobs"),
        (["made", "--backend", "pigeons"], "--backend must be one of loky, threading, multiprocessing, dask, got"),
    ],
)
def test_errors_are_one_line(shoal: Program, arguments: list[str], message: str) -> None:
    code, out, err = shoal("reproduce", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"shoal: {message}")
    assert err.count("\n") == 1


def absent(n: int) -> Dataset:
    raise FileNotFoundError("the data set absent needs a file")


def test_where_nothing_could_run_the_reason_is_said_once(shoal: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = Experiment(
        id="made/empty", title="t", source="s", protocol="as published",
        data=tuple(Data(f"absent {i}", absent, {"n": i}) for i in range(3)),
        entrants=(Entrant("PA", "PassiveAggressive"),), metrics=(Metric("error", "error", -1),),
        measure=progressive, seeds=1, seconds=1,
    )  # fmt: skip
    monkeypatch.setattr("shoal.cli.commands.reproduce.experiments", lambda: {empty.id: empty})
    code, out, _ = shoal("reproduce", "made")
    assert code == 1
    assert out.count("the data set absent needs a file") == 1
    assert "- without absent 0, absent 1, absent 2: the data set absent needs a file" in out
    assert "no data" not in out  # a table of nothing
    assert out.splitlines()[-1] == "Nothing could run of made/empty: see the reasons above."


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_workers_and_says_what_is_kept(
    shoal: Program, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    ended: list[bool] = []
    executor = SimpleNamespace(shutdown=lambda *, kill_workers: ended.append(kill_workers))
    monkeypatch.setattr("shoal.cli.commands.reproduce.get_reusable_executor", lambda: executor)
    monkeypatch.setattr("shoal.cli.commands.reproduce.reproduce", lambda *_, **__: signal.raise_signal(number))
    before = signal.getsignal(number)
    code, out, err = shoal("reproduce", "made/table1")
    assert (code, out, ended) == (128 + number, "", [True])
    assert err.startswith(f"shoal: stopped by {number.name}: the runs that are done are kept in ")
    assert err.endswith("/cache, and the same command goes on from there\n")
    assert signal.getsignal(number) is before
