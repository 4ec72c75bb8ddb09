"""The formats of files, and which one a file name means."""

from __future__ import annotations

from shoal.files.source import STDIN
from shoal.files.suggest import unknown_name

FORMATS = {
    "csv": ("csv",),
    "tsv": ("tsv", "tab"),
    "parquet": ("parquet", "pq"),
    "ndjson": ("ndjson", "jsonl"),
    "arrow": ("arrow", "feather", "ipc"),
    "libsvm": ("libsvm", "svm", "svmlight"),
    "vw": ("vw", "txt"),
}
"""Formats and the file name endings that mean them; those of the text formats may be followed by .gz."""

TYPED = ("parquet", "arrow")
SPARSE = ("libsvm", "vw")


def choose_format(path: str, format: str | None) -> str:
    """The format that was asked for, or that the file's name means."""
    if format is None:
        if path == STDIN:
            return "csv"
        ending = path.lower().removesuffix(".gz").rpartition(".")[2]
        format = next((name for name, endings in FORMATS.items() if ending in endings), None)
        if format is None:
            endings = ", ".join(f".{other}" for others in FORMATS.values() for other in others)
            raise ValueError(f"{path} does not end in {endings}: say which format it is, one of {', '.join(FORMATS)}")
    if format not in FORMATS:
        raise ValueError(unknown_name("there is no format", format, FORMATS))
    if format in TYPED and path == STDIN:
        raise ValueError(f"standard input cannot be read as {format}, which needs a file: give its path")
    if format in TYPED and path.lower().endswith(".gz"):
        raise ValueError(f"{path}: only text formats are read from .gz, and {format} is packed in itself: unpack it")
    return format
