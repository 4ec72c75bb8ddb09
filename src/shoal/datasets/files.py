"""Finds a data file: in `$SHOAL_DATA`, then in the cache, then at its official address."""

import gzip
import hashlib
import os
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from shoal.whole_file import write_whole


@dataclass(frozen=True)
class Source:
    """The official address of a file.

    Parameters
    ----------
    url : str
    sha256 : str
        Checksum, in hexadecimal, of what the address serves.
    gzipped : bool
        The address serves plain text, our copy is gzipped.
    """

    url: str
    sha256: str
    gzipped: bool = False


ORIGINS = {  # of data sets whose files have no public address as we keep them
    "enron_spam": " (Enron-Spam by Metsis, Androutsopoulos, Paliouras, 2006)",
    "jester5k": " (Jester by Goldberg and others, 2001, as the R package recommenderlab has it)",
    "mhc1_binding": " (IEDB and Kim and others, 2014, as curated for MHCflurry: doi 10.17632/8pz43nvvxh)",
    "rcv1_subsets": " (RCV1 by Lewis and others, 2004, in the five subsets of Mulan)",
    "sentiment16_fdu_mtl": " (FDU-MTL by Liu, Qiu, Huang, 2017)",
}


def cache_folder() -> Path:
    """The folder that downloads go to."""
    return Path.home() / ".cache" / "shoal"


def find(name: str, *parts: str, source: Source | None = None) -> Path:
    """Path of a file of the data set `name`, fetched once into the cache if it is nowhere else.

    Parameters
    ----------
    name : str
        Folder of the data set below `$SHOAL_DATA` or the cache.
    *parts : str
        The file's path below that folder.
    source : Source, optional
        Where to fetch it; None if no public address is known.

    Raises
    ------
    FileNotFoundError
        If the file is absent and cannot be fetched; the message says where it is expected.
    ValueError
        If the address serves something else than the file of the checksum.
    """
    folders = [cache_folder()]
    if os.environ.get("SHOAL_DATA"):
        folders.insert(0, Path(os.environ["SHOAL_DATA"]).expanduser())
    for folder in folders:
        path = folder.joinpath(name, *parts)
        if path.is_file():
            return path
    relative = "/".join((name, *parts))
    if source is None:
        raise FileNotFoundError(
            f"the data set {name}{ORIGINS.get(name, '')} needs the file {relative}, which has no public address: put "
            f"it at FOLDER/{relative} and set SHOAL_DATA to that FOLDER (searched: {_listed(folders)})"
        )
    _write(path, _fetch(source, relative, folders))
    return path


def _fetch(source: Source, relative: str, folders: list[Path]) -> bytes:
    """The content of the file as we keep it, checked."""
    try:
        with urlopen(source.url, timeout=60) as response:
            content: bytes = response.read()
    except (OSError, HTTPException) as error:
        raise FileNotFoundError(
            f"{relative} is neither in {_listed(folders)} nor could it be fetched from {source.url} "
            f"({error}): set SHOAL_DATA to a folder that holds it"
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != source.sha256:
        raise ValueError(
            f"{source.url} does not serve the expected file: its SHA-256 is {found}, expected "
            f"{source.sha256}; set SHOAL_DATA to a folder that holds {relative}"
        )
    return gzip.compress(content, mtime=0) if source.gzipped else content


def _write(path: Path, content: bytes) -> None:
    """Write to a temporary file and rename, so that a crash never leaves half a file in the cache."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)


def _listed(folders: list[Path]) -> str:
    return ", ".join(map(str, folders))
