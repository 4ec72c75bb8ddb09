"""The names that the program knows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shoal.datasets import load, names

FOLDERS = {
    "landmine": "landmine", "landmine19": "landmine", "school": "school", "ecml_spam": "ecml2006_spam",
    "mhc": "mhc1_binding", "jester": "jester5k",
    "rcv1_d1": "rcv1_subsets",
}  # fmt: skip
IN_THEIR_OWN_TESTS = ["enron", "sentiment"]  # on small files: reading the real ones takes ten seconds
WITHOUT_FILES = ["conjoint", "related_tasks", "flights"]


def test_every_name_has_one_line() -> None:
    assert set(names()) == {*FOLDERS, *IN_THEIR_OWN_TESTS, *WITHOUT_FILES}
    assert all(text and "\n" not in text for text in names().values())


@pytest.mark.parametrize("name", [name for name in names() if name not in IN_THEIR_OWN_TESTS])
def test_load_gives_the_data_set_of_that_name(name: str, benchmark_files: Callable[[str], Path]) -> None:
    if name in FOLDERS:
        benchmark_files(FOLDERS[name])
    data = load(name)
    assert data.name == name
    assert len(data) > 0
    assert data.description


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="there is no data set 'mnist'; choose one of flights, landmine, "):
        load("mnist")
