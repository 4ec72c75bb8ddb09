"""The algorithm of docs/add-an-algorithm.md, added to the modules of this process, keeps the contract of all learners.

The build of the page adds it to a copy of the files, by the page's own commands and lines (tools/added_algorithm.py).
"""

from __future__ import annotations

import ast
import doctest
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import cases, test_contract, test_contract_input, test_contract_storage, test_contract_tasks
from tests.test_estimator_checks import assert_passes_scikit_learns_checks

import shoal

ROOT = Path(__file__).parents[1]
NAME = "EasyAdapt"
CORE = [
    test_contract.test_chunking_changes_nothing,
    test_contract.test_sparse_is_dense,
    test_contract.test_decisions_are_given_before_learning,
    test_contract.test_values_are_products_with_coef,
    test_contract.test_models_widen,
    test_contract.test_names_of_tasks_change_nothing,
    test_contract.test_updates_are_counted,
    test_contract.test_clone_and_parameters,
    test_contract_input.test_bad_chunks_leave_the_model_as_it_was,
    test_contract_tasks.test_tasks_appear_at_any_time,
    test_contract_tasks.test_forget_task,
    test_contract_tasks.test_predicting_changes_nothing,
    test_contract_tasks.test_several_threads_predict_with_one_model,
    test_contract_tasks.test_every_array_says_what_happens_when_copies_merge,
]


def copies() -> dict[str, Path]:
    """The files that the page copies, by the names of the modules that they become."""
    found = {}
    for source, target in re.findall(
        r"^ *cp (\S+) (\S+)$", (ROOT / "docs" / "add-an-algorithm.md").read_text(encoding="utf-8"), re.M
    ):
        path = Path(target + Path(source).name if target.endswith("/") else target)
        assert (ROOT / path).parent.is_dir()
        found[".".join(path.with_suffix("").parts).removeprefix("src.")] = ROOT / source
    return found


def imported(name: str, path: Path) -> Any:
    """The file under the name of another module."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def easy_adapt() -> Iterator[Any]:
    """The three files: a public learner in the table of the generic suite, its twin, and the test of both."""
    with pytest.MonkeyPatch.context() as patch:
        algorithm, twin, test = copies().items()
        kind = imported(*algorithm).EasyAdapt
        patch.setattr(shoal, NAME, kind, raising=False)
        patch.setattr(shoal, "__all__", [*shoal.__all__, NAME])
        patch.setitem(cases.LEARNERS, NAME, kind)
        patch.setattr("tests.test_contract.CLASSIFIERS", [*cases.CLASSIFIERS, NAME])
        patch.setattr("tests.twins.easy_adapt", imported(*twin), raising=False)
        yield imported(*test)
        for name in copies():
            del sys.modules[name]


@pytest.mark.parametrize("test", CORE, ids=lambda test: test.__name__)
def test_it_keeps_the_contract(easy_adapt: Any, test: Any) -> None:
    test(name=NAME)


def test_it_can_be_saved(easy_adapt: Any, tmp_path: Path) -> None:
    test_contract_storage.test_continuing_a_loaded_model_is_continuing(NAME, tmp_path)


def test_it_is_an_estimator(easy_adapt: Any) -> None:
    assert_passes_scikit_learns_checks(easy_adapt.EasyAdapt())


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("protocol", ["one", "some", "all", "growing"])
def test_it_is_its_twin(easy_adapt: Any, protocol: str, sparse: bool) -> None:
    easy_adapt.test_equals_twin(protocol, sparse)


def test_its_docstring_prints_what_it_says(easy_adapt: Any) -> None:
    assert doctest.testmod(sys.modules["shoal.online.easy_adapt"]) == (0, 5)


def test_its_lines_have_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    import added_algorithm

    page = (ROOT / added_algorithm.PAGE).read_text(encoding="utf-8")
    sources: dict[str, str] = {}
    for file, place, line in added_algorithm.lines(page):
        before = sources.get(file) or (ROOT / file).read_text(encoding="utf-8")
        sources[file] = added_algorithm.with_line(before, place, line)
    assert len(sources) == 4
    for file, source in sources.items():
        assert NAME in ast.dump(ast.parse(source)), file
    with pytest.raises(added_algorithm.StepError, match="no place for 'x': LEARNED"):
        added_algorithm.with_line(sources["tests/cases.py"], "LEARNED", "x")


def test_its_paper_comes_with_it() -> None:
    appended = re.findall(
        r"^ *cat (\S+) >> (\S+)$", (ROOT / "docs" / "add-an-algorithm.md").read_text(encoding="utf-8"), re.M
    )
    [(source, target)] = appended
    entries = "".join((ROOT / path).read_text(encoding="utf-8") for path in (target, source)).split("\n\n")
    assert all(entry.startswith("@") for entry in entries)
    assert NAME in entries[-1].partition("keywords")[2]


def test_it_is_short(easy_adapt: Any) -> None:
    [path, *_] = copies().values()
    code = path.read_text(encoding="utf-8").partition("class EasyAdapt")[0].partition("class Settings")[2]
    assert 40 < sum(bool(line.strip()) for line in code.splitlines()) <= 60


PLAIN = """
import plain_kernels
plain_kernels.enable()
from shoal import SharedLoss
from shoal.online import shared_loss
learner = SharedLoss(C=5.0).fit([[3.0, 0.0], [0.0, 1.0]], [1, 0], ["a", "b"])
print(type(shared_loss.learn).__name__, learner.coef_.tolist())
from shoal import HedgedSharing
HedgedSharing().fit([[3.0, 0.0], [0.0, 1.0]], [1, 0], ["a", "b"])  # its operations on records, and its other ways in
"""


def test_kernels_run_as_plain_python() -> None:
    paths = os.pathsep.join([str(ROOT / "tools"), str(ROOT / "src")])
    command = [sys.executable, "-c", PLAIN]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=True)
    kind, _, weights = done.stdout.partition(" ")
    assert kind == "function"
    step = 5.0 / 2.0**0.5  # both losses are 1, and tau = C l / ||l||
    np.testing.assert_allclose(ast.literal_eval(weights), [[3.0 * step, 0.0], [0.0, -step]])
