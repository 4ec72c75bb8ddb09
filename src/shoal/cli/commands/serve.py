"""`shoal serve`: a model behind HTTP that learns while it answers."""

import asyncio
import gc
import json
import os
import re
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import uvicorn
from rich.console import Console

from shoal.cli.options import ServeOptions
from shoal.files.messages import plural
from shoal.serve.answers import rehearse
from shoal.serve.contract import Service, Unavailable
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.http.access import Token, read_tokens
from shoal.serve.http.app import application
from shoal.serve.http.connection import Connection
from shoal.serve.learner_thread import Rhythm
from shoal.serve.limits import Caps
from shoal.serve.log import lock
from shoal.serve.model_changes import OF_SHARDS, ModelFolder
from shoal.serve.snapshots import BEGAN, SNAPSHOTS
from shoal.whole_file import write_whole

LOCAL = ("127.0.0.1", "::1", "localhost")
SWITCH_SECONDS = 0.0005  # how long a thread may keep the interpreter while an answer waits
GRACE_SECONDS = 10  # for requests on their way when the service ends
FEW_COLLECTIONS = (20_000, 20, 20)


class Fed(Service, Protocol):
    """An engine, or a service of several."""

    more_gauges: Callable[[], Mapping[str, float]]

    def offsets(self) -> dict[str, int]: ...


class Feeder(Protocol):
    """A source of rows beside requests."""

    failure: BaseException | None

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def gauges(self) -> Mapping[str, float]: ...


def serve_model(
    model: str,
    options: ServeOptions,
    *,
    feeder: Callable[[Fed], Feeder] | None = None,
    offsets: Mapping[str, int] | None = None,
    source: Any = None,
) -> int:
    """The whole command.

    Parameters
    ----------
    feeder : function, optional
        Makes the source of rows; if the source fails, the service ends.
    offsets : mapping, optional
        The next message of each "topic/partition" that the model has not learned.
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
        if feeder is None and source is None:
            for line in with_file(Path(model), folder, replace=options.replace):
                console.print(line, soft_wrap=True, highlight=False)
        with console.status("reading the model …") as status:
            service = _opened(Path(model), folder, options, status.update, offsets, source)
        try:
            if options.shadow is not None:
                begin_shadow(service, Path(options.shadow))
            if feeder is not None:
                fed = feeder(service)
                service.more_gauges = fed.gauges
                fed.start()
            found = service.describe()
            port = options.port if listener is None else listener.getsockname()[1]
            address = (
                f"{found['learner']} of {plural(found['tasks'], 'task')} at http://{options.host}:{port} (log and "
                f"snapshots in {folder}); Ctrl-C ends it"
            )
            say = partial(console.print, address, soft_wrap=True, highlight=False)
            if listener is None:
                from shoal.cluster.ray_serve import by_ray_serve

                with by_ray_serve(service, tokens, options.host, port, options.origins):
                    say()
                    wait_for_signal()
            else:
                say()
                serve_until_signal(application(service, tokens, origins=options.origins), listener)
        finally:
            if fed is not None:
                fed.stop()
            console.print(f"learning what was accepted, then a snapshot in {folder} …", soft_wrap=True, highlight=False)
            service.close()
    return 1 if fed is not None and fed.failure is not None else 0


def begin_shadow(service: Service, file: Path) -> None:
    """Let a candidate learn beside the model, unless the same file came before: a start may be a restart."""
    copy = service.new_file()
    try:
        shutil.copyfile(file, copy)
        if not service.has_taken(copy):
            service.change("shadow", copy)
    finally:
        copy.unlink(missing_ok=True)


def with_file(model: Path, folder: Path, *, replace: bool) -> list[str]:
    """A sentence on a model file, if it is another one than that with which its folder began; with `replace`, the
    folder makes room for one that begins with the file."""
    began, found = folder / BEGAN, None
    with suppress(FileNotFoundError):
        status = model.stat()
        found = json.dumps({"size": status.st_size, "modified": status.st_mtime_ns})
    notes = []
    if found is not None and began.exists() and began.read_text() != found:
        files = ModelFolder(folder)
        if not replace and files.has_taken(files.name_of(model)):
            return []
        if not replace:
            ways = "`shoal swap` puts it in place while the log goes on, --replace begins anew with it"
            return [f"{model} is another file than {folder} began with, and is not read; {ways}"]
        kept = next(path for n in count(1) if not (path := Path(f"{folder}.{n}")).exists())
        with open_lock(folder):  # raises if a service has it
            folder.rename(kept)
        notes = [f"{folder} begins anew with {model}; what it was is kept in {kept}"]
    if found is not None and not folder.exists():
        folder.mkdir(parents=True)
        write_whole(began, found.encode())
    return notes


@contextmanager
def open_lock(folder: Path) -> Iterator[None]:
    """Hold the locks of a service's folder. Raises ValueError if a service has it."""
    with ExitStack() as held:
        for own in (folder, *folder.glob("shard-*")):
            held.callback(os.close, lock(own / "lock", folder))
        yield


