"""Install the wheel with the oldest and the newest allowed packages on each Python, and run a quick part of the tests.

An environment is fresh and takes its packages from the package index: `constraints-oldest.txt` fixes the oldest, and
nothing but the bounds of pyproject.toml the newest. A Python that is not at hand, and one whose packages cannot be
installed, is said and is no failure; a test that fails is one. Usage:

    python tools/matrix.py                      every Python from 3.11 to 3.14
    python tools/matrix.py 3.12 oldest          one environment
    python tools/matrix.py --extras cli,serve   without Ray
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
UV = str(Path(sys.executable).with_name("uv"))
ENDS = ("oldest", "newest")
NAMED = ("numpy", "scipy", "scikit-learn", "numba", "polars", "litestar", "ray")
TOOLS = ("pytest>=8,<9.2", "pytest-timeout>=2", "pytest-xdist>=3", "hypothesis>=6.100", "networkx>=3", "pandas>=2.2")
TESTS = ("tests/test_import.py", "tests/model", "tests/evaluation/test_progressive.py", "tests/test_contract.py")
LEARNERS = "not contract or MultitaskPerceptron or OSMTL or PassiveAggressive or ROMCO"


def find_python(version: str) -> str | None:
    """A Python of the version: of pyenv, or one that uv finds or can fetch."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    if found := sorted(versions.glob(f"{version}.*/bin/python")):
        return str(found[-1])
    for verb in ("find", "install"):
        ended = subprocess.run([UV, "python", verb, version], capture_output=True, text=True, check=False)
        if ended.returncode == 0:
            return ended.stdout.strip() if verb == "find" else find_python(version)
    return None


def build_wheel(folder: Path) -> Path:
    """The wheel of this checkout."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def check(python: str, end: str, wheel: Path, extras: str, folder: Path) -> str:
    """What one environment says: its versions, and what the tests say of it."""
    subprocess.run([UV, "venv", "-q", "--python", python, folder], check=True)
    own = str(folder / "bin" / "python")
    install = [UV, "pip", "install", "-q", "--python", own, "--only-binary", ":all:"]
    limits = ["-c", str(ROOT / "constraints-oldest.txt")] if end == "oldest" else []
    ended = subprocess.run(
        [*install, *limits, f"{wheel}[{extras}]", *TOOLS], capture_output=True, text=True, check=False
    )
    if ended.returncode:
        said = [line.strip() for line in ended.stderr.splitlines() if "cause:" in line] or [ended.stderr.strip()]
        return f"not installable: {said[0].removeprefix('cause: ')}"
    asked = (
        "from importlib.metadata import version; import sys\nfor name in sys.argv[1:]:\n  print(name, version(name))"
    )
    present = [name for name in NAMED if (folder / "bin" / "ray").exists() or name != "ray"]
    versions = subprocess.check_output([own, "-c", asked, *present], text=True).splitlines()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(folder / "cache")}
    environment["PATH"] = f"{folder / 'bin'}{os.pathsep}{environment['PATH']}"
    # Packages of the oldest versions warn of what they use themselves.
    run = [own, "-m", "pytest", "-n", "0", "-W", "default", "-k", LEARNERS, *TESTS]
    tried = subprocess.run(run, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    last = (tried.stdout.strip().splitlines() or [tried.stderr.strip()])[-1].strip("= ")
    if tried.returncode:
        print(tried.stdout[-6000:], tried.stderr[-2000:], file=sys.stderr, flush=True)
    return f"{'FAILED' if tried.returncode else 'good'} ({', '.join(versions)}): {last}"


def main() -> None:
    """Check all environments that were asked for; the exit code says whether no test fails."""
    parser = argparse.ArgumentParser(description="Check the wheel with the oldest and the newest packages.")
    parser.add_argument("pythons", nargs="*", help="versions of Python, and 'oldest' or 'newest'; all without any")
    parser.add_argument("--extras", default="cli,serve,cluster", help="the extras that are installed")
    words = parser.parse_args()
    ends = [word for word in words.pythons if word in ENDS] or ENDS
    is_bad = False
    with TemporaryDirectory() as name:
        wheel = build_wheel(Path(name) / "dist")
        for version in [word for word in words.pythons if word not in ENDS] or PYTHONS:
            python = find_python(version)
            if python is None:
                print(f"Python {version}: not at hand", flush=True)
                continue
            for end in ends:
                folder, begun = Path(name) / f"{version}-{end}", time.perf_counter()
                said = check(python, end, wheel, words.extras, folder)
                print(f"Python {version}, {end}: {said} [{time.perf_counter() - begun:.0f} s]", flush=True)
                is_bad |= said.startswith("FAILED")
                shutil.rmtree(folder)
    sys.exit(is_bad)


if __name__ == "__main__":
    main()
