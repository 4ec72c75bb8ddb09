"""What tests of the program share: a table, and what the program is to them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

Program = Callable[..., tuple[str | int | None, str, str]]  # arguments in; exit code, stdout and stderr out
Row = tuple[str, float, str, str]  # shop, size, colour, sold
TABLE = ("--task", "shop", "--label", "sold")


@pytest.fixture(scope="session")
def rows() -> list[Row]:
    """(shop, size, colour, sold): sold depends on size, and in one shop in three on colour."""
    rng = np.random.default_rng(0)
    table = []
    for _ in range(1500):
        shop, size, colour = rng.integers(6), rng.normal(), rng.choice(["red", "green", "blue"])
        score = size + (1.5 if colour == "red" else -0.5) * (shop % 3 == 0)
        table.append((f"shop{shop}", round(float(size), 4), colour, "yes" if score > 0 else "no"))
    return table


def write(rows: list[Row], path: Path) -> Path:
    lines = ["shop,size,colour,sold", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def csv_file(tmp_path: Path, rows: list[Row]) -> Path:
    return write(rows, tmp_path / "sales.csv")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> bytes:
    """What `shoal run --save` leaves of the table."""
    from shoal.cli.app import start

    folder = tmp_path_factory.mktemp("trained")
    path, table = folder / "m.shoal", write(rows, folder / "sales.csv")
    with suppress(SystemExit):
        start(["run", str(table), *TABLE, "--save", str(path), "--quiet"])
    return path.read_bytes()


@pytest.fixture
def model(tmp_path: Path, trained: bytes) -> Path:
    """The test's own copy of the trained model."""
    path = tmp_path / "m.shoal"
    path.write_bytes(trained)
    return path
