"""A cluster on a real Ray is exact wherever it can be: one shard, no exchange, delays, shards that die, files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
from tests.cases import saved
from tests.streams import draw, drawn_weights

from shoal import (
    OSMTL,
    CollaborativePA,
    HedgedSharing,
    HedgedSharingRegressor,
    Learner,
    MultiClass,
    MultitaskPerceptron,
    PassiveAggressive,
    SharedLoss,
)
from shoal.cluster import Cluster
from shoal.datasets import make_related_tasks

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.usefixtures("shared_actors")]
FREE = {"num_cpus": 0}  # shards of tests share two cores
DELAYS = (0.1, 0.001, 0.05, 0.0, 0.01, 0.002, 0.05, 0.0, 0.02, 0.001, 0.03)  # seconds before commands, in turn


def models(cluster: Cluster) -> list[bytes]:
    """Everything that the shards are."""
    return [handle.ask("saved") for handle in cluster._handles]


def pieces(n: int, size: int = 170) -> Iterator[slice]:
    for first in range(0, n, size):
        yield slice(first, first + size)


DATA = make_related_tasks(n_tasks=30, n_features=8, n_rows=900, seed=3)
SPARSE = make_related_tasks(n_tasks=30, n_features=60, n_rows=900, nnz=5, seed=4)


def stream(cluster: Any, data: Any = DATA, **options: Any) -> np.ndarray:
    """Learn all of the data in chunks; the decisions before."""
    weight, found = options.get("weight"), []
    for at in pieces(len(data.y)):
        more = {} if weight is None else {"sample_weight": weight[at]}
        found.append(cluster.test_then_train(data.X[at], data.y[at], data.task[at], **more))
    return np.concatenate(found)


def test_one_shard_is_the_plain_learner_to_the_bit() -> None:
    for make in HedgedSharing, HedgedSharingRegressor, MultitaskPerceptron, CollaborativePA, SharedLoss:
        for data in (DATA, SPARSE) if make is HedgedSharing else (SPARSE,):
            plain: Any = make()
            weight = drawn_weights(len(data.y)) if make in (HedgedSharing, MultitaskPerceptron) else None
            with Cluster(make(), shards=1, exchange_every=100, options=FREE) as cluster:
                assert np.array_equal(stream(cluster, data, weight=weight), stream(plain, data, weight=weight))
                assert models(cluster) == [saved(plain)]
                assert np.array_equal(cluster.predict(data.X, data.task), plain.predict(data.X, data.task))
                unseen = np.full(9, "x")  # to some learners 0, where a label begins
                assert np.array_equal(cluster.predict(data.X[:9], unseen), plain.predict(data.X[:9], unseen))
                assert cluster.tasks_ == plain.tasks_
                assert cluster.n_updates_ == plain.n_updates_


def test_without_exchange_each_shard_is_a_learner_of_its_tasks() -> None:
    rounds = draw(1, n_rows=300, K=9, protocol="some")
    for make in HedgedSharing, PassiveAggressive, SharedLoss:
        with Cluster(make(), shards=3, exchange_every=None, options=FREE) as cluster:
            cluster.partial_fit(rounds.X, rounds.y, rounds.task, rounds=rounds.rounds, classes=[-1, 1])
            cluster.partial_fit(rounds.X, rounds.y, rounds.task, classes=[-1, 1])
            shard, found = np.array([cluster.shard_of(task) for task in rounds.task]), models(cluster)
            answers = cluster.decision_function(rounds.X, rounds.task)
        assert set(shard) == {0, 1, 2}
        for k in range(3):
            mine, plain = shard == k, make()
            X, y, task = rounds.X[mine], rounds.y[mine], rounds.task[mine]
            plain.partial_fit(X, y, task, rounds=rounds.rounds[mine], classes=[-1, 1])
            plain.partial_fit(X, y, task)
            assert saved(plain) == found[k]
            assert np.array_equal(plain.decision_function(X, task), answers[mine])


def test_chunks_delays_and_death_change_no_bit() -> None:
    with Cluster(HedgedSharing(), shards=3, exchange_every=100, options=FREE) as cluster:
        expected, end = stream(cluster), models(cluster)
    with Cluster(HedgedSharing(), shards=3, exchange_every=100, options=FREE) as cluster:
        ray.get([handle.actor.delay.remote(DELAYS[i:]) for i, handle in enumerate(cluster._handles)])
        assert np.array_equal(cluster.test_then_train(DATA.X, DATA.y, DATA.task), expected)  # in one chunk
        assert models(cluster) == end
    with Cluster(HedgedSharing(), shards=3, exchange_every=100, options=FREE) as cluster:
        for handle in cluster._handles:
            handle._least_logged = 10_000
        for i, at in enumerate(pieces(len(DATA.y))):
            if i % 2:
                found = cluster.test_then_train(DATA.X[at], DATA.y[at], DATA.task[at])
                assert np.array_equal(found, expected[at])
            else:  # in the middle of their work: one before its first checkpoint, another after
                cluster.partial_fit(DATA.X[at], DATA.y[at], DATA.task[at])
                if i != 2:  # of three shards two: to start a process takes longest
                    ray.kill(cluster._handles[i // 2].actor, no_restart=False)
        assert models(cluster) == end


def test_a_machine_may_die(nodes: Any) -> None:
    """Two shards on a machine that is taken away come back on another, and end where an undisturbed cluster does."""
    with Cluster(PassiveAggressive(relation="pooled"), shards=2, exchange_every=100, options=FREE) as cluster:
        expected, end = stream(cluster), models(cluster)
    there = nodes.add_node(num_cpus=1, resources={"spot": 1}, object_store_memory=10**8)
    options = {**FREE, "resources": {"spot": 0.01}}
    with Cluster(PassiveAggressive(relation="pooled"), shards=2, exchange_every=100, options=options) as cluster:
        found = []
        for i, at in enumerate(pieces(len(DATA.y))):
            if i == 3:
                other = nodes.add_node(num_cpus=1, resources={"spot": 1}, object_store_memory=10**8)
                nodes.remove_node(there, allow_graceful=False)
            found.append(cluster.test_then_train(DATA.X[at], DATA.y[at], DATA.task[at]))
        assert np.array_equal(np.concatenate(found), expected)
        assert models(cluster) == end
    nodes.remove_node(other)


def test_a_saved_cluster_goes_on_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    assign = {int(task): int(task) % 2 for task in range(30)}
    with Cluster(HedgedSharing(), shards=2, exchange_every=130, assign=assign, options=FREE) as cluster:
        cluster.partial_fit(DATA.X[:500], DATA.y[:500], DATA.task[:500])
        cluster.forget_task(int(DATA.task[0]))
        cluster.save(tmp_path / "folder")
        cluster.save(tmp_path / "folder")
        cluster.partial_fit(DATA.X[500:], DATA.y[500:], DATA.task[500:])
        tasks, end = cluster.tasks_, models(cluster)
        assert [cluster.shard_of(task) for task in tasks] == [task % 2 for task in tasks]
    with Cluster.load(tmp_path / "folder", options=FREE) as again:
        again.partial_fit(DATA.X[500:], DATA.y[500:], DATA.task[500:])
        assert again.tasks_ == tasks
        assert models(again) == end
    [one, *_] = sorted((tmp_path / "folder").glob("*.model"))
    one.write_bytes(one.read_bytes()[:-1])
    with pytest.raises(ValueError, match="is a damaged cluster"):
        Cluster.load(tmp_path / "folder")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").touch()
    with pytest.raises(FileNotFoundError, match="no saved cluster"):
        Cluster.load(tmp_path / "other")


def test_shards_that_are_added_take_tasks_with_all_they_have(tmp_path: Path) -> None:
    """No row is lost, and the cluster goes on as if nothing else had happened, through death and files."""
    for make, data in (HedgedSharing, DATA), (MultitaskPerceptron, SPARSE), (CollaborativePA, SPARSE):
        with Cluster(make(), shards=2, exchange_every=100, options=FREE) as cluster:
            cluster.partial_fit(data.X[:500], data.y[:500], data.task[:500])
            updates = cluster.n_updates_
            cluster.add_shards(2)
            assert cluster.n_updates_ == updates
            assert {cluster.shard_of(task) for task in cluster.tasks_} == {0, 1, 2, 3}
            cluster.save(tmp_path / make.__name__)
            if make is HedgedSharing:
                ray.kill(cluster._handles[3].actor, no_restart=False)
            cluster.partial_fit(data.X[500:], data.y[500:], data.task[500:])
            end = models(cluster)
            assert make is not HedgedSharing or cluster.n_updates_ == len(data.y)  # of it every row is an update
        with Cluster.load(tmp_path / make.__name__, options=FREE) as again:
            again.partial_fit(data.X[500:], data.y[500:], data.task[500:])
            assert models(again) == end


def test_without_exchange_more_shards_change_no_answer() -> None:
    learner = HedgedSharing(interactions=False)  # in tables of crossed rows two tasks may share a record
    with Cluster(learner, shards=2, exchange_every=None, options=FREE) as cluster:
        cluster.partial_fit(DATA.X, DATA.y, DATA.task)
        before = cluster.decision_function(DATA.X, DATA.task)
        cluster.add_shards(2)
        assert np.array_equal(cluster.decision_function(DATA.X, DATA.task), before)
        assert len({cluster.shard_of(task) for task in cluster.tasks_}) == 4


def test_many_tasks_lose_nothing_on_four_shards() -> None:
    data = make_related_tasks(n_tasks=20_000, n_features=20, n_rows=60_000, relatedness=0.5, seed=1)
    late = slice(30_000, None)

    def loss(decisions: np.ndarray) -> float:
        return float(np.logaddexp(0.0, -data.y * decisions)[late].mean())

    one = loss(HedgedSharing(memory=64).test_then_train(data.X, data.y, data.task))
    with Cluster(HedgedSharing(memory=64), shards=4, exchange_every=10_000, options=FREE) as cluster:
        four = loss(cluster.test_then_train(data.X, data.y, data.task))
    assert abs(four - one) < 1e-3, (one, four)


def test_bad_input_changes_nothing_and_unseen_tasks_are_answered() -> None:
    with Cluster(MultitaskPerceptron(), shards=2, exchange_every=50, options=FREE) as cluster:
        cluster.partial_fit(DATA.X[:200], DATA.y[:200], DATA.task[:200])
        before, bad = models(cluster), DATA.X[200:300].copy()
        bad[60, 3] = np.nan
        with pytest.raises(ValueError, match="row 60"):
            cluster.partial_fit(bad, DATA.y[200:300], DATA.task[200:300] + 100)
        with pytest.raises(ValueError, match="third label"):
            cluster.partial_fit(DATA.X[:2], [1, 7], [0, 1])
        with pytest.raises(ValueError, match="cannot route"):
            cluster.partial_fit(DATA.X[:1], [1], [object()])
        assert models(cluster) == before
        assert np.isfinite(cluster.decision_function(DATA.X[:3], ["x", "y", "z"])).all()
        with pytest.raises(ValueError, match="no task 'x'"):
            cluster.forget_task("x")


def test_learners_that_cannot_be_cut_say_why() -> None:
    def refused(learner: Learner, message: str, **options: Any) -> None:
        with pytest.raises(ValueError, match=message):
            Cluster(learner, **{"shards": 2, **options})

    refused(OSMTL(), "no task can be learned apart from them.*Give assign=.*a learner of its own")
    refused(OSMTL(), "Give assign=", assign={})
    refused(MultiClass(PassiveAggressive()), "holds other learners")
    refused(MultitaskPerceptron(relation=[(0, 1)]), "its relation names them")
    refused(PassiveAggressive(), "shards must be an integer", shards=0)
    refused(PassiveAggressive(), "exchange_every must be an integer", exchange_every=0.5)
    blocks = {task: task % 2 for task in range(30)}
    with Cluster(OSMTL(), shards=2, exchange_every=None, assign=blocks, options=FREE) as cluster:
        cluster.partial_fit(DATA.X, DATA.y, DATA.task)
        mine = DATA.task % 2 == 0
        assert models(cluster)[0] == saved(OSMTL().partial_fit(DATA.X[mine], DATA.y[mine], DATA.task[mine]))
