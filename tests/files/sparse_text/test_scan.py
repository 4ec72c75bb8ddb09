"""The compiled scans equal the Python parsers line by line, on any text, cut anywhere."""

from __future__ import annotations

import struct
import tempfile
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from tests.files.conftest import Whole

from shoal.engine.compile import kernel
from shoal.files import BadRow, open_stream
from shoal.files.encodings import no_text
from shoal.files.ids import id_of
from shoal.files.sparse_text.libsvm import LARGEST_INDEX, index_names
from shoal.files.sparse_text.names import Names
from shoal.files.sparse_text.numbers import FAILED, MOST_DIGITS, read_number

TOKENS = {
    "vw": [
        "1",
        "-1",
        "0",
        "+1.0",
        "|",
        "|t",
        "|t u",
        "|t v:2",
        "|f",
        "|f:2",
        "|:0.5",
        " a",
        " b:1.5",
        " b:-2e-3",
        " a:1",
        " t^a",
        " 'tag",
        "'tag",
        " :3",
        " c:",
        " d:x",
        "|u^",
        " été:1",
        " x\u00a0y",
        "\u2003",
        "\x1c",
        "\x0b",
        " 1_0",
        " e:1e400",
        " g:inf",
        " 3:0.1",
        ":",
        "^",
        "\x00",
        " h:0.30000000000000004",
        " i:-.5",
        " i:0.1234567",
        " i:123456789",
        " i:1.2.3",
        " eightlong:5.",
        " longer_than_eight_bytes",
        " of_eight_bytes_or_more:1",
        "|namespace_of_more:1e0 g",
        " j\x01k",
        "\x00",
        "|t",
    ],
    "libsvm": [
        "1",
        "-1",
        "0",
        "+1.0",
        " qid:u",
        " qid:v",
        " qid:",
        " 1:2",
        " 2:0.5",
        " 3:-1e-3",
        " 10:1",
        " 1:1",
        " 0:1",
        " -1:2",
        " +4:1",
        " 5:",
        " 6",
        " 7:x",
        "# note",
        "#",
        " 99999999999:1",
        " 70000:1",
        " 8:1_0",
        " 9:nan",
        " 11:1:2",
        " 00012:3",
        " \u0661:1",
        " 13:1\u00a0",
        "\x1f14:2",
        " 15:é",
        " qid",
        " 16:0.30000000000000004",
        " 1234567:-.5",
        " 12345678:0.1234567",
        " 0123456789:1",
        " 17:123456789#",
        " 18:1.2.3",
        " 19:1\x01",
        "\x00",
    ],
}  # fmt: skip
GOOD = {"vw": ["1 |t u |f a:2 b", "-1 |f c:0.5|t v"], "libsvm": ["1 qid:u 1:2 3:1", "-1 qid:v 2:0.5 # 9"]}
ENDS = ["\n", "\r\n", " \n", "\n\n"]


def texts(format: str) -> st.SearchStrategy[bytes]:
    """Lines: good ones, good ones with something more, and anything at all."""
    tokens = st.lists(st.sampled_from(TOKENS[format]), max_size=6).map("".join)
    good = st.sampled_from(GOOD[format])
    line = st.one_of(
        good, good, st.tuples(good, tokens).map("".join), st.tuples(st.just("1"), tokens).map("".join), tokens
    )
    raw = st.one_of(line.map(str.encode), line.map(str.encode), st.binary(max_size=9))
    pieces = st.tuples(raw, st.sampled_from(ENDS)).map(lambda pair: pair[0] + pair[1].encode())
    return st.tuples(st.lists(pieces, max_size=20), raw).map(lambda pair: b"".join(pair[0]) + pair[1])


def read(path: Path, **options: Any) -> tuple[Any, ...]:
    """Chunks (their parts as lists), what was skipped, the error and the names."""
    chunks, error = [], None
    stream = open_stream(path, **options)
    try:
        for X, y, task, *_ in stream:
            fresh = csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
            assert fresh.has_canonical_format
            parts = (X.shape, X.indptr.tolist(), X.indices.tolist(), X.data.tobytes(), y.tobytes())
            chunks.append((parts, None if task is None else task.tolist()))
    except BadRow as bad:
        error = str(bad)
    return chunks, error, stream.skipped, stream.bad_rows, stream.feature_names, stream.to_dict()


