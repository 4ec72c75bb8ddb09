"""Every command of README and docs can be pasted: it is one of the program, and runs on the tables that it writes."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import polars as pl
import pytest
from tests.cli.conftest import Program

from shoal.cli.app import app
from shoal.datasets.samples import NAMES, write_samples

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# These listen, need a service or a cluster, or all flights: they are read, and not run.
OTHERS = re.compile(
    r"serve|follow|send|swap|backup|restore|replay|log |reproduce|compile|.*dataset:|.*--shards|.*\.shards"
)


def commands(page: Path) -> list[str]:
    """The lines of blocks that are commands, without comments and what is optional."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M)
    lines = [
        line
        for kind, block in blocks
        if kind in ("", "sh", "bash")
        for line in block.splitlines()
        if re.match(r"shoal [a-z]+( |$)", line)
    ]
    return [re.sub(r"\[(--[^\]]*)\]", r"\1", line.split(" #")[0]).removeprefix("shoal ").strip() for line in lines]


ALL = [(page.name, line) for page in PAGES for line in commands(page)]


@pytest.mark.parametrize(("page", "line"), ALL)
def test_a_command_is_one_of_the_program(page: str, line: str) -> None:
    command, _, unused = app.parse_known_args(shlex.split(line))[:3]
    assert command.__name__
    assert not unused


def test_those_on_tables_run_in_the_order_of_their_page(
    shoal: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding 21: mails.csv, more.csv and new.csv did not exist anywhere."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "examples" / "new_algorithm" / "easy_adapt.py", ".")  # which own-learner.md has for download
    assert shoal("datasets", "--write", ".")[1].split() == [*NAMES]
    seen = []
    for line in dict.fromkeys(line for _, line in ALL):
        if not OTHERS.match(line) and line != "datasets --write .":
            code, _, err = shoal(*shlex.split(line))
            assert (code, err) == (0, ""), line
            seen.append(line.split()[0])
    assert seen.count("run") >= 3
    assert seen.count("predict") >= 2
    assert pl.read_parquet("predicted.parquet").columns[0] == "id"
    assert pl.read_csv("forecasts.csv").height == NAMES["tomorrow.csv"]


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("mine")
    with pytest.raises(FileExistsError, match=r"sales\.csv is there already"):
        write_samples(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["sales.csv"]
