"""`shoal run --shards`: a learner's tasks on processes of a Ray cluster, and the folder in which they are saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from shoal.cli.options import RunOptions
from shoal.cli.streams import Stream
from shoal.engine.rounds import Chunk
from shoal.learner import Learner
from shoal.model_file import Reading

EXCHANGE_EVERY = 200_000


def is_sharded(options: RunOptions) -> bool:
    """Does the run need a cluster?"""
    return options.shards > 1 or options.cluster is not None or is_folder(options.load)


def is_folder(model: str | None) -> bool:
    """Is it what a run with shards has saved?"""
    return model is not None and Path(model).is_dir()


def check(options: RunOptions) -> None:
    """Raise ValueError if options contradict each other, or the folder to save to is of something else."""
    if options.shards < 1:
        raise ValueError(f"--shards takes a number, 1 or more, got {options.shards}")
    if not is_sharded(options):
        if options.assign is not None or options.exchange_every is not None:
            raise ValueError("--assign and --exchange-every are for --shards, of which there are 2 or more")
        return
    if options.load is not None and not is_folder(options.load):
        raise ValueError(f"{options.load} is a single model; a run with shards goes on with a folder that one saved")
    if options.load is not None and (options.assign is not None or options.exchange_every is not None):
        raise ValueError("--load brings its --assign and --exchange-every; leave them out")
    if options.save is not None:
        from shoal.cluster.storage import check_place

        check_place(options.save)


def opened(folder: str, address: str | None = None, shards: int = 1) -> tuple[Any, Reading | None]:
    """A saved cluster, with more shards if so many are wanted, and how its rows were read."""
    cluster = _joined(address).load(folder)
    companion, there = cluster.companion, len(cluster.shards)
    if 1 < shards < there:
        cluster.close()
        raise ValueError(f"{folder} has {there} shards, which can become more, but not {shards}")
    if shards > there:
        cluster.add_shards(shards - there)
    return cluster, None if companion is None else Reading(**companion)


def _joined(address: str | None) -> Any:
    """`Cluster`, on the Ray at an address, or one on this machine."""
    try:
        from shoal.cluster import Cluster
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None
    from shoal.cluster.actors import start_ray

    start_ray(address)
    return Cluster


def on_shards(learner: Learner, options: RunOptions) -> closing[Any]:
    """The learner on a cluster, closed at the end."""
    if not isinstance(learner, Learner):
        return closing(learner)
    made = _joined(options.cluster)
    every = EXCHANGE_EVERY if options.exchange_every is None else options.exchange_every
    return closing(made(learner, shards=options.shards, exchange_every=every or None, assign=options.assign))


def plain(contestants: Mapping[str, Any]) -> dict[str, Any]:
    """The learners; of a cluster the one that its shards are made of."""
    return {name: one if isinstance(one, Learner) else one.learner for name, one in contestants.items()}


def announced(stream: Stream, cluster: Any) -> Stream:
    """The stream; before a chunk is learned, the cluster knows which of its tasks live together."""
    column, file = cluster.assign, stream.file
    if not isinstance(column, str):
        return stream
    if file is None:
        raise ValueError("--assign takes a column of files")

    def chunks() -> Iterator[Chunk]:
        for chunk in stream.chunks:
            cluster.live_together(chunk.task, file.kept[column])
            yield chunk

    return replace(stream, chunks=chunks())


def save(folder: str, cluster: Any, reading: Reading | None) -> int:
    """Write the shards' models; return how many bytes they have."""
    cluster.save(folder, companion=None if reading is None else reading._asdict())
    return sum(file.stat().st_size for file in Path(folder).iterdir())
