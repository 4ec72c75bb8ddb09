"""The same budget for every learner, on grids that are wide enough."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest

from shoal.papers import experiments
from shoal.papers.by_paper import osmtl, romco
from shoal.papers.experiment import Data, Entrant, Experiment, Metric, Tuning
from shoal.papers.fairness import at_ends, edges, ends, moved_inside, number
from shoal.papers.learners import Spec
from shoal.papers.outcome import Outcome, Tried
from shoal.papers.protocols import progressive


def tried(values: dict[float, float], name: str = "C") -> Outcome:
    """One learner whose settings had these scores."""
    experiment = Experiment(
        id="made/one", title="t", source="s", protocol="as published", data=(romco.MHC,),
        entrants=(Entrant("learner", "PassiveAggressive", {}, {name: tuple(values)}),),
        metrics=(Metric("auc", "AUC", +1),), measure=progressive, seeds=1, seconds=1,
        tuning=Tuning(progressive, "auc", +1),
    )  # fmt: skip
    found = [Tried(Spec("PassiveAggressive", {name: value}), score) for value, score in values.items()]
    return Outcome(experiment, {}, {}, False, tuned={("learner", "MHC-I"): found})


def test_a_best_setting_on_an_edge_is_found() -> None:
    (edge,) = edges(tried({0.1: 0.70, 1.0: 0.72, 10.0: 0.80}))
    assert (edge.entrant, edge.parameter, edge.value) == ("learner", "C", 10.0)
    assert "C=10 is the end of its grid (0.8, inside 0.72)" in str(edge)
    assert not edges(tried({0.1: 0.70, 1.0: 0.80, 10.0: 0.72}))
    assert not edges(tried({0.1: 0.70, 1.0: 0.799, 10.0: 0.80}))  # flat: nothing to gain beyond


def test_edges_of_an_error() -> None:
    """Its score is the error with its sign turned, and half a percent of it is nothing to gain."""
    assert not edges(tried({0.1: -0.3, 1.0: -0.2001, 10.0: -0.2}))
    (edge,) = edges(tried({0.1: -0.2, 1.0: -0.21, 10.0: -0.3}))
    assert (edge.value, edge.best, edge.inside) == (0.1, 0.2, 0.21)
    for inside, n_edges in ((199.0, 0), (198.99, 1)):  # of 200, half a percent is 1
        assert len(edges(tried({1.0: 200.0, 2.0: inside, 3.0: 0.0}))) == n_edges
        assert len(edges(tried({1.0: -200.0, 2.0: inside - 400.0, 3.0: -900.0}))) == n_edges


def test_where_nothing_is_inside_every_end_counts_and_a_quick_run_tells_nothing() -> None:
    two = tried({1.0: 0.5, 2.0: 0.5})
    (edge,) = edges(two)
    assert (edge.data, edge.value, edge.inside) == ("MHC-I", 1.0, math.inf)
    assert edges(replace(two, quick=True)) == []


def test_numbers_of_a_grid() -> None:
    ridge = Spec("sklearn.linear_model.Ridge", {"alpha": 2.0, "fit_intercept": False})
    assert [number(value) for value in (3, 0.5, True, "auto", None, ridge)] == [3.0, 0.5, None, None, None, 2.0]
    assert number(Spec("x", {"a": 1, "b": 2})) is None
    assert ends([3, "auto", 1, 2]) == (1, 3)
    assert ends([3, "auto"]) == ()
    assert ends([3, 4]) == (3, 4)


def test_a_step_inside_goes_to_the_nearest_value() -> None:
    entrant = tried({1.0: 0.0, 2.0: 0.0, 10.0: 0.0, 100.0: 0.0}).experiment.entrants[0]
    for end, nearest in ((1.0, 2.0), (100.0, 10.0)):
        [spec] = moved_inside(entrant, Spec("PassiveAggressive", {"C": end, "other": 7}))
        assert spec.parameters == {"C": nearest, "other": 7}
    assert [*moved_inside(entrant, Spec("PassiveAggressive", {"C": 2.0}))] == []
    zero = tried({0.0: 0.0, 0.9: 0.0, 0.95: 0.0, 5.0: 0.0}).experiment.entrants[0]
    for end, nearest in ((0.0, 0.9), (5.0, 0.95)):
        assert [spec.parameters["C"] for spec in moved_inside(zero, Spec("PassiveAggressive", {"C": end}))] == [nearest]
    few = Entrant("few", "PassiveAggressive", {}, {"C": (0.0, 0.9, 5.0)})
    assert [spec.parameters["C"] for spec in moved_inside(few, Spec("PassiveAggressive", {"C": 5.0}))] == [0.9]
    [edge] = edges(tried({0.0: 0.9, 1.0: 0.5, 2.0: 0.4}))
    assert edge.value == 0.0
    natural = Entrant("one", "OSMTL", {}, {"alpha": (0.0, 0.5, 1.0), "C": (1.0, 2.0, 3.0)})
    assert [*at_ends(natural, Spec("OSMTL", {"alpha": 1.0, "C": 3.0}))] == ["C"]


@pytest.mark.parametrize(
    ("name", "values", "counts"),
    [
        ("alpha", (0.0, 0.5, 1.0), ()), ("pull", (0.0, 0.5, 1.0), ()), ("pull", (0.1, 0.5, 0.9), (0.1, 0.9)),
        ("relation", (0.0, 1.0, 8.0), (8.0,)), ("relation", (1.0, 2.0, 3.0), (1.0, 3.0)), ("p", (1.0, 1.5, 2.0), ()),
        ("p", (1.5, 2.5, 3.0), (1.5, 3.0)), ("n_hypotheses", (1, 5, 19), ()), ("n_hypotheses", (2, 5, 20), (2.0, 20.0)),
    ],
)  # fmt: skip
def test_the_end_of_a_parameters_own_range_is_no_edge(
    name: str, values: tuple[float, ...], counts: tuple[float, ...]
) -> None:
    first, middle, last = values
    found = [
        edges(tried({first: 0.9, middle: 0.5, last: 0.4}, name)),
        edges(tried({first: 0.4, middle: 0.5, last: 0.9}, name)),
    ]
    assert [edge.value for some in found for edge in some] == list(counts)


def test_a_value_that_costs_nothing_to_move_inside_is_no_edge() -> None:
    """The others inside may be worse for other reasons."""
    outcome = tried({0.1: 0.70, 1.0: 0.72, 10.0: 0.80})
    chosen = max(outcome.tuned["learner", "MHC-I"], key=lambda one: one.score).spec
    (inside,) = moved_inside(outcome.experiment.entrants[0], chosen)
    assert inside.parameters == {"C": 1.0}
    for score, n_edges in ((0.799, 0), (0.75, 1)):
        assert len(edges(replace(outcome, moved={("learner", "MHC-I"): [Tried(inside, score)]}))) == n_edges


def test_a_number_within_a_learner_has_ends_too() -> None:
    ridges = [Spec("sklearn.linear_model.Ridge", {"alpha": a, "fit_intercept": False}) for a in (1.0, 2.0, 3.0)]
    entrant = Entrant("ridge", "IndependentTasks", {}, {"estimator": ridges})
    assert [list(at_ends(entrant, entrant.spec(romco.MHC, {"estimator": one}))) for one in ridges] == [
        ["estimator"], [], ["estimator"],
    ]  # fmt: skip


TUNED = [experiment for experiment in experiments().values() if experiment.tuning is not None]


def ids(experiment: Experiment) -> str:
    return experiment.id


@pytest.mark.parametrize("experiment", TUNED, ids=ids)
def test_who_is_not_tuned_has_a_reason(experiment: Experiment) -> None:
    assert [e.name for e in experiment.entrants if bool(e.grid) == bool(e.untuned)] == []


@pytest.mark.parametrize("experiment", TUNED, ids=ids)
def test_all_may_try_as_many_settings_on_wide_grids(experiment: Experiment) -> None:
    """Who tries fewer tries all of a grid that has fewer parameters than the grids of those who try more."""
    assert experiment.tuning is not None
    budget, data = experiment.tuning.budget, experiment.data[0]
    parameters: dict[bool, list[int]] = {True: [], False: []}  # by whether the whole budget is taken
    for entrant in experiment.entrants:
        numbers = [values for values in entrant.grid.values() if len(ends(values)) == 2]
        assert all(len(values) >= 5 for values in numbers), entrant.name  # else most settings lie on an end
        n_tried, size = len(entrant.points(data, budget)), math.prod(map(len, entrant.grid.values()))
        assert n_tried == (min(budget, size) if entrant.grid else 1)
        if entrant.grid:
            parameters[size >= budget].append(len(numbers))
    assert not parameters[True] or max(parameters[False], default=0) <= max(parameters[True])


def test_experiments_of_one_paper_on_the_same_data_have_one_budget() -> None:
    """So that controls are tuned like what they control."""
    for table, control in ((osmtl.ONLINE, osmtl.CONTROLS), (romco.TABLE_4, romco.CONTROLS)):
        assert table.tuning is not None
        assert table.tuning == control.tuning


def test_learners_that_share_parameters_try_the_same_values_of_them() -> None:
    """So that what separates them is not the luck of a draw."""
    one, other = (e for e in romco.ENTRANTS if e.learner == "ROMCO")
    fixed = next(e for e in osmtl.CONTROLS.entrants if e.name == "uniform attention")
    learned = next(e for e in osmtl.ENTRANTS if e.name == "OSMTL-e")

    def tried(entrant: Entrant, data: Data, names: tuple[str, ...], budget: int) -> list[tuple[object, ...]]:
        return [tuple(spec.parameters[name] for name in names) for spec in entrant.points(data, budget)]

    names = tuple(one.grid)
    assert tried(one, romco.MHC, names, romco.BUDGET) == tried(other, romco.MHC, names, romco.BUDGET)
    shared = [set(tried(entrant, osmtl.SPAM, ("alpha", "C"), 60)) for entrant in (fixed, learned)]
    assert len(shared[0] & shared[1]) > 55
    for name in names:  # every value about as often as any other
        counts = Counter(tried(one, romco.MHC, (name,), romco.BUDGET)).values()
        assert max(counts) - min(counts) <= 1
