"""An application behind a port, until somebody ends it."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from shoal.serve.http.connection import Connection

SWITCH_SECONDS = 0.0005  # how long a thread may keep the interpreter while an answer waits
GRACE_SECONDS = 10  # for requests on their way when the service is told to end
FEW_COLLECTIONS = (20_000, 20, 20)


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A port that is this process's. Raises ValueError if it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Event loops switch off Nagle's algorithm, which holds answers back for 40 ms, only where the protocol is said.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise ValueError(f"port {port} of {host} cannot be used: {error.strerror}") from None
        yield listener


def serve_until_told(application: Any, listener: socket.socket) -> None:
    """Serve until SIGTERM or Ctrl-C; requests on their way are answered, and a second signal ends them."""
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()  # what is there now stays: to look through it again and again takes a tenth of the time
    gc.set_threshold(*FEW_COLLECTIONS)
    config = uvicorn.Config(
        application, http=Connection, ws="none", log_level="warning", access_log=False, lifespan="off",
        server_header=False, proxy_headers=False, timeout_keep_alive=20, timeout_graceful_shutdown=GRACE_SECONDS,
        limit_concurrency=2_000,
    )  # fmt: skip
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_until_told(config, listener))


def wait_until_told() -> None:
    """Wait for SIGTERM or Ctrl-C, while another process serves."""
    told = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: told.set())
    told.wait()


async def _until_told(config: uvicorn.Config, listener: socket.socket) -> None:
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
