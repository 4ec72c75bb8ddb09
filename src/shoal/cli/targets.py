"""`--target`: whether a regressor answers the mean or quantiles, and the loss that judges the answer."""

from collections.abc import Sequence
from typing import Any

from sklearn.base import clone, is_classifier

from shoal.learner import Learner
from shoal.wrappers.inner import wrappers_of

WORDS = ("mean", "median")


def target_of(words: Sequence[str]) -> Any:
    """The value for `target=` of a learner: a word, a level, or several levels. Raises ValueError."""
    if len(words) == 1 and words[0] in WORDS:
        return words[0]
    try:
        levels = [0.5 if word == "median" else float(word) for word in words]
    except ValueError:
        levels = []
    if not levels or not all(0.0 < level < 1.0 for level in levels) or sorted(set(levels)) != levels:
        raise ValueError(
            f"--target takes mean, median, or levels between 0 and 1 in rising order, got {','.join(words)} (--label "
            "names the column to predict)"
        )
    return levels[0] if len(levels) == 1 else levels


def with_target(learner: Any, words: Sequence[str], title: str, loaded: str | None) -> Any:
    """The learner, to answer what the words say; as it is without words.

    Raises
    ------
    ValueError
        If it is for labels, has no `target`, or if the loaded model answers something else.
    """
    if not words:
        return learner
    target = target_of(words)
    if is_classifier(learner):
        raise ValueError(f"--target is for numbers, and {title} has labels: --regression takes labels as numbers")
    plain = learner
    for wrapper in wrappers_of(learner):
        plain = wrapper.plain
    if not isinstance(plain, Learner) or "target" not in plain.get_params(deep=False):
        raise ValueError(f"--target is a parameter of HedgedSharingRegressor; {type(plain).__name__} has none")
    wanted = clone(plain).set_params(target=target)
    if loaded is None:
        return wanted
    if (plain.quantiles, plain.answers_several) != (wanted.quantiles, wanted.answers_several):
        raise ValueError(f"{loaded} was learned with target {plain.target!r}: leave out --target, or learn anew")
    return learner
