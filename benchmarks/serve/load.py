"""Clients that ask one after the other, in a process of their own: `python -m benchmarks.serve.load URL FILE SECONDS
CLIENTS` posts the file and prints requests a second, and milliseconds of the median, the slowest hundredth, the slowest
request."""

import asyncio
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import uvloop

HEAD = "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"


async def client(host: str, port: int, request: bytes, ends: float, times: list[float]) -> None:
    """Ask again and again, on one connection."""
    reader, writer = await asyncio.open_connection(host, port)
    while (begun := time.perf_counter()) < ends:
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        if b" 200 " not in head[:16]:
            raise SystemExit(body.decode())
        times.append(time.perf_counter() - begun)
    writer.close()


async def load(url: str, body: bytes, seconds: float, clients: int) -> list[float]:
    """The times of all requests, in order of length."""
    parts = urlsplit(url)
    host, port = str(parts.hostname), int(parts.port or 80)
    request = HEAD.format(path=parts.path, host=parts.netloc, length=len(body)).encode() + body
    times: list[float] = []
    ends = time.perf_counter() + seconds
    await asyncio.gather(*(client(host, port, request, ends, times) for _ in range(clients)))
    return sorted(times)


def main() -> None:
    """Print one line."""
    url, file, seconds, clients = sys.argv[1:]
    times = uvloop.run(load(url, Path(file).read_bytes(), float(seconds), int(clients)))
    chosen = times[len(times) // 2], times[int(0.99 * len(times))], times[-1]
    print(len(times) / float(seconds), *(1e3 * one for one in chosen))


if __name__ == "__main__":
    main()
