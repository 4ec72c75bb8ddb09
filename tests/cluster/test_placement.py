"""Where tasks go: the same in every process and version, balanced, and hardly changed by more shards."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys

import numpy as np
import pytest

from shoal.cluster.placement import RoutingPlan, key_of, shards_of

IDS = ["ann", "", "1", 1, 0, -7, 2**70, 1.5, b"ann", None, ("ann", 3), frozenset({1, 2}), datetime.date(2026, 1, 2)]
SHARDS = [2, 1, 0, 2, 2, 1, 2, 1, 0, 2, 1, 2, 2]  # of three; a stored cluster relies on them


def test_a_task_goes_to_the_same_shard_in_every_process_and_version() -> None:
    assert shards_of(IDS, 3).tolist() == SHARDS
    code = f"import datetime; from shoal.cluster.placement import shards_of; print(shards_of({IDS!r}, 3).tolist())"
    for seed in "1", "2":
        run = [sys.executable, "-c", code]
        found = subprocess.run(
            run, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONHASHSEED": seed}
        )
        assert found.stdout.strip() == str(SHARDS)


def test_ids_that_are_equal_go_to_the_same_shard() -> None:
    assert len({key_of(one) for one in (1, 1.0, True, np.int64(1), np.float32(1))}) == 1
    assert key_of(("a", 1)) == key_of(("a", np.int8(1)))
    assert len({key_of(one) for one in ("1", 1, b"1", ("1",), (1,))}) == 5


def test_shards_have_equal_shares_and_a_new_one_takes_half_of_another() -> None:
    tasks = [f"task {k}" for k in range(20_000)]
    plan = RoutingPlan(4)
    before = plan.shards_of(tasks)
    after = plan.with_split(2).with_split(0).shards_of(tasks)
    assert abs(np.bincount(before) - 5000).max() < 4 * np.sqrt(5000)
    assert abs(np.bincount(after) - [2500, 5000, 2500, 5000, 2500, 2500]).max() < 4 * np.sqrt(5000)
    assert set(zip(before[before != after].tolist(), after[before != after].tolist(), strict=True)) == {(2, 4), (0, 5)}


def test_assigned_tasks_go_where_they_are_assigned() -> None:
    tasks = ["ann", "bob", "cid"]
    found = RoutingPlan(2, (), {"ann": 1, "bob": 0}).shards_of(tasks)
    assert found.tolist() == [1, 0, shards_of(["cid"], 2)[0]]
    for wrong in (2, -1, "x", True):
        with pytest.raises(ValueError, match="task 'ann' is assigned to shard"):
            RoutingPlan(2, (), {"ann": wrong}).shards_of(tasks)  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="cannot route a task id of type object"):
        shards_of([object()], 2)
