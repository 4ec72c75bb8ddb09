"""The audit of the table of exclusions: no line of it may name what does not exist, or go without a reason."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from tests.batch.cases import BATCH
from tests.cases import LEARNERS
from tests.exclusions import EXCLUSIONS, OFFERED, settings_for

TESTS = Path(__file__).parent


@pytest.fixture(scope="module")
def offered() -> dict[str, set[str]]:
    """The settings that each generic test names: importing a suite tells."""
    for path in sorted(TESTS.rglob("test_contract*.py")):
        importlib.import_module(".".join(("tests", *path.relative_to(TESTS).with_suffix("").parts)))
    return OFFERED


def test_settings_have_one_name_each() -> None:
    assert not LEARNERS.keys() & BATCH.keys()


@pytest.mark.parametrize("test", EXCLUSIONS)
def test_exclusions_name_a_test_its_settings_and_a_reason(test: str, offered: dict[str, set[str]]) -> None:
    assert test in offered, "there is no such test, or it does not ask the table"
    assert EXCLUSIONS[test], "nothing is left out"
    assert EXCLUSIONS[test].keys() <= LEARNERS.keys() | BATCH.keys(), "there is no such setting"
    assert EXCLUSIONS[test].keys() <= offered[test], "the test does not run on it anyway"
    assert offered[test] - EXCLUSIONS[test].keys(), "nothing is tested"
    for reason in EXCLUSIONS[test].values():
        assert len(reason.split()) >= 3, "a reason is a sentence"


def test_the_table_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.exclusions.OFFERED", {})
    monkeypatch.setitem(EXCLUSIONS, "test_of_mine", {"OSMTL": "for this test alone"})
    assert settings_for("test_of_mine", ["ROMCO", "OSMTL"]) == ["ROMCO"]
    assert settings_for("test_of_others", ["ROMCO", "OSMTL"]) == ["ROMCO", "OSMTL"]
