"""Models on disk: one safetensors file, its JSON header in the metadata, a checksum over both. Never pickle.

A file is safe to read, whoever wrote it: only learners are built, those of other modules only if the caller names them,
and every array is held against what the learner allocates before it is taken. It is not safe to trust: it may hold any
numbers that a model can have.
"""

import base64
import datetime
import hashlib
import json
import math
import os
import pkgutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal import relations
from shoal.engine.axes import ROW
from shoal.model.algorithm import Size
from shoal.model.core import CoreLike
from shoal.model.features import Features
from shoal.model.state import described, leaves, rebuilt
from shoal.model.tasks import TaskIndex
from shoal.whole_file import write_whole

FORMAT = 6
PROBE = 64  # features that tell which axes count features
STATE = "state."  # prefix of the names of a state's arrays
_KEY = "shoal"
Arrays = dict[str, np.ndarray[Any, Any]]


class Known(NamedTuple):
    """The ids that a model knows."""

    tasks: TaskIndex
    features: Features
    labels: Any  # plain values
    learned: Any = None  # of batch learners: the learned attributes by name, as JSON


# ---- values as JSON ----------------------------------------------------------------------------------------


def to_json(value: Any, arrays: Arrays, name: str) -> Any:
    """A value as JSON that `from_json` turns back exactly; arrays go to `arrays` under `name`."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        value = np.dtype(value).name
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, tuple | list | frozenset):
        kind = next(kind for kind in (tuple, list, frozenset) if isinstance(value, kind)).__name__
        return {kind: [to_json(item, arrays, f"{name}.{i}") for i, item in enumerate(value)]}
    if isinstance(value, dict):
        return {"dict": [[to_json(k, arrays, name), to_json(v, arrays, f"{name}.{k}")] for k, v in value.items()]}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, datetime.datetime | datetime.date):
        return {type(value).__name__: value.isoformat()}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        arrays[name] = np.ascontiguousarray(value)
        return {"array": name}
    if sp.issparse(value):
        csr = value.tocsr()
        parts = (value.format, csr.shape, csr.data, csr.indices, csr.indptr)
        return {"sparse": [to_json(part, arrays, f"{name}.{i}") for i, part in enumerate(parts)]}
    if relations.is_networkx(value):
        value = relations.graph(value)
    if hasattr(value, "estimator_names"):  # a learner within a learner, as it was before it learned
        return {"learner": [name_of_class(type(value)), to_json(value.get_params(deep=False), arrays, name)]}
    if isinstance(value, relations.Constant | relations.Given | relations.Attention):
        return {type(value).__name__: to_json(vars(value), arrays, name)}
    raise ValueError(
        f"cannot save {name}: a {type(value).__name__} has no plain form; use text, numbers, dates or tuples of them"
    )


def from_json(value: Any, arrays: Arrays, trusted: Collection[str] = ()) -> Any:
    """The value that `to_json` wrote; `trusted` names classes of learners, as `learner_class` takes them."""
    if not isinstance(value, dict):
        return value

    def inner(part: Any) -> Any:
        return from_json(part, arrays, trusted)

    [(kind, content)] = value.items()
    if kind == "float":
        return float(content)
    if kind == "dict":
        return {inner(k): inner(v) for k, v in content}
    if kind == "bytes":
        return base64.b64decode(content)
    if kind == "array":
        return arrays[content]
    if kind == "sparse":
        form, shape, *parts = (inner(item) for item in content)
        matrix = sp.csr_matrix(tuple(parts), shape=shape)
        matrix.check_format(full_check=True)
        return matrix.asformat(form)
    if kind == "learner":
        return learner_class(content[0], trusted)(**inner(content[1]))
    if kind == "Constant":
        return relations.Constant(**inner(content))
    if kind == "Given":
        return relations.checked(**inner(content))
    if kind == "Attention":
        return relations.attention(**inner(content))
    if kind in ("date", "datetime"):
        return getattr(datetime, kind).fromisoformat(content)
    return {"tuple": tuple, "list": list, "frozenset": frozenset}[kind](inner(item) for item in content)


# ---- classes of learners -----------------------------------------------------------------------------------


class UnknownLearner(ValueError):
    """The file is whole, but holds a learner that may not, or cannot, be built here."""


def name_of_class(kind: type[Any]) -> str:
    """The name by which `learner_class` finds the class: a public learner's name, else the import path.

    Raises
    ------
    ValueError
        If no import finds the class.
    """
    name = kind.__name__
    if _public(name) is kind:
        return name
    if "<locals>" in kind.__qualname__:
        raise ValueError(f"cannot save a {name}: its class stands in a function, where no import finds it")
    return f"{kind.__module__}:{kind.__qualname__}"


def _public(name: str) -> Any:
    import shoal

    return getattr(shoal, name) if name in shoal.__all__ else None


def learner_class(name: Any, trusted: Collection[str] = ()) -> Any:
    """The public learner of this name, or the class of an import path that `trusted` names: nothing else is built, and
    no other module is imported.

    Raises
    ------
    UnknownLearner
        If this shoal has no such learner, or if the class of another module is not trusted or cannot be imported.
    ValueError
        If it is no name of a learner.
    """
    if not isinstance(name, str):
        raise ValueError(f"it holds a {name!r} in place of a learner's name")
    module, colon, path = name.partition(":")
    dotted = f"{module}.{path}" if colon else name
    if not colon:
        kind = _public(name)
    elif dotted in (one.replace(":", ".") for one in trusted):
        try:
            kind = pkgutil.resolve_name(name)
        except Exception as error:  # whatever the module does when it is imported
            raise UnknownLearner(f"holds a {dotted}, which cannot be imported: {error}") from error
    else:
        raise UnknownLearner(
            f"holds a {dotted}, which is no learner of shoal, and nothing is imported because a file names it; if you "
            f'trust it: shoal.load(path, trusted=["{dotted}"]), or --trusted {name} of shoal run, predict, explain and '
            "inspect"
        )
    if not (isinstance(kind, type) and hasattr(kind, "estimator_names") and hasattr(kind, "save")):
        of = "which is no shoal.Learner" if colon else "which this shoal does not have: a newer one may have saved it"
        raise UnknownLearner(f"holds a {dotted}, {of}")
    return kind


# ---- writing -----------------------------------------------------------------------------------------------


def content(learner: Any, known: Known, state: Mapping[str, Any], learned: Any = None) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a learner: class and hyper-parameters, the ids that it knows, the arrays of its state."""
    arrays: Arrays = {STATE + name: array for name, array in state.items()}
    names = None if known.features.names is None else list(known.features.names)
    header = {
        "class": name_of_class(type(learner)),
        "reading": None,  # see `model_file`
        "parameters": to_json(learner.get_params(deep=False), arrays, "parameter"),
        "tasks": to_json(known.tasks.ids, arrays, "task id"),
        "features": {
            "count": known.features.count,
            "names": to_json(names, arrays, "feature name"),
            "open": known.features.is_open,
        },
        "labels": to_json(known.labels, arrays, "label"),
        "learned": learned,
    }
    return header, arrays


