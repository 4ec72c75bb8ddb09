"""Folders of files into a cluster, read here or by Ray Data.

Features become more while rows come, and each shard sees some of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serve.material import records, rows

from shoal import HedgedSharing
from shoal.cluster import Cluster
from shoal.files import ReadOptions, open_stream, open_tables

pytestmark = [
    pytest.mark.xdist_group("cluster"), pytest.mark.timeout(300), pytest.mark.usefixtures("shared_actors"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),  # of Ray Data's own defaults
]  # fmt: skip
MAILS = records(900, seed=12)
CLASSES = ["no", "yes"]
BY_RAY = ".ray"  # who reads the folder


@pytest.fixture(params=["ndjson", "parquet", "Ray Data"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    for part in range(3):
        frame = rows(MAILS[300 * part : 300 * (part + 1)]).frame
        if request.param == "ndjson":
            frame.write_ndjson(tmp_path / f"{part}.ndjson")
        else:
            frame.write_parquet(tmp_path / f"{part}.parquet")
    if request.param == "Ray Data":
        (tmp_path / BY_RAY).touch()
    return tmp_path


def read(folder: Path, chunk_rows: int) -> Any:
    options = ReadOptions(task="user", label="spam", hash_bits=8, chunk_rows=chunk_rows)
    if not (folder / BY_RAY).exists():
        return open_stream(folder, options, read_ahead=True)
    import ray.data

    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order, context.enable_progress_bars = True, False
    rows = ray.data.read_parquet([str(path) for path in sorted(folder.glob("*.parquet"))])
    return open_tables(rows.iter_batches(batch_format="pyarrow"), options, read_ahead=True)


def test_a_folder_is_learned_while_it_is_read(folder: Path) -> None:
    plain = HedgedSharing(memory=8)
    X: list[Any] = []
    task: list[Any] = []
    with read(folder, 64) as stream:
        for chunk in stream:
            if X:
                plain.add_features(chunk.X.shape[1] - plain.n_features_in_)
            plain.partial_fit(chunk.X, chunk.y, chunk.task, classes=CLASSES)
            X.append(chunk.X)
            task.append(chunk.task)
    assert X[0].shape[1] < X[-1].shape[1]
    X[-1].resize(X[-1].shape[0], plain.n_features_in_)
    is_slow = (folder / BY_RAY).exists()
    for shards in (1,) if is_slow else (1, 3):
        found = []
        for chunk_rows in (64,) if is_slow else (64, 200):
            learner = HedgedSharing(memory=8)
            with Cluster(learner, shards=shards, exchange_every=100, options={"num_cpus": 0}) as cluster:
                with read(folder, chunk_rows) as stream:
                    cluster.learn_stream(stream, classes=CLASSES)
                assert cluster.n_features_in_ == plain.n_features_in_
                assert cluster.tasks_ == plain.tasks_
                found.append(cluster.decision_function(X[-1], task[-1]))
        np.testing.assert_array_equal(found[0], found[-1])
        if shards == 1:
            np.testing.assert_array_equal(found[0], plain.decision_function(X[-1], task[-1]))
