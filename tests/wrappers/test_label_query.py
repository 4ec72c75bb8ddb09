"""LabelQuery against the loop that it stands for, its rules, and what it leaves to the learner."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from tests.cases import LEARNERS, saved
from tests.streams import Stream, assert_close, core_of, draw
from tests.twins import local_global_gaussian as gaussians

import shoal
from shoal import (
    OSMTL,
    KernelPerceptron,
    LabelQuery,
    Learner,
    LocalGlobalGaussian,
    MultitaskPerceptron,
    MultitaskRegressor,
    PassiveAggressive,
)
from shoal.datasets import make_related_tasks
from shoal.engine.random import QUERIES, uniform
from shoal.evaluation import progressive_validate
from shoal.model.algorithm import Size
from shoal.wrappers.label_query import GAIN, STREAM

WRAPPERS = ("LabelQuery", "MultiClass", "Conformal", "Guarded", "Hierarchy", "OutsideForecast")
INNER = {name: make for name, make in LEARNERS.items() if "Regressor" not in name and not name.startswith(WRAPPERS)}


class Rule:
    """A query rule in plain words."""

    def __init__(
        self, seed: int, rule: str = "margin", budget: float = 0.1, b: float | None = None, budget_of: str = "stream"
    ) -> None:
        self.rule, self.budget, self.given, self.by_task = rule, budget, b, budget_of == "task"
        self.b: dict[Any, float] = defaultdict(lambda: 1.0 if b is None else b)
        self.random = np.array([np.random.RandomState(seed).randint(2**31 - 1), 0, 0], np.uint64)

    def asks(self, f: float, peers: float, task: Any) -> bool:
        b, least = self.b[task if self.by_task else None], 0.0 if self.given else 1e-9
        p = self.budget if self.rule == "fixed" else 1 / (1 + max(abs(f), least) / b)
        p *= 1 / (1 + abs(peers) / b) if self.rule == "peers" else 1.0
        asked = p >= 1 or uniform(self.random, QUERIES) < p
        if self.given is None:
            self.b[task if self.by_task else None] *= np.exp(GAIN * (self.budget - asked))
        return asked


def by_hand(learner: Learner, stream: Stream, rule: Rule) -> tuple[np.ndarray, int]:
    """Decide the round, ask for each row, learn the rows asked for: with the public verbs."""
    decisions, peers, n_asked = np.zeros(len(stream.y)), np.zeros(len(stream.y)), 0
    learner.add_tasks(range(stream.task.max() + 1))
    for rows in stream.rows_of_rounds:
        if hasattr(learner, "coef_"):
            decisions[rows] = learner.decision_function(stream.X[rows], stream.task[rows])
            peers[rows] = learner.decision_function(stream.X[rows], np.full(len(rows), "nobody"))
        asked = rows[[rule.asks(decisions[row], peers[row], stream.task[row]) for row in rows.tolist()]]
        n_asked += len(asked)
        if len(asked):
            X, y, task = stream.X[asked], stream.y[asked], stream.task[asked]
            learner.partial_fit(X, y, task, rounds=stream.rounds[asked], classes=[-1, 1])
    return decisions, n_asked


RULES: list[dict[str, Any]] = [
    {"b": 0.7}, {"b": 5.0}, {"b": float("inf")}, {"rule": "fixed", "budget": 0.4}, {"rule": "fixed", "budget": 1.0},
    {"budget": 0.3}, {"budget": 0.3, "budget_of": "task"}, {"rule": "peers", "b": 5.0},
    {"rule": "peers", "budget": 0.4},
]  # fmt: skip


@given(seed=st.integers(0, 10**6), rule=st.sampled_from(RULES), protocol=st.sampled_from(["one", "some", "all"]))
@pytest.mark.parametrize("kind", [PassiveAggressive, MultitaskPerceptron, OSMTL])
def test_equals_the_loop_by_hand(kind: type[Learner], seed: int, rule: dict[str, Any], protocol: str) -> None:
    stream = draw(seed, n_rows=60, protocol=protocol)
    query = LabelQuery(kind(), **rule, random_state=seed).add_tasks(range(stream.task.max() + 1))
    given = query.test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds)
    plain = kind()
    decisions, n_asked = by_hand(plain, stream, Rule(seed, **rule))
    np.testing.assert_array_equal(given, decisions)
    assert query.n_queries_ == n_asked == query.task_queries_.sum()
    if n_asked:
        np.testing.assert_array_equal(query.coef_, plain.coef_)
        assert query.n_updates_ == plain.n_updates_


@pytest.mark.parametrize("name", INNER)
def test_every_label_asked_is_the_learner_itself(name: str) -> None:
    """Around any classifier, kernels that make room for themselves included."""
    stream = draw(1, n_rows=60, protocol="growing" if "graph" not in name and "matrix" not in name else "some")
    plain = INNER[name]()
    query = LabelQuery(clone(plain), b=float("inf"))
    for model in (plain, query):
        for chunk in (slice(0, 30), slice(30, None)):
            rounds = np.arange(len(stream.y))[chunk]
            model.partial_fit(stream.sparse[chunk], stream.y[chunk], stream.task[chunk], rounds=rounds)
    expected = plain.decision_function(stream.X, stream.task)
    np.testing.assert_allclose(query.decision_function(stream.X, stream.task), expected, rtol=1e-9, atol=1e-12)
    assert query.n_updates_ == plain.n_updates_
    assert query.n_queries_ == len(stream.y)
    assert hasattr(query, "coef_") == hasattr(plain, "coef_")


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_query_one_is_what_the_array_verbs_do(rule: dict[str, Any], sparse: bool) -> None:
    """The learner's rates depend on how many tasks there are."""
    stream = draw(2, n_rows=200, K=30, protocol="growing", density=0.5)
    one, many = (LabelQuery(MultitaskPerceptron(loss="hinge"), **rule, random_state=0) for _ in "12")
    for model in (one, many):
        model.partial_fit(stream.X[:1], stream.y[:1], stream.task[:1], classes=[-1, 1])
    for x, y, task in list(zip(stream.X, stream.y.tolist(), stream.task.tolist(), strict=True))[1:]:
        if one.query_one(x, task):
            one.learn_one(x, y, task)
    X = stream.sparse if sparse else stream.X
    many.partial_fit(X[1:], stream.y[1:], stream.task[1:])
    assert one.tasks_ == many.tasks_
    assert one.n_queries_ == many.n_queries_ > 50
    np.testing.assert_allclose(one.coef_, many.coef_, rtol=1e-12)
    assert saved(one) == saved(many) or sparse


