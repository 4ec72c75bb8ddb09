"""The loop: every row answered before it is learned, the same whatever the chunks, the delay exact."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from shoal import (
    HedgedSharing,
    LabelQuery,
    Learner,
    MultiClass,
    MultitaskPerceptron,
    MultitaskRegressor,
    PassiveAggressive,
    TraceNorm,
)
from shoal.engine.rounds import Chunk
from shoal.evaluation import Checkpoint, Evaluation, Periodic, progressive, progressive_validate

N, D = 2_500, 6
TREES = ["ash", "elm", "fir"]
Data = tuple[np.ndarray, np.ndarray, np.ndarray]  # X, y, task


class Simultaneous(MultitaskPerceptron):
    """A learner whose default rounds hold several rows."""

    simultaneous = True


@pytest.fixture(scope="module")
def data() -> Data:
    rng = np.random.default_rng(0)
    task = rng.choice([f"t{k}" for k in range(12)], N, p=np.arange(1, 13) / 78)
    X = rng.normal(size=(N, D))
    y = np.where(X @ rng.normal(size=D) + 0.5 * rng.normal(size=N) > 0, 1, -1)
    return X, y, task


def in_chunks(X: Any, y: Any, task: Any, size: int, rounds: np.ndarray | None = None) -> list[Chunk]:
    return [
        Chunk(
            X[i : i + size],
            y[i : i + size],
            task[i : i + size],
            None if rounds is None else rounds[i : i + size],
        )
        for i in range(0, len(y), size)
    ]


def scores(evaluation: Evaluation) -> str:
    """All that must not depend on chunking: no seconds."""
    history = [(p.rows, p.tasks, p.overall, p.macro, p.since_last, p.windowed) for p in evaluation.history]
    return repr((evaluation.overall, evaluation.macro, evaluation.per_task, evaluation.windowed_per_task, history))


def test_the_scores_are_those_of_the_answers_given_before_learning(data: Data) -> None:
    X, y, task = data
    evaluation = progressive_validate(MultitaskPerceptron(relation=1.0), in_chunks(X, y, task, 700))
    answers = MultitaskPerceptron(relation=1.0).test_then_train(X, y, task)
    assert evaluation.rows == N
    assert evaluation.overall["auc"] == pytest.approx(roc_auc_score(y, answers))
    assert evaluation.overall["error"] == pytest.approx(np.mean((answers >= 0) != (y > 0)))
    assert evaluation.windowed["error"] == pytest.approx(np.mean((answers >= 0)[-1000:] != (y > 0)[-1000:]))
    for name in np.unique(task):
        mine = task == name
        found = evaluation.per_task[name]
        assert found["rows"] == mine.sum()
        assert found["auc"] == pytest.approx(roc_auc_score(y[mine], answers[mine]))


def test_updates_are_those_of_the_learner_during_the_run(data: Data) -> None:
    X, y, task = data
    learner = MultitaskPerceptron().partial_fit(X[:500], y[:500], task[:500])
    before = dict(zip(learner.tasks_, learner.task_updates_.tolist(), strict=True))
    evaluation = progressive_validate(learner, in_chunks(X[500:], y[500:], task[500:], 400))
    assert evaluation.learner is learner
    assert evaluation.n_updates == learner.n_updates_ - sum(before.values()) > 0
    for name, count in zip(learner.tasks_, learner.task_updates_, strict=True):
        assert evaluation.per_task[name]["updates"] == count - before.get(name, 0)


@pytest.mark.parametrize("learner", [MultitaskPerceptron, Simultaneous])
@pytest.mark.parametrize("size", [1, 37, 1_000])
def test_chunks_do_not_matter(data: Data, learner: type[Any], size: int) -> None:
    whole, cut = learner(), learner()
    expected = progressive_validate(whole, in_chunks(*data, N))
    found = progressive_validate(cut, in_chunks(*data, size))
    assert scores(found) == scores(expected)
    assert np.array_equal(cut.coef_, whole.coef_)


@pytest.mark.parametrize("size", [7, 1_000])
def test_explicit_rounds_continue_over_the_end_of_a_chunk(size: int) -> None:
    rng = np.random.default_rng(3)
    task, rounds = np.tile(np.arange(5), 300), np.repeat(np.arange(300), 5)
    X = rng.normal(size=(1_500, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    expected = MultitaskPerceptron().test_then_train(X, y, task, rounds=rounds)
    stepwise = MultitaskPerceptron().test_then_train(X, y, task)
    evaluation = progressive_validate(MultitaskPerceptron(), in_chunks(X, y, task, size, rounds), metrics=["auc"])
    assert evaluation.overall["auc"] == pytest.approx(roc_auc_score(y, expected), abs=1e-15)
    assert evaluation.overall["auc"] != roc_auc_score(y, stepwise), "rounds must make a difference here"


def test_rounds_in_some_chunks_only_are_refused(data: Data) -> None:
    X, y, task = (column[:20] for column in data)
    chunks = [Chunk(X, y, task, np.arange(20)), Chunk(X, y, task)]
    with pytest.raises(ValueError, match="all chunks of a stream have rounds or none"):
        progressive_validate(MultitaskPerceptron(), chunks)


class TestCheckpoints:
    def rows(self, data: Data, checkpoints: Any, learner: type[Any] = MultitaskPerceptron) -> list[int]:
        evaluation = progressive_validate(learner(), in_chunks(*data, 333), checkpoints=checkpoints)
        return [point.rows for point in evaluation.history]

    def test_they_double_and_the_end_is_one(self, data: Data) -> None:
        assert self.rows(data, "exponential") == [1_000, 2_000, N]

    def test_every_so_many_rows(self, data: Data) -> None:
        assert self.rows(data, 500) == [500, 1_000, 1_500, 2_000, 2_500]

    def test_only_the_end(self, data: Data) -> None:
        assert self.rows(data, None) == [N]

    def test_one_inside_a_round_waits_for_the_rounds_end(self) -> None:
        task = np.tile(np.arange(7), 300)
        X = np.random.default_rng(0).normal(size=(2_100, 2))
        y = np.where(X[:, 0] > 0, 1, -1)
        assert self.rows((X, y, task), "exponential", Simultaneous) == [1_001, 2_002, 2_100]

    def test_since_last_and_overall_agree_with_the_answers(self, data: Data) -> None:
        X, y, task = data
        wrong = (MultitaskPerceptron().test_then_train(X, y, task) >= 0) != (y > 0)
        points = progressive_validate(MultitaskPerceptron(), in_chunks(*data, 333)).history
        assert points[1].overall["error"] == pytest.approx(wrong[:2_000].mean())
        assert points[1].since_last["error"] == pytest.approx(wrong[1_000:2_000].mean())
        assert points[0].seconds <= points[1].seconds <= points[2].seconds

    def test_callbacks_see_every_checkpoint_and_every_piece(self, data: Data) -> None:
        points: list[Checkpoint] = []
        rows: list[int] = []
        evaluation = progressive_validate(
            MultitaskPerceptron(), in_chunks(*data, 700), on_checkpoint=points.append, on_rows=rows.append
        )
        assert points == evaluation.history
        assert rows == [700, 1_000, 1_400, 2_000, 2_100, N]


class TestDelay:
    @pytest.mark.parametrize("delay", [1, 3, 50])
    def test_a_label_is_learned_after_exactly_so_many_later_rows_were_answered(self, data: Data, delay: int) -> None:
        X, y, task = (column[:400] for column in data)
        twin, answers = MultitaskPerceptron(), np.zeros(400)
        for row in range(400):
            if row > delay:
                late = row - delay - 1
                twin.partial_fit(X[late : late + 1], y[late : late + 1], task[late : late + 1])
                answers[row] = twin.decision_function(X[row : row + 1], task[row : row + 1])[0]
        evaluation = progressive_validate(MultitaskPerceptron(), in_chunks(X, y, task, 90), delay=delay)
        assert evaluation.overall["auc"] == roc_auc_score(y, answers)
        assert evaluation.overall["error"] == np.mean((answers >= 0) != (y > 0))

    @pytest.mark.parametrize("learner", [MultitaskPerceptron, Simultaneous])
    def test_in_the_end_all_labels_are_learned_in_order(self, data: Data, learner: type[Any]) -> None:
        X, y, task = (column[:300] for column in data)
        delayed, punctual = learner(), learner().partial_fit(X, y, task)
        progressive_validate(delayed, in_chunks(X, y, task, 64), delay=40)
        assert np.array_equal(delayed.coef_, punctual.coef_)

    def test_columns_may_appear_while_a_label_is_on_its_way(self, data: Data) -> None:
        X, y, task = (column[:200] for column in data)
        X = X.copy()
        X[:100, 4:] = 0
        chunks = [
            Chunk(sp.csr_matrix(X[:100, :4]), y[:100], task[:100]),
            Chunk(sp.csr_matrix(X[100:]), y[100:], task[100:]),
        ]
        found = progressive_validate(MultitaskPerceptron(), chunks, delay=30)
        expected = progressive_validate(MultitaskPerceptron(), [Chunk(sp.csr_matrix(X), y, task)], delay=30)
        assert scores(found) == scores(expected)


class TestStreams:
    def test_wider_chunks_widen_the_learner(self, data: Data) -> None:
        X, y, task = data
        X = X.copy()
        X[:1_000, 3:] = 0
        for kind, learner in ((sp.csr_matrix, MultitaskPerceptron), (np.asarray, Simultaneous)):
            chunks = [
                Chunk(kind(X[:1_000, :3]), y[:1_000], task[:1_000]),
                Chunk(kind(X[1_000:]), y[1_000:], task[1_000:]),
            ]
            expected = progressive_validate(learner(), [Chunk(kind(X), y, task)])
            assert scores(progressive_validate(learner(), chunks)) == scores(expected)

    def test_rows_of_arrays_and_tuples_of_chunks(self, data: Data) -> None:
        X, y, task = data
        expected = scores(progressive_validate(MultitaskPerceptron(), [Chunk(X, y, task)]))
        assert scores(progressive_validate(MultitaskPerceptron(), zip(X, y, task, strict=True))) == expected
        assert scores(progressive_validate(MultitaskPerceptron(), [(X, y, task)])) == expected
        assert scores(progressive_validate(MultitaskPerceptron(), [(X, y.tolist(), task.tolist())])) == expected

    def test_dict_rows_equal_arrays_and_leave_a_learner_that_knows_their_names(self, data: Data) -> None:
        X, y, task = data
        names = [f"x{j}" for j in range(D)]
        learner = MultitaskPerceptron()
        rows = [
            ({n: v for n, v in zip(names, x, strict=True) if v > -1}, *rest)
            for x, *rest in zip(X, y, task, strict=True)
        ]
        found = progressive_validate(learner, rows)
        expected = progressive_validate(MultitaskPerceptron(), [Chunk(sp.csr_matrix(np.where(X > -1, X, 0)), y, task)])
        assert found.overall["auc"] == pytest.approx(expected.overall["auc"], abs=1e-9)
        assert sorted(learner.feature_names_in_) == names
        assert np.isfinite(learner.decision_one({"x0": 1.0, "never seen": 2.0}, "t1"))

    def test_dict_rows_go_to_the_columns_a_learner_already_has(self, data: Data) -> None:
        X, y, task = data
        rows = [({f"x{j}": v for j, v in enumerate(x)}, *rest) for x, *rest in zip(X, y, task, strict=True)]
        learner, twin = MultitaskPerceptron(), MultitaskPerceptron()
        for model in (learner, twin):
            model.learn_one({"other": 1.0, "x5": 2.0, "x0": -1.0}, 1, "t0")
        progressive_validate(learner, rows)
        for x, label, name in rows:
            twin.learn_one(x, label, name)
        column = {name: j for j, name in enumerate(learner.feature_names_in_)}
        order = [column[name] for name in twin.feature_names_in_]
        assert np.allclose(learner.coef_[:, order], twin.coef_, rtol=1e-12, atol=1e-12)

    def test_data_frames(self, data: Data) -> None:
        import pandas as pd
        import polars as pl

        X, y, task = data
        task = np.repeat([f"t{k % 12}" for k in range(N // 5)], 5)  # runs of one task: many rounds are cut
        expected = scores(progressive_validate(Simultaneous(), [Chunk(X, y, task)]))
        columns = {f"x{j}": X[:, j] for j in range(D)}
        for frame, series in ((pd.DataFrame, pd.Series), (pl.DataFrame, pl.Series)):
            cut = slice(0, 1_101), slice(1_101, N)
            chunks = [
                Chunk(frame({n: v[part] for n, v in columns.items()}), series(y[part]), series(list(task[part])))
                for part in cut
            ]
            assert scores(progressive_validate(Simultaneous(), chunks)) == expected

    def test_a_data_set_with_a_stream_method(self, data: Data) -> None:
        class Dataset:
            def stream(self) -> Iterator[Chunk]:
                return iter(in_chunks(*data, 600))

        expected = scores(progressive_validate(MultitaskPerceptron(), in_chunks(*data, 600)))
        assert scores(progressive_validate(MultitaskPerceptron(), Dataset())) == expected

    def test_without_tasks_all_rows_belong_to_one(self, data: Data) -> None:
        X, y, _ = data
        evaluation = progressive_validate(MultitaskPerceptron(), [(X, y)])
        assert evaluation.tasks == 1
        assert evaluation.per_task[None]["updates"] == evaluation.n_updates > 0

    def test_labels_of_any_kind_the_larger_is_positive(self, data: Data) -> None:
        X, y, task = data
        words = np.where(y > 0, "spam", "ham")
        expected = progressive_validate(MultitaskPerceptron(), [Chunk(X, y, task)])
        first = int(np.flatnonzero(words != words[0])[0])
        chunks = [
            Chunk(X[:first], words[:first], task[:first]),
            Chunk(X[first:], words[first:], task[first:]),
        ]
        found = progressive_validate(MultitaskPerceptron(), chunks, classes=["ham", "spam"])
        assert scores(found) == scores(expected)
        with pytest.raises(ValueError, match="classes="):
            progressive_validate(MultitaskPerceptron(), chunks)


def test_several_learners_in_one_pass_are_each_as_if_alone(data: Data) -> None:
    def learners() -> dict[str, Learner]:
        return {
            "shared": MultitaskPerceptron(),
            "rounds": Simultaneous(),
            "alone": MultitaskPerceptron(relation="independent"),
        }

    passes = []

    def stream() -> Iterator[Chunk]:
        passes.append(1)
        yield from in_chunks(*data, 250)

    together = progressive_validate(learners(), stream(), checkpoints=None)
    assert len(passes) == 1
    for name, learner in learners().items():
        assert scores(together[name]) == scores(progressive_validate(learner, in_chunks(*data, N), checkpoints=None))
    assert together["shared"].overall != together["alone"].overall


def test_regression(data: Data) -> None:
    X, _, task = data
    y = X @ np.arange(D) + 3.0
    learner = MultitaskRegressor(eta=0.05)
    evaluation = progressive_validate(learner, in_chunks(X, y, task, 300))
    answers = MultitaskRegressor(eta=0.05).test_then_train(X, y, task)
    assert evaluation.kind == "regression"
    assert evaluation.overall["rmse"] == pytest.approx(np.sqrt(np.mean((y - answers) ** 2)))
    assert evaluation.overall["explained_variance"] == pytest.approx(1 - np.var(y - answers) / np.var(y))


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"window": 0}, "window must be at least 1"),
            ({"delay": -1}, "delay must be"),
            ({"checkpoints": 0}, "checkpoints must be"),
            ({"checkpoints": "often"}, "checkpoints must be"),
            ({"metrics": ["rmse"]}, "not defined for binary"),
        ],
    )
    def test_options(self, data: Data, options: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            progressive_validate(MultitaskPerceptron(), in_chunks(*data, 500), **options)

    @pytest.mark.parametrize("stream", [[], [(np.zeros((0, 2)), np.zeros(0), np.zeros(0))]])
    def test_a_stream_without_rows(self, stream: list[Any]) -> None:
        with pytest.raises(ValueError, match="no rows"):
            progressive_validate(MultitaskPerceptron(), stream)

    def test_what_is_no_stream(self, data: Data) -> None:
        with pytest.raises(ValueError, match=r"chunks .* or rows .*, got an item of type ndarray"):
            progressive_validate(MultitaskPerceptron(), data[0])

    def test_no_learners_or_both_kinds(self, data: Data) -> None:
        with pytest.raises(ValueError, match="at least one learner"):
            progressive_validate({}, in_chunks(*data, 500))
        with pytest.raises(ValueError, match="got binary and regression"):
            progressive_validate({"a": MultitaskPerceptron(), "b": MultitaskRegressor()}, in_chunks(*data, 500))

    def test_a_bad_row_is_refused_by_the_learner(self, data: Data) -> None:
        X, y, task = (column[:50].copy() for column in data)
        X[7, 1] = np.nan
        with pytest.raises(ValueError, match="row 7"):
            progressive_validate(MultitaskPerceptron(), [Chunk(X, y, task)])


def test_learners_side_by_side_change_nothing(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads take turns in any order; each learner has its own rows to answer and its own model."""
    found = []
    for rows in (1, 10**9):
        monkeypatch.setattr(progressive, "MIN_ROWS_FOR_THREADS", rows)
        monkeypatch.setattr(progressive, "n_cores", lambda: 3)
        learners = {
            "hedged": HedgedSharing(),
            "asks": LabelQuery(MultitaskPerceptron(loss="hinge"), rule="fixed", budget=0.3, random_state=1),
            "batch": Periodic(TraceNorm(), every=500),
            "perceptron": MultitaskPerceptron(relation=1.0),
        }
        found.append(progressive_validate(learners, in_chunks(*data, 700)))
    assert {name: scores(e) for name, e in found[0].items()} == {name: scores(e) for name, e in found[1].items()}


