"""`shoal serve`: a model behind HTTP, that learns while it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from shoal.cli.choices import ServeOptions
from shoal.cli.listening import listening, serve_until_told, wait_until_told
from shoal.serve.answers import rehearse
from shoal.serve.contract import Service, Unavailable
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.http.access import Token, read_tokens
from shoal.serve.http.bodies import Caps as RequestCaps
from shoal.serve.learner_thread import Rhythm
from shoal.serve.limits import Caps
from shoal.serve.running import application

LOCAL = ("127.0.0.1", "::1", "localhost")


class Fed(Service, Protocol):
    """An engine, or the service of several."""

    more_gauges: Callable[[], Mapping[str, float]]

    def offsets(self) -> dict[str, int]: ...


class Feeder(Protocol):
    """What brings rows next to requests."""

    failure: BaseException | None

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def gauges(self) -> Mapping[str, float]: ...


def serve_model(
    model: str, options: ServeOptions, *, feeder: Callable[[Fed], Feeder] | None = None,
    offsets: Mapping[str, int] | None = None, source: Any = None,
) -> int:  # fmt: skip
    """The whole command.

    Parameters
    ----------
    feeder : function, optional
        Makes what brings rows to the engine; if it fails, the service ends.
    offsets : mapping, optional
        How far topics have been read into the model.
    source : shoal.cluster.topic_per_shard.TopicPerShard, optional
        A topic for each shard.
    """
    tokens = _tokens(options)
    folder = Path(options.folder) if options.folder else Path(f"{model}.live")
    console, fed = Console(stderr=True), None
    by_ray = options.cluster is not None and feeder is None
    if options.cluster == "local":  # Ray Serve would share a port that is taken
        with listening(options.host, options.port):
            pass
    with nullcontext() if by_ray else listening(options.host, options.port) as listener:
        with console.status("reading the model …") as status:
            service = _opened(Path(model), folder, options, status.update, offsets, source)
        try:
            if feeder is not None:
                fed = feeder(service)
                service.more_gauges = fed.gauges
                fed.start()
            found = service.describe()
            port = options.port if listener is None else listener.getsockname()[1]
            said = (
                f"{found['learner']} of {found['tasks']:,} tasks at http://{options.host}:{port} (log and snapshots in "
                f"{folder}); Ctrl-C ends it"
            )
            say = partial(console.print, said, soft_wrap=True, highlight=False)
            if listener is None:
                from shoal.cluster.ray_serve import by_ray_serve

                with by_ray_serve(service, tokens, options.host, port):
                    say()
                    wait_until_told()
            else:
                say()
                serve_until_told(application(service, tokens, RequestCaps()), listener)
        finally:
            if fed is not None:
                fed.stop()
            console.print(f"learning what was accepted, then a snapshot in {folder} …", soft_wrap=True, highlight=False)
            service.close()
    return 1 if fed is not None and fed.failure is not None else 0


def _tokens(options: ServeOptions) -> list[Token]:
    tokens = read_tokens(None if options.tokens is None else Path(options.tokens))
    if not tokens and options.host not in LOCAL:
        raise ValueError(
            f"--host {options.host} can be reached by others, so tokens are needed: --tokens FILE, or "
            "SHOAL_TOKEN_READ, SHOAL_TOKEN_WRITE and SHOAL_TOKEN_ADMIN in the environment"
        )
    return tokens


def _opened(
    model: Path, folder: Path, options: ServeOptions, say: Callable[[str], None],
    offsets: Mapping[str, int] | None, source: Any,
) -> Any:  # fmt: skip
    """An engine, or several on a cluster. Raises ValueError."""
    settings = EngineSettings(
        log=options.log, rhythm=Rhythm(options.snapshot_rows, options.snapshot_seconds), keep=options.keep,
        keep_log=options.keep_log, label_wait=options.label_wait * 3600.0, shadows=options.shadows,
        new_log=options.new_log, caps=Caps(options.new_tasks, options.new_columns, options.max_tasks),
    )  # fmt: skip
    rehearse(max((folder / "snapshots").glob("*.shoal"), default=model), with_shadows=options.shadows)
    if options.shards > 1:
        from shoal.cluster.actors import start_ray
        from shoal.cluster.service import ShardedService

        start_ray(options.cluster)
        return ShardedService.start(
            model, folder, settings, shards=options.shards, fallback=options.fallback, offsets=offsets, source=source
        )
    if options.shards < 1 or options.cluster is not None or options.fallback:
        raise ValueError("--cluster and --fallback are for --shards, of which there are 2 or more")
    try:
        return Engine(
            model, folder, settings, lambda at, last: say(f"learning the log again: record {at:,} of {last:,}"), offsets
        )
    except Unavailable as error:
        raise ValueError(str(error)) from None
