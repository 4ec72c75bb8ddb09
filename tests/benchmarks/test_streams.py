"""Tables with a row for each (object, label): every pair once, in an order that does not give the answer away."""

import numpy as np
import pytest
from benchmarks.streams import read

pytest.importorskip("river")


def test_each_patch_is_asked_for_each_kind_once_and_is_one_of_them() -> None:
    stream = read("segment")
    assert stream.X.shape == (2_310 * 7, 18)
    np.testing.assert_array_equal(np.bincount(stream.task), 2_310)
    np.testing.assert_array_equal(np.bincount(stream.task[stream.y > 0]), 330)
    _, patch, rows = np.unique(stream.X, axis=0, return_inverse=True, return_counts=True)
    positive = np.bincount(patch, weights=stream.y > 0)
    same = rows > 7  # some patches of one kind are alike in all columns
    np.testing.assert_array_equal(positive[~same], 1)
    assert (np.diff(patch) == 0).mean() < 0.01


def test_the_first_rows_are_a_prefix() -> None:
    whole, first = read("yeast"), read("yeast", 100)
    np.testing.assert_array_equal(first.X, whole.X[:100])
    np.testing.assert_array_equal(first.task, whole.task[:100])
