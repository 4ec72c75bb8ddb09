"""What a column means: numbers in disguise, decimal commas, dates of every format, times of day."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.files.conftest import Whole

from shoal.files import BadRow, FileStream, open_stream
from shoal.files.tables.column_kinds import Way, decide, form_of, hint, read, shown
from shoal.files.tables.encoder import StreamEncoder
from shoal.files.tables.values_in_text import LARGEST, Notation, are_times, date_parts, hours_of_day, instants, numbers


def stream_of(tmp_path: Path, values: list[Any], ending: str = "csv", **options: Any) -> FileStream:
    path = tmp_path / f"a.{ending}"
    table = pl.DataFrame({"x": values, "y": [float(i % 2) for i in range(len(values))]})
    table.write_csv(path) if ending == "csv" else table.write_parquet(path)
    return open_stream(path, label="y", **options)


DISGUISED: dict[str, tuple[list[str], dict[str, Any], list[Any]]] = {
    "numbers": (["$5", "$1,234.50", "-$3"], {"numeric": ["x"]}, [5, 1234.5, -3]),
    "numbers ": (["5 %", "12.5%", "7 %"], {"numeric": ["x"]}, [5, 12.5, 7]),
    "numbers  ": (["1,234", "2,000,000", "17"], {"numeric": ["x"]}, [1234, 2e6, 17]),
    "numbers   ": (["1.234,5 €", "2,5 €", "17"], {"numeric": ["x"], "decimal": ","}, [1234.5, 2.5, 17]),
    "numbers    ": (["1 234", "CHF 5", "7'000"], {"numeric": ["x"]}, [1234, 5, 7000]),
    "times of day": (["10:30", "9:05", "23:59:59"], {"date": ["x"]}, ["10", "9", "23"]),
}


@pytest.mark.parametrize("what", DISGUISED)
def test_a_disguise_is_named_with_the_option_that_reads_it(what: str, tmp_path: Path, whole: type[Whole]) -> None:
    values, options, expected = DISGUISED[what]
    with stream_of(tmp_path, values, **{k: v for k, v in options.items() if k == "decimal"}) as stream:
        note = stream.notes[0]
    assert f"looks like {what.strip()} such as {values[0]!r}, which {next(iter(options))}=['x'] would read" in note
    found = whole(stream_of(tmp_path, values, **options))
    names = found.stream.feature_names
    if "numeric" in options:
        x, seen = found.column("x"), np.array(expected)
        assert x[2] == pytest.approx((seen[2] - seen.mean()) / seen.std())
        assert "looks like" not in found.stream.notes[0]
    else:
        assert {f"x.hour={value}" for value in expected} == {name for name in names if ".hour" in name}


@pytest.mark.parametrize("value", ["1,23,4", "$", "12,34,567.8", "1.2.3", "five", "5€5%x"])
def test_what_is_no_number_even_for_people(value: str, tmp_path: Path) -> None:
    with pytest.raises(BadRow, match="line 3: column 'x' has"):
        list(stream_of(tmp_path, ["$5", value], numeric=["x"]))


@given(st.floats(-1e140, 1e140), st.sampled_from([".", ","]))
def test_decimal_marks(value: float, decimal: str) -> None:
    text = f"{value!r}".replace(".", decimal)
    found, bad = numbers(pl.Series([text]), Notation(decimal=decimal))
    assert (found.tolist(), bad.tolist()) == ([value], [])


def test_a_decimal_comma_is_one_everywhere(tmp_path: Path, whole: type[Whole]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x;w;y\n1,5;0,5;0,25\n2,5;1,5;-3\n")
    found = open_stream(path, label="y", weight="w", decimal=",", kind="regression")
    chunk = next(found)
    assert chunk.y.tolist() == [0.25, -3.0]
    assert chunk.weight.tolist() == [0.5, 1.5]
    assert found.feature_names == ["constant", "x"]
    path.write_text("x;y\n1.5;0\n2,5;1\n")
    with pytest.raises(BadRow, match=r"line 2: column 'x' has '1\.5'"):
        list(open_stream(path, label="y", decimal=",", numeric=["x"]))


MOMENT = datetime.datetime(2013, 5, 6, 17, 30)
DATES: dict[str, list[Any]] = {
    "iso strings": [MOMENT.isoformat(), "2013-12-31"],
    "datetimes": [MOMENT, datetime.datetime(2013, 12, 31)],
    "days": [MOMENT.date(), datetime.date(2013, 12, 31)],
}


@pytest.mark.parametrize("kind", DATES)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_dates_are_read_alike_in_every_format(kind: str, ending: str, tmp_path: Path, whole: type[Whole]) -> None:
    stream = whole(stream_of(tmp_path, DATES[kind], ending)).stream
    parts = [name for name in stream.feature_names if not name.startswith("x.hour")]
    assert parts == ["constant", "x.weekday=1", "x.month=5", "x.weekday=2", "x.month=12"]
    assert ("x.hour=17" in stream.feature_names) == (kind != "days")
    assert stream.notes == ["x: date, weekday, month and hour one-hot"]


def test_a_bad_date_form_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a date such as %d"):
        list(stream_of(tmp_path, ["31/01/2013", "2013/01/31"], date=["x"], date_format="%d/%m/%Y"))
    with pytest.raises(BadRow, match=r"line 3: .*expected a time of day such as 10:30"):
        list(stream_of(tmp_path, ["10:30", "25:00", *["11:15"] * 20], date=["x"]))


# The directives of chrono, which polars uses, by what they show: https://docs.rs/chrono/latest/chrono/format/strftime
SHOW_HOURS = set("HkIlTRXrcs+")
OTHERS = set("YCyqmbBhdeaAwuUWGgVjDxFvMSfpPZztn")
PADDED = [f"%{padding}{letter}" for letter in sorted(SHOW_HOURS | OTHERS) for padding in ("", "-", "_", "0")]
OTHER_FORMS = ["%.f", "%.3f", "%3f", "%:z", "%#z", "%%"]


@pytest.mark.filterwarnings("ignore::polars.exceptions.ChronoFormatWarning")
def test_every_directive_is_read_with_its_hour_or_the_form_is_refused() -> None:
    moments = pl.Series([datetime.datetime(2013, 5, 6, hour, 30, 20) for hour in (17, 8, 0)]).dt.replace_time_zone(
        "UTC"
    )
    read = set()
    for directive in (*PADDED, *OTHER_FORMS):
        for rest in ("", ":%M", ":%M %p"):
            form = f"%F {directive}{rest}"
            try:
                text = moments.dt.strftime(form.replace("%#z", "%z"))
                (weekday, month, hour), bad = date_parts(text, Notation(date_format=form))
                found = instants(text, Notation(date_format=form))[0]
            except (ValueError, pl.exceptions.PolarsError):
                continue
            read.add(directive)
            assert (weekday.to_list(), month.to_list(), bad.tolist()) == (["1"] * 3, ["5"] * 3, []), form
            shows = directive[-1] in SHOW_HOURS
            assert hour.to_list() == (["17", "8", "0"] if shows else [None] * 3), form
            assert np.diff(found).tolist() == ([-9 * 3600e6, -8 * 3600e6] if shows else [0, 0]), form
    assert {f"%{letter}" for letter in SHOW_HOURS | OTHERS - set("MSpP")} | {"%-l", "%_I", "%:z", "%#z", "%%"} <= read


@pytest.mark.parametrize(
    ("text", "form", "weekday", "hour"),
    [
        ("31/01/2013 00:30 +02:00", "%d/%m/%Y %H:%M %:z", "4", "0"),  # 22:30 of the day before, in UTC
        ("31/01/2013 00:30 +02", "%d/%m/%Y %H:%M %#z", "4", "0"),
        ("2013-01-31T23:30:00-05:00", "%+", "4", "23"),
        ("1359675000 +0000", "%s %z", "4", "23"),
        ("31/01/2013 12:30 AM", "%d/%m/%Y %l:%M %p", "4", "0"),
        ("31/01/2013 5:30:00 pm", "%d/%m/%Y %r", "4", "17"),
    ],
)
def test_the_hour_is_the_one_that_the_file_shows(text: str, form: str, weekday: str, hour: str) -> None:
    found, bad = date_parts(pl.Series([text, "?", "never"]), Notation(date_format=form))
    assert ([part.to_list() for part in found], bad.tolist()) == (
        [[weekday, None, None], ["1", None, None], [hour, None, None]],
        [2],
    )


def test_times_of_day_are_told_from_dates_by_their_form() -> None:
    for form, text, hour in (("%l:%M %p", "5:30 PM", "17"), ("%r", "05:30:00 AM", "5"), ("%X", "17:30:20", "17")):
        column, notation = pl.Series([text, "never"]), Notation(date_format=form)
        assert are_times(column, notation)
        found, bad = hours_of_day(column, notation)
        assert (found.to_list(), bad.tolist()) == ([hour, None], [1])
    for form in ("%A", "%c", "%x", "%v", "%+", "%s", "%C%y", "%q"):
        assert not are_times(pl.Series(["x"]), Notation(date_format=form)), form


@pytest.mark.parametrize("form", ["%d/%m/%Y %H", "%d/%m/%Y %0H", "%d/%m/%Y %l:%M", "%I:%M", "%H", "%F %Q", "%F %"])
def test_a_form_whose_hours_cannot_be_read_is_refused(form: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"date_format='.*' cannot be used: .*(hour|minute|directive)"):
        list(stream_of(tmp_path, ["31/01/2013 10", "31/01/2013 11"], date=["x"], date_format=form))


ZONES = st.sampled_from(["", "Z", "+02:00", "-0330", "+0545"])


@given(st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1)), ZONES, st.sampled_from("T "))
def test_instants_are_those_of_python(moment: datetime.datetime, zone: str, between: str) -> None:
    text = moment.isoformat(between) + zone
    expected = datetime.datetime.fromisoformat(text)
    expected = expected if zone else expected.replace(tzinfo=datetime.UTC)
    found, bad = instants(pl.Series([text, moment.date().isoformat(), "never"]), Notation())
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    assert found[0] == (expected - epoch) // datetime.timedelta(microseconds=1)
    assert bad.tolist() == [2]


# ---- at the limits -----------------------------------------------------------------------------------------------


def test_numbers_up_to_the_largest_and_beyond() -> None:
    beyond = float(np.nextafter(LARGEST, np.inf))
    for kind in (pl.Float64, pl.String):
        column = pl.Series([repr(LARGEST), repr(-LARGEST), repr(beyond), repr(-beyond), "0"]).cast(kind)
        assert numbers(column, Notation())[1].tolist() == [2, 3]
    dressed = pl.Series([f"${LARGEST:.0f}", f"${beyond:.0f}"])
    assert numbers(dressed, Notation(), lenient=True)[1].tolist() == [1]


@pytest.mark.parametrize(("odd", "kind"), [(0, "numeric"), (1, "numeric"), (2, "category")])
def test_a_tenth_of_the_values_may_be_no_numbers(odd: int, kind: str) -> None:
    assert decide(pl.Series(["1"] * (10 - odd) + ["x"] * odd), Notation()) == (kind, "")


@pytest.mark.parametrize(("values", "kind"), [
    (["a b c", "d e f", "g h i"], "text"), (["a b c", "d e f", "g h"], "category"),  # words: 3 a value, fewer
    (["a b c", "a b c"], "category"), (["a b c", "d b c"], "text"),  # half of the values differ, more
])  # fmt: skip
def test_texts_are_of_three_words_and_mostly_differ(values: list[str], kind: str) -> None:
    assert decide(pl.Series(values), Notation()) == (kind, "")


@pytest.mark.parametrize("letters", [57, 58, 59, 100])
def test_values_of_more_than_sixty_letters_are_cut(letters: int) -> None:
    """The quotes are two of them."""
    assert shown("x" * letters) == (repr("x" * letters) if letters <= 58 else "'" + "x" * 56 + "...")


def test_instants_of_dates_that_are_none() -> None:
    """No day of that number, letters behind it, no date at all, none."""
    found, bad = instants(
        pl.Series(["2013-01-31", "2013-02-30", "2013-01-31x", "x", None, "2013-01-31 06:00"]), Notation()
    )
    assert bad.tolist() == [1, 2, 3, 4]
    assert found[5] - found[0] == 6 * 3600 * 1e6


@pytest.mark.parametrize(
    ("value", "said"),
    [('{"a": 1}', "nested JSON"), ("$5", "numbers"), ("10:30", "times of day"), ("31/1/2013", "dates")],
)
def test_a_hint_needs_nine_tenths_of_the_values(value: str, said: str) -> None:
    assert f"looks like {said} such as" in hint(pl.Series([value] * 9 + ["x"]), Notation())
    assert hint(pl.Series([value] * 8 + ["x"] * 2), Notation()) == ""
    assert hint(pl.Series([None, ""]), Notation()) == ""


@pytest.mark.parametrize(
    ("name", "values", "is_one"),
    [
        ("id", range(20), True),
        ("mail_id", [f"{i * i}" for i in range(20)], True),
        ("orderId", [f"A-{i}" for i in range(20)], True),
        ("id", range(19), False),  # too few to tell
        ("id", [*range(19), 0], False),
        ("id", [*range(20), None], False),
        ("id", [f"{i}.5" for i in range(20)], False),
        ("paid", range(20), False),
        ("hour", range(20), False),
    ],
)
def test_an_id_of_rows_is_named_with_the_option_that_leaves_it_out(name: str, values: Any, is_one: bool) -> None:
    column = pl.Series(name, values)
    encoder = StreamEncoder()
    encoder.decide(column.to_frame())
    said = f"looks like an id of the rows, which ignore=['{name}'] does not learn"
    assert (said in encoder.notes()[0]) == is_one
    named = StreamEncoder({name: "category"})
    named.decide(column.to_frame())
    assert said not in named.notes()[0]


@pytest.mark.parametrize(("kind", "value"), [("numeric", "1"), ("date", "2013-01-31"), ("time", "6:30"), ("text", "a")])
def test_where_a_value_is_present(kind: Any, value: str) -> None:
    values, problems = read(pl.Series("x", [value, None, "?", value]), Way(kind), Notation())
    assert values.present.tolist() == [True, False, False, True]
    assert problems == []


@pytest.mark.parametrize(
    ("values", "decimal", "form"),
    [
        (["1", "2"], None, ","), (["1,5", "2"], None, ","), (["1.5", "2"], None, ""), ([], ".", ","),
        (["1", "2"], ".", ""), (["1", "2"], ",", ","), (["1.5"], ",", ","),
    ],
)  # fmt: skip
def test_a_known_decimal_comma_stays_if_the_sample_does_not_tell(
    values: list[str], decimal: str | None, form: str
) -> None:
    assert form_of("numeric", pl.Series(values, dtype=pl.String), Notation(decimal=decimal), ",") == form
