"""`--shards` and `--cluster`: a learner's tasks, or independent jobs, on processes of a Ray cluster."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
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
    """Is it a folder, as a run with shards saves it?"""
    return model is not None and Path(model).is_dir()


def check(options: RunOptions) -> None:
    """Raise ValueError if options contradict each other, or the folder to save to holds other things."""
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
    """A saved cluster, enlarged to the wanted number of shards, and how its rows were read."""
    cluster = _joined(address).load(folder)
    reading, there = cluster.reading, len(cluster.shards)
    if 1 < shards < there:
        cluster.close()
        raise ValueError(f"{folder} has {there} shards, which can become more, but not {shards}")
    if shards > there:
        cluster.add_shards(shards - there)
    return cluster, None if reading is None else Reading(**reading)


def _joined(address: str | None) -> Any:
    """The class `Cluster`, after connecting to the Ray at an address, or to one on this machine."""
    try:
        from shoal.cluster import Cluster
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None
    from shoal.cluster.actors import start_ray

    start_ray(address)
    return Cluster


def on_shards(learner: Learner, options: RunOptions) -> closing[Any]:
    """The learner on a cluster, which closes at the end of the block."""
    if not isinstance(learner, Learner):
        return closing(learner)
    made = _joined(options.cluster)
    every = EXCHANGE_EVERY if options.exchange_every is None else options.exchange_every
    return closing(made(learner, shards=options.shards, exchange_every=every or None, assign=options.assign))


def plain(contestants: Mapping[str, Any]) -> dict[str, Any]:
    """The learners; in place of a cluster, the learner of its shards."""
    return {name: getattr(one, "learner", one) for name, one in contestants.items()}


def announced(stream: Stream, cluster: Any) -> Stream:
    """The stream; each chunk's blocks of tasks are announced to the cluster before it is learned."""
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
    """Write the shards' models; return their bytes."""
    cluster.save(folder, reading=None if reading is None else reading._asdict())
    return sum(file.stat().st_size for file in Path(folder).iterdir())


def on_cluster(address: str | None) -> AbstractContextManager[None]:
    """Run joblib's jobs of the block at the address of a cluster, on one of this machine ("local"), or here (None)."""
    if address is None:
        return nullcontext()
    try:
        from shoal.cluster import jobs_on
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None
    jobs: AbstractContextManager[None] = jobs_on(address)
    return jobs
