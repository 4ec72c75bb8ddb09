"""A peer, and its forecasts on disk: they cost an hour, and a change of shoal does not change them."""

import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.panels import Panel


class Peer(NamedTuple):
    """A method of a package, with the settings that it is tried with."""

    family: str  # its column in the tables
    package: str  # "" for a few lines of NumPy
    settings: dict[str, Any]  # by name, what `run` gets
    run: Callable[[Panel, Any], Any]  # (n,) logits or targets, each forecast before its row is learned
    edition: int = 1  # raised when `run` or a setting changes what it means: forecasts of the last edition are not read
    rows: int | None = None  # it gets the first rows alone

    def installed(self) -> str | None:
        """The version of its package; None without it."""
        if not self.package:
            return "-"
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return None


class Forecasts(NamedTuple):
    """What a peer with one setting answered."""

    family: str
    setting: str
    values: Any  # (n,) or of the first rows


class Store:
    """Forecasts by stream, peer, version and setting; computed where they are not stored.

    Parameters
    ----------
    folder : Path, optional
        Where they are kept; None keeps none.
    compute : bool
        Whether peers run that are not stored.
    """

    def __init__(self, folder: Path | None, *, compute: bool = True) -> None:
        self.folder, self.compute = folder, compute
        self.left_out: dict[str, str] = {}  # by family, why
        self.versions: dict[str, str] = {}  # by package

    def forecasts(self, panel: Panel, peers: list[Peer]) -> Iterator[Forecasts]:
        """Of every peer and setting that is stored or can run."""
        for peer in peers:
            for setting in peer.settings:
                values = self._forecasts(panel, peer, setting)
                if values is not None:
                    yield Forecasts(peer.family, setting, values)

    def _forecasts(self, panel: Panel, peer: Peer, setting: str) -> Any:
        installed = peer.installed()
        place = self._place(panel, peer, installed)
        path = None if place is None else place / f"{setting}.npy"
        if path is not None and path.exists():
            self.versions[peer.package] = path.parent.name.split(" ")[1]
            return np.load(path, allow_pickle=False)
        if installed is None:
            self.left_out[peer.family] = f"{peer.package} is not installed"
            return None
        if not self.compute:
            self.left_out[peer.family] = "not every setting is stored yet"
            return None
        start = time.perf_counter()
        values = np.nan_to_num(np.asarray(peer.run(panel, peer.settings[setting]), dtype=np.float64))
        seconds = time.perf_counter() - start
        print(f"{panel.name}: {peer.family}, {setting}: {seconds:.1f} s", file=sys.stderr, flush=True)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(".part.npy")
            np.save(part, values)
            part.rename(path)
        self.versions[peer.package] = installed
        return values

    def _place(self, panel: Panel, peer: Peer, version: str | None) -> Path | None:
        """The folder of the peer's forecasts; those of the newest version that was run if none is installed."""
        if self.folder is None:
            return None
        stream = self.folder / panel.key
        if version is not None:
            return stream / f"{peer.family} {version} {peer.edition}"
        stored = sorted(stream.glob(f"{peer.family} * {peer.edition}"), key=lambda path: path.stat().st_mtime)
        return stored[-1] if stored else None
