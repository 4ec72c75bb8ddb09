"""`shoal serve`: a model behind HTTP, that learns while it answers."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import uvicorn
from rich.console import Console

from shoal.cli.choices import ServeOptions
from shoal.serve.contract import Unavailable
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.http.access import read_tokens
from shoal.serve.http.bodies import Caps as RequestCaps
from shoal.serve.learning import Rhythm
from shoal.serve.limits import Caps
from shoal.serve.rehearsal import rehearse
from shoal.serve.running import application

LOCAL = ("127.0.0.1", "::1", "localhost")
SWITCH_SECONDS = 0.0005  # how long a thread may keep the interpreter while an answer waits
FEW_COLLECTIONS = (20_000, 20, 20)


class Feeder(Protocol):
    """What brings rows to an engine next to requests."""

    failure: BaseException | None

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def gauges(self) -> Mapping[str, float]: ...


def serve_model(
    model: str, options: ServeOptions, *, feeder: Callable[[Engine], Feeder] | None = None,
    offsets: Mapping[str, int] | None = None,
) -> int:  # fmt: skip
    """The whole command.

    Parameters
    ----------
    feeder : function, optional
        Makes what brings rows to the engine; if it fails, the service ends.
    offsets : mapping, optional
        How far topics have been read into the model.
    """
    tokens = read_tokens(None if options.tokens is None else Path(options.tokens))
    if not tokens and options.host not in LOCAL:
        raise ValueError(
            f"--host {options.host} can be reached by others, so tokens are needed: --tokens FILE, or "
            "SHOAL_TOKEN_READ, SHOAL_TOKEN_WRITE and SHOAL_TOKEN_ADMIN in the environment"
        )
    folder = Path(options.folder) if options.folder else Path(f"{model}.live")
    settings = EngineSettings(
        log=options.log, rhythm=Rhythm(options.snapshot_rows, options.snapshot_seconds), keep=options.keep,
        keep_log=options.keep_log, label_wait=options.label_wait * 3600.0, shadows=options.shadows,
        caps=Caps(options.new_tasks, options.new_columns, options.max_tasks),
    )  # fmt: skip
    console = Console(stderr=True)
    sys.setswitchinterval(SWITCH_SECONDS)
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    # Event loops switch off Nagle's algorithm, which holds answers back for 40 ms, only where the protocol is said.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((options.host, options.port))
        except OSError as error:
            raise ValueError(f"port {options.port} of {options.host} cannot be used: {error.strerror}") from None
        with console.status("reading the model …") as status:
            rehearse(_newest(Path(model), folder), with_shadows=options.shadows)
            engine = _engine(Path(model), folder, settings, status.update, offsets)
        fed = None if feeder is None else feeder(engine)
        found = engine.describe()
        port = listener.getsockname()[1]
        console.print(
            f"{found['learner']} of {found['tasks']:,} tasks at http://{options.host}:{port} (log and snapshots in "
            f"{folder}); Ctrl-C ends it",
            soft_wrap=True, highlight=False,
        )  # fmt: skip
        config = uvicorn.Config(
            application(engine, tokens, RequestCaps()), log_level="warning", access_log=False, lifespan="off",
            server_header=False, proxy_headers=False,
            timeout_keep_alive=20, timeout_graceful_shutdown=10, limit_concurrency=2_000,
        )  # fmt: skip
        gc.collect()
        gc.freeze()  # what is there now stays: to look through it again and again takes a tenth of the time
        gc.set_threshold(*FEW_COLLECTIONS)
        try:
            if fed is not None:
                engine.more_gauges = fed.gauges
                fed.start()
            with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
                runner.run(_until_told(config, listener))
        finally:
            if fed is not None:
                fed.stop()
            console.print(f"learning what was accepted, then a snapshot in {folder} …", soft_wrap=True, highlight=False)
            engine.close()
    return 1 if fed is not None and fed.failure is not None else 0


def _newest(model: Path, folder: Path) -> Path:
    """The file that the engine will read, unless it is damaged."""
    return max((folder / "snapshots").glob("*.shoal"), default=model)


def _engine(
    model: Path, folder: Path, settings: EngineSettings, say: Callable[[str], None], offsets: Mapping[str, int] | None
) -> Engine:
    try:
        return Engine(
            model, folder, settings, lambda at, last: say(f"learning the log again: record {at:,} of {last:,}"), offsets
        )
    except Unavailable as error:
        raise ValueError(str(error)) from None


async def _until_told(config: uvicorn.Config, listener: socket.socket) -> None:
    """Serve until SIGTERM or Ctrl-C; requests on their way are answered, and a second signal ends them."""
    server = _Server(config)

    def told() -> None:
        server.force_exit = server.should_exit
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, told)
    await server.serve(sockets=[listener])


class _Server(uvicorn.Server):
    """Uvicorn's own handlers raise the signal again at the end, before the engine is closed."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
