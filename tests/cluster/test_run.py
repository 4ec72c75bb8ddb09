"""`shoal run --shards`, its folder, and tasks that live together by a column."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import ray
from tests.cli.conftest import Program
from tests.serve.material import records, rows

from shoal import MultitaskPerceptron
from shoal.cluster import Cluster

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.timeout(300), pytest.mark.usefixtures("shared_actors")]
FREE = {"num_cpus": 0}
TABLE = ("--task", "user", "--label", "spam", "--hash-bits", 8, "--set", "memory=8")


def region(user: str) -> str:
    """Where a user of the made mails lives."""
    return "north" if user in ("u0", "u3", "u4") else "south"


@pytest.fixture
def mails(tmp_path: Path) -> list[Path]:
    """Two files; in the middle of the first, columns become more."""
    made = [row | {"region": region(row["user"])} for row in records(900, seed=12)]
    paths = [tmp_path / "a.ndjson", tmp_path / "b.ndjson"]
    rows(made[:600]).frame.write_ndjson(paths[0])
    rows(made[600:]).frame.write_ndjson(paths[1])
    return paths


def test_a_run_with_shards_is_saved_goes_on_and_predicts(shoal: Program, mails: list[Path], tmp_path: Path) -> None:
    first, then, folder = *mails, tmp_path / "folder"
    options = (*TABLE, "--shards", 2, "--assign", "region", "--exchange-every", 200, "--save", folder)
    code, out, err = shoal("run", first, *options, "--predictions", tmp_path / "p.csv")
    assert (code, err) == (0, "")
    assert "Cluster(HedgedSharing(memory=8), shards=2, exchange_every=200, assign='region')" in out
    assert pl.read_csv(tmp_path / "p.csv")["task"].n_unique() == 6
    code, out, err = shoal("run", then, "--load", folder, "--shards", 3, "--json", tmp_path / "found.json")
    assert (code, err) == (0, "")
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["learners"]["HedgedSharing"]["updates"] == 300
    assert found["learners"]["HedgedSharing"]["overall"]["auc"] > 0.8
    code, out, err = shoal("predict", then, "--model", folder, "--out", tmp_path / "q.csv")
    assert (code, err) == (0, "")
    assert pl.read_csv(tmp_path / "q.csv").height == 300
    with Cluster.load(folder, options=FREE) as cluster:
        homes = {user: cluster.shard_of(user) for user in cluster.tasks_}
        assert all(homes[user] == homes[other] for user in homes for other in homes if region(user) == region(other))
    for arguments, message in (
        ((then, "--load", folder, "--assign", "region"), "--load brings its --assign"),
        ((then, *TABLE, "--assign", "region"), "--assign and --exchange-every are for --shards"),
        ((then, *TABLE, "--shards", 0), "--shards takes a number, 1 or more"),
        ((then, *TABLE, "--shards", 2, "--save", tmp_path), "it exists and is no saved cluster"),
        ((then, *TABLE, "--shards", 2, "--cluster", "127.0.0.1:1"), "no Ray answers at 127.0.0.1:1"),
    ):
        code, out, err = shoal("run", *arguments, "--quiet")
        assert code == 2
        assert message in err
    assert "models of shards such as" in shoal("inspect", folder)[2]


def test_one_shard_is_the_run_without_a_cluster(shoal: Program, mails: list[Path], tmp_path: Path) -> None:
    address = ray.get_runtime_context().gcs_address
    for name, options in ("plain", ("--no-baselines",)), ("sharded", ("--cluster", address)):
        code, _, err = shoal("run", mails[0], *TABLE, *options, "--quiet", "--predictions", tmp_path / f"{name}.csv")
        assert (code, err) == (0, "")
    assert (tmp_path / "plain.csv").read_bytes() == (tmp_path / "sharded.csv").read_bytes()


def test_searches_run_on_the_cluster(shoal: Program, mails: list[Path], tmp_path: Path) -> None:
    learners = ("--learners", "PassiveAggressive,PassiveAggressive:relation=independent", "--tune", 100)
    found = []
    for i, options in enumerate([(), ("--cluster", ray.get_runtime_context().gcs_address)]):
        path = tmp_path / f"{i}.json"
        code, _, err = shoal("compare", mails[0], *TABLE[:-2], *learners, *options, "--json", path, "--quiet")
        assert (code, err) == (0, "")
        found.append(json.loads(path.read_text())["tuning"])
    assert found[0] == found[1]
    assert "--cluster is for the tries of --tune" in shoal("compare", mails[0], *TABLE[:-2], "--cluster", "local")[2]


def test_tasks_of_a_block_live_together_through_files_and_more_shards(tmp_path: Path) -> None:
    table = rows(records(300, late_columns=False)).frame
    X: Any = table.select(pl.col("size").cast(pl.Float64), region=pl.col("user").map_elements(region, pl.String))
    y, task = table["spam"].to_numpy(), table["user"].to_numpy()

    def live_together(cluster: Cluster) -> bool:
        homes = {user: cluster.shard_of(user) for user in cluster.tasks_}
        return all(homes[user] == homes[other] for user in homes for other in homes if region(user) == region(other))

    with Cluster(MultitaskPerceptron(), shards=3, exchange_every=100, assign="region", options=FREE) as cluster:
        with pytest.raises(ValueError, match="the 'region' of task 'u"):
            cluster.partial_fit(X.select("size").to_numpy(), y, task)
        cluster.partial_fit(X[:150], y[:150], task[:150])
        answers = cluster.predict(X[150:], task[150:])
        assert answers.tolist() == cluster.predict(X["size"].to_numpy()[150:, None], task[150:]).tolist()
        assert live_together(cluster)
        cluster.save(tmp_path / "folder")
        cluster.add_shards(3)
        assert live_together(cluster)
        cluster.live_together(["new"], ["south"]).partial_fit(X["size"].to_numpy()[:1, None], y[:1], ["new"])
        assert cluster.shard_of("new") == cluster.shard_of("u1")
        cluster.live_together(["new"], ["south"]).forget_task("new")  # what was said of it goes with it
        cluster.live_together(["new"], ["north"]).partial_fit(X["size"].to_numpy()[:1, None], y[:1], ["new"])
        assert cluster.shard_of("new") == cluster.shard_of("u0")
    with Cluster.load(tmp_path / "folder", options=FREE) as again:
        assert again.assign == "region"
        again.partial_fit(X[150:], y[150:], task[150:])
        assert live_together(again)
        with pytest.raises(ValueError, match="live_together is for a cluster with assign="):
            Cluster(MultitaskPerceptron(), shards=1, options=FREE).live_together(["a"], ["b"])
