"""`import shoal` is fast because it loads nothing: heavy packages come with the first name that needs them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest

import shoal

HEAVY = [
    "altair",
    "narwhals",
    "networkx",
    "numba",
    "numpy",
    "pandas",
    "polars",
    "pyarrow",
    "safetensors",
    "scipy",
    "sklearn",
]


def loaded_after(code: str) -> set[str]:
    code += f"\nimport sys; print(*[name for name in {HEAVY} if name in sys.modules])"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_importing_shoal_loads_nothing_heavy() -> None:
    assert loaded_after("import shoal") == set()


def test_importing_the_rooms_loads_nothing_heavy() -> None:
    assert loaded_after("import shoal.datasets, shoal.evaluation, shoal.files, shoal.report") == set()


def test_a_learner_brings_what_it_needs_and_no_more() -> None:
    loaded = loaded_after("from shoal import MultitaskPerceptron")
    assert {"numpy", "scipy", "sklearn", "numba"} <= loaded
    assert not loaded & {"altair", "networkx", "polars", "safetensors"}


def test_public_names_exist() -> None:
    for name in shoal.__all__:
        assert getattr(shoal, name) is not None
    assert set(shoal.__all__) <= set(dir(shoal))


VERBS = """add_features add_tasks baselines decision_function decision_one drop_columns expert_weights experts_coef
    explain_one fit forget_task get_metadata_routing get_params importance_changes importances judge_then_train
    knows_task learn_one learn_round load partial_dependence partial_fit predict predict_interval
    predict_interval_one predict_log_proba predict_one predict_proba predict_proba_one predict_round predict_set
    predict_set_one predict_thresholds query_one save score set_params
    similar_tasks test_then_train"""


def test_dir_shows_what_a_user_may_call() -> None:
    public: list[Any] = [getattr(shoal, name) for name in shoal.__all__]
    kinds = [kind for kind in public if inspect.isclass(kind) and hasattr(kind, "save")]
    assert len(kinds) > 25
    learners: list[Any] = [kind() for kind in kinds if kind is not shoal.Learner]
    assert "fit" in dir(shoal.Learner())
    for learner in learners:
        shown = {name for name in dir(learner) if not name.startswith("_")}
        parameters = learner.get_params(deep=False).keys()
        assert shown >= {"fit", "predict", "save", *parameters}
        others = {name for name in shown - parameters if not name.endswith(("_", "_request"))}
        assert others <= set(VERBS.split()), type(learner).__name__
        requests = {name for name in shown if name.endswith("_request")}
        assert {name.removeprefix("set_").removesuffix("_request") for name in requests} <= shown


@pytest.mark.parametrize(
    ("package", "use", "extra"),
    [("polars", "shoal.files.TableEncoder", "data"), ("altair", "shoal.report.write_report", "report"),
     ("httpx", "shoal.serve.Client", "serve"), ("polars", "shoal.files.tables.TableEncoder", "data")],
)  # fmt: skip
def test_a_missing_package_is_named_with_its_extra(package: str, use: str, extra: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; import {use.rpartition('.')[0]}; {use}"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    said = f'needs the package {package}: pip install "shoal[{extra}]"'
    assert found.stderr.splitlines()[-1].endswith(said)