def checksum(header: str, arrays: Arrays) -> str:
    digest = hashlib.blake2b(header.encode(), digest_size=16)
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def write(path: str | os.PathLike[str], header: dict[str, Any], arrays: Arrays) -> None:
    """Write to a temporary file in the same folder, flush it to disk, rename: a crash never leaves half a model."""
    path = Path(path).resolve()  # a link stays a link
    if path.exists() and not path.is_file():
        raise ValueError(f"cannot save to {path}: it is not a regular file")
    write_whole(path, as_bytes(header, arrays), fsync=True)


def as_bytes(header: dict[str, Any], arrays: Arrays) -> bytes:
    """The content of a model file."""
    from safetensors.numpy import save

    text = json.dumps(header | {"format": FORMAT}, allow_nan=False)
    # One entry: safetensors writes several in random order, and equal models shall give equal files.
    return save(arrays, {_KEY: f"{checksum(text, arrays)} {text}"})


# ---- reading -----------------------------------------------------------------------------------------------

# Errors of reading values of a wrong kind.
_DAMAGE = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, MemoryError, RecursionError)


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[tuple[dict[str, Any], Arrays]]:
    """Header and arrays of a file; whatever the body finds wrong with them is one ValueError that names the file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not a shoal model, is of another format, is truncated or damaged, or holds an `UnknownLearner`.
    """
    header, arrays = read(Path(path))
    try:
        yield header, arrays
    except UnknownLearner as error:
        raise UnknownLearner(f"{path} {error}") from error.__cause__
    except _DAMAGE as error:
        reason = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
        raise ValueError(f"{path} is a damaged model: {reason}") from None


