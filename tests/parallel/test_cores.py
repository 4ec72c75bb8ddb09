"""How many threads a learner may use."""

from __future__ import annotations

import pytest
from joblib import parallel_config

from shoal.parallel import cores


@pytest.mark.parametrize(("n_jobs", "n"), [(1, 1), (3, 3), (9, 9), (-1, 4), (-2, 3), (-4, 1), (-9, 1)])
def test_joblibs_number_of_jobs_counts_from_all_cores_if_negative(
    n_jobs: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "n_cores", lambda: 4)
    assert cores.n_threads() == 4
    with parallel_config(n_jobs=n_jobs):
        assert cores.n_threads() == n
