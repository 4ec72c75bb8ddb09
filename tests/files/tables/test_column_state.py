"""Odd values of a column leave the others as they are, and a column that changes is followed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score
from tests.files.conftest import Whole

from shoal import HedgedSharing
from shoal.files import TableEncoder, open_stream
from shoal.files.tables.encoder import StreamEncoder

Z = np.random.default_rng(0).normal(size=16_000)
LATER = np.arange(len(Z)) >= 4_000


def sentinel(share: float, value: float) -> np.ndarray:
    return np.where(np.random.default_rng(1).random(len(Z)) < share, value, Z)


def with_odd(value: float, *rows: int) -> np.ndarray:
    found = Z.copy()
    found[[*rows]] = value
    return found


STREAMS: dict[str, np.ndarray] = {
    "one in the middle": with_odd(99_999.0, 1_000),
    "one in the second row": with_odd(1e12, 1),
    "one in the sixth row": with_odd(-1e150, 5),
    "the tenth and eleventh row": with_odd(1e12, 9, 10),
    "fifty in a row": with_odd(99_999.0, *range(1_000, 1_050)),
    "one in fifty": sentinel(0.02, -999.0),
    "one in thirty": sentinel(0.03, 1e9),
    "missing values and odd ones": np.where(np.arange(len(Z)) % 3 == 0, np.nan, sentinel(0.01, 1e6)),
    "whole numbers": np.round(20 * with_odd(99_999.0, 1_000)),
    "constant, then it moves": np.where(LATER, 7.0 + 0.001 * Z, 7.0),
    "constant but one, then it moves": np.where(LATER, Z, np.where(np.arange(len(Z)) == 500, 99_999.0, 0.0)),
    "to a millionth": np.where(LATER, Z, 1e6 * Z),
    "to a million": np.where(LATER, 1e6 * Z, Z),
    "another level": np.where(LATER, 1e6 + Z, Z),
}


def encode(values: np.ndarray, chunk: int, half: Callable[[StreamEncoder], StreamEncoder] = lambda e: e) -> np.ndarray:
    """The column as a feature; after half of the chunks `half` is done to the encoder."""
    frame = pl.DataFrame({"a": pl.Series(values).fill_nan(None)})
    encoder, found = StreamEncoder({"a": "numeric"}), []
    encoder.decide(frame.head(1_000))
    for start in range(0, frame.height, chunk):
        part = frame.slice(start, chunk)
        X = encoder.encode(encoder.read(part)[0], part.height)
        at = encoder.feature_names.index("a") if "a" in encoder.feature_names else 0
        found.append(X[:, at].toarray().ravel() if at else np.zeros(part.height))
        if start <= frame.height // 2 < start + chunk:
            encoder = half(encoder)
    return np.concatenate(found)


def twin(values: np.ndarray) -> list[float]:
    """The rules of `running`, a value at a time."""
    n = mean = m2 = deviation = previous = step = largest = steps = run = 0.0
    found = []
    for x in values.tolist():
        if math.isnan(x):
            found.append(0.0)
            continue
        moved = abs(x - previous) if n else 0.0
        limit = 10.0 * deviation if n >= 10 and deviation > 0 else math.inf
        delta = max(-limit, min(limit, x - mean))
        inner = max(-limit / 2, min(limit / 2, delta))
        is_odd = delta != x - mean
        n = (n if deviation > 0 else min(n, 100.0)) + 1.0
        m2 += inner * (inner - inner / n)
        mean += inner / n
        deviation = math.sqrt(m2 / n)
        z = (delta - inner / n) / deviation if deviation > 0 else 0.0
        if moved:
            steps += 1
            toward = step * (65 / 64 if moved > step else 64 / 65)
            step = moved if steps == 1 else min(step, moved) if steps <= 10 else toward
            largest = max(largest, step) if steps > 10 else step
        run = run + bool(moved) if is_odd else max(run - 1, 0)
        changed = run >= 50 or step < largest / 100
        if changed or (moved and steps == 100 and deviation > 30 * step):
            n, mean, m2, deviation, run, z = 1.0, x, 0.0, 0.0, 0.0, 0.0
            steps = 0 if changed else steps
        previous = x
        found.append(z)
    return found


def saved(encoder: StreamEncoder) -> StreamEncoder:
    return StreamEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))


@pytest.mark.parametrize(("n", "most"), [(9, math.inf), (10, 10.0)])
def test_rows_that_are_only_answered_are_clipped_as_those_that_are_learned(n: int, most: float) -> None:
    """At 10 deviations, as soon as 10 values have come."""
    learned, odd = np.resize([-1.0, 1.0], n), np.array([-50.0, 0.5, 50.0])
    encoder = StreamEncoder({"a": "numeric"})
    encoder.decide(pl.DataFrame({"a": learned}))
    encoder.encode(encoder.read(pl.DataFrame({"a": learned}))[0], n)
    X = encoder.encode(encoder.read(pl.DataFrame({"a": odd}), learns=False)[0], len(odd), learns=False)
    expected = np.clip((odd - learned.mean()) / learned.std(), -most, most)
    np.testing.assert_allclose(X[:, encoder.feature_names.index("a")].toarray().ravel(), expected, rtol=1e-12)


@pytest.mark.parametrize("name", STREAMS)
def test_odd_values_do_not_take_a_column_out(name: str) -> None:
    values = STREAMS[name]
    found = encode(values, 5_000)
    np.testing.assert_allclose(found, twin(values), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(encode(values, 997, saved), found)
    # Three thousand rows after the change, and at the latest then, the ordinary values have their scale again.
    usual = (np.arange(len(Z)) >= 7_000) & np.isfinite(values) & (np.abs(found) < 9)
    assert usual.sum() > 5_000
    assert np.corrcoef(Z[usual], found[usual])[0, 1] > 0.98
    assert 0.3 < found[usual].std() < 3
    assert np.abs(found).max() <= 11


def test_slow_or_heavy_tailed_columns_do_not_begin_anew() -> None:
    """A column that wanders, one with a daily rise, and prices keep what they know."""
    t = np.arange(len(Z))
    for values in (np.sin(t / 500) * 1e4 + Z, t % 1_000 + 0.1 * Z, np.exp(2 * Z), (Z > 2.5) * 1.0):
        mean, deviation = values[:8_000].mean(), values[:8_000].std()
        expected = (values - mean) / deviation
        found = encode(values, 5_000)
        usual = (t > 8_000) & (np.abs(expected) < (3 if np.ptp(values) > 1 else 15))
        assert np.corrcoef(found[usual], expected[usual])[0, 1] > 0.99
        assert 0.5 < found[usual].std() / expected[usual].std() < 4


@pytest.mark.parametrize(("value", "row"), [(99_999.0, 1_000), (1e12, 1_000), (1e12, 5)])
def test_one_odd_value_in_a_file_costs_hedged_sharing_nothing(value: float, row: int, tmp_path: Path) -> None:
    rng, n = np.random.default_rng(0), 4_000
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
    X[row, 0] = value
    path = tmp_path / "o.csv"
    pl.DataFrame({"t": [f"s{i % 3}" for i in range(n)], "a": X[:, 0], "b": X[:, 1], "y": y}).write_csv(path)
    learner = HedgedSharing(classes=[0, 1])
    chunks = list(open_stream(path, task="t", label="y"))
    found = np.concatenate([learner.test_then_train(chunk.X, chunk.y, chunk.task) for chunk in chunks])[2_000:]
    assert roc_auc_score(y[2_000:], found) > 0.999
    assert np.mean((found >= 0) != y[2_000:]) <= 0.01


def test_what_was_clipped_is_noted_and_saved(tmp_path: Path, whole: type[Whole]) -> None:
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path, odd in zip(paths, ([1_000, 1_200, 1_300], [1_000]), strict=True):
        values = with_odd(99_999.0, *odd)[:1_500]
        pl.DataFrame({"price": values, "y": np.arange(1_500) % 2}).write_csv(path)
    first = whole(open_stream(paths[0], label="y")).stream
    note = "column price: {} beyond 10 deviations, clipped ({})"
    assert first.notes[-1] == note.format("3 values", "the first in line 1,002")
    again = whole(open_stream(paths[1], state=json.loads(json.dumps(first.to_dict())))).stream
    assert again.notes[-1] == note.format("4 values", "the first in line 1,002")
    both = whole(open_stream(paths[::-1], label="y")).stream
    assert both.notes[-1] == note.format("4 values", f"the first in {paths[1]}, line 1,002")
    encoder = TableEncoder().fit(pl.read_csv(paths[1], columns=["price"]))
    assert encoder.notes_[-1] == note.format("1 value", "in row 1,001")
    assert np.abs(encoder.transform([{"price": 1e12}]).data).max() == 10


def test_one_date_far_ahead_is_a_date(tmp_path: Path, whole: type[Whole]) -> None:
    days = pl.date_range(pl.date(2013, 1, 1), pl.date(2016, 1, 1), eager=True).to_list()
    days[100] = days[100].replace(year=9999)
    frame = pl.DataFrame({"when": days, "y": [i % 2 for i in range(len(days))]})
    for name, write in (("a.csv", frame.write_csv), ("a.parquet", frame.write_parquet)):
        write(tmp_path / name)
        found = whole(open_stream(tmp_path / name, label="y", time="when", sort=True))
        assert found.y[-1] == 0
        assert found.column("when.month=4")[-1] == 1
        with pytest.raises(ValueError, match=r"(line 103|row 102): when .* is earlier"):
            list(open_stream(tmp_path / name, label="y", time="when"))