def by_python(path: Path, **options: Any) -> tuple[Any, ...]:
    """The same by the parsers alone, with SciPy adding up repeats."""
    stream: Any = open_stream(path, **options)
    stream.close()
    reader, labels, bad = stream._reader, stream._labels, stream._bad
    names: dict[str, int] = {}
    rows: list[Any] = []
    chunks, error, width = [], None, 0
    zero: int | None = None

    def chunk() -> None:
        nonlocal width, rows, zero
        indices: list[int] = []
        for row in rows:
            if 0 in row.features and zero is None:
                zero = max(width, max(indices, default=-1) + 1)
            for i in row.features:
                number = i if isinstance(i, int) else names.setdefault(i, len(names)) + 1
                indices.append(number - 1 + (number > zero) if number and zero is not None else number - 1)
                indices[-1] = zero if number == 0 and zero is not None else indices[-1]
        width = max(width, len(names), max(indices, default=-1) + 1)
        indptr = np.cumsum([0, *(len(row.features) for row in rows)])
        X = csr_matrix(
            ([v for row in rows for v in row.values], indices, indptr), shape=(len(rows), width), dtype=float
        )
        X.sum_duplicates()
        parts = (
            X.shape,
            X.indptr.tolist(),
            X.indices.tolist(),
            X.data.tobytes(),
            np.array(labels.classes)[labels.codes([str(id_of(row.label)) for row in rows])].tobytes(),
        )
        chunks.append((parts, None if rows[0].task is None else [row.task for row in rows]))
        rows = []

    text = Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf")
    try:
        for number, line in enumerate(text.split(b"\n"), 1):
            try:
                row = reader.parse(line.decode())
                label = "" if row is None else str(id_of(row.label))
                if row is not None and labels.codes([label]) == [-1]:
                    raise ValueError(labels.unexpected(label))
            except UnicodeDecodeError as why:
                bad.report(number, no_text(line, why))
            except BadRow:
                raise
            except ValueError as why:
                bad.report(number, str(why))
            else:
                if row is not None:
                    rows.append(row)
                if len(rows) == options["chunk_rows"]:
                    chunk()
        if rows:
            chunk()
    except BadRow as why:
        error = str(why)
    found = list(names) if names else index_names(width, zero) if str(path).endswith("libsvm") else []
    features = {"width": width, "zero": zero} if str(path).endswith("libsvm") else {"names": found}
    family = str(path).rpartition(".")[2]
    state = {"family": family, "labels": labels.to_dict(), "reader": features}
    return chunks, error, bad.count, bad.messages, found, state


@pytest.mark.parametrize("task", [None, "the task"])
@pytest.mark.parametrize("format", ["vw", "libsvm"])
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_scan_equals_parser(format: str, task: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    task = {"vw": "t", "libsvm": "qid"}[format] if task else None
    with tempfile.TemporaryDirectory() as folder:
        files = (Path(folder, f"{i}.{format}") for i in count())

        @given(text=texts(format), chunk_rows=st.sampled_from([1, 3, 100]), block=st.sampled_from([1, 7, 64, 1 << 20]),
               skip=st.booleans())  # fmt: skip
        @example(text=b"\xef\xbb\xbf1 |t u |f a", chunk_rows=3, block=64, skip=True)
        @example(text=b"1 1 |t u |f a 'b\r\n\xff\n-1 |t \xc3\xa9|f \xc3\xa9:2", chunk_rows=3, block=64, skip=True)
        def check(text: bytes, chunk_rows: int, block: int, skip: bool) -> None:
            monkeypatch.setattr("shoal.files.source.BLOCK", max(block, 3))  # a byte order mark comes in one piece
            path = next(files)
            path.write_bytes(text)
            if text.startswith((b"\xff\xfe", b"\xfe\xff")):
                return
            options = {"task": task, "chunk_rows": chunk_rows, "skip_bad": skip, "encoding": "utf-8"}
            assert read(path, **options) == by_python(path, **options)
            path.unlink()

        check()


@pytest.mark.parametrize("format", ["vw", "libsvm"])
def test_capacities_grow(format: str, tmp_path: Path, whole: type[Whole]) -> None:
    rng = np.random.default_rng(3)
    rows = [
        (int(y), int(task), (rng.choice(100_000, n, replace=False) + 1).tolist(), rng.normal(size=n).tolist())
        for y, task, n in zip(
            rng.choice([-1, 1], 40), rng.integers(0, 2_000, 40), rng.integers(0, 6_000, 40), strict=True
        )
    ]
    path = tmp_path / f"a.{format}"
    head = {"vw": "{} |t {} |f ", "libsvm": "{} qid:{} "}[format]
    lines = [
        head.format(y, k) + " ".join(f"{i}:{v!r}" for i, v in zip(columns, values, strict=True))
        for y, k, columns, values in rows
    ]
    path.write_text("\n".join(lines))
    found = whole(open_stream(path, task={"vw": "t", "libsvm": "qid"}[format], chunk_rows=30))
    assert found.task.tolist() == [str(k) for _, k, _, _ in rows]
    names = found.stream.feature_names
    for x, (_, _, columns, values) in zip(found.X, rows, strict=True):
        told = {names[j].removeprefix("f^"): value for j, value in zip(x.indices, x.data, strict=True)}
        assert told == {str(i): v for i, v in zip(columns, values, strict=True)}
    assert found.y.tolist() == [y for y, *_ in rows]


@kernel(entry=True, allocates=True, inline=False, sums="exact")
def _read(data: np.ndarray) -> Any:
    return read_number(data, 0, len(data))


def digits(most: int) -> st.SearchStrategy[str]:
    return st.text("0123456789", min_size=0, max_size=most)


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.tuples(st.sampled_from(["", "-", "+"]), digits(25), st.sampled_from(["", "."]), digits(25),
              st.sampled_from(["", "e", "E-", "e+"]), digits(3)).map("".join),
    # Half way between two doubles, and next to it.
    st.tuples(st.integers(2**52, 2**53 - 1), st.integers(0, 11), st.integers(-1, 1)).map(
        lambda m: f"{(2 * m[0] + 1) * 5**m[1] + m[2]}e-{m[1]}"),
)  # fmt: skip


