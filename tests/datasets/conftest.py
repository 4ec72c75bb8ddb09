"""The benchmark files: where they are, and a written reason where they are not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

BESIDE_THE_PROJECT = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture
def benchmark_files(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """A function that gives a data set's folder, or skips the test, and points SHOAL_DATA there."""

    def folder_of(name: str) -> Path:
        root = Path(os.environ.get("SHOAL_DATA") or BESIDE_THE_PROJECT)
        if not (root / name).is_dir():
            pytest.skip(f"{name} may not be redistributed: set SHOAL_DATA to the folder that holds {name}/")
        monkeypatch.setenv("SHOAL_DATA", str(root))
        return root / name

    return folder_of
