"""Model files whose checksum is right and whose content is not: refused with one clear error, or harmless."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
from tests.batch.cases import BATCH
from tests.cases import LEARNERS, saved, stream_for, taught, values

import shoal
from shoal.model import persistence
from shoal.model_file import load_baselines, save_model

Forgery = tuple[str, dict[str, Any], dict[str, np.ndarray]]

ARRAYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "emptied": lambda a: a[:0] if a.ndim else a,
    "halved": lambda a: a[: len(a) // 2] if a.ndim else a,
    "doubled": lambda a: np.concatenate([a, a]) if a.ndim else a,
    "filled with -7": lambda a: np.full_like(a, -7) if a.dtype.kind in "if" else a,
    "filled with 2^40": lambda a: (
        np.full_like(a, 2 ** min(40, 8 * a.dtype.itemsize - 2)) if a.dtype.kind in "iuf" else a
    ),
    "filled with NaN": lambda a: np.full_like(a, np.nan) if a.dtype.kind == "f" else a,
    "of another type": lambda a: a.astype(np.int32 if a.dtype.kind == "f" else np.float32),
    "of another shape": lambda a: a[None],
    "of swapped sizes": lambda a: a.reshape(a.shape[::-1]) if a.shape != a.shape[::-1] else a,
}
VALUES: list[Any] = [None, -1, 10**9, 0, "abc", [], {}, 1.5, True, {"list": [1, 1]}, {"array": "nothing"}, [[[]]]]


def parts(content: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]["shoal"]
    return json.loads(header.partition(" ")[2]), load_arrays(content)


def forged(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    text = json.dumps(header)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return save_arrays(arrays, {"shoal": f"{persistence.checksum(text, arrays)} {text}"})


def fields(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places in a header, its leaves and what holds them."""
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from fields(value[key], (*path, key))
    elif isinstance(value, list):
        for i in range(min(len(value), 3)):
            yield from fields(value[i], (*path, i))


def forgeries(content: bytes) -> Iterator[Forgery]:
    header, arrays = parts(content)
    for name, array in arrays.items():
        for how, change in ARRAYS.items():
            with np.errstate(invalid="ignore"):  # infinities as integers
                other = change(array)
            if other is not array:
                yield f"{name} {how}", header, arrays | {name: other}
        yield f"{name} left out", header, {other: a for other, a in arrays.items() if other != name}
    yield "an array too many", header, arrays | {"state.more": np.zeros(3)}
    for path in fields(header):
        for value in VALUES:
            changed = copy.deepcopy(header)
            holder = changed
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = value
            yield f"header{list(path)} = {value!r}", changed, arrays


def attack(
    content: bytes,
    path: Path,
    use: Callable[[Any], None],
    load: Callable[[Path], Any] = shoal.load,
    of: str = "",
    every: int = 1,
) -> int:
    """Every forgery (of what has this in its name) is refused by one ValueError, or what loads can be used."""
    tried = 0
    for what, header, arrays in islice(forgeries(content), 0, None, every):
        if of not in what:
            continue
        tried += 1
        path.unlink(missing_ok=True)  # some file systems write a file that is cut to disk at once
        path.write_bytes(forged(header, arrays))
        model = None
        try:
            with suppress(ValueError):  # the one that names the file
                model = load(path)
            with suppress(ValueError, AttributeError):  # of other tasks or features than the rows
                use(model)
        except BaseException as error:
            error.add_note(what)
            raise
    return tried


def kinds_of_arrays(name: str) -> set[tuple[str, str, int]]:
    """Names, types and numbers of axes of what a learner's file holds."""
    _, arrays = parts(saved(taught(name, n_rows=30)))
    return {(each, array.dtype.str, array.ndim) for each, array in arrays.items()}


SAME_ARRAYS = ("HedgedSharing-", "HedgedSharingRegressor-")


@pytest.mark.parametrize("name", [name for name in LEARNERS if not name.startswith(SAME_ARRAYS)])
def test_forged_models(name: str, tmp_path: Path) -> None:
    """Of a setting whose file holds what the file of another one holds, every seventh forgery."""
    stream = stream_for(name, seed=3, n_rows=8)
    before = [*LEARNERS][: [*LEARNERS].index(name)]
    same = [each for each in before if each.partition("-")[0] == name.partition("-")[0]]
    every = 7 if any(kinds_of_arrays(each) == kinds_of_arrays(name) for each in same) else 1

    def use(model: Any) -> None:
        values(model, stream.X, stream.task)
        values(model, stream.sparse, np.full(len(stream.y), "nobody"))
        model.partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
        model.add_features(2)

    attack(saved(taught(name, n_rows=30)), tmp_path / "model", use, every=every)


@pytest.mark.parametrize("name", [name for name in BATCH if "Tasks" not in name])
def test_forged_batch_models(name: str, tmp_path: Path) -> None:
    stream = stream_for(name, seed=3, n_rows=30)
    learner = BATCH[name]().fit(stream.X, stream.y, stream.task)
    learner.save(tmp_path / "model")
    attack((tmp_path / "model").read_bytes(), tmp_path / "model", lambda model: model.predict(stream.X, stream.task))


@pytest.mark.parametrize("name", ["SparseMTL", "HedgedSharing", "ROMCO", "OSMTL"])
def test_arrays_of_swapped_sizes_are_refused(name: str, tmp_path: Path) -> None:
    """With a checksum that is right: no sum would find them later."""
    stream, path = stream_for(name, seed=3, n_rows=30), tmp_path / "model"
    learner = (BATCH | LEARNERS)[name]()
    learner.fit(stream.X, stream.y, stream.task).save(path)
    tried = 0
    for what, header, arrays in forgeries(path.read_bytes()):
        if "of swapped sizes" in what:
            tried += 1
            path.write_bytes(forged(header, arrays))
            with pytest.raises(ValueError, match="model"):
                shoal.load(path)
    assert tried > 0


def test_forged_baselines(tmp_path: Path) -> None:
    """Of a model that the program has saved."""
    stream, learner = stream_for("MultitaskPerceptron", seed=3, n_rows=30), shoal.MultitaskPerceptron()
    path, contestants = tmp_path / "model", {"MultitaskPerceptron": learner, **learner.baselines()}
    for one in contestants.values():
        one.partial_fit(stream.X, stream.y, stream.task)
    content = save_model(path, contestants, None).read_bytes()

    def use(found: Any) -> None:
        for one in (found or {}).values():
            one.partial_fit(stream.X, stream.y, stream.task)

    assert attack(content, path, use, load_baselines, "baselines") > 100
    assert attack(content, path, use, load_baselines, "independent/") > 20
