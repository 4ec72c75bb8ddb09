"""Where tasks go, the same in every process and version, balanced, and hardly changed by more shards; their rows."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from shoal.cluster.placement import (
    Placement,
    RoutingPlan,
    ShardRounds,
    as_simultaneous,
    blocks_of,
    key_of,
    shards_of,
    shards_of_rows,
    split,
    tasks_frame,
    without_column,
)
from shoal.engine.rounds import NO_INDICES, NO_INDPTR, Rounds

IDS = ["ann", "", "1", 1, 0, -7, 2**70, 1.5, b"ann", None, ("ann", 3), frozenset({1, 2}), datetime.date(2026, 1, 2)]
SHARDS = [2, 1, 0, 2, 2, 1, 2, 1, 0, 2, 1, 2, 2]  # of three; a stored cluster relies on them
HALVED = [3, 1, 0, 2, 2, 1, 2, 1, 0, 2, 1, 2, 3]  # with a fourth that takes half of the third


def test_a_task_goes_to_the_same_shard_in_every_process_and_version() -> None:
    assert shards_of(IDS, 3).tolist() == SHARDS
    assert RoutingPlan(3).with_split(2).shards_of(IDS).tolist() == HALVED
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
    tasks = ["ann", "cid", "bob"]
    found = RoutingPlan(2, (), {"ann": 1, "bob": 0}).shards_of(tasks)
    assert found.tolist() == [1, shards_of(["cid"], 2)[0], 0]
    for wrong in (2, -1, "x", True):
        with pytest.raises(ValueError, match=f"task 'ann' is assigned to shard {wrong!r}; there are shards 0 to 1"):
            RoutingPlan(2, (), {"ann": wrong}).shards_of(tasks)  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="cannot route a task id of type object"):
        shards_of([object()], 2)


# ---- the tasks of a cluster ----------------------------------------------------------------------------------


def addresses(placement: Placement) -> list[list[int]]:
    found = placement.addresses
    return [found.shard.tolist(), found.column.tolist(), found.counts.tolist()]


def test_a_task_has_its_shard_and_its_column_there() -> None:
    """Tasks stand in each shard in the order in which they came; those behind one that leaves move up."""
    placement = Placement.of(3, {"a": 2, "b": 0, "c": 2, "d": 2, "e": 0})
    for new in (["a", "b", "c"], ["d", "e"]):
        placement.add(new, placement.shards_of_new(new, {}), {})
    assert addresses(placement) == [[2, 0, 2, 2, 0], [0, 0, 1, 2, 1], [2, 0, 3]]
    of_rows = placement.of_rows(np.array([3, 0, 4, 1]), None)
    assert [part.tolist() for part in of_rows] == [[2, 2, 0, 0], [2, 0, 1, 0]]
    assert placement.remove(2, "c") == 2
    assert addresses(placement) == [[2, 0, 2, 0], [0, 0, 1, 1], [2, 0, 2]]
    assert placement.remove(1, "b") == 0
    assert addresses(placement) == [[2, 2, 0], [0, 1, 0], [1, 0, 2]]
    assert placement.blocks == {}


def test_rows_of_new_tasks_go_where_the_tasks_would_go() -> None:
    placement, ids = Placement.of(4, None), ["a", "b", "c", "d", "e", "f"]
    ways = [ids, pl.Series(ids), np.array(ids), pd.Series(ids, index=range(6, 0, -1))]
    hashed = shards_of(ids, 4).tolist()
    assert len(set(hashed)) > 1
    for task in ways:
        shard, column = placement.of_rows(np.full(6, -1), task)
        assert (shard.tolist(), column.tolist()) == (hashed, [-1] * 6)
    placement.add(["d"], np.array([0]), {})
    for task in ways:
        shard, column = placement.of_rows(np.array([-1, 0, -1, 0, -1, -1]), task)
        assert shard.tolist() == [hashed[0], 0, hashed[2], 0, *hashed[4:]]
        assert column.tolist() == [-1, 0, -1, 0, -1, -1]
    assert placement.of_rows(np.array([-1]), None)[0].tolist() == shards_of([None], 4).tolist()


def test_the_tasks_of_a_block_live_together() -> None:
    """By the block that comes with a task, or else by the first that was said of it; also after more shards."""
    placement = Placement.of(4, "region")
    placement.announce(["a", "b", "a"], ["w", "x", "v"])
    placement.announce(["b"], ["y"])
    assert placement.shards_of_new(["a"], {"a": "v"}).tolist() == shards_of(["v"], 4).tolist()
    where = placement.shards_of_new(["a", "b", "c"], {"c": "w"})
    assert where.tolist() == shards_of(["w", "x", "w"], 4).tolist()
    placement.add(["a", "b", "c"], where, {"c": "w"})
    assert placement.blocks == {"a": "w", "b": "x", "c": "w"}
    w, x, v = shards_of(["w", "x", "v"], 4).tolist()
    assert len({w, x, v}) == 3
    assert placement.expected_shards(["v", "a", "b"]).tolist() == [v, w, x]
    placement.announce(["a"], ["x"])  # it has its block
    placement.remove(0, "a")
    assert placement.blocks == {"b": "x", "c": "w"}
    for new, blocks in ((["a"], {"b": "x"}), (["b", "z"], {"b": "x"})):
        with pytest.raises(ValueError, match=f"the 'region' of task '{new[-1]}' is not known: give frames"):
            placement.shards_of_new(new, dict[Any, Any](blocks))


def test_a_new_shard_takes_half_of_the_fullest() -> None:
    ids = [f"s {k}" for k in range(40)]
    placement = Placement.of(3, None)
    placement.add(ids, placement.shards_of_new(ids, {}), {})
    before = placement.addresses
    fullest = int(before.counts.argmax())
    assert fullest > 0
    donor, stay, go = placement.halve(ids)
    assert donor == fullest
    assert placement.plan == RoutingPlan(3, ((fullest, 3),))
    assert sorted(stay + go) == sorted(ids[k] for k in np.flatnonzero(before.shard == fullest))
    assert min(len(stay), len(go)) > 2
    shard, column, counts = addresses(placement)
    assert shard == placement.plan.shards_of(ids).tolist()
    for which in range(4):
        own = [k for k in range(40) if shard[k] == which]
        assert [column[k] for k in own] == list(range(len(own)))
        assert counts[which] == len(own)
        assert which < 3 or [ids[k] for k in own] == go
        assert which != donor or [ids[k] for k in own] == stay


def test_the_column_of_the_blocks_is_no_feature() -> None:
    frame = pl.DataFrame({"x": [1.0, 2.0], "region": ["north", "south"]})
    for given in (frame, frame.to_pandas()):
        rest, values = without_column(given, "region")
        assert (type(rest), list(rest.columns), values) == (type(given), ["x"], ["north", "south"])
    for X, column in ((frame, None), (frame, "shop"), (np.zeros((2, 2)), "region"), (sp.eye(2), "region")):
        assert without_column(X, column) == (X, None) if X is frame else without_column(X, column)[0] is X
    for task in (["a", "b", "a"], pl.Series(["a", "b", "a"])):
        assert blocks_of(task, [1, 2, 3]) == {"a": 1, "b": 2}
    assert blocks_of(None, ["north", "south"]) == {None: "north"}
    with pytest.raises(ValueError, match="shorter"):
        blocks_of(["a", "b"], [1])


# ---- rows by shard -------------------------------------------------------------------------------------------


def rows_of(part: Rounds, n_columns: int) -> np.ndarray:
    if part.width:
        return np.reshape(part.values, (-1, part.width))
    table = sp.csr_matrix((part.values, part.indices, part.indptr), shape=(len(part.task), n_columns))
    return np.asarray(table.toarray())


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_shards", [1, 3])
def test_rows_are_split_with_all_they_have(is_sparse: bool, weighted: bool, n_shards: int) -> None:
    """Each shard gets its rows in their order; rows that came in one round stay in one."""
    rng = np.random.default_rng(n_shards)
    n, d = 60, 4
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    round_of = np.cumsum(rng.random(n) < 0.4)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(round_of)) + 1, [n]])
    table, y, column = sp.csr_matrix(X), rng.normal(size=n), np.arange(100, 100 + n)
    weight = rng.random(n) if weighted else np.zeros(0)
    rounds = Rounds(d, NO_INDPTR, NO_INDICES, X.ravel(), np.zeros(n, np.int64), y, starts, weight)
    if is_sparse:
        rounds = rounds._replace(width=0, indptr=table.indptr, indices=table.indices, values=table.data)
    shard = rng.integers(n_shards, size=n)
    for first, last in ((0, n), (7, 41), (20, 21)):
        parts = list(split(rounds, first, last, shard, column))
        assert [part.shard for part in parts] == sorted(set(shard[first:last].tolist()))
        for part in parts:
            own = np.array([row for row in range(first, last) if shard[row] == part.shard])
            found = part.rounds
            assert part.rows.tolist() == own.tolist()
            assert (rows_of(found, d) == X[own]).all()
            assert found.values.size == (rows_of(found, d) != 0).sum() if is_sparse else found.width == d
            assert (found.task == column[own]).all()
            assert (found.y == y[own]).all()
            assert (found.weight == weight[own]).all() if weighted else len(found.weight) == 0
            together = np.repeat(np.arange(len(found.starts) - 1), np.diff(found.starts))
            assert np.diff(together).tolist() == (np.diff(round_of[own]) > 0).tolist()
            assert (found.starts[0], found.starts[-1]) == (0, len(own))
    assert list(split(rounds, 5, 5, shard, column)) == []
    unlabeled = list(split(rounds._replace(y=np.zeros(0)), 0, n, shard, column))
    assert [len(part.rounds.y) for part in unlabeled] == [0] * n_shards


def test_a_shard_may_form_its_own_rounds() -> None:
    rounds = Rounds(1, NO_INDPTR, NO_INDICES, np.zeros(5), np.array([0, 3, 0, 1, 1]), np.zeros(5), np.arange(6))
    part = as_simultaneous(ShardRounds(2, np.arange(5), rounds))
    assert (part.shard, part.rounds.starts.tolist()) == (2, [0, 2, 4, 5])


def test_rows_of_a_service_go_by_the_ids_of_their_tasks() -> None:
    rows: list[dict[str, Any]] = [{"shop": 7, "x": 1}, {"shop": "7"}, {"shop": 7.0}, {"x": 3}, {"shop": "9"}]
    frame = tasks_frame(rows, ["shop"])
    assert frame["shop"].to_list() == ["7", "7", "7", None, "9"]
    shards, problems = shards_of_rows(frame, ["shop"], 5)
    assert shards[[0, 1, 2, 4]].tolist() == shards_of(["7", "7", "7", "9"], 5).tolist()
    assert len({*shards[[0, 4]].tolist()}) == 2
    assert [row for row, _ in problems] == [3]