def _tokens(options: ServeOptions) -> list[Token]:
    for origin in options.origins:
        if not re.fullmatch(r"https?://[^/\s*]+", origin):
            raise ValueError(
                f"--origins {origin}: expected sites such as https://shop.example.org, separated by commas"
            )
    tokens = read_tokens(None if options.tokens is None else Path(options.tokens))
    if not tokens and options.host not in LOCAL:
        raise ValueError(
            f"--host {options.host} can be reached by others, so tokens are needed: --tokens FILE, or "
            "SHOAL_TOKEN_READ, SHOAL_TOKEN_WRITE and SHOAL_TOKEN_ADMIN in the environment"
        )
    return tokens


def _opened(
    model: Path,
    folder: Path,
    options: ServeOptions,
    say: Callable[[str], None],
    offsets: Mapping[str, int] | None,
    source: Any,
) -> Any:
    """An engine, or several on a cluster. Raises ValueError."""
    settings = EngineSettings(
        log=options.log,
        rhythm=Rhythm(options.snapshot_rows, options.snapshot_seconds),
        keep=options.keep,
        keep_models=options.keep_models,
        keep_log=options.keep_log,
        label_wait=options.label_wait * 3600.0,
        shadows=options.shadows,
        new_log=options.new_log,
        strict=options.strict,
        caps=Caps(options.new_tasks, options.new_columns, options.max_tasks),
    )
    there = len(list(folder.glob("shard-*"))) or int((folder / SNAPSHOTS).exists())
    if there not in (0, options.shards):
        raise ValueError(f"{folder} began with --shards {there} and keeps to it: tasks do not move between shards")
    if options.shards > 1 and options.shadow is not None:
        raise ValueError(OF_SHARDS)
    rehearse(max((folder / SNAPSHOTS).glob("*.shoal"), default=model), with_shadows=options.shadows)
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


# ---- the port, and the signals that end the service ---------------------------------------------------------


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A listening port. Raises ValueError if it cannot be opened."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, event loops switch off Nagle's algorithm, which delays answers by 40 ms.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise ValueError(f"port {port} of {host} cannot be used: {error.strerror}") from None
        yield listener


def serve_until_signal(application: Any, listener: socket.socket) -> None:
    """Serve until SIGTERM or Ctrl-C; requests on their way are answered, and a second signal ends them.

    The interpreter is set for answers: threads switch sooner, and the collector leaves the model's objects alone, which
    took a tenth of the time. Only the program does so, because it owns its process.
    """
    os.environ["RUST_BACKTRACE"] = "0"  # polars panics at some bodies: a line in the log, without a hundred frames
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*FEW_COLLECTIONS)
    config = uvicorn.Config(
        application,
        http=Connection,
        ws="none",
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=GRACE_SECONDS,
        limit_concurrency=2_000,
    )
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_until_signal(config, listener))


def wait_for_signal() -> None:
    """Wait for SIGTERM or Ctrl-C, while another process serves."""
    ended = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: ended.set())
    ended.wait()


async def _until_signal(config: uvicorn.Config, listener: socket.socket) -> None:
    server = _Server(config)

    def end() -> None:
        server.force_exit = server.should_exit
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, end)
    await server.serve(sockets=[listener])


class _Server(uvicorn.Server):
    """Uvicorn without its signal handlers, which raise the signal again before the engine is closed."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
