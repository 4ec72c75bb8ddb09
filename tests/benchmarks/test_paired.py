"""Differences of two systems, by hand."""

import numpy as np
import pytest
from benchmarks.paired import gaps
from benchmarks.scores import Stream, score


def _stream(size: int = 100) -> Stream:
    task = np.repeat([0, 1, 2], [size, size, size])
    y = np.append(np.tile([1.0, -1.0], size), np.ones(size))  # the last task has one label, so no AUC
    return Stream("by hand", np.zeros((len(y), 1)), y, task)


def test_a_gap_is_the_difference_of_the_scores_and_its_error_that_of_a_mean() -> None:
    stream = _stream()
    right = 2 * stream.y
    worse = right.copy()
    worse[:2] *= -1  # two errors in task 0
    found, reversed_ = gaps(stream, right, worse), gaps(stream, worse, right)
    ours, theirs = score(stream, right, 1.0), score(stream, worse, 1.0)
    assert found.macro_auc.mean == pytest.approx(ours.macro_auc - theirs.macro_auc)
    assert found.error.mean == pytest.approx(ours.error - theirs.error) == pytest.approx(-2 / 300)
    assert found.macro_auc.mean == pytest.approx((1 - (49 * 49 + 49) / 50**2) / 2)  # a pair of 50 x 50 lost, 98 tied
    assert ours.auc == 1.0
    assert found.log_loss.mean == pytest.approx(ours.log_loss - theirs.log_loss)
    assert (found.won, found.tasks) == (1, 2)
    assert reversed_.won == 0
    assert found.error.standard_error == pytest.approx(np.std([-1, -1] + [0] * 298, ddof=1) / np.sqrt(300))
    assert found.macro_auc.standard_error == pytest.approx(abs(found.macro_auc.mean))  # of (g, 0) it is g / 2, the mean


def test_few_rows_count_for_the_auc_only_if_they_are_enough() -> None:
    stream = _stream()._replace(task=np.repeat([0, 1], [201, 99]), y=np.tile([1.0, -1.0], 150))
    answers = np.arange(300.0)
    assert gaps(stream, answers, -answers).tasks == 1
    assert np.isnan(gaps(stream, answers, -answers).macro_auc.standard_error)
    assert np.isnan(score(_stream(size=99), answers[:297], 1.0).macro_auc)