def test_a_query_is_a_promise(tmp_path: Path) -> None:
    """It survives saving; it is for one row of its task."""
    query = LabelQuery(PassiveAggressive(), rule="fixed", budget=1e-9, random_state=0)
    query.partial_fit([[1.0], [2.0]], [1, -1], ["a", "b"])
    assert (query.n_queries_, query.n_updates_) == (0, 0)
    query.set_params(budget=1.0)
    assert query.query_one([1.0], "b")
    query.set_params(budget=1e-9)
    assert not query.query_one([1.0], "a")
    query.save(tmp_path / "model")
    for model in (query, shoal.load(tmp_path / "model")):
        model.partial_fit([[1.0], [1.0], [1.0]], [1, -1, 1], ["a", "b", "b"])
        assert (model.n_queries_, model.n_updates_) == (1, 1)
        assert model.task_queries_.tolist() == [0, 1]


def test_sure_rows_are_asked_for_less() -> None:
    stream = draw(3, n_rows=4000, protocol="one", d=4)
    learner = LabelQuery(PassiveAggressive(variant="PA"), b=0.5, random_state=0)
    f = learner.test_then_train(stream.X, stream.y, stream.task)
    p = 0.5 / (0.5 + np.abs(f))
    assert p.std() > 0.1
    assert abs(learner.n_queries_ - p.sum()) < 4 * np.sqrt((p * (1 - p)).sum())
    fixed = LabelQuery(PassiveAggressive(), rule="fixed", budget=0.3, random_state=0).fit(
        stream.X, stream.y, stream.task
    )
    assert abs(fixed.n_queries_ - 1200) < 4 * np.sqrt(4000 * 0.3 * 0.7)


