"""The package as a user gets it: the sdist, and the wheel that is built from what the sdist has."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Package(NamedTuple):
    """Two files, and the folder with the content of the sdist."""

    sdist: Path
    wheel: Path
    source: Path


def build(folder: Path, scratch: Path) -> Package:
    """The sdist and the wheel of this checkout in `folder`; the sdist is unpacked in `scratch`."""
    _build("sdist", ROOT, folder)
    [sdist] = folder.glob("*.tar.gz")
    shutil.unpack_archive(sdist, scratch, filter="data")
    source = scratch / sdist.name.removesuffix(".tar.gz")
    _build("wheel", source, folder)
    [wheel] = folder.glob("*.whl")
    return Package(sdist, wheel, source)


def _build(target: str, source: Path, folder: Path) -> None:
    """Hatchling's own words are the error of a build that fails."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    ended = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"the {target} of {source} cannot be built:\n{ended.stdout}{ended.stderr}")
