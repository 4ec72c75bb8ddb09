"""Compiled code where nothing may be written: in an image, under any user, without a home."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import shoal

LEARN = """
import numpy as np, logging
logging.basicConfig()
from numba.core import event
with event.install_recorder("numba:compile") as compiled:
    from shoal import PassiveAggressive
    print(PassiveAggressive().fit(np.eye(3)[:2], [1, -1], ["a", "b"]).predict(np.eye(3)[:2], ["a", "b"]).tolist())
print(len(compiled.buffer))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The parts of the package that the learner needs, with what was compiled beside them."""
    folder = tmp_path_factory.mktemp("image")
    shutil.copytree(Path(shoal.__file__).parent, folder / "shoal")
    env = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": ""}
    subprocess.run([sys.executable, "-c", LEARN], check=True, cwd=folder, env=env)
    return folder


def read_only(folder: Path, more: str = "") -> tuple[list[str], str]:
    """What `LEARN` prints, with the folder and the home mounted read-only; and its log."""
    mounts = f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder}"
    mounts += f" && export HOME={folder} NUMBA_CACHE_DIR= {more}"
    run = f"PYTHONPATH={folder} exec {sys.executable} -c '{LEARN}'"
    found = subprocess.run(["unshare", "-m", "bash", "-c", f"{mounts} && {run}"], capture_output=True, text=True)
    if "unshare" in found.stderr or "mount:" in found.stderr:
        pytest.skip("this process may not mount")
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines(), found.stderr


def test_what_was_compiled_beside_the_package_is_used_read_only(package: Path, tmp_path: Path) -> None:
    for more in ("", f"NUMBA_CACHE_DIR={tmp_path}"):
        assert read_only(package, more) == (["[1, -1]", "0"], "")


def test_without_any_cache_it_compiles_in_memory_and_says_so(package: Path, tmp_path: Path) -> None:
    bare = shutil.copytree(package, tmp_path / "bare", ignore=shutil.ignore_patterns("*.nbi", "*.nbc"))
    (answer, compiled), said = read_only(bare)
    assert answer == "[1, -1]"
    assert int(compiled) > 0
    assert said.count("at each start: there is no place to keep it") == said.count("compiling for this computer") == 1
