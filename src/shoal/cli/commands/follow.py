"""`shoal follow`: a Kafka topic into a service, with a saved model or a new one of the first messages."""

import os
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from shoal.cli.commands.run import run_stream
from shoal.cli.commands.serve import Fed, serve_model
from shoal.cli.options import FollowOptions, RowOptions, RunOptions, ServeOptions
from shoal.cli.streams import OF_RUNS_ONLY
from shoal.model import persistence
from shoal.serve.kafka.address import SHARD, Address, read_settings
from shoal.serve.kafka.follower import Follower
from shoal.serve.kafka.messages import Columns
from shoal.serve.kafka.topic import Topics

FIRST = 1_000  # messages that make a model: they decide which columns are text, numbers or categories
QUIET = 3.0  # seconds without a message after which the topic counts as read


def follow_topic(topic: str, follow: FollowOptions, rows: RowOptions, options: ServeOptions) -> int:
    """The whole command."""
    address, settings = Address.of(topic), read_settings(follow.kafka_settings)
    folder = Path(options.folder or f"{follow.model or address.topic}.live")
    begun = begun_with(folder, follow.model)
    is_new = begun is None and follow.model is None
    _check(follow, rows, begun, is_new=is_new)
    if SHARD in address.topic:
        return _topic_a_shard(address, settings, follow, replace(options, folder=str(folder)))
    if options.shards != 1 and follow.labels_from is not None:
        raise ValueError(
            "--labels-from needs one engine: leave out --shards, or have a topic for each, as in kafka://b/mails-{shard}"
        )

    def feeder(engine: Fed) -> Follower:
        found = engine.describe()
        columns = Columns(found["label"], follow.id, follow.id not in found["columns"], follow.labels_from)
        names = [address.topic, *([] if follow.labels_from is None else [follow.labels_from])]
        topics = Topics(address.brokers, names, engine.offsets(), settings)
        return Follower(engine, topics, columns, lambda: os.kill(os.getpid(), signal.SIGTERM))

    with TemporaryDirectory() as temporary:
        model, offsets = follow.model or "", dict[str, int]()
        if is_new:
            ignored = rows.ignore if follow.id is None else (*rows.ignore, follow.id)
            model, offsets = _begun(Path(temporary), address, settings, replace(rows, ignore=ignored))
        return serve_model(model, replace(options, folder=str(folder)), feeder=feeder, offsets=offsets)


def _topic_a_shard(address: Address, settings: dict[str, str], follow: FollowOptions, options: ServeOptions) -> int:
    if follow.model is None or options.shards < 2:
        raise ValueError(f"{SHARD} in the name of a topic needs --model and --shards, 2 or more: each reads its own")
    if follow.labels_from is not None and SHARD not in follow.labels_from:
        raise ValueError(f"--labels-from needs {SHARD} in its name, too: labels find their rows in the same shard")
    try:
        from shoal.cluster.topic_per_shard import TopicPerShard
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None
    source = TopicPerShard(address.brokers, address.topic, follow.labels_from, follow.id, settings)
    for shard in range(options.shards):
        source.topics(shard, {}).close()  # raises now, as one line for the user
    return serve_model(follow.model, options, source=source)


def begun_with(folder: Path, model: str | None) -> dict[str, Any] | None:
    """The options about rows with which the model of a folder, or else of the file, was made; None if there is none,
    as when the first start was ended too soon."""
    found = [*sorted(folder.glob("**/snapshots/*.shoal"), reverse=True), *([] if model is None else [Path(model)])]
    for path in found:
        with suppress(ValueError, OSError), persistence.opened(path) as (header, _):
            return dict((header["reading"] or {}).get("options", {}))
    return None


def _check(follow: FollowOptions, rows: RowOptions, begun: dict[str, Any] | None, *, is_new: bool) -> None:
    if is_new and follow.labels_from is not None:
        raise ValueError(
            "--labels-from needs --model: the labels of the first messages must be there to make a model; "
            "`shoal run FILE --save` makes one from a file"
        )
    if is_new and rows.label is None:
        raise ValueError("--label is missing: the column of the labels (or --model, to go on with a saved model)")
    # The same command starts again, for ever; options of a run alone are not kept with the model.
    known = {} if begun is None else dict(begun)
    if follow.id is not None and "ignore" in known:
        known["ignore"] = tuple(name for name in known["ignore"] if name != follow.id)
    other = [
        name
        for name, value in rows.given().items()
        if name not in OF_RUNS_ONLY and _plain(known.get(name)) != _plain(value)
    ]
    if not is_new and other:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in other)
        raise ValueError(f"the model says how its rows are read: leave out {names}")


def _plain(value: Any) -> Any:
    """Lists, as JSON has them, for tuples."""
    return list(value) if isinstance(value, tuple) else value


def _begun(folder: Path, address: Address, settings: dict[str, str], rows: RowOptions) -> tuple[str, dict[str, int]]:
    """Make a model of the first messages; return its file and the offsets behind them."""
    table, model = folder / f"{address.topic}.ndjson", folder / "model.shoal"
    topics, found, offsets = Topics(address.brokers, [address.topic], {}, settings), 0, dict[str, int]()
    try:
        with table.open("wb") as file:
            while found < FIRST and (taken := topics.take(FIRST - found, QUIET if found else 5 * QUIET)):
                for message in taken:
                    offsets[f"{message.topic}/{message.partition}"] = message.offset + 1
                    if message.value is not None:
                        file.write(message.value.replace(b"\n", b" ") + b"\n")
                found += len(taken)
    finally:
        topics.close()
    if found == 0:
        raise ValueError(f"there are no messages in {address.topic} yet: the first ones decide how columns are read")
    run_stream([str(table)], replace(rows, skip_bad=True), RunOptions(save=str(model), quiet=True))
    return str(model), offsets
