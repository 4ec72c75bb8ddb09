"""Results and prepared data on disk, by content: a killed run continues, a second run is instant."""

import hashlib
import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_matrix, issparse

from shoal.datasets.dataset import Dataset
from shoal.datasets.files import cache_folder
from shoal.papers.cache.versions import version_of_function
from shoal.papers.data_sets import occurring
from shoal.papers.experiment import Data
from shoal.whole_file import whole_file, write_whole


def folder() -> Path:
    """`$SHOAL_CACHE`, else `~/.cache/shoal/results`."""
    given = os.environ.get("SHOAL_CACHE")
    return Path(given).expanduser() if given else cache_folder() / "results"


def digest(value: Any) -> str:
    """Hash of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def read(key: str) -> Any:
    """The result of that key, or None."""
    try:
        return json.loads(_path(key).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def write(key: str, result: Any) -> None:
    """Write a result whole or not at all."""
    content = json.dumps(result).encode()
    path = _path(key)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)


def _path(key: str) -> Path:
    return folder() / key[:2] / f"{key}.json"


@dataclass(frozen=True)
class Prepared:
    """A data set on disk, ready to load in any process."""

    path: str
    fingerprint: str  # of its content


def known(data: Data, quick: bool) -> Prepared | None:
    """The prepared data set, if it was prepared from the files as they are."""
    path = _data_path(data, quick)
    if not path.is_file():
        return None
    return Prepared(str(path), _said_of(path)["fingerprint"])


def _said_of(path: str | Path) -> dict[str, Any]:
    """The metadata in a prepared data set's file."""
    with safe_open(path, "numpy") as file:
        return dict(file.metadata())


def prepare(data: Data, quick: bool) -> Prepared:
    """Load it once, keep it, and say what its content is.

    Raises
    ------
    FileNotFoundError
        If its files are not there.
    """
    found = known(data, quick)
    if found is not None:
        return found
    loaded = data.load(**_load_options(data, quick))
    if quick and len(loaded) > data.quick_rows:
        loaded = occurring(loaded.interleaved(0).subset(slice(data.quick_rows)))
    arrays = _arrays(loaded)
    content = hashlib.sha256(loaded.kind.encode())
    for name, array in arrays.items():
        content.update(f"{name} {array.dtype.str} {array.shape}".encode() + array.tobytes())
    path, fingerprint = _data_path(data, quick), content.hexdigest()
    meta = {"fingerprint": fingerprint, "kind": loaded.kind, "name": data.name, "ids": loaded.task.dtype.str}
    arrays["task"] = _storable(arrays["task"])
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as part:
        save_file(arrays, part, meta)
    return Prepared(str(path), fingerprint)


def _load_options(data: Data, quick: bool) -> dict[str, Any]:
    return {**data.options, **(data.quick if quick else {})}


def _storable(ids: NDArray[Any]) -> NDArray[Any]:
    """Text as its code points: safetensors holds numbers only."""
    return ids.view(np.uint32) if ids.dtype.kind == "U" else ids


@lru_cache(maxsize=3)  # jobs of one data set come one after another
def load(prepared: Prepared) -> Dataset:
    """The data set, from disk.

    Not by `numpy.load`, which parses an array's header as Python: in several threads at once Python 3.11 may then
    stop with "AST constructor recursion depth mismatch" (github.com/python/cpython/issues/106905).
    """
    a, meta = load_file(prepared.path), _said_of(prepared.path)
    X: Any = csr_matrix((a["data"], a["indices"], a["indptr"]), shape=tuple(a["shape"])) if "indptr" in a else a["X"]
    names = tuple(map(str, range(X.shape[1])))
    return Dataset(meta["name"], X, a["y"], a["task"].view(meta["ids"]), names, "", meta["kind"])


def _arrays(data: Dataset) -> dict[str, Any]:
    X = data.X
    features = (
        {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
        if issparse(X)
        else {"X": X}
    )
    arrays = {**features, "y": data.y, "task": data.task}
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}  # it writes memory as it is


def _data_path(data: Data, quick: bool) -> Path:
    """Named by all that the content depends on: loader, options, and the files as they lie there."""
    rows = data.quick_rows if quick else None
    recipe = [version_of_function(data.load), _load_options(data, quick), rows, _files(data.folder)]
    return folder() / "data" / f"{data.load.__name__}-{digest(recipe)[:32]}.safetensors"


def _files(name: str) -> list[Any]:
    """Names, sizes and times of the data set's files."""
    if not name:
        return []
    roots = [Path(os.environ["SHOAL_DATA"]).expanduser()] if os.environ.get("SHOAL_DATA") else []
    for root in [*roots, cache_folder()]:
        if (root / name).is_dir():
            files = sorted(path for path in (root / name).rglob("*") if path.is_file())
            stats = [(path.relative_to(root).as_posix(), path.stat()) for path in files]
            return [[path, stat.st_size, stat.st_mtime_ns] for path, stat in stats]
    return []
