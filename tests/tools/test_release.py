"""A release whose places name several versions or dates ends before anything is built."""

import importlib.util
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
FILES = {
    "pyproject.toml": '[project]\nversion = "1.2.0"\n',
    "CHANGELOG.md": "# Changelog\n\n## 1.2.0, 2027-01-02\n\n## 1.1.0, 2026-12-01\n",
    "CITATION.cff": "title: shoal\nversion: 1.2.0\ndate-released: 2027-01-02\n",
    "src/shoal/cli/commands/references.bib": "@software{shoal,\n  version = {1.2.0},\n  date = {2027-01-02},\n}\n",
}


@pytest.mark.parametrize(
    ("place", "old", "new", "words"),
    [
        ("CITATION.cff", "1.2.0", "1.1.0", "pyproject.toml has version 1.2.0, CITATION.cff 1.1.0"),
        ("CHANGELOG.md", ", 2027-01-02", "", "CHANGELOG.md 1.1.0"),
        ("src/shoal/cli/commands/references.bib", "01-02", "01-03", "1.2.0 has several dates: 2027-01-02 in CHANGELOG"),
    ],
)
def test_places_that_differ_are_named(
    place: str, old: str, new: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    spec = importlib.util.spec_from_file_location("release", TOOLS / "release.py")
    assert spec is not None
    assert spec.loader is not None
    release = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(release)
    monkeypatch.delitem(sys.modules, "built_package")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert release.version() == ("1.2.0", "2027-01-02")
    (tmp_path / place).write_text(FILES[place].replace(old, new))
    with pytest.raises(SystemExit, match=words):
        release.version()
