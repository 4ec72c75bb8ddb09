"""The tables that README and docs use, made up: mails of inboxes, and days of shops."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

USERS, SHOPS = ("anna", "ben", "chloe", "david", "emma", "finn"), ("Berlin 4", "Bonn 1", "Jena 2", "Kiel 1", "Ulm 3")
OFFERS = ("free", "offer", "winner", "prize", "cheap", "credit", "click", "urgent", "discount")
WORK = ("meeting", "report", "lunch", "invoice", "draft", "minutes", "budget", "project", "tomorrow")
NAMES = {"mails.csv": 2_000, "more.csv": 500, "new.csv": 100, "sales.csv": 2_000, "tomorrow.csv": 50}  # rows


def write_samples(folder: str | Path) -> list[Path]:
    """Write the tables into a folder, which is made; files that are there stay as they are.

    Returns
    -------
    list of Path
        mails.csv, more.csv (a week later) and new.csv (without labels) are mails with a user and whether they are spam;
        sales.csv and tomorrow.csv are days of shops: price, promotion, day, units and whether all were sold.

    Raises
    ------
    FileExistsError
        If one of the files is there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = write_samples(folder)
    ...     print(*(path.name for path in paths), *paths[2].read_text().splitlines()[:1])
    mails.csv more.csv new.csv sales.csv tomorrow.csv id,user,subject,hour
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        if (folder / name).exists():
            raise FileExistsError(f"{folder / name} is there already; choose another folder")
    mails, sales = _mails(np.random.default_rng(0)), _sales(np.random.default_rng(1))
    written = []
    for name, n in NAMES.items():
        titles, rows = mails if name in ("mails.csv", "more.csv", "new.csv") else sales
        own, rows[:] = rows[:n], rows[n:]
        known = {"new.csv": 1, "tomorrow.csv": 2}.get(name, 0)  # columns at the end that nobody knows yet
        written.append(_write(folder / name, titles[: len(titles) - known], (row[: len(row) - known] for row in own)))
    return written


def _write(path: Path, titles: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([titles, *rows])
    return path


def _mails(rng: np.random.Generator) -> tuple[list[str], list[list[object]]]:
    """Spam has words of offers; of two users, one wants discounts and one no minutes."""
    rows: list[list[object]] = []
    for i in range(2_600):
        user, spam = rng.choice(USERS), rng.random() < 0.35
        words = [str(rng.choice(OFFERS if rng.random() < (0.7 if spam else 0.1) else WORK)) for _ in range(4)]
        if (user, "discount") == ("anna", words[0]) or (user, "minutes") == ("finn", words[0]):
            spam = user == "finn"
        rows.append([i, user, " ".join(words).capitalize(), int(rng.integers(24)), "yes" if spam else "no"])
    return ["id", "user", "subject", "hour", "spam"], rows


def _sales(rng: np.random.Generator) -> tuple[list[str], list[list[object]]]:
    """Shops differ in what a price and a promotion do."""
    taste = rng.normal(size=(len(SHOPS), 2)) * 0.5
    rows: list[list[object]] = []
    for i in range(2_050):
        shop, price, promotion = i % len(SHOPS), round(float(rng.uniform(1.5, 3.5)), 2), bool(rng.random() < 0.3)
        day = np.datetime64("2025-01-01") + i // len(SHOPS)
        mean = 20.0 - (4.0 + taste[shop, 0]) * (price - 2.5) + (6.0 + 4.0 * taste[shop, 1]) * promotion
        units = int(rng.poisson(max(mean, 1.0)))
        words = "yes" if promotion else "no"
        rows.append([i, SHOPS[shop], str(day), price, words, units, "yes" if units > 22 else "no"])
    return ["id", "shop", "day", "price", "promotion", "units", "sold_out"], rows
