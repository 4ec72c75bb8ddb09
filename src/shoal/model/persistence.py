"""Models on disk: one safetensors file, its JSON header in the metadata, a checksum over both. Never pickle."""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal import relations

FORMAT = 1
_KEY = "shoal"
Arrays = dict[str, np.ndarray[Any, Any]]


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
        kind = type(value).__name__
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
    if hasattr(value, "_hyper_parameters"):  # a learner within a learner, as it was before it learnt
        return {"learner": [type(value).__name__, to_json(value.get_params(deep=False), arrays, name)]}
    if isinstance(value, relations.Constant | relations.Given):
        return {type(value).__name__: to_json(vars(value), arrays, name)}
    raise ValueError(
        f"cannot save {name}: a {type(value).__name__} has no plain form; use text, numbers, dates or tuples of them"
    )


def from_json(value: Any, arrays: Arrays) -> Any:
    """The value that `to_json` wrote."""
    if not isinstance(value, dict):
        return value
    [(kind, content)] = value.items()
    if kind == "float":
        return float(content)
    if kind == "dict":
        return {from_json(k, arrays): from_json(v, arrays) for k, v in content}
    if kind == "bytes":
        return base64.b64decode(content)
    if kind == "array":
        return arrays[content]
    if kind == "sparse":
        form, shape, *parts = (from_json(item, arrays) for item in content)
        return sp.csr_matrix(tuple(parts), shape=shape).asformat(form)
    if kind == "learner":
        import shoal

        return getattr(shoal, content[0])(**from_json(content[1], arrays))
    if kind in ("Constant", "Given"):
        return getattr(relations, kind)(**from_json(content, arrays))
    if kind in ("date", "datetime"):
        return getattr(datetime, kind).fromisoformat(content)
    return {"tuple": tuple, "list": list, "frozenset": frozenset}[kind](from_json(item, arrays) for item in content)


def _checksum(header: str, arrays: Arrays) -> str:
    digest = hashlib.blake2b(header.encode(), digest_size=16)
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def write(path: str | os.PathLike[str], header: dict[str, Any], arrays: Arrays) -> None:
    """Write to a temporary file beside `path`, flush it to disk, rename: a crash never leaves half a model."""
    from safetensors.numpy import save

    path = Path(path)
    text = json.dumps(header | {"format": FORMAT}, allow_nan=False)
    # One entry: safetensors writes several in random order, and equal models shall give equal files.
    content = save(arrays, {_KEY: f"{_checksum(text, arrays)} {text}"})
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a file written by `write`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not a shoal model, is of a newer format, or is truncated or damaged.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no model at {path}")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError, ValueError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} is not a shoal model, or is truncated or damaged ({error})") from None
    if _KEY not in metadata:
        raise ValueError(f"{path} is not a shoal model (its header says nothing of shoal)")
    checksum, _, text = metadata[_KEY].partition(" ")
    if checksum != _checksum(text, arrays):
        raise ValueError(f"{path} is damaged: its content does not match its checksum")
    header = json.loads(text)
    if header["format"] > FORMAT:
        raise ValueError(f"{path} has format {header['format']}, newer than this shoal reads ({FORMAT}); upgrade shoal")
    return header, arrays
