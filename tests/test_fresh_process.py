"""Saved models in a process that has not made them: equal bits, equal predictions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from tests.batch.cases import AROUND, BATCH, fitted, rows_for
from tests.cases import LEARNERS, stream_for, taught

LOAD_ALL = """
import sys
from pathlib import Path
import numpy as np
import shoal

for path in sorted(Path(sys.argv[1]).glob("*.model")):
    model, rows = shoal.load(path), np.load(path.with_suffix(".npz"))
    model.save(path.with_suffix(".again"))
    decide = model.decision_function if hasattr(model, "decision_function") else model.predict
    np.save(path.with_suffix(".npy"), decide(rows["X"], rows["task"]))
"""


def decided(model: Any, X: Any, task: Any) -> Any:
    return (model.decision_function if hasattr(model, "decision_function") else model.predict)(X, task)


def test_models_load_to_equal_bits_in_another_process(tmp_path: Path) -> None:
    expected = {}
    models: dict[str, Any] = {name: taught(name) for name in LEARNERS}
    models |= {name: fitted(name) for name in BATCH if name not in AROUND}
    for name, model in models.items():
        rows = stream_for(name) if name in LEARNERS else rows_for(name)
        model.save(tmp_path / f"{name}.model")
        np.savez(tmp_path / f"{name}.npz", X=rows.X, task=rows.task)
        expected[name] = decided(model, rows.X, rows.task)
    subprocess.run([sys.executable, "-c", LOAD_ALL, str(tmp_path)], check=True)
    for name, values in expected.items():
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), values, err_msg=name)
        assert (tmp_path / f"{name}.again").read_bytes() == (tmp_path / f"{name}.model").read_bytes(), name
