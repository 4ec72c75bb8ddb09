"""The same budget for every learner, on grids that are wide enough."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from shoal.papers import controls, romco
from shoal.papers.experiment import Entrant, Experiment, Metric, Tuning
from shoal.papers.fairness import at_ends, edges, moved_inside
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


def test_the_end_of_a_parameters_own_range_is_no_edge() -> None:
    assert not edges(tried({0.0: 0.9, 0.5: 0.7, 1.0: 0.6}, "alpha"))


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


def test_romco_and_its_rivals_have_one_budget_and_wide_grids() -> None:
    for table in (romco.TABLE_2, romco.TABLE_4, romco.TABLE_5, controls.ROMCO):
        assert table.tuning is not None
        assert table.tuning.budget == romco.BUDGET >= 200
    for entrant in romco.ENTRANTS:
        if entrant.learner == "ROMCO":
            assert len(entrant.points(romco.MHC, romco.BUDGET)) == romco.BUDGET
            assert min(entrant.grid["eta"]) <= 3e-4
            assert max(entrant.grid["lambda1"]) >= 10
    for one, other in combinations((e for e in romco.ENTRANTS if e.learner == "ROMCO"), 2):
        mine, theirs = (
            {
                str(sorted((k, v) for k, v in spec.parameters.items() if k != "penalty"))
                for spec in e.points(romco.MHC, 200)
            }
            for e in (one, other)
        )
        assert len(mine & theirs) < 50  # other points, not the same 200
