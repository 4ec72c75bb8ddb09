"""The program as a function: arguments in; exit code, stdout and stderr out."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.cli.app import start


@pytest.fixture
def shoal(capsys):
    def run(*arguments):
        try:
            start([str(argument) for argument in arguments])
            code = 0
        except SystemExit as end:
            code = end.code
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def rows():
    """(shop, size, colour, sold): sold depends on size, and in one shop in three on colour."""
    rng = np.random.default_rng(0)
    table = []
    for _ in range(1500):
        shop, size, colour = rng.integers(6), rng.normal(), rng.choice(["red", "green", "blue"])
        score = size + (1.5 if colour == "red" else -0.5) * (shop % 3 == 0)
        table.append((f"shop{shop}", round(float(size), 4), colour, "yes" if score > 0 else "no"))
    return table


@pytest.fixture
def csv_file(tmp_path, rows):
    path = tmp_path / "sales.csv"
    lines = ["shop,size,colour,sold", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path