@given(NUMBERS)
@example("9007199254740993")
@example("1e23")
@example("8.41e+21")
@example("9007199254740992.000000000000000000000000001")
def test_numbers_are_those_of_python(text: str) -> None:
    end, value = _read(np.frombuffer(text.encode() or b"x", np.uint8))
    if end == len(text.encode()) and end > 0:
        assert struct.pack("d", value) == struct.pack("d", float(text))
    else:
        assert end == FAILED or not _is_number(text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@given(st.lists(st.floats(1e-290, 1e290).map(repr), min_size=1))
def test_what_repr_writes_needs_no_python(texts: list[str]) -> None:
    # Python is asked where 128 bits do not tell; that must be rare, or the fast path is none.
    failed = sum(_read(np.frombuffer(text.encode(), np.uint8))[0] == FAILED for text in texts)
    assert failed == 0


@given(st.lists(st.text(max_size=5), max_size=200))
def test_names_are_numbered_as_a_dict_would(texts: list[str]) -> None:
    known: dict[str, int] = {}
    expected = [known.setdefault(text, len(known)) for text in texts]
    names = Names(texts[:20])
    assert names.numbers(texts).tolist() == expected
    assert names.texts(0, len(names)) == list(known)


@pytest.mark.parametrize("n", [1, 15, 16, 18, 19, 20, 21, 40])
def test_numbers_of_as_many_digits_as_64_bits_hold(n: int) -> None:
    for digits in ("9" * n, "1" + "0" * (n - 1), "1844674407370955161618446744073709551616"[:n]):
        for text in (
            digits,
            f"0.{digits}",
            f"{digits[0]}.{digits[1:]}",
            f"000{digits}e-22",
            f"{digits}e22",
            f"-{digits}e23",
        ):
            end, value = _read(np.frombuffer(text.encode(), np.uint8))
            assert end in (len(text), FAILED)
            assert end == FAILED or struct.pack("d", value) == struct.pack("d", float(text))
            assert end == len(text) or n > MOST_DIGITS


@pytest.mark.parametrize(
    "text",
    ["9007199254740991", "9007199254740992", "9007199254740993e22", "1e-342", "1e308", "1.7976931348623157e308",
     "5e-324", "4.9e-324", "2.2250738585072014e-308"],
)  # fmt: skip
def test_numbers_at_the_ends_of_float64(text: str) -> None:
    end, value = _read(np.frombuffer(text.encode(), np.uint8))
    assert end == FAILED or struct.pack("d", value) == struct.pack("d", float(text))


@pytest.mark.parametrize(
    ("index", "good"),
    [(0, True), (1, True), (2**31 - 2, True), (LARGEST_INDEX, True), (LARGEST_INDEX + 1, False), (2**32 + 1, False),
     (10**10, False)],
)  # fmt: skip
@pytest.mark.parametrize("plain", [True, False])  # a bad number among the values takes the other parser
def test_indices_of_libsvm_at_their_limits(index: int, good: bool, plain: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.libsvm"
    path.write_text(f"1 {index}:{'2.5' if plain else '+2.5e+00'}\n-1 3:1\n")
    if good:
        [chunk] = open_stream(path)
        assert chunk.X.data.tolist() == [2.5, 1.0]
    else:
        with pytest.raises(BadRow, match=f"line 1: feature index {index}, expected 0 to {LARGEST_INDEX}"):
            list(open_stream(path))
