"""Makes tables as they come from desks in Germany, Japan and elsewhere, all of the same sales."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np

DAY = dt.date(2025, 1, 30)
ROWS = 1_500
Sale = tuple[str, dt.date, float, float, int]


def sales() -> list[Sale]:
    """Shop, day, price, temperature and whether it sold out: by the price, and in the first shop on Saturdays."""
    rng, rows = np.random.default_rng(4), []
    for i in range(ROWS):
        shop, day = int(rng.integers(6)), DAY + dt.timedelta(days=i // 4)
        price, degrees = round(float(rng.uniform(0.5, 9.5)), 2), round(float(rng.normal(9, 6)), 1)
        score = price - 5 + 4 * (shop == 0 and day.isoweekday() == 6)
        rows.append((f"{shop}", day, price, degrees, int(score + rng.normal(0, 0.3) > 0)))
    return rows


def comma(number: str) -> str:
    return number.replace(".", ",")


def german(path: Path, *, encoding: str = "cp1252") -> Path:
    """Semicolons, decimal commas, `31.12.2025` and Windows-1252, as the accounts department exports it."""
    lines = [
        ";".join([f"Größe {shop}", f"{day:%d.%m.%Y}", comma(f"{price:.2f}"), comma(f"{degrees:.1f}"), str(sold)])
        for shop, day, price, degrees, sold in sales()
    ]
    path.write_bytes("\r\n".join(["Filiale;Datum;Preis;Temperatur;Ausverkauft", *lines, ""]).encode(encoding))
    return path


def japanese(path: Path) -> Path:
    """Commas, dates such as 2025年1月30日 and Shift-JIS."""
    lines = [
        f"{shop}号店,{day.year}年{day.month}月{day.day}日,{price:.2f},{degrees:.1f},{'はい' if sold else 'いいえ'}"
        for shop, day, price, degrees, sold in sales()
    ]
    path.write_bytes("\r\n".join(["店舗,日付,価格,気温,売切れ", *lines, ""]).encode("shift_jis"))
    return path


def excel(path: Path) -> Path:
    """What a German Excel saves: a line `sep=;`, a byte order mark, errors such as #N/A and decimal commas."""
    lines = [
        ";".join(
            [
                shop,
                f"{day:%d.%m.%Y}",
                "#N/A" if i % 40 == 7 else comma(f"{price:.2f}"),
                comma(f"{degrees:.1f}"),
                "WAHR" if sold else "FALSCH",
            ]
        )
        for i, (shop, day, price, degrees, sold) in enumerate(sales())
    ]
    text = "\r\n".join(["sep=;", "Filiale;Datum;Preis;Temperatur;Ausverkauft", *lines, ""])
    path.write_bytes(text.encode("utf-8-sig"))
    return path


def english(path: Path) -> Path:
    """The same with commas, points and dates of ISO 8601."""
    lines = [f"{shop},{day},{price:.2f},{degrees:.1f},{sold}" for shop, day, price, degrees, sold in sales()]
    path.write_text("\n".join(["Filiale,Datum,Preis,Temperatur,Ausverkauft", *lines, ""]))
    return path