def test_all_learners_finish_their_rows_before_one_s_error_is_raised(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progressive, "MIN_ROWS_FOR_THREADS", 1)
    monkeypatch.setattr(progressive, "n_cores", lambda: 2)
    narrow, other = MultitaskPerceptron().fit(np.ones((2, 1)), [-1, 1]), MultitaskPerceptron()
    monkeypatch.setattr(narrow, "add_features", None)  # breaks when columns are to be added
    X, y, task = data
    with pytest.raises(TypeError, match="not callable"):
        progressive_validate({"narrow": narrow, "other": other}, [(X, y, task)], checkpoints=None)
    np.testing.assert_array_equal(other.coef_, MultitaskPerceptron().partial_fit(X, y, task).coef_)


@pytest.mark.parametrize("delay", [0, 5])
@pytest.mark.parametrize("size", [7, 400])
def test_several_classes_are_judged_on_predictions_given_before_learning(size: int, delay: int) -> None:
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(400, 5)), rng.integers(3, size=400)
    y = np.array(TREES)[(X @ rng.normal(size=(5, 3))).argmax(axis=1)]
    chunks = [Chunk(X[i : i + size], y[i : i + size], task[i : i + size]) for i in range(0, 400, size)]
    found = progressive_validate(MultiClass(PassiveAggressive()), chunks, delay=delay, classes=TREES)
    learner, errors = MultiClass(PassiveAggressive()), np.zeros(3)
    for row in range(400):
        if row > delay:
            guess = learner.predict(X[row : row + 1], task[row : row + 1])[0]
        else:  # a learner that knows the classes and no row has equal margins; one that waits for labels has none
            guess = None if delay else TREES[0]
        errors[task[row]] += guess != y[row]
        late = row - delay
        if late >= 0:
            learner.partial_fit(X[late : late + 1], y[late : late + 1], task[late : late + 1], classes=TREES)
    assert found.kind == "multiclass"
    assert found.overall["error"] == pytest.approx(errors.sum() / 400)
    assert [found.per_task[k]["error"] for k in range(3)] == pytest.approx((errors / np.bincount(task)).tolist())
    assert sum(found.confusion.values()) == 400
    wrong = sum(rows for (true, guess), rows in found.confusion.items() if true != guess)
    assert wrong == errors.sum()
    assert list(found.overall) == ["error"]  # margins that are no log-odds give no probabilities
