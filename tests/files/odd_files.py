"""A generator of odd files: what people have on their disks, and what goes wrong with it."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import random
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

COLUMNS = {"task": "t", "label": "y"}
CSV = "x,c,y,t\n1.5,red,0,u\n2.5,blue,1,v\n,red,1,u\n"
ROWS = 3
VALUES = [
    "2013-01-31", "2013-01-31T10:00:00Z", "31/01/2013", "01-31-2013", "Jan 31, 2013", "2013-W05", "20130131", "10:30",
    "24:61", "1e400", "-inf", "NaN", "0x1F", "1_000", "1,5", "1.234,5", "$5", "5 %", "(3)", "½", "٣", "True", "tRUE",
    "''", "=1+1", "\x00", "\u200b", "\ufeff", "👩‍👩‍👧", "e\u0301" * 50, "<script>", "a\tb", "a;b", "a|b", "NULL", "-",
    "word " * 2_000, "漢字かな交じり文", "ภาษาไทยไม่มีช่องว่าง", "\u202eabc", "x" * 100_000, "\r", "\n\n", '""', '"a', "\\",
]  # fmt: skip
"""Values of a cell."""
ENCODINGS = ["utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "shift_jis", "koi8-r", "utf-7"]
PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
TEXTS = {
    "empty": "", "newline": "\n", "newlines": "\n" * 50, "spaces": "   \n  ", "header": "x,c,y,t\n",
    "no-end": "x,y,t",
    "one-column": "y\n0\n1\n", "one-cell": "y", "only-commas": ",,,\n,,,\n", "comma-more": "x,y,t,\n1,0,u,\n",
    "duplicate-names": "x,x,y,t\n1,2,0,u\n", "empty-names": ",,y,t\n1,2,0,u\n", "blank-first": "\n\n" + CSV,
    "spaced-names": "x , y,t\n1,0,u\n", "quoted-names": '"x","y","t"\n1,0,u\n',
    "newline-in-name": '"x\n1",y,t\n1,0,u\n',
    "ragged": "x,y,t\n1\n1,0,u\n1,0,u,9\n", "comment": "# made by hand\nx,y,t\n1,0,u\n",
    "sep-line": "sep=;\nx;y;t\n1;0;u\n",
    "windows": CSV.replace("\n", "\r\n"), "old-mac": CSV.replace("\n", "\r"),
    "mixed-ends": "x,y,t\r\n1,0,u\n2,1,v\r\n",
    "lf-cr": CSV.replace("\n", "\n\r"), "semicolons": CSV.replace(",", ";"), "tabs": CSV.replace(",", "\t"),
    "bars": CSV.replace(",", "|"), "spaces-between": CSV.replace(",", " "),
    "two-delimiters": "x,a;b,y,t\n1,2;3,0,u\n",
    "quoted-end": 'x,y,t\n"a\r\nb",0,u\n', "unclosed": 'x,y,t\n"a,0,u\n1,1,v\n', "stray": 'x,y,t\n5" pipe,0,u\n',
    "nul": "x,y,t\n1\x00,0,u\n", "control-z": CSV + "\x1a", "form-feed": CSV + "\f",
    "html": "<html><body>404</body></html>",
    "json": json.dumps([{"x": 1, "y": 0, "t": "u"}]), "xml": "<?xml version='1.0'?><a/>",
    "one-label": "x,y,t\n1,0,u\n2,0,v\n",
    "no-label": "x,y,t\n1,,u\n2,NA,v\n", "no-task": "x,y,t\n1,0,\n",
    "label-text": "x,y,t\n1,yes,u\n2,no,v\n3,Yes,u\n",
    "three-labels": "x,y,t\n1,a,u\n2,b,v\n3,c,u\n", "label-real": "x,y,t\n1,0.25,u\n2,17.5,v\n3,-2,u\n",
    "long-line": "x,y,t\n"
    + "9" * 3_000_000 + ",0,u\n", "many-quotes": "x,y,t\n" + '"' * 5_000 + ",0,u\n",
    "same-rows": "x,y,t\n" + "1,0,u\n" * 3_000,
}  # fmt: skip
"""CSV files."""
LINES = {
    "vw": ["", "|", "1", "1 |", "1 |f", "a |f x", "1 |f x:", "1 |f :1", "1 |f x:nan", "1 -1 |f x", "|f x",
    "1 |f x\r", "\x00",
           "1 |t u |f é:1", "1 'tag |t u |f x", "1 2.5 tag|t u |f x", "1e400 |f x", "1 |t u |f " + "w " * 20_000],
    "libsvm": ["", "1", "1 1:1", "1 qid:u 1:1", "1 2:1 1:1", "1 1:1 1:1", "1 0:1", "1 -1:1", "1 1:", "1 :1",
    "1 1:inf", "x 1:1",
               "1 4294967296:1", "# only a comment", "1 qid: 1:1", "\ufeff1 1:1", "1 1:1 # note", "1,1:1",
               "1 qid:u " + "9" * 400],
    "ndjson": ["", "{}", "[]", "[1]", "null", "1", '"a"', "{", '{"y":0}', '{"x":{"a":1},"y":0,"t":"u"}',
    '{"x":[1],"y":0,"t":"u"}',
               '{"x":1,"x":2,"y":0,"t":"u"}', '{"y":0,"t":"u","x":1e999}', '{"y":true,"t":7}', '{"y":0,"t":null}',
               "{'y':0}",
               '{"y":0,"t":"\\ud800"}', '{"y":0,"t":"u"}{"y":1,"t":"v"}', '{"":1,"y":0,"t":"u"}',
               '{"y":0,"t":"u","x":' + "9" * 500 + "}"],
}  # fmt: skip
"""Single lines of the other text formats."""


NOISE = ["csv", "ndjson", "vw", "libsvm", "parquet", "csv.gz"]


class Odd(NamedTuple):
    """A file, how it is asked to be read, and how many good rows it has, if that is certain."""

    name: str
    path: Any
    options: dict[str, Any]
    rows: int | None = None


def odd_files(folder: Path) -> Iterator[Odd]:
    """All of them, written into a folder."""
    yield from _texts(folder)
    yield from _tables(folder)
    yield from _places(folder)
    rng = random.Random(0)  # any bytes at all, and good files with holes
    for i, ending in enumerate(NOISE * 4):
        path = folder / f"noise-{i}.{ending}"
        path.write_bytes(rng.randbytes(rng.randrange(1, 3_000)))
        yield Odd(path.name, path, COLUMNS if ending.split(".")[0] in ("csv", "ndjson", "parquet") else {})
    for i in range(12):
        data = bytearray(CSV.encode())
        data[rng.randrange(len(data))] = rng.randrange(256)
        path = folder / f"flipped-{i}.csv"
        path.write_bytes(data)
        yield Odd(path.name, path, COLUMNS)


def _texts(folder: Path) -> Iterator[Odd]:
    for i, value in enumerate(VALUES):
        quoted = '"' + value.replace('"', '""') + '"'
        path = folder / f"value-{i}.csv"
        path.write_text("x,y,t\n" + f"{quoted},0,u\n{quoted},1,v\n" * 3, newline="")
        yield Odd(path.name, path, COLUMNS)
    for name, text in TEXTS.items():
        path = folder / f"{name}.csv"
        path.write_text(text, newline="")
        yield Odd(path.name, path, COLUMNS, ROWS if text.replace("\r", "").replace(";", ",") == CSV else None)
    for encoding in ENCODINGS:
        path = folder / f"{encoding}.csv"
        path.write_bytes("x,c,y,t\n1,naïve,0,u\n2,b,1,v\n".encode(encoding, "replace"))
        yield Odd(path.name, path, COLUMNS)
    for ending, lines in LINES.items():
        for i, line in enumerate(lines):
            path = folder / f"line-{i}.{ending}"
            path.write_text(f"{line}\n", newline="")
            yield Odd(path.name, path, COLUMNS if ending == "ndjson" else {})
    (folder / "wide.csv").write_text(",".join(f"x{i}" for i in range(10**6)) + "\n")
    yield Odd("a million columns", folder / "wide.csv", COLUMNS)
    (folder / "some.csv").write_text(",".join(["y", *(f"x{i}" for i in range(2_000))]) + "\n" + "1," * 2_000 + "1\n")
    yield Odd("2,000 columns", folder / "some.csv", {"label": "y"}, 1)


def _tables(folder: Path) -> Iterator[Odd]:
    good = {"x": [1.0, 2.0], "y": [0, 1], "t": ["u", "v"]}
    kinds = {
        "list": [[1], [2]], "struct": [{"a": 1}, {"a": 2}], "binary": [b"a", b"b"], "null": [None, None],
        "inf": [1e300, float("inf")],
        "text": ["a b c", "d e f"], "iso": ["2013-01-31", "2013-02-01"], "huge": ["z" * 10**6, ""],
    }  # fmt: skip
    frames = {name: pl.DataFrame({**good, "x": values}) for name, values in kinds.items()}
    frames["category"] = pl.DataFrame(good).with_columns(pl.col("t").cast(pl.Categorical))
    frames["time"] = pl.DataFrame(good).with_columns(x=pl.lit("10:30").str.to_time("%H:%M"))
    frames["duration"] = pl.DataFrame(good).with_columns(x=pl.duration(hours=1))
    frames["decimal"] = pl.DataFrame(good).with_columns(pl.col("x").cast(pl.Decimal(10, 2)))
    frames["no-rows"] = pl.DataFrame(good).head(0)
    for name, frame in frames.items():
        for ending in ("parquet", "arrow"):
            path = folder / f"{name}.{ending}"
            frame.write_parquet(path) if ending == "parquet" else frame.write_ipc(path)
            yield Odd(path.name, path, COLUMNS)
    data = (folder / "text.parquet").read_bytes()
    for size in (0, 4, len(data) // 2, len(data) - 1):
        (folder / f"cut-{size}.parquet").write_bytes(data[:size])
        yield Odd(f"cut-{size}.parquet", folder / f"cut-{size}.parquet", COLUMNS)


def _places(folder: Path) -> Iterator[Odd]:
    for ending, pack in PACKERS.items():
        whole = pack((CSV + "7,green,1,w\n" * 20_000).encode())
        for size in (0, 5, len(whole) // 2, len(whole) - 1, len(whole)):
            path = folder / f"cut-{size}.csv.{ending}"
            path.write_bytes(whole[:size])
            yield Odd(path.name, path, COLUMNS, ROWS + 20_000 if size == len(whole) else None)
        (folder / f"renamed-{ending}.csv").write_bytes(whole)
        yield Odd(f"{ending} without its ending", folder / f"renamed-{ending}.csv", COLUMNS, ROWS + 20_000)
    for names in ([], ["a.csv"], ["a.csv", "b.csv"]):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name in names:
                archive.writestr(name, CSV)
        (folder / f"{len(names)}.csv.zip").write_bytes(buffer.getvalue())
        yield Odd(f"zip of {len(names)}", folder / f"{len(names)}.csv.zip", COLUMNS, len(names) * ROWS or None)
    for name in ("folder", "folder.csv", "hidden"):
        (folder / name).mkdir()
    (folder / "hidden" / ".a.csv").write_text(CSV)
    (folder / "folder.csv" / "a.csv").write_text(CSV)
    os.symlink(folder / "nowhere", folder / "dangling.csv")
    os.symlink("loop.csv", folder / "loop.csv")
    (folder / "plain.csv").write_text(CSV)
    (folder / "link.csv").symlink_to(folder / "plain.csv")
    (folder / "no-ending").write_text(CSV)
    (folder / "[1].csv").write_text(CSV)
    (folder / "secret.csv").write_text(CSV)
    for name, rows in [("folder", None), ("folder.csv", ROWS), ("hidden", None), ("dangling.csv", None),
                       ("loop.csv", None),
                       ("link.csv", ROWS), ("no-ending", None), ("[1].csv", ROWS), ("missing.csv", None),
                       ("*.nothing", None),
                       ("plain.csv/", None), ("plain.csv/a.csv", None)]:  # fmt: skip
        yield Odd(name, f"{folder}/{name}", COLUMNS, rows)
    yield Odd("no files", [], COLUMNS)
    yield Odd("a null byte", f"{folder}/a\x00.csv", COLUMNS)
    yield Odd("two formats", [folder / "plain.csv", folder / "text.parquet"], COLUMNS)
    yield Odd("other columns", [folder / "plain.csv", folder / "one-column.csv"], COLUMNS)
    for ending in ("csv", "parquet", "csv.gz"):
        fifo = folder / f"fifo.{ending}"
        os.mkfifo(fifo)
        content = CSV.encode() if ending == "csv" else gzip.compress(CSV.encode())
        threading.Thread(target=_feed, args=(fifo, content), daemon=True).start()
        yield Odd(f"FIFO {ending}", fifo, COLUMNS, None if ending == "parquet" else ROWS)


def _feed(fifo: Path, content: bytes) -> None:
    with open(fifo, "wb", buffering=0) as pipe:
        try:
            pipe.write(content)
        except BrokenPipeError:
            return
