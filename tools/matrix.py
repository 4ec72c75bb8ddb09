"""Install the wheel with the oldest and the newest allowed packages on each Python, and run a chosen part of the tests.

An environment is fresh and takes its packages from the package index: `constraints-oldest.txt` fixes the oldest, and
nothing but the bounds of pyproject.toml the newest. The tests come from the sdist, which is built first: what changes
in the checkout meanwhile changes no result. A Python that is not at hand is said and is no failure; packages that
cannot be installed and a test that fails are one. What is printed is the table of docs/compatibility.md. Usage:

    python tools/matrix.py               every Python from 3.11 to 3.14
    python tools/matrix.py 3.12 oldest   one environment
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from built_package import Package, build

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
UV = str(Path(sys.executable).with_name("uv"))
ENDS = ("oldest", "newest")
EXTRAS = "cli,serve,postgres,kafka,cluster"
NAMED = ("numpy", "scipy", "scikit-learn", "numba", "polars", "litestar", "ray")
TOOLS = (
    "pytest>=8,<9.2", "pytest-timeout>=2", "pytest-xdist>=3", "hypothesis>=6.100", "networkx>=3", "pandas>=2.2",
    "pyarrow>=17",
)  # fmt: skip

# Every test in every environment would take hours, most of which is compiling, and most tests ask for what no version
# of a package changes. Those that stand here call a package in each way that shoal does, and compile one learner of
# each room; of the default learner, what a loaded one needs to predict.
TESTS = (
    "tests/test_import.py::test_public_names_exist",
    "tests/test_import.py::test_a_learner_brings_what_it_needs_and_no_more",
    "tests/test_kept_models.py",  # the model files of 0.2.0
    "tests/serve/test_formats.py",  # and a service's folder of it
    "tests/engine/test_compile.py",  # numba: flags, caches, and internals
    "tests/engine/test_intrinsics.py",
    "tests/model/test_features.py",  # NumPy, SciPy's sparse matrices, data frames by narwhals
    "tests/model/test_labels.py",
    "tests/test_contract.py",  # the verbs of one online learner
    "tests/test_estimator_checks.py",  # scikit-learn: its checks, its solvers under batch learners, its tools
    "tests/batch/test_estimator_checks.py",
    "tests/batch/test_independent_and_pooled.py",
    "tests/wrappers/test_task_column.py::test_classifiers_in_the_tools_of_scikit_learn",
    "tests/wrappers/test_task_column.py::test_regressors_in_the_tools_of_scikit_learn",
    "tests/files/test_formats.py",  # polars: every format of files
    "tests/tabular/test_estimators.py::test_tables_of_every_kind_give_the_same",  # pandas, polars, Arrow
    "tests/cli/commands/test_run.py::test_a_model_of_an_own_learner_goes_on_if_it_is_trusted",  # run, then predict
    "tests/cli/commands/test_run.py::test_metrics_by_name_and_weights_of_labels",
    "tests/report/test_export.py",  # altair
    "tests/serve/test_arrow.py",  # the service: litestar, uvicorn, msgspec, SQLAlchemy and its databases, httpx
    "tests/serve/test_http.py::test_a_day_of_a_client",
    "tests/serve/test_http.py::test_streams",
    "tests/serve/test_http.py::test_every_route_needs_its_scope",
    "tests/serve/test_program.py::test_a_service_from_start_to_end",
    "tests/serve/test_program.py::test_a_second_service_is_refused_and_the_first_goes_on",
    "tests/cluster/test_service.py::test_it_answers_as_one_service_over_http",  # Ray: actors, Serve
    "tests/cluster/test_service.py::test_ray_serve_may_stand_in_front",
)
ONE_LEARNER = "not contract and not checks and not HedgedSharingRegressor or PassiveAggressive or RegMTL"


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


def install(python: str, end: str, package: Package, folder: Path) -> str:
    """A fresh environment with the wheel; what hinders it, or nothing."""
    subprocess.run([UV, "venv", "-q", "--python", python, folder], check=True)
    limits = ["-c", "constraints-oldest.txt"] if end == "oldest" else []
    command = [
        UV,
        "pip",
        "install",
        "-q",
        "--python",
        str(folder),
        "--only-binary",
        ":all:",
        *limits,
        f"{package.wheel}[{EXTRAS}]",
        *TOOLS,
    ]
    ended = subprocess.run(command, cwd=package.source, capture_output=True, text=True, check=False)
    if not ended.returncode:
        return ""
    said = [line.strip() for line in ended.stderr.splitlines() if "cause:" in line] or [ended.stderr.strip()]
    return said[0].removeprefix("cause: ")


def versions(own: str) -> str:
    """The versions of the packages with a name that users know, as the environment has them."""
    code = "from importlib.metadata import version; import sys; print(*map(version, sys.argv[1:]), sep=' | ')"
    return subprocess.check_output([own, "-c", code, *NAMED], text=True).strip()


def try_tests(own: str, source: Path, folder: Path) -> tuple[bool, str]:
    """Do the chosen tests pass with the Python of an environment, and pytest's last line."""
    environment = os.environ | {"PYTHONPATH": str(source), "MATRIX": "1"}
    environment["PATH"] = f"{folder / 'bin'}{os.pathsep}{environment['PATH']}"
    # Packages of the oldest versions warn of what they use themselves.
    command = [own, "-m", "pytest", "-n", "0", "-W", "default", "--durations", "25", "-k", ONE_LEARNER, *TESTS]
    tried = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    if tried.returncode:
        print(tried.stdout[-20000:], tried.stderr[-2000:], file=sys.stderr, flush=True)
    last = (tried.stdout.strip().splitlines() or [tried.stderr.strip()])[-1]
    counts = [part for part in last.strip("= ").partition(" in ")[0].split(", ") if "deselected" not in part]
    return tried.returncode == 0, ", ".join(counts)


def check(python: str, end: str, package: Package, folder: Path) -> tuple[bool, str]:
    """Is an environment good, and what is said of it: versions, tests, seconds."""
    begun = time.perf_counter()
    if hindrance := install(python, end, package, folder):
        return False, f"not installable: {hindrance}"
    own = str(folder / "bin" / "python")
    is_good, last = try_tests(own, package.source, folder)
    return is_good, f"{versions(own)} | {last} | {time.perf_counter() - begun:.0f}"


def main() -> None:
    """Check all environments that were asked for; the exit code says whether no test fails."""
    parser = argparse.ArgumentParser(description="Check the wheel with the oldest and the newest packages.")
    parser.add_argument("only", nargs="*", help="versions of Python, and 'oldest' or 'newest'; all without any")
    words = parser.parse_args().only
    ends = [word for word in words if word in ENDS] or ENDS
    is_good = True
    print(f"| Python | packages | {' | '.join(NAMED)} | tests | seconds |", flush=True)
    print(f"|{' --- |' * (len(NAMED) + 4)}", flush=True)
    with TemporaryDirectory() as name:
        package = build(Path(name) / "dist", Path(name))
        for wanted in [word for word in words if word not in ENDS] or PYTHONS:
            python = find_python(wanted)
            if python is None:
                print(f"| {wanted} | not at hand |", flush=True)
                continue
            number = subprocess.check_output(
                [python, "-c", "import platform as p; print(p.python_version())"], text=True
            )
            for end in ends:
                folder = Path(name) / f"{wanted}-{end}"
                passes, said = check(python, end, package, folder)
                print(f"| {number.strip()} | {end} | {said} |", flush=True)
                is_good &= passes
                shutil.rmtree(folder)
    sys.exit(not is_good)


if __name__ == "__main__":
    main()
