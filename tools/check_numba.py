"""Run the tests of compiled code with the oldest numba that is supported and with the newest that is allowed.

`engine/compile.py` and `engine/intrinsics.py` use numba's internals, which may change in any release: the bounds in
pyproject.toml are the versions that this was run with. Each version gets an environment of its own; pip chooses what
fits it. Usage:

    python tools/check_numba.py            the oldest and the newest
    python tools/check_numba.py 0.65       another one
"""

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
TESTS = (
    "tests/engine", "tests/model", "tests/online", "tests/wrappers", "tests/test_contract.py",
    "tests/test_contract_numbers.py", "tests/test_contract_storage.py", "tests/test_contract_tasks.py",
)  # fmt: skip
WITHOUT = ("numba", "llvmlite", "numpy", "scipy", "scikit-learn", "pandas")  # what constraints.txt must not fix here


def bounds() -> tuple[str, str]:
    """The oldest supported release series of numba, and the newest that is allowed."""
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    [line] = [line for line in needed if line.startswith("numba")]
    found = re.fullmatch(r"numba>=0\.(\d+),<0\.(\d+)", line)
    if found is None:
        sys.exit(f"expected numba>=0.A,<0.B in pyproject.toml, got {line}")
    return f"0.{found[1]}", f"0.{int(found[2]) - 1}"


def check(version: str) -> bool:
    """Do the tests pass with this release series?"""
    with TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "environment", with_pip=True)
        python = folder / "environment" / "bin" / "python"
        kept = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        constraints = folder / "constraints.txt"
        constraints.write_text("\n".join(line for line in kept if line.split("==")[0].lower() not in WITHOUT))
        install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-c", str(constraints)]
        subprocess.run([*install, f"numba=={version}.*", f"{ROOT}[dev]"], check=True)
        report = "import llvmlite, numba, numpy; print(numba.__version__, llvmlite.__version__, numpy.__version__)"
        print("numba, llvmlite, numpy:", subprocess.check_output([python, "-c", report], text=True).strip(), flush=True)
        environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "NUMBA_CACHE_DIR": str(folder / "cache")}
        run = [str(python), "-m", "pytest", "-n", "auto", "--dist", "loadgroup", *TESTS]
        return subprocess.run(run, cwd=ROOT, env=environment, check=False).returncode == 0


def main() -> None:
    """Check each version; the exit code says whether all are good."""
    versions = sys.argv[1:] or list(dict.fromkeys(bounds()))
    bad = [version for version in versions if not check(version)]
    print(f"numba: {', '.join(bad)} fail" if bad else f"numba: {' and '.join(versions)} pass")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