def read(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a file that `write` wrote."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        shards = sorted(Path(path).glob("*.model"))
        raise FileNotFoundError(
            f"no model at {path}" + (f", but models of shards such as {shards[0]}" if shards else "")
        )
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"{path} is not a shoal model, or is truncated or damaged ({error})") from None
    if _KEY not in metadata:
        raise ValueError(f"{path} is not a shoal model (its header does not name shoal)")
    stored, _, text = metadata[_KEY].partition(" ")
    if stored != checksum(text, arrays):
        raise ValueError(f"{path}: the model is damaged: its content does not match its checksum")
    try:
        header = json.loads(text)
        form = header["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(f"{path}: the model is damaged: its header cannot be read") from None
    if form != FORMAT:
        raise ValueError(
            f"{path}: the model has format {form!r}; this shoal reads {FORMAT}: train it again from its rows, or "
            "go on with the shoal that saved it"
        )
    return header, arrays


def known_from(header: Mapping[str, Any], arrays: Arrays) -> Known:
    """The ids of a header. Raises ValueError, TypeError or KeyError if they are not ids."""
    ids = from_json(header["tasks"], arrays)
    tasks = TaskIndex(ids)
    if not isinstance(ids, list) or len(tasks) != len(ids):
        raise ValueError("its task ids are not different ids")
    count, names, is_open = (header["features"][name] for name in ("count", "names", "open"))
    names = from_json(names, arrays)
    if type(count) is not int or count < 0 or type(is_open) is not bool:
        raise ValueError("its number of features is not a number")
    if names is not None and not (isinstance(names, list) and len(set(names)) == len(names) == count):
        raise ValueError("its names of features are not as many different names as features")
    index = None if names is None else {name: j for j, name in enumerate(names)}
    features = Features(count, index, is_open=is_open)
    return Known(tasks, features, from_json(header["labels"], arrays), header["learned"])


def state_arrays(arrays: Arrays) -> Arrays:
    """The arrays of the state by their own names."""
    return {name.removeprefix(STATE): array for name, array in arrays.items() if name.startswith(STATE)}


def take(core: CoreLike, arrays: Arrays, size: Size) -> None:
    """Give a new core the arrays of a file, each held against what the core would allocate.

    Raises
    ------
    ValueError
        If they are not what such a core saves. Nothing larger than the file is allocated before that is known.
    """
    small, wider = (leaves(core.blank(Size(1, n))) for n in (1, 1 + PROBE))  # tell names, types and axes
    kinds = described(type(core.blank(Size(1, 1))))
    absent = {leaf.name for leaf in kinds if leaf.may_be_absent} - arrays.keys()
    if {leaf.name for leaf in kinds} - absent != arrays.keys():
        raise ValueError("it does not hold the arrays of such a model")
    for leaf, array, wide in zip(kinds, small, wider, strict=True):
        if leaf.name in absent:
            continue
        found = arrays[leaf.name]
        if found.dtype != array.dtype or found.ndim != array.ndim:
            raise ValueError(f"{leaf.name} is {found.ndim}-dimensional {found.dtype}, expected {array.dtype}")
        by_feature = [n for n, a, b in zip(found.shape, array.shape, wide.shape, strict=True) if b - a >= PROBE]
        if ROW not in leaf.axes and any(n < size.features for n in by_feature):
            raise ValueError(f"{leaf.name} has shape {found.shape}, too small for {size.features} features")
        if found.dtype.kind == "f" and not np.isfinite(found).all() and not leaf.may_be_infinite:
            raise ValueError(f"{leaf.name} holds NaN or infinity")
        if leaf.may_be_infinite and np.isnan(found).any():
            raise ValueError(f"{leaf.name} holds NaN")
    empty = core.blank(size)
    blank = {leaf.name: array for leaf, array in zip(kinds, leaves(empty), strict=True)}
    arrays = arrays | {name: blank[name] for name in absent}
    for leaf, array in zip(kinds, leaves(empty), strict=True):
        if ROW not in leaf.axes and arrays[leaf.name].shape != array.shape:
            raise ValueError(f"{leaf.name} has shape {arrays[leaf.name].shape}, expected {array.shape}")
    taken = iter([np.require(arrays[leaf.name], None, ["C", "W"]) for leaf in kinds])
    core.unpack(rebuilt(empty, taken), size)
