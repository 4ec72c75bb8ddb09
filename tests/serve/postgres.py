"""A PostgreSQL server of the tests' own, and what can cut a connection to it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
import sqlalchemy as sa


class Postgres:
    """A server of its own; root is not allowed to run one, so then the system's user for it does."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._run_as = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        self._binaries, self._data, self._folder = binaries, folder / "data", folder
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self._port = one.getsockname()[1]
        self.url = self.url_at(self._port)
        self._call("initdb", "-A", "trust", "-U", "postgres", "-D", str(self._data))

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self._port

    def url_at(self, port: int, database: str = "postgres") -> str:
        return f"postgresql+psycopg://postgres@127.0.0.1:{port}/{database}"

    def run(self, *statements: str) -> None:
        """Each by itself, as a superuser."""
        engine = sa.create_engine(self.url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        with engine.connect() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def start(self) -> None:
        options = f"-p {self._port} -k {self._folder} -c listen_addresses=127.0.0.1"
        self._call("pg_ctl", "-D", str(self._data), "-w", "-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        self._call("pg_ctl", "-D", str(self._data), "-w", "-m", "immediate", "stop")

    def _call(self, program: str, *arguments: str) -> None:
        command = [*self._run_as, str(self._binaries / program), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self._folder)


@contextmanager
def server() -> Iterator[Postgres]:
    """It runs until the end; without its programs the test is skipped."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    binaries = programs[-1].parent if programs else Path(shutil.which("initdb") or "nowhere/initdb").parent
    if not (binaries / "initdb").exists():
        pytest.skip("there is no PostgreSQL server here (Debian: apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    found = Postgres(binaries, folder)
    found.start()
    try:
        yield found
    finally:
        with suppress(subprocess.CalledProcessError):  # a test may have stopped it
            found.stop()
        shutil.rmtree(folder, ignore_errors=True)


class Proxy:
    """Hands on what comes to its port, until it is told to cut."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._changing = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break all connections."""
        with self._changing:
            pairs, self._pairs = self._pairs, []
        for one in (one for pair in pairs for one in pair):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                pair = client, socket.create_connection(self._target)
                with self._changing:
                    self._pairs.append(pair)
                for source, target in (pair, pair[::-1]):
                    threading.Thread(target=_pump, args=(source, target), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with ExitStack() as ends:
        ends.callback(source.close)
        with suppress(OSError):
            while part := source.recv(1 << 16):
                target.sendall(part)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
