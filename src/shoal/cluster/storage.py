"""A cluster on disk: a folder with a model file per shard, the shared arrays, and a manifest that names the files."""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from shoal.cluster.merge_state import Shared
from shoal.cluster.placement import Assign
from shoal.engine.arrays import IntArray
from shoal.learner import Learner, model_of
from shoal.model import persistence
from shoal.model.features import Features
from shoal.model_file import load_learner
from shoal.whole_file import write_whole

MANIFEST, FORMAT = "manifest.json", 1
PLACES = "places"  # the shard of each task; stored with the shared arrays


class Saved(NamedTuple):
    """The content of a folder."""

    header: dict[str, Any]
    assign: Assign
    blocks: list[Any]  # of each task in order of appearance; empty unless `assign` is a column
    shard_of: IntArray  # of each task in order of appearance
    base: Shared  # the shared arrays after the last exchange
    files: list[bytes]  # the shards' models


def write(folder: str | os.PathLike[str], saved: Saved) -> None:
    """Write new files next to old ones, then the manifest, which switches to the new files; delete the old ones.

    Raises
    ------
    ValueError
        If the folder exists and is no saved cluster, or a task id has no plain form.
    """
    path = check_place(folder)
    assign = saved.assign if isinstance(saved.assign, str | None) else dict(saved.assign)
    contents = [save({**saved.base, PLACES: saved.shard_of}), *saved.files]
    names = [_name(i, content) for i, content in enumerate(contents)]
    path.mkdir(parents=True, exist_ok=True)
    for name, content in zip(names, contents, strict=True):
        write_whole(path / name, content, fsync=True)
    manifest = saved.header | {
        "format": FORMAT,
        "assign": persistence.to_json(assign, {}, "task id"),
        "blocks": persistence.to_json(saved.blocks, {}, "block"),
        "files": names,
    }
    write_whole(path / MANIFEST, json.dumps(manifest, indent=1).encode(), fsync=True)
    for old in path.iterdir():
        if old.name not in (*names, MANIFEST) and old.suffix in (".model", ".shared"):
            old.unlink()


def check_place(folder: str | os.PathLike[str]) -> Path:
    """The folder. Raises ValueError if it exists and is no saved cluster."""
    path = Path(folder)
    if path.exists() and not (path.is_dir() and (_is_cluster(path) or not any(path.iterdir()))):
        raise ValueError(f"cannot save to {path}: it exists and is no saved cluster")
    return path


def _is_cluster(path: Path) -> bool:
    return (path / MANIFEST).is_file()


def _name(i: int, content: bytes) -> str:
    digest = hashlib.blake2b(content, digest_size=8).hexdigest()
    return f"all-{digest}.shared" if i == 0 else f"shard-{i - 1:05}-{digest}.model"


def read(folder: str | os.PathLike[str]) -> Saved:
    """Read the folder that `write` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no saved cluster.
    ValueError
        If files are missing or damaged.
    """
    path = Path(folder)
    if not _is_cluster(path):
        raise FileNotFoundError(f"no saved cluster at {path}")
    try:
        manifest = json.loads((path / MANIFEST).read_text())
        names, form = manifest.pop("files"), manifest.pop("format")
        if form != FORMAT:
            raise ValueError(f"it has format {form!r}, this shoal reads {FORMAT}")
        contents = [(path / name).read_bytes() for name in names]
        if [_name(i, content) for i, content in enumerate(contents)] != names or len(names) != 1 + manifest["shards"]:
            raise ValueError("a file is not what the manifest says")
        arrays = load(contents[0])
        assign, blocks = (persistence.from_json(manifest.pop(name), {}) for name in ("assign", "blocks"))
        return Saved(manifest, assign, blocks, arrays.pop(PLACES), arrays, contents[1:])
    except (ValueError, KeyError, TypeError, AttributeError, OSError, SafetensorError) as error:
        raise ValueError(f"{path} is a damaged cluster: {error}") from None


def learner_of(saved: Saved) -> tuple[Learner, Any, Features]:
    """A new learner with the shards' hyper-parameters, the labels (settled if any shard's are), and the features."""
    models = []
    with tempfile.TemporaryDirectory() as folder:
        for content in saved.files:
            (Path(folder) / "model").write_bytes(content)
            models.append(load_learner(Path(folder) / "model"))
    known = [model_of(model) for model in models]
    settled = [one.labels for one in known if getattr(one.labels, "settled", False)]
    learner = type(models[0])(**models[0].get_params(deep=False))
    return learner, settled[0] if settled else known[0].labels, known[0].features


def in_order(ids: list[list[Any]], shard_of: IntArray) -> list[Any]:
    """The tasks of all shards in order of appearance.

    Raises
    ------
    ValueError
        If the shards' tasks contradict the manifest.
    """
    if np.bincount(shard_of, minlength=len(ids)).tolist() != [len(each) for each in ids]:
        raise ValueError("damaged cluster: shards have other tasks than the manifest says")
    following = [iter(each) for each in ids]
    return [next(following[shard]) for shard in shard_of.tolist()]