@pytest.mark.parametrize(
    ("rule", "options"),
    [("margin", {"b": 0.3}), ("variance", {"b": 0.02}), ("margin", {"budget": 0.1}), ("variance", {"budget": 0.2})],
)
def test_asking_where_it_is_unsure_beats_the_control(rule: str, options: dict[str, Any]) -> None:
    """At the same number of labels, over five streams."""
    errors = np.zeros((5, 2))
    for seed in range(5):
        data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=seed)
        data = data.interleaved(seed=seed)
        learner = MultitaskPerceptron(loss="hinge") if rule == "margin" else LocalGlobalGaussian()
        query = LabelQuery(learner, rule=rule, **options, random_state=seed)
        given = query.test_then_train(data.X, data.y, data.task)
        control = LabelQuery(learner, rule="fixed", budget=query.n_queries_ / 2000, random_state=seed)
        for column, f in enumerate((given, control.test_then_train(data.X, data.y, data.task))):
            errors[seed, column] = ((f >= 0) != (data.y > 0)).mean()
        assert 100 < query.n_queries_ < 1000
    assert errors[:, 0].mean() < errors[:, 1].mean() - 0.005


@pytest.mark.parametrize("protocol", ["one", "all", "growing"])
@pytest.mark.parametrize("update", ["mistaken", "all"])
@pytest.mark.parametrize("covariance", ["full", "diagonal", 3])
def test_the_rule_by_variance_equals_its_twin(covariance: str | int, update: str, protocol: str) -> None:
    """Yang and Li's query: h/(h + theta), where h is b."""
    stream = draw(2, n_rows=300, protocol=protocol)
    query = LabelQuery(
        LocalGlobalGaussian(covariance=covariance, update=update), rule="variance", b=0.2, random_state=3
    )
    decisions = query.test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds)
    expected, model, queried, updates = gaussians.learn(
        stream.X, stream.y, stream.task, stream.rows_of_rounds, lam=1.0, eps=1.0, loss="squared_hinge",
        covariance=covariance, update=update, h=0.2, seed=int(core_of(query).random[0]),
    )  # fmt: skip
    assert_close(decisions, expected, 1e-10 if covariance == 3 else 1e-12)
    assert_close(query.estimator_.coef_, model.mu0 + model.mu, 1e-10 if covariance == 3 else 1e-12)
    np.testing.assert_array_equal(query.task_updates_, updates)
    assert query.n_queries_ == queried.sum()
    assert 0.2 * len(stream.y) < query.n_queries_ < 0.95 * len(stream.y)


def test_labels_may_come_late() -> None:
    """What was asked for is learned, however sure the model has become."""
    stream = draw(7, n_rows=200, protocol="one")
    query = LabelQuery(LocalGlobalGaussian(), rule="variance", b=1e-9, random_state=0)
    query.fit(stream.X, stream.y, stream.task)
    x, other = np.zeros(7), stream.X[1] * 1e3  # a zero row is never beyond the doubt, a large one is
    assert query.query_one(x, 0)
    before, coef = query.n_queries_, query.coef_
    assert not query.query_one(other, 0)
    query.learn_one(other, -query.predict_one(other, 0), 0)
    assert query.n_queries_ == before
    assert (query.coef_ != coef).any()
    coef = query.coef_
    query.learn_one(other, -query.predict_one(other, 0), 0)
    np.testing.assert_array_equal(query.coef_, coef)  # not asked for, not learned


