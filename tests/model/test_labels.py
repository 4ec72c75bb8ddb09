"""Two labels of any kind as +1 and -1."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.model.labels import InOrder, declared, encode, real_targets

pairs = st.sampled_from([(-1, 1), (0, 1), (False, True), (-1.0, 1.0), (0.0, 1.0)])


@given(pair=pairs, picks=st.lists(st.booleans(), min_size=1, max_size=8), data=st.data())
def test_known_pairs_need_no_declaration_wherever_the_stream_is_cut(
    pair: tuple[Any, Any], picks: list[bool], data: st.DataObject
) -> None:
    y = np.array([pair[pick] for pick in picks])
    cut = data.draw(st.integers(0, len(y)))
    labels, signs = None, list[float]()
    for piece in (y[:cut], y[cut:]):
        if len(piece):
            encoded, labels = encode(piece, len(piece), labels)
            signs += encoded.tolist()
    assert signs == [1.0 if pick else -1.0 for pick in picks]
    assert labels is not None
    assert labels.settled == (len(set(picks)) == 2)
    if labels.settled:
        assert labels.classes.tolist() == list(pair)


@pytest.mark.parametrize(
    ("first", "guess"), [(-1, [-1, 1]), (1, [-1, 1]), (0, [0, 1]), (True, [False, True]), (np.uint8(1), [0, 1])]
)
def test_what_one_label_tells(first: object, guess: list[Any]) -> None:
    _, labels = encode(np.array([first]), 1, None)
    assert labels.classes.tolist() == guess
    assert not labels.settled


@pytest.mark.parametrize(
    "y", [["b", "a"], [7, 3], [2.5, -1.5], np.array(["b", "a"], object), [Fraction(1, 2), Fraction(1, 3)]], ids=str
)
def test_any_two_labels_the_larger_is_plus(y: Any) -> None:
    signs, labels = encode(np.array(y), 2, None)
    assert signs.tolist() == [1.0, -1.0]
    assert labels.classes.tolist() == sorted(y)


def test_the_last_of_two_labels_in_order_is_plus() -> None:
    given = InOrder(["spam", "ham"])
    signs, labels = encode(["spam", "ham"], 2, None, given)
    assert signs.tolist() == [-1.0, 1.0]
    assert encode(["ham"], 1, labels, given)[0].tolist() == [1.0]
    assert encode(["ham"], 1, labels, ["ham", "spam"])[1] is labels  # `classes=` alone says nothing of their order
    with pytest.raises(ValueError, match="differ from the model's"):
        encode(["ham"], 1, labels, InOrder(["ham", "spam"]))
    with pytest.raises(ValueError, match="0 was learned as -1"):
        encode([1], 1, encode([0], 1, None)[1], InOrder([1, 0]))


def test_declared_classes() -> None:
    assert declared(["spam", "ham"]).classes.tolist() == ["ham", "spam"]
    assert encode(["spam"], 1, None, ["spam", "ham"])[0].tolist() == [1.0]
    for classes, found in ([["a"], 1], [["a", "b", "c"], 3]):
        with pytest.raises(ValueError, match=f"must name two labels, got {found}"):
            declared(classes)
    _, labels = encode([1], 1, None)
    with pytest.raises(ValueError, match=r"classes=\[2, 3\] leave out 1, learned before"):
        encode([2], 1, labels, [2, 3])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, -1, 2], "Row 2: got a third label 2; expected 1 or -1"),
        (["a", "b", "c"], "Row 2: got a third label 'c'; expected 'a' or 'b'"),
        ([1.5, 2.5, 3.5], "Unknown label type: continuous. Row 2"),
        ([5, 5, 5], "only one label, 5, is known"),
        (["a", "a", "a"], "only one label, 'a', is known"),
        ([Decimal(1)] * 3, "only one label"),
        ([1, np.nan, -1], "row 1: the label is NaN"),
        (np.array(["a", None, "b"], object), "row 1: the label is None"),
        (np.array(["a", np.nan, "b"], object), "row 1: the label is NaN"),
        (np.array(["a", 1, "b"], object), "row 1: the label 1 is not of the kind of 'a'"),
        ([1, -1], "y must hold one value per row: expected 3 values, got 2"),
    ],
)
def test_bad_labels(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encode(np.asarray(y), 3, None)


def test_text_after_a_number() -> None:
    _, labels = encode([1], 1, None)
    with pytest.raises(ValueError, match="row 0: got the label 'a' after 1; make the learner with classes="):
        encode(["a"], 1, labels)


def test_real_targets() -> None:
    assert real_targets([1, 2.5, True], 3).tolist() == [1.0, 2.5, 1.0]
    for y, message in (([1.0, np.nan], "row 1: the target is NaN"), ([-np.inf, 1.0], "row 0: the target is infinity")):
        with pytest.raises(ValueError, match=message):
            real_targets(y, 2)
    with pytest.raises(ValueError, match="y must hold real numbers"):
        real_targets(["a", "b"], 2)


def test_whole_numbers_that_floats_do_not_tell_apart() -> None:
    signs, labels = encode(np.array([2**53, 2**53 + 1, 2**53]), 3, None)
    assert (signs.tolist(), labels.classes.tolist()) == ([-1.0, 1.0, -1.0], [2**53, 2**53 + 1])
    assert encode(np.array([2**53 + 1]), 1, labels)[0].tolist() == [1.0]
    for one, other in ((2**53, 0), (-(2**63), 5)):
        _, labels = encode(np.array([one, other]), 2, None)
        for y, known in (([one, other, one + 1], None), ([one + 1], labels)):
            with pytest.raises(ValueError, match="third"):
                encode(np.array(y), len(y), known)
