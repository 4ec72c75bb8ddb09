"""`import shoal` is fast because it loads nothing: heavy packages come with the first name that needs them."""

from __future__ import annotations

import subprocess
import sys

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
    import shoal

    for name in shoal.__all__:
        assert getattr(shoal, name) is not None
    assert set(shoal.__all__) <= set(dir(shoal))