def test_questions_of_new_tasks_and_new_learners() -> None:
    query = LabelQuery(PassiveAggressive(), b=0.1, random_state=0)
    assert query.query_one([1.0, 0.0], "a")
    with pytest.raises(ValueError, match="not fitted"):
        query.predict_one([1.0, 0.0], "a")
    query.learn_one([1.0, 0.0], 0, "a")
    assert query.n_queries_ == 1
    assert query.query_one([0.0, 1.0], "b")
    assert query.tasks_ == ["a", "b"]
    with pytest.raises(ValueError, match="found NaN"):
        query.query_one([0.0, np.nan], "c")
    assert query.tasks_ == ["a", "b"]


SCALES: dict[str, Any] = {
    "1e-3": lambda at: 1e-3, "1": lambda at: 1.0, "1e3": lambda at: 1e3,
    "larger in the middle": lambda at: np.where(at < 0.5, 1.0, 1e3),
    "smaller in the middle": lambda at: np.where(at < 0.5, 1.0, 1e-3),
}  # fmt: skip


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("budget", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("n_rows", [3000, 5000])
def test_the_share_of_labels_is_the_budget_whatever_the_margins(budget: float, n_rows: int, scale: str) -> None:
    """The learner's answers are as large as its step: eta; then the rows', for a scale that changes."""
    data = make_related_tasks(n_tasks=20, n_features=30, n_rows=n_rows, relatedness=0.9, noise=0.0, seed=0)
    data = data.interleaved(seed=0)
    factors = np.broadcast_to(SCALES[scale](np.arange(n_rows) / n_rows), n_rows)
    learner = MultitaskPerceptron(eta=float(factors[0]))  # updates at mistakes, whose number eta does not change
    query = LabelQuery(learner, budget=budget, random_state=0)
    margins = np.abs(query.test_then_train(data.X * (factors / factors[0])[:, None], data.y, data.task))
    assert np.median(margins[n_rows // 2 :]) / factors[-1] > 1e-2  # they do have the scale
    assert np.median(margins[n_rows // 4 : n_rows // 2]) / factors[0] < 1e2
    assert abs(query.n_queries_ / n_rows - budget) < 0.01


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("budget", [0.05, 0.1, 0.3])
def test_the_share_of_labels_at_given_margins(budget: float, scale: str) -> None:
    """Not only at the end: from row 3,000 on the share so far never leaves the budget by more than a point."""
    rng, n = np.random.default_rng(0), 6000
    thetas = np.abs(rng.normal(size=n)) * SCALES[scale](np.arange(n) / n)
    core: Any = LabelQuery(PassiveAggressive(), budget=budget, random_state=0).new_core()
    share = np.cumsum([core.wants(0, theta, 0.0) for theta in thetas.tolist()]) / np.arange(1, n + 1)
    assert np.abs(share[3000:] - budget).max() < 0.01


def test_a_budget_of_each_task_holds_for_each() -> None:
    """Also where tasks are of unlike sizes and margins, and where another task has left."""
    rng, n = np.random.default_rng(0), 8000
    task = np.searchsorted(np.cumsum([0.02, 0.08, 0.3, 0.6]), rng.random(n))
    X = rng.normal(size=(n, 5)) * 10.0 ** task[:, None]
    y = np.where(X @ np.ones(5) + 0.5 * rng.normal(size=n) * 10.0**task > 0, 1, -1)
    of_task, of_stream = (LabelQuery(budget=0.2, budget_of=of, random_state=0) for of in ("task", "stream"))
    for query in (of_task, of_stream):
        query.partial_fit(X[:4000], y[:4000], task[:4000]).forget_task(1)
        query.partial_fit(X[4000:], y[4000:], task[4000:])
    rows = np.array([np.sum(task == k) - (k == 1) * np.sum(task[:4000] == 1) for k in of_task.tasks_])
    assert np.abs(of_task.task_queries_ - 0.2 * rows).max() < 16  # ln(1000)/GAIN
    assert np.abs(of_stream.task_queries_ - 0.2 * rows).max() > 30


def test_rows_that_are_not_sure_at_all_keep_to_the_budget() -> None:
    """Margins of exactly 0, as tasks alone have in their first rows."""
    stream = draw(11, n_rows=6000, protocol="one")
    stream.X[::2] = 0.0
    query = LabelQuery(PassiveAggressive(), budget=0.1, random_state=0)
    query.fit(stream.X, stream.y, stream.task)
    assert abs(query.n_queries_ / 6000 - 0.1) < 0.01


def test_draws_begin_when_not_all_labels_are_asked_for_any_more() -> None:
    stream = draw(12, n_rows=400, protocol="one")
    asked = set()
    for _ in range(3):
        query = LabelQuery(PassiveAggressive(), budget=1.0).fit(stream.X, stream.y, stream.task)
        query.set_params(budget=0.3).partial_fit(stream.X, stream.y, stream.task)
        asked.add(tuple(query.coef_.ravel().tolist()))
    assert len(asked) > 1  # random_state=None


def test_fitted_transformers_stay_fitted() -> None:
    from sklearn.kernel_approximation import Nystroem

    stream = draw(9, n_rows=60, density=0.5)
    features = Nystroem(n_components=5, random_state=0).fit(stream.X)
    for X in (stream.X, stream.sparse):
        query = LabelQuery(LocalGlobalGaussian(features=features), rule="variance", b=0.05, random_state=0)
        query.partial_fit(X, stream.y, stream.task, rounds=stream.rounds)
        assert 0 < query.n_queries_ < 60
        assert query.estimator_.coef_shared_.shape == (5,)


@pytest.mark.parametrize("rule", [{"b": 1.0}, {"budget": 0.3}, {"rule": "fixed", "budget": 0.5}], ids=str)
def test_a_refused_question_changes_nothing(rule: dict[str, Any]) -> None:
    stream = draw(10)
    query = LabelQuery(PassiveAggressive(), **rule, random_state=0)
    query.fit(stream.X, stream.y, stream.task)
    before = saved(query)
    for x, task in ((stream.X[0, 1:], 0), (stream.X[0] * np.nan, "new"), (stream.X[0], float("nan"))):
        with pytest.raises(ValueError, match=r"features|NaN|missing"):
            query.query_one(x, task)
    assert saved(query) == before


def test_the_given_learner_stays_as_it_is() -> None:
    stream = draw(5)
    learner = OSMTL()
    query = LabelQuery(learner, random_state=0).fit(stream.X, stream.y, stream.task)
    assert not hasattr(learner, "coef_")
    assert query.estimator_ is not learner
    assert query.simultaneous
    assert not LabelQuery(PassiveAggressive()).simultaneous
    np.testing.assert_array_equal(query.relation_, query.estimator_.relation_)


def test_hyper_parameters_of_the_learner_may_change_on_the_way() -> None:
    stream = draw(6)
    query = LabelQuery(MultitaskPerceptron(relation=np.eye(5) * 2.0, loss="hinge"), b=float("inf"))
    query.fit(stream.X, stream.y, stream.task)
    coef = query.coef_
    query.set_params(estimator__eta=1e-9).partial_fit(stream.X, stream.y, stream.task)
    assert 0 < np.abs(query.coef_ - coef).max() < 1e-6
    before = saved(query.set_params(estimator__eta=1e-9))
    query.set_params(estimator__eta=-1.0)
    for act in (lambda: query.learn_one(stream.X[0], 1, 0), lambda: query.partial_fit(stream.X, stream.y, stream.task)):
        with pytest.raises(ValueError, match="eta must be"):
            act()
    assert saved(query.set_params(estimator__eta=1e-9)) == before
    with pytest.raises(ValueError, match="can only change before fit"):
        query.set_params(estimator=OSMTL()).partial_fit(stream.X, stream.y, stream.task)


def test_kernel_learners_continue_after_loading(tmp_path: Path) -> None:
    stream = draw(7, n_rows=200)
    query = LabelQuery(KernelPerceptron(kernel="rbf", gamma=0.1), budget=0.3, random_state=0)
    query.partial_fit(stream.X[:100], stream.y[:100], stream.task[:100])
    query.save(tmp_path / "model")
    other = shoal.load(tmp_path / "model")
    for model in (query, other):
        model.partial_fit(stream.X[100:], stream.y[100:], stream.task[100:])
    assert saved(query) == saved(other)


@pytest.mark.parametrize("name", ["asked", "granted"])
def test_no_task_of_a_file_has_fewer_than_no_labels(name: str) -> None:
    stream = draw(1, n_rows=30, K=2, protocol="one")
    core = core_of(LabelQuery(PassiveAggressive()).partial_fit(stream.X, stream.y, stream.task))
    size = Size(2, stream.X.shape[1])
    packed = core.pack(size)
    core.unpack(packed, size)
    with pytest.raises(ValueError, match="its numbers of labels are negative"):
        core.unpack(packed._replace(**{name: np.array([1, -1])}), size)


def test_progressive_validation_reports_labels_and_the_error_over_all_rows() -> None:
    stream = draw(8, n_rows=500, protocol="one")
    query = LabelQuery(PassiveAggressive(), budget=0.3, random_state=0)
    other = clone(query)
    result = progressive_validate({"asks": query, "all": PassiveAggressive()}, [(stream.X, stream.y, stream.task)])
    decisions = other.test_then_train(stream.X, stream.y, stream.task)
    assert result["asks"].n_queries == query.n_queries_ == other.n_queries_
    assert 0 < query.n_queries_ < 500
    assert result["asks"].overall["error"] == ((decisions >= 0) != (stream.y > 0)).mean()
    assert f"{query.n_queries_:,} labels asked for ({query.n_queries_ / 500:.1%})" in str(result["asks"])
    assert result["all"].n_queries is None
    assert "asked" not in str(result["all"])
    again = progressive_validate(query, [(stream.X, stream.y, stream.task)])  # a learner may come with a past
    assert again.n_queries == query.n_queries_ - result["asks"].n_queries


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "luck"}, "rule must be one of"), ({"budget": 0.0}, "budget must be"),
        ({"budget": float("nan")}, "budget must be"), ({"rule": "fixed", "budget": 1.5}, "budget must be"),
        ({"b": 0.0}, "b must be"), ({"b": float("nan")}, "b must be"), ({"rule": "fixed", "b": 0.5}, "takes budget="),
        ({"estimator": MultitaskRegressor()}, "needs a classifier"),
        ({"estimator": PassiveAggressive(C=-1.0)}, "C must be"),
        ({"budget_of": "hour"}, "budget_of must be one of"),
        ({"budget_of": "task", "b": 1.0}, "neither b= nor rule='fixed'"),
        ({"rule": "variance"}, "needs a LocalGlobalGaussian"),
        ({"estimator": LabelQuery()}, "asks for labels itself"),
    ],
)  # fmt: skip
def test_bad_hyper_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LabelQuery(**options).partial_fit([[1.0]], [1])


def test_the_budget_holds_in_every_part_of_the_stream_and_may_change_with_the_hour() -> None:
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(4000, 4)), rng.integers(3, size=4000)
    X[2000:] *= 1000.0  # margins of another size
    y = np.where(X[:, 0] > 0, 1, -1)
    learner: Any = LabelQuery(MultitaskPerceptron(), budget=0.1, random_state=0)
    asked, log_b = [], []
    for first in range(0, 4000, 250):
        learner.partial_fit(X[first : first + 250], y[first : first + 250], task[first : first + 250], classes=[-1, 1])
        asked.append(learner.n_queries_)
        log_b.append(learner._model.core.log_b[STREAM])
    labels, moved = np.diff(asked), np.diff(log_b)
    np.testing.assert_allclose(250 * 0.1 - labels, moved / GAIN, atol=1e-9)
    assert np.abs(labels - 25).max() <= 16  # the hour in which the size changed; 14 labels are ln(1000)/GAIN
    learner.set_params(budget=0.02).partial_fit(X, y, task)
    assert abs(learner.n_queries_ - asked[-1] - 80) <= 16
