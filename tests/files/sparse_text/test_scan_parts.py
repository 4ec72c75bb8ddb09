"""The parts of the compiled scans, each against a line of Python: eight bytes at once, short numbers, names, order."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.compiled import from_python

from shoal.engine.compile import kernel
from shoal.files import open_stream
from shoal.files.sparse_text.bytes import (
    PADDING,
    SLACK,
    bytes_before,
    count_bytes,
    equal_bytes,
    load_word,
    repeated,
    smaller_bytes,
)
from shoal.files.sparse_text.names import Names, truncate
from shoal.files.sparse_text.numbers import FAILED, read_short, read_value
from shoal.files.sparse_text.reader import is_plain
from shoal.files.sparse_text.scan import FEW, ROWS, add_parsed_row, new_buffer, sort_keys, with_capacity

BAR = np.uint8(ord("|"))


@kernel(entry=True, allocates=True, inline=False, sums="exact")
def _first(data: np.ndarray, bytes_: Any) -> Any:
    word = load_word(data, 0)
    return count_bytes(bytes_before(equal_bytes(word, bytes_))), count_bytes(bytes_before(smaller_bytes(word, bytes_)))


@kernel(entry=True, allocates=True, inline=False, sums="exact")
def _read(data: np.ndarray) -> Any:
    return read_short(data, 0), read_value(data, 0, BAR)


@kernel(entry=True, allocates=True, inline=False, sums="exact")
def _truncate(table: Any, n: int) -> None:
    truncate(table, n)


def array(text: bytes) -> np.ndarray:
    return np.frombuffer(text + b"\n" * SLACK, np.uint8)


@given(st.binary(min_size=8, max_size=8) | st.lists(st.sampled_from(b" !:;|"), min_size=8, max_size=8).map(bytes),
       st.sampled_from(b"\x01 :|\x80"))  # fmt: skip
def test_the_first_of_eight_bytes(text: bytes, byte: int) -> None:
    places = [i for i in range(8) if text[i] == byte], [i for i in range(8) if text[i] < byte]
    assert _first(array(text), repeated(byte)) == tuple(min(found, default=8) for found in places)


@given(st.from_regex(r"-?[0-9./:e+]{0,10}[| ]?", fullmatch=True))
@example("-0")
@example("0.123456")
@example("-.1234567")
@example("123456789")
@example(".")
@example("1.2.3")
def test_short_numbers_are_those_of_python(text: str) -> None:
    token = text.rstrip("| ")
    short, value = _read(array(text.encode()))
    if re.fullmatch(r"-?(?=[.0-9]{1,8}$)([0-9]+\.?[0-9]*|\.[0-9]+)", token):
        assert short[0] == value[0] == len(token)
        assert struct.pack("d", short[1]) == struct.pack("d", value[1]) == struct.pack("d", float(token))
    elif value[0] != FAILED:
        assert (value[0], struct.pack("d", value[1])) == (len(token), struct.pack("d", float(token)))


def test_spaces_beyond_ascii_are_those_of_python() -> None:
    letters = [chr(code) for code in [*range(128, 0xD800), *range(0xE000, 0x11000)]]
    found = [letter for letter in letters if not is_plain(letter.encode() + PADDING)]
    assert found == [letter for letter in letters if letter.isspace()]
    assert not is_plain(b"\xff" + PADDING)


NAMES = st.text("ab^", min_size=1, max_size=20)


@given(st.lists(NAMES | st.text(max_size=12), max_size=100), st.lists(NAMES, max_size=100))
def test_truncated_names_leave_no_trace(texts: list[str], others: list[str]) -> None:
    names = Names(texts)
    n = len(names)
    names.numbers(others)
    _truncate(names.table, n)
    known = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    expected = [known.setdefault(text, len(known)) for text in reversed(others)]
    assert names.numbers(others[::-1]).tolist() == expected
    assert names.texts(0, len(names)) == list(known)


@given(NAMES, NAMES, NAMES)
def test_a_name_is_one_however_it_is_put_together(
    tmp_path_factory: pytest.TempPathFactory, first: str, second: str, third: str
) -> None:
    path = tmp_path_factory.mktemp("names") / "a.vw"
    whole = f"{first}^{second}^{third}"
    path.write_text(f"1 |{first} {second}^{third}\n1 |{first}^{second} {third}\n1 | {whole}\n2 |x {whole}\n")
    stream = open_stream(path, kind="regression")
    columns = [X.indices.tolist() for X, *_ in stream]
    assert columns == [[0, 0, 0, 1]]
    assert stream.feature_names == [whole, f"x^{whole}"]


@pytest.mark.parametrize("many", [1, 200])
def test_long_names_find_room(many: int, tmp_path: Path) -> None:
    space, names = "n" * 3_000, [f"{i}" + "b" * 5_000 for i in range(many)]
    path = tmp_path / "a.vw"
    path.write_text(f"1 |t {'k' * 9_000} |{space} {' '.join(names)}\n" * 2)
    stream = open_stream(path, task="t", kind="regression")
    rows = [(X.indices.tolist(), task.tolist()) for X, _, task, *_ in stream]
    assert rows == [(list(range(many)) * 2, ["k" * 9_000] * 2)]
    assert stream.feature_names == [f"{space}^{name}" for name in names]


@given(st.lists(st.integers(0, 50), max_size=3 * FEW) | st.permutations(range(25)), st.integers(0, 2))
def test_features_are_sorted_and_equal_ones_added_in_the_order_of_the_file(columns: list[int], rows: int) -> None:
    n, values = len(columns), np.arange(1, len(columns) + 1) / 7
    buffer = with_capacity(new_buffer(4, 0, 0), 2 * 3 * FEW + 2)
    for _ in range(rows):
        buffer.columns[buffer.ends[buffer.cursor[ROWS]]] = 7
        add_parsed_row(buffer, 1, 0.0, 0, 1.0)
    buffer.columns[rows : rows + n], buffer.values[rows : rows + n] = columns, values
    add_parsed_row(buffer, n, 0.0, 0, 1.0)
    expected: dict[int, float] = {}
    for column, value in zip(columns, values.tolist(), strict=True):
        expected[column] = expected[column] + value if column in expected else value
    end = int(buffer.ends[rows + 1])
    assert buffer.columns[:rows].tolist() == [7] * rows
    assert list(zip(buffer.columns[rows:end].tolist(), buffer.values[rows:end].tolist(), strict=True)) == sorted(
        expected.items()
    )


SORT_KEYS = from_python(sort_keys)


@given(st.lists(st.integers(0, 2**40), max_size=300, unique=True))
def test_keys_are_sorted(keys: list[int]) -> None:
    array = np.array([*keys, 0], np.int64)
    ordered = np.zeros_like(array)
    SORT_KEYS(array, len(keys), ordered)
    assert ordered.tolist() == [*sorted(keys), 0]
