"""Which columns matter: means of what `explain_one` says of each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from shoal import KernelPerceptron, MultiClass, PassiveAggressive, TabularClassifier
from shoal.engine.rounds import Rounds
from shoal.model.explanations import Item, Parts
from shoal.model.importances import _added

TASK = ["ann", "bob", "ann", "cid"]
X = np.array([[1.0, 0.0, 2.0], [0.5, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 2.0, 1.0]])


def test_they_are_the_means_of_what_explain_one_says() -> None:
    learner = PassiveAggressive().fit(X, [1, 0, 0, 1], TASK)
    for table in (X, sp.csr_matrix(X)):
        found = learner.importances(table, TASK)
        assert found.rows == 4
        total = sum(one.added for one in found.overall)
        for of, rows in ((found.overall, range(4)), (found.by_task["ann"], (0, 2)), (found.by_task["cid"], (3,))):
            for one in of:
                parts = [
                    part
                    for i in rows
                    for part in learner.explain_one(X[i], TASK[i]).contributions
                    if part.feature == one.column
                ]
                for name in ("shared", "own"):
                    expected = sum(abs(getattr(part, name)) for part in parts) / len(rows)
                    assert getattr(one, name) == pytest.approx(expected)
                assert one.added == pytest.approx(sum(abs(part.total) for part in parts) / len(rows))
        assert [one.share for one in found.overall] == pytest.approx([one.added / total for one in found.overall])
        assert [one.added for one in found.overall] == sorted((one.added for one in found.overall), reverse=True)
    assert str(found).splitlines()[0].split() == ["share", "added", "shared", "own"]
    assert found._repr_html_().count("<tr>") == 4


def test_features_of_a_column_are_added_up_before_signs_are_dropped() -> None:
    learner = PassiveAggressive().fit(X, [1, 0, 0, 1], TASK)
    apart = {one.column: one.added for one in learner.importances(X[2:3], ["ann"]).overall}
    both = learner.importances(X[2:3], ["ann"], columns=["a", "a", None])
    f = learner.decision_function(X[2:3], ["ann"])[0]
    assert [one.column for one in both.overall] == ["a"]
    assert both.overall[0].added == pytest.approx(abs(f))
    assert both.overall[0].added <= apart[0] + apart[1]
    assert not learner.importances(X, TASK, columns=[None] * 3).overall
    with pytest.raises(ValueError, match="the column of each of 3 features, got 2"):
        learner.importances(X, TASK, columns=["a", "b"])


def test_half_of_a_pair_counts_for_each() -> None:
    class Core:
        def contributions(self, tasks: Any, features: Any, values: Any) -> Parts:
            assert (features.tolist(), values.tolist()) == ([0, 2], [1.0, 5.0])
            pairs = [(Item(0), Item(2))]
            return Parts(np.array([[9.0, 1, 2]]), np.zeros((1, 3)), None, pairs, np.array([-4.0]), np.array([1.0]))

    none, task = (np.zeros(0, np.int64), np.zeros(0, np.int32)), np.zeros(1, np.int64)
    rounds = Rounds(3, *none, np.array([1.0, 0, 5]), task, np.zeros(1), np.array([0, 1]))
    table, (base, decision) = _added(Core(), rounds, 0, np.array([0, -1, 1]))
    # 1 - 2 shared and 0.5 own of the first, 2 - 2 and 0.5 of the third
    assert table.tolist() == [[0, 0.5, 1, 0.5], [1, 0.5, 0, 0.5]]
    assert (base, decision) == (9.0, 9.0)


def test_of_many_rows_a_thousand_are_drawn_and_of_several_labels_the_predicted_one_is_meant() -> None:
    rng = np.random.default_rng(0)
    many = rng.normal(size=(1_200, 3))
    y = many.argmax(axis=1)
    learner = MultiClass(PassiveAggressive()).fit(many, y, ["a"] * 1_200)
    found = learner.importances(many, ["a"] * 1_200)
    assert found.rows == 1_000
    one = learner.importances(many[:1], ["a"]).overall
    said = learner.explain_one(many[0], "a").contributions
    assert {part.column: part.added for part in one} == pytest.approx(
        {c.feature: abs(c.total) for c in said if c.total}
    )


def test_columns_of_a_table_are_whole() -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"shop": shop, "colour": colour, "size": float(size), "note": "as it was", "sold": int(colour == "red")}
        for shop, colour, size in zip(
            rng.choice(["a", "b"], 200), rng.choice(["red", "green", "blue"], 200), rng.normal(size=200), strict=True
        )
    ]
    model = TabularClassifier("shop", PassiveAggressive(), label="sold").fit(rows)
    found = model.importances(rows)
    assert found.overall[0].column == "colour"
    assert {one.column for one in found.overall} <= {"colour", "size", "note"}
    assert set(found.by_task) == {"a", "b"}
    assert sum(one.share for one in found.overall) == pytest.approx(1.0)


def test_kernels_have_none() -> None:
    learner = KernelPerceptron().fit(X, [1, 0, 0, 1], TASK)
    with pytest.raises(ValueError, match=r"contributions of single features|whole rows"):
        learner.importances(X, TASK)
