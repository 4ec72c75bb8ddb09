"""The program as a function: arguments in; exit code, stdout and stderr out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from shoal.cli.app import start

Program = Callable[..., tuple[str | int | None, str, str]]
Row = tuple[str, float, str, str]  # shop, size, colour, sold


@pytest.fixture
def shoal(capsys: pytest.CaptureFixture[str]) -> Program:
    def run(*arguments: object) -> tuple[str | int | None, str, str]:
        try:
            start([str(argument) for argument in arguments])
            code: str | int | None = 0
        except SystemExit as end:
            code = end.code
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def rows() -> list[Row]:
    """(shop, size, colour, sold): sold depends on size, and in one shop in three on colour."""
    rng = np.random.default_rng(0)
    table = []
    for _ in range(1500):
        shop, size, colour = rng.integers(6), rng.normal(), rng.choice(["red", "green", "blue"])
        score = size + (1.5 if colour == "red" else -0.5) * (shop % 3 == 0)
        table.append((f"shop{shop}", round(float(size), 4), colour, "yes" if score > 0 else "no"))
    return table


@pytest.fixture
def csv_file(tmp_path: Path, rows: list[Row]) -> Path:
    path = tmp_path / "sales.csv"
    lines = ["shop,size,colour,sold", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path
