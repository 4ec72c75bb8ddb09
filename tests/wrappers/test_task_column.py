"""Tools of scikit-learn, which know no tasks, on learners with the task as a column: frames and arrays."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.preprocessing import StandardScaler

from shoal import (
    CollaborativePA,
    HedgedSharing,
    IndependentTasks,
    MultitaskPerceptron,
    MultitaskRegressor,
    PassiveAggressive,
    TabularClassifier,
    TabularRegressor,
    TaskColumn,
)

RNG = np.random.default_rng(0)
SHOP = np.repeat([3, 5, 7], 50)[RNG.permutation(150)]
X = RNG.normal(size=(150, 3))
Y = ((X[:, 0] + (SHOP == 5) * X[:, 1]) > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(shop=SHOP)
ROWS: dict[str, Any] = {"frame": FRAME, "array": FRAME.to_numpy()}


def classifiers(kind: str) -> list[Any]:
    task: Any = "shop" if kind == "frame" else 3
    return [
        TaskColumn(MultitaskPerceptron(loss="logistic"), task),
        TabularClassifier(task, MultitaskPerceptron(loss="logistic")),
    ]


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("which", [0, 1])
def test_classifiers_in_the_tools_of_scikit_learn(kind: str, which: int) -> None:
    model, rows = classifiers(kind)[which], ROWS[kind]
    found = cross_validate(model, rows, Y, scoring=["roc_auc", "accuracy"], cv=3, error_score="raise")
    assert found["test_roc_auc"].mean() > 0.9
    assert cross_val_predict(model, rows, Y, method="predict_log_proba", cv=3).shape == (150, 2)
    search = GridSearchCV(model, {"estimator__relation": ["independent", "pooled"]}, cv=3, error_score="raise")
    assert search.fit(rows, Y).best_params_ == {"estimator__relation": "independent"}
    calibrated = CalibratedClassifierCV(model, cv=2).fit(rows, Y)
    assert calibrated.predict_proba(rows).shape == (150, 2)
    model.fit(rows, Y)
    importance = permutation_importance(model, rows, Y, n_repeats=2, random_state=0, scoring="roc_auc")
    assert importance.importances_mean.argmax() == 0
    stacked = StackingClassifier([("shared", clone(model))], LogisticRegression(), cv=2).fit(rows, Y)
    assert stacked.score(rows, Y) > 0.9
    column = "a" if kind == "frame" else 0
    assert partial_dependence(model, rows, [column], grid_resolution=5, kind="average").average.shape == (1, 5)


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("make", [TaskColumn, lambda learner, task: TabularRegressor(task, learner)])
def test_regressors_in_the_tools_of_scikit_learn(make: Any, kind: str) -> None:
    rows, task, y = ROWS[kind], "shop" if kind == "frame" else 3, 10.0 + X[:, 0]
    model = TransformedTargetRegressor(make(MultitaskRegressor(eta=0.05), task), transformer=StandardScaler())
    assert model.fit(rows, y).predict(rows).mean() == pytest.approx(10.0, abs=0.5)
    assert cross_validate(model, rows, y, scoring="r2", cv=3, error_score="raise")["test_score"].mean() > 0.5


def test_tools_may_take_the_names_of_the_columns_away() -> None:
    for model in classifiers("frame"):
        stripped = copy.copy(model.fit(FRAME, Y))
        stripped.feature_names_in_ = None  # as SHAP does, which then asks with arrays
        assert stripped.predict_proba(FRAME.to_numpy()).tobytes() == model.predict_proba(FRAME).tobytes()


@pytest.mark.parametrize("kind", ROWS)
def test_shap_explains_rows_with_their_task(kind: str) -> None:
    shap = pytest.importorskip("shap")
    rows = ROWS[kind]
    for model in classifiers(kind):
        model.fit(rows, Y)
        expected = model.predict_proba(rows[:2])
        several = shap.KernelExplainer, shap.PermutationExplainer, shap.SamplingExplainer
        for explainer in several if kind == "frame" else several[1:2]:  # of a frame they make arrays, too
            found = explainer(model.predict_proba, rows[:5])(rows[:2])
            assert found.values.shape == (2, 4, 2)
            assert found.base_values + found.values.sum(axis=1) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas, None])
def test_tables_are_split_into_rows_and_tasks(make: Any) -> None:
    rows = FRAME if make is None else make(FRAME)
    learner = PassiveAggressive().fit(FRAME[["a", "b", "c"]], Y, SHOP)
    model = TaskColumn(PassiveAggressive(), "shop" if make else -1).fit(rows, Y)
    expected = learner.decision_function(FRAME[["a", "b", "c"]], SHOP)
    for table in (rows, FRAME, FRAME.to_numpy(), FRAME.to_numpy().tolist(), sp.csr_matrix(FRAME.to_numpy())):
        assert model.decision_function(table).tolist() == pytest.approx(expected.tolist(), abs=1e-12)
    assert model.estimator_.tasks_ == learner.tasks_
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "shop"]
    assert model.score(rows, Y) == learner.score(FRAME[["a", "b", "c"]], Y, SHOP)


def test_learning_goes_on_and_weights_and_dicts_are_taken() -> None:
    x = dict(zip("abc", X[0].tolist(), strict=True))
    learner = PassiveAggressive().fit(FRAME[["a", "b", "c"]], Y, SHOP)
    model = TaskColumn(learner, "shop")  # which has learned already
    assert model.predict_one({**x, "shop": 5}) == learner.predict_one(x, 5)
    assert str(model.explain_one({**x, "shop": 5})) == str(learner.explain_one(x, 5))
    before = learner.n_updates_
    model.partial_fit(FRAME, 1 - Y, sample_weight=np.ones(150))
    model.learn_one({**x, "shop": 5}, 1)
    assert (learner.n_updates_, model.estimator_.n_updates_ > before) == (before, True)
    weighted = TaskColumn(HedgedSharing(), "shop").partial_fit(
        FRAME, Y, sample_weight=np.full(150, 2.0), classes=[0, 1]
    )
    assert weighted.predict_proba_one({**x, "shop": 5}).keys() == {0, 1}
    plain = TaskColumn(CollaborativePA(), "shop").fit(FRAME, Y)
    plain.learn_one({**x, "shop": 5}, 1)
    with pytest.raises(ValueError, match="takes no sample_weight"):
        plain.learn_one({**x, "shop": 5}, 1, sample_weight=2.0)
    batch = TaskColumn(IndependentTasks(estimator=Ridge()), "shop").fit(FRAME, X[:, 0])
    assert batch.score(FRAME, X[:, 0]) > 0.99
    assert not hasattr(batch, "partial_fit")


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(NotFittedError):
        TaskColumn(PassiveAggressive(), "shop").predict(FRAME)
    for model, rows, message in (
        (TaskColumn(PassiveAggressive(), "shops"), FRAME, "no column 'shops'.*did you mean 'shop'"),
        (TaskColumn(PassiveAggressive(), "shop"), FRAME.to_numpy(), "columns have numbers"),
        (TaskColumn(PassiveAggressive(), 4), FRAME.to_numpy(), "4 columns, and none with the number 4"),
        (TaskColumn(PassiveAggressive(), 0), FRAME.to_numpy()[:, 0], "Expected 2D array, got 1D array"),
        (TaskColumn(LogisticRegression(), "shop"), FRAME, "a learner of this library"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(rows, Y)
    alone = MultitaskPerceptron().fit(X, Y, SHOP)
    with pytest.raises(ValueError, match=r"say which task.*shoal\.TaskColumn\(learner, 'COLUMN'\)"):
        alone.predict(X)
    with pytest.raises(ValueError, match=r"row 2, column 'b': found NaN; .*shoal\.TabularClassifier"):
        alone.fit(FRAME[["a"]].assign(b=np.where(np.arange(150) == 2, np.nan, 1.0)), Y, SHOP)
