"""search: the scores are those of a loop written out, folds are within tasks, and the best is trained on all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import ParameterGrid
from tests.streams import draw

import shoal
from shoal import OSMTL, MultitaskPerceptron, MultitaskRegressor, RegMTL, TraceNorm
from shoal.evaluation import Periodic, Trial, search
from shoal.evaluation.tuning import GRIDS, _folds

ROWS, REAL = draw(0, n_rows=300), draw(0, n_rows=300, regression=True)
DATA = (ROWS.X, ROWS.y, ROWS.task)
GRID = {"mu": [0.01, 1.0, 100.0], "C": [0.01, 1.0]}


def shuffled_codes(n_tasks: int = 7, n: int = 103) -> np.ndarray:
    return np.random.default_rng(3).integers(n_tasks, size=n)


@pytest.mark.parametrize("k", [2, 5])
def test_folds_are_within_tasks(k: int) -> None:
    code = shuffled_codes()
    folds = _folds(RegMTL(), code, "folds", k, 0)
    assert sorted(np.concatenate([fold.judged for fold in folds]).tolist()) == list(range(len(code)))
    for fold in folds:
        assert sorted([*fold.learned, *fold.judged]) == list(range(len(code)))
        assert (np.diff(fold.learned) > 0).all()  # in the order of the stream
        share = np.bincount(code[fold.judged], minlength=7) / np.bincount(code)
        assert (np.abs(share - 1 / k) * np.bincount(code) < 1).all()
    other = _folds(RegMTL(), code, "folds", k, 1)
    assert any(a.judged.tolist() != b.judged.tolist() for a, b in zip(folds, other, strict=True))


@pytest.mark.parametrize("macro", [False, True])
@pytest.mark.parametrize("metric", ["error", "auc"])
def test_the_scores_are_those_of_the_loop_written_out(metric: str, macro: bool) -> None:
    grid, rows = GRID, ROWS
    if metric == "auc" and macro:  # of tasks with 100 judged rows
        grid, rows = {"mu": [1.0], "C": [0.01, 1.0]}, draw(0, n_rows=2_000)
    data = (rows.X, rows.y, rows.task)
    how: dict[str, Any] = {"metric": metric, "macro": macro, "validation": "folds", "n_folds": 3, "random_state": 0}
    found = search(RegMTL(), *data, parameters=grid, **how)
    folds = _folds(RegMTL(), rows.task, "folds", 3, 0)
    assert len(found.trials) == len(ParameterGrid(grid))
    for trial in found.trials:
        for fold, score in zip(folds, trial.scores, strict=True):
            a, b = fold
            model = RegMTL(**trial.parameters).fit(rows.X[a], rows.y[a], rows.task[a])
            answers, truth, task = model.decision_function(rows.X[b], rows.task[b]), rows.y[b], rows.task[b]
            assert not macro or metric == "error" or np.bincount(task).min() >= 100
            groups = [task == t for t in range(5)] if macro else [np.ones(len(b), bool)]
            if metric == "error":
                expected = [np.mean((answers[g] >= 0) != (truth[g] > 0)) for g in groups]
            else:
                expected = [roc_auc_score(truth[g], answers[g]) for g in groups]
            assert score == pytest.approx(np.mean(expected))
    scores = [trial.score for trial in found.trials]
    assert scores == sorted(scores, reverse=metric == "auc")
    assert found.best_score == scores[0] == np.mean(found.trials[0].scores)
    again = RegMTL(**found.best_params).fit(*data).decision_function(rows.X, rows.task)
    np.testing.assert_array_equal(found.best_learner.decision_function(rows.X, rows.task), again)


def test_a_shuffle_is_answered_before_it_is_learned() -> None:
    found = search(MultitaskPerceptron(), *DATA, parameters={"relation": [0.0, 1.0, 50.0]}, validation="shuffle",
                   random_state=1)  # fmt: skip
    order = np.random.default_rng(1).permutation(len(ROWS.y))
    for trial in found.trials:
        learner = MultitaskPerceptron(**trial.parameters)
        answers = learner.test_then_train(ROWS.X[order], ROWS.y[order], ROWS.task[order])
        assert trial.scores == (np.mean((answers >= 0) != (ROWS.y[order] > 0)),)


def test_a_shuffle_of_the_simultaneous_protocol_has_whole_rounds() -> None:
    [fold] = _folds(OSMTL(), ROWS.task, "shuffle", 5, 0)
    task = ROWS.task[fold.judged]
    assert sorted(fold.judged.tolist()) == list(range(len(task)))
    smallest = np.bincount(task).min()
    for r in range(smallest):
        assert len(set(task[5 * r : 5 * r + 5].tolist())) == 5
    found = search(OSMTL(), *DATA, parameters={"alpha": [0.1, 0.9]}, validation="shuffle", random_state=0)
    assert all(0 < trial.score < 0.5 for trial in found.trials)


def test_a_estimator_on_a_shuffle_is_judged_on_one_fold() -> None:
    found = search(TraceNorm(), *DATA, parameters={"rho": [0.01, 0.1]}, validation="shuffle", n_folds=4, random_state=0)
    first = _folds(TraceNorm(), ROWS.task, "folds", 4, 0)[0]
    for trial in found.trials:
        model = TraceNorm(**trial.parameters).fit(*(part[first.learned] for part in DATA))
        assert trial.score == pytest.approx(1 - model.score(*(part[first.judged] for part in DATA)))


def test_random_draws() -> None:
    parameters = {"mu": loguniform(1e-3, 1e3), "C": [0.01, 1.0]}
    first, again = (search(RegMTL(), *DATA, parameters=parameters, n_draws=5, n_folds=2, random_state=3) for _ in "ab")
    assert [t[:2] for t in first.trials] == [t[:2] for t in again.trials]
    assert len({t.parameters["mu"] for t in first.trials}) == 5
    assert all(1e-3 <= t.parameters["mu"] <= 1e3 for t in first.trials)
    few = search(RegMTL(), *DATA, parameters=GRID, n_draws=100, n_folds=2)  # the grid has no more
    assert len(few.trials) == 6


def test_regression_and_the_online_learners_of_periodic() -> None:
    rows = (REAL.X, REAL.y, REAL.task)
    found = search(MultitaskRegressor(), *rows, parameters={"eta": [0.001, 0.05]}, n_folds=3, random_state=0)
    assert (found.metric, found.best_params) == ("rmse", {"eta": 0.05})
    assert found.best_learner.score(*rows) > 0.5
    periodic = search(Periodic(TraceNorm(), every=50), *DATA, parameters={"estimator__rho": [0.01, 10.0]},
                      validation="shuffle", random_state=0)  # fmt: skip
    assert periodic.best_params == {"estimator__rho": 0.01}


def test_data_of_any_kind_and_processes() -> None:
    import polars as pl

    frame, words = pl.DataFrame(ROWS.X, schema=list("abcdefg")), np.where(ROWS.y > 0, "yes", "no")
    ids = [("user", k) for k in ROWS.task.tolist()]
    options: dict[str, Any] = {"parameters": {"relation": [0.0, 3.0]}, "n_folds": 2, "random_state": 0}
    plain = search(MultitaskPerceptron(), *DATA, **options)
    named = search(MultitaskPerceptron(), frame, words, ids, n_jobs=2, **options)
    assert [t[:2] for t in named.trials] == [t[:2] for t in plain.trials]
    assert named.best_learner.feature_names_in_.tolist() == list("abcdefg")
    assert set(named.best_learner.predict(frame, ids)) == {"no", "yes"}
    sparse = search(MultitaskPerceptron(), ROWS.sparse, ROWS.y, ROWS.task, **options)
    assert [t[:2] for t in sparse.trials] == [t[:2] for t in plain.trials]


def test_what_a_learner_refuses_is_listed_last() -> None:
    seen: list[Trial] = []
    found = search(RegMTL(), *DATA, parameters={"mu": [-1.0, 1.0, 0.1]}, n_folds=2, on_trial=seen.append)
    assert [t.parameters["mu"] for t in seen] == [-1.0, 1.0, 0.1]
    last = found.trials[-1]
    assert "mu must be a finite number > 0" in last.error
    assert np.isnan(last.score)
    assert "1 not tried: mu must be" in str(found)


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    found = search(RegMTL(), *DATA, parameters=GRID | {"kernel": ["rbf", "linear"]}, n_folds=2, random_state=0,
                   progress=True)  # fmt: skip
    table = found.table
    assert table.columns == ["C", "kernel", "mu", "error", "deviation", "seconds", "failure"]
    assert table["error"].to_list() == [trial.score for trial in found.trials]
    assert table["error"].is_sorted()
    assert table["mu"].to_list() == [trial.parameters["mu"] for trial in found.trials]
    lines = str(found).splitlines()
    assert len(lines) == 13
    assert lines[0].split() == ["C", "kernel", "mu", "error", "deviation", "seconds"]
    assert f"{found.best_score:.4f}" in lines[1]
    assert capsys.readouterr().out == ""
    mixed = search(RegMTL(), *DATA, parameters={"kernel": ["linear", lambda X, Z: X @ Z.T]}, n_folds=2)
    assert mixed.table["kernel"].dtype.is_(type(table["kernel"].dtype))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"validation": "split"}, "validation must be 'order', 'folds'"), ({"n_folds": 1}, "n_folds must be"),
        ({"metric": "rmse"}, "not defined for binary targets"), ({"n_draws": 0}, "n_draws must be an integer >= 1"),
        ({"parameters": {"mu": []}}, "(?i)empty|nothing to try"),
        ({"parameters": {"nu": [1.0]}}, "Invalid parameter 'nu'"),
        ({"parameters": {"mu": loguniform(1, 2)}}, "say n_draws="),
        ({"parameters": {"mu": [-1.0]}}, "no combination gave a score; the first: mu must be"),
    ],
)  # fmt: skip
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        search(RegMTL(), *DATA, **{"parameters": GRID, **options})


def test_the_learner_stays_as_it_is() -> None:
    learner = RegMTL(mu=7.0)
    search(learner, *DATA, parameters=GRID, n_folds=2)
    assert learner.mu == 7.0
    assert not hasattr(learner, "tasks_")


@pytest.mark.parametrize("validation", ["folds", "shuffle"])
def test_weights_of_rows_count_in_learning_and_not_in_scores(validation: str) -> None:
    weight = np.random.default_rng(5).choice([0.0, 0.5, 3.0], len(ROWS.y))
    learner, grid = MultitaskPerceptron(loss="logistic"), {"eta": [0.1, 1.0]}
    options: dict[str, Any] = {"parameters": grid, "validation": validation, "n_folds": 2, "random_state": 0}
    found = search(learner, *DATA, sample_weight=weight, **options)
    numbers = {task: k for k, task in enumerate(dict.fromkeys(ROWS.task.tolist()))}
    folds = _folds(learner, np.array([numbers[task] for task in ROWS.task.tolist()]), validation, 2, 0)
    for trial in found.trials:
        for fold, score in zip(folds, trial.scores, strict=True):
            one = MultitaskPerceptron(loss="logistic", **trial.parameters)
            learned, judged = ([part[rows] for part in (*DATA, weight)] for rows in fold)
            (X, y, task, w), (A, truth, asked, v) = learned, judged
            if validation == "folds":
                answers = one.fit(X, y, task, sample_weight=w).decision_function(A, asked)
            else:
                answers = one.test_then_train(A, truth, asked, sample_weight=v, classes=np.unique(ROWS.y))
            assert score == pytest.approx(np.mean((answers >= 0) != (truth == ROWS.y.max())))
    expected = MultitaskPerceptron(loss="logistic", **found.best_params).fit(*DATA, sample_weight=weight)
    assert found.best_learner.coef_.tolist() == expected.coef_.tolist()
    with pytest.raises(ValueError, match="OSMTL takes no sample_weight"):
        search(OSMTL(), *DATA, sample_weight=weight, **{**options, "parameters": {"C": [1.0]}})


@pytest.mark.parametrize("name", GRIDS)
def test_every_combination_is_a_learner(name: str) -> None:
    made = [getattr(shoal, name)(**parameters) for parameters in ParameterGrid(dict(GRIDS[name]))]
    if hasattr(made[0], "new_core"):
        for learner in made:
            learner.new_core()  # raises if a value is out of range
    else:
        for learner in (made[0], made[-1]):
            learner.fit(ROWS.X[:12], ROWS.y[:12] * 1.0, ROWS.task[:12])
