"""Values as JSON and arrays, and back exactly."""

from __future__ import annotations

import datetime
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from shoal.model import persistence

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary() | st.dates()
    | st.datetimes(),
    lambda inner: st.tuples(inner, inner) | st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def back(value: object, folder: Path) -> Any:
    arrays: persistence.Arrays = {}
    content = persistence.to_json(value, arrays, "value")
    persistence.write(folder / "file", {"content": content}, arrays)
    header, read = persistence.read(folder / "file")
    return persistence.from_json(header["content"], read)


def same_kinds(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple | list):
        return all(map(same_kinds, a, b))
    return all(same_kinds(a[k], b[k]) for k in a) if isinstance(a, dict) else True


@given(value=plain)
def test_plain_values_come_back_in_kind(value: object, tmp_path_factory: pytest.TempPathFactory) -> None:
    got = back(value, tmp_path_factory.mktemp("persistence"))
    assert got == value
    assert same_kinds(got, value)


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), -0.0, 1e-320, 0.1])
def test_floats_exactly(value: float, tmp_path: Path) -> None:
    assert np.float64(back(value, tmp_path)).tobytes() == np.float64(value).tobytes()
    assert np.isnan(back(float("nan"), tmp_path))


def test_numpy_scalars_become_plain(tmp_path: Path) -> None:
    values = (np.int64(3), np.float32(0.5), np.bool_(True), np.str_("a"))
    assert same_kinds(back(values, tmp_path), (3, 0.5, True, "a"))


@pytest.mark.parametrize(
    "array", [np.arange(6).reshape(2, 3), np.asfortranarray(np.eye(3)), np.zeros((0, 4)), np.array(True)]
)
def test_arrays(array: np.ndarray, tmp_path: Path) -> None:
    got = back({"a": array, "b": (array, array + 1)}, tmp_path)
    np.testing.assert_array_equal(got["a"], array)
    np.testing.assert_array_equal(got["b"][1], array + 1)
    assert got["a"].dtype == array.dtype


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse_matrices(form: str, tmp_path: Path) -> None:
    matrix = sp.random(4, 5, 0.4, random_state=0).asformat(form)
    got = back(matrix, tmp_path)
    assert got.format == form
    np.testing.assert_array_equal(got.toarray(), matrix.toarray())


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, np.array(["a"]), datetime.timedelta(1), 1j], ids=lambda v: type(v).__name__
)
def test_what_has_no_plain_form(value: object) -> None:
    with pytest.raises(ValueError, match=r"cannot save thing: a .* has no plain form"):
        persistence.to_json(value, {}, "thing")


def test_another_format_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistence, "FORMAT", 99)
    persistence.write(tmp_path / "file", {}, {"a": np.zeros(1)})
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"has format 99; this shoal reads"):
        persistence.read(tmp_path / "file")


def test_what_the_header_says_of_an_array_is_in_the_checksum(tmp_path: Path) -> None:
    """Swapped sizes, another type of as many bytes, another name, swapped places: the bytes of all are the same."""
    path = tmp_path / "file"
    arrays = {"wide": np.arange(6.0).reshape(2, 3), "tail": np.arange(6.0, 12.0).reshape(3, 2)}
    persistence.write(path, {"a": 1}, arrays)
    content = path.read_bytes()
    for old, new in (
        (b'"shape":[2,3]', b'"shape":[3,2]'), (b'"shape":[2,3]', b'"shape":[6,1]'),
        (b'"wide":{"dtype":"F64"', b'"wide":{"dtype":"I64"'),
        (b'"wide"', b'"wild"'), (b'\\"a\\": 1', b'\\"a\\": 2'),
    ):  # fmt: skip
        assert content.count(old) == 1
        path.write_bytes(content.replace(old, new))
        with pytest.raises(ValueError, match="does not match its checksum"):
            persistence.read(path)
    path.write_bytes(content)
    np.testing.assert_equal(persistence.read(path)[1], arrays)


FEATURES: dict[str, Any] = {"count": 2, "names": {"list": ["a", "b"]}, "open": True}


@pytest.mark.parametrize(
    "forged",
    [
        {"count": 3},
        {"count": 1},
        {"count": -1},
        {"count": 2.0},
        {"count": True, "names": {"list": ["a"]}},
        {"open": 1},
        {"names": {"tuple": ["a", "b"]}},
        {"names": {"list": ["a", "a"]}},
        {"names": {"list": ["a"]}},
        {"names": "ab"},
    ],
    ids=str,
)
def test_what_a_file_says_of_its_features(forged: dict[str, Any]) -> None:
    header = {"tasks": {"list": ["x"]}, "features": FEATURES, "labels": None, "learned": None}
    known = persistence.known_from(header, {})
    assert (known.features.count, known.features.names, known.features.is_open) == (2, {"a": 0, "b": 1}, True)
    for nameless in (0, 2):
        features = {"count": nameless, "names": None, "open": False}
        assert persistence.known_from(header | {"features": features}, {}).features.count == nameless
    with pytest.raises(ValueError, match="its n"):
        persistence.known_from(header | {"features": FEATURES | forged}, {})


@pytest.mark.parametrize("forged", [{"tuple": ["x"]}, {"list": ["x", "x"]}, "x"], ids=str)
def test_what_a_file_says_of_its_tasks(forged: Any) -> None:
    with pytest.raises(ValueError, match="its task ids are not different ids"):
        persistence.known_from({"tasks": forged, "features": FEATURES, "labels": None, "learned": None}, {})


def test_files_have_the_permissions_of_new_files(tmp_path: Path) -> None:
    persistence.write(tmp_path / "file", {}, {"a": np.zeros(1)})
    (tmp_path / "other").touch()
    assert stat.S_IMODE(os.stat(tmp_path / "file").st_mode) == stat.S_IMODE(os.stat(tmp_path / "other").st_mode)


def test_links_stay_links_and_devices_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    persistence.write(tmp_path / "link", {}, {"a": np.zeros(1)})
    assert (tmp_path / "link").is_symlink()
    assert persistence.read(tmp_path / "file")[1]["a"].shape == (1,)
    for place in (tmp_path, Path(os.devnull)):
        with pytest.raises(ValueError, match="not a regular file"):
            persistence.write(place, {}, {})
