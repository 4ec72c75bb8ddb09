"""What is learnt does not depend on whether another thread answers ahead, nor on how fast it is."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import MultitaskPerceptron
from shoal.online import _answers, _own, multitask_perceptron
from shoal.online._answers import answer_from, learn_beside, new_answers
from shoal.online.multitask_perceptron import learn_with
from shoal.ops import call

NOTHING = np.zeros(0)


def lay_in_tables(monkeypatch):
    """All own weights."""
    monkeypatch.setattr(multitask_perceptron._Multitask, "_most_dense", lambda self: 0)
    monkeypatch.setattr(_own, "DENSE_MOST", 0)


@pytest.fixture
def wide(monkeypatch):
    lay_in_tables(monkeypatch)


def stream(seed, n_rows, n_tasks, d=300, nnz=20):
    """Random labels, so that half of the rows change their task."""
    rng = np.random.default_rng(seed)
    columns = np.sort(rng.permuted(np.tile(np.arange(d), (n_rows, 1)), axis=1)[:, :nnz], axis=1)
    X = sp.csr_matrix((rng.normal(size=columns.size), columns.ravel(), np.arange(0, columns.size + 1, nnz)))
    return X, rng.choice([-1.0, 1.0], n_rows), rng.integers(n_tasks, size=n_rows)


def learnt(rows, *, beside, monkeypatch, relation=1.0, rounds=None):
    monkeypatch.setattr(multitask_perceptron, "pays", lambda _: beside)
    learner = MultitaskPerceptron(relation=relation)
    decisions = learner.test_then_train(*rows, rounds=rounds)
    assert learner._in_pairs()
    return decisions, learner


def ready(rows, first_rows):
    """A learner that knows the first rows, the others as rounds, and the arguments of its loop."""
    X, y, task = rows
    learner = MultitaskPerceptron(relation=1.0).partial_fit(X[:first_rows], y[:first_rows], task[:first_rows])
    found = []
    learner._call = lambda loop, rounds, decisions: found.append(rounds)
    learner.partial_fit(X[first_rows:], y[first_rows:], task[first_rows:])
    del learner._call
    return learner, found[0], (learner._settings(), learner._state, NOTHING, learner.dtype)


@pytest.mark.parametrize("relation", [1.0, "independent"])
@pytest.mark.parametrize("n_tasks", [1, 7, 300])
@pytest.mark.parametrize("farthest", [0, 40, 10**6])
def test_two_threads_learn_what_one_learns(relation, n_tasks, farthest, wide, monkeypatch):
    """Tasks come back soon and late; tables grow and move, and the arena too, while both look at them."""
    monkeypatch.setattr(_own, "FIRST_ROOM", 1)
    monkeypatch.setattr(_answers, "FARTHEST", farthest)
    rows = stream(n_tasks, 6_000, n_tasks)
    expected, alone = learnt(rows, beside=False, monkeypatch=monkeypatch, relation=relation)
    decisions, learner = learnt(rows, beside=True, monkeypatch=monkeypatch, relation=relation)
    np.testing.assert_array_equal(decisions, expected)
    np.testing.assert_array_equal(learner.coef_, alone.coef_)
    np.testing.assert_array_equal(learner.task_updates_, alone.task_updates_)


def test_rounds_of_several_rows(wide, monkeypatch):
    X, y, _ = stream(2, 6_000, 1)
    rows, rounds = (X, y, np.arange(6_000) % 5), np.arange(6_000) // 5
    expected, alone = learnt(rows, beside=False, monkeypatch=monkeypatch, rounds=rounds)
    decisions, learner = learnt(rows, beside=True, monkeypatch=monkeypatch, rounds=rounds)
    np.testing.assert_array_equal(decisions, expected)
    np.testing.assert_array_equal(learner.coef_, alone.coef_)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 300), st.integers(1, 40))
def test_answers_are_the_tasks_own_parts(seed, n_known, n_tasks):
    """Those begun during a change, or before the last one, are not used, whatever they are."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        lay_in_tables(monkeypatch)
        rows = stream(seed, n_known + 100, n_tasks)
        learner, rounds, _ = ready(rows, n_known)
    own = learner._state.own
    answers = new_answers(len(rounds.task), len(own.tables.start), 0)
    answers.changes[:] = 4
    answers.changes[rounds.task[50]] = 5  # it seems to change
    assert answer_from(0, _answers.FARTHEST, rounds, own, answers) == len(rounds.task)
    V = _own.as_matrix(own, len(own.tables.start), rows[0].shape[1])
    expected = np.asarray(rows[0][-len(rounds.task) :].multiply(V[rounds.task]).sum(axis=1)).ravel()
    done = (np.arange(len(rounds.task)) >= _answers.NEAREST) & (rounds.task != rounds.task[50])
    np.testing.assert_allclose(answers.answer[done], expected[done], atol=1e-12)
    np.testing.assert_array_equal(answers.begun, np.where(done, 4, -1))


def test_only_answers_with_the_present_weights_are_taken(wide):
    rows = stream(3, 400, 3)
    right = MultitaskPerceptron(relation=1.0).partial_fit(*rows).coef_
    for begun, taken in ((4, True), (2, False), (5, False), (-1, False)):
        learner, rounds, arguments = ready(rows, 300)
        answers = new_answers(len(rounds.task), len(learner._state.own.tables.start), 0)
        answers.changes[:], answers.begun[:], answers.answer[:] = 4, begun, 1e6
        call(learn_with, rounds, *arguments, answers)
        assert (learner.coef_ != right).any() == taken
        assert (answers.changes[rounds.task] > 4).all()
        assert (answers.changes % 2 == 0).all()


def test_the_other_thread_keeps_its_distance(wide):
    learner, rounds, _ = ready(stream(4, 3_000, 50), 100)
    own = learner._state.own
    answers = new_answers(len(rounds.task), len(own.tables.start), 0)
    row = answer_from(0, _answers.FARTHEST, rounds, own, answers)
    assert row == _answers.FARTHEST + 1
    assert answer_from(row, _answers.FARTHEST, rounds, own, answers) == row
    answers.learner[0] = 2_000
    assert answer_from(row, _answers.FARTHEST, rounds, own, answers) == 2_000 + _answers.FARTHEST + 1
    assert (answers.begun[row : 2_000 + _answers.NEAREST] == -1).all()
    answers.learner[0] = len(rounds.task)
    assert answer_from(row, _answers.FARTHEST, rounds, own, answers) >= len(rounds.task)


def test_it_ends_when_learning_fails(wide):
    learner, rounds, _ = ready(stream(5, 3_000, 50), 100)

    def fail(answers):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn_beside(fail, rounds, learner._state.own)


def test_its_time_is_counted(wide, monkeypatch):
    _, learner = learnt(stream(6, 6_000, 300), beside=True, monkeypatch=monkeypatch)
    assert learner._seconds_beside > 0
