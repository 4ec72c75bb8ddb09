"""Streams to compare on: five data sets of the library, and four tables that come inside packages.

diamonds (plotnine): is a diamond's price a carat above the median? Task: clarity. randhie (statsmodels): did a person
see a doctor more than once in a year? Task: insurance plan; in the order of years. segment, yeast (river): one row for
every pair of an object and a label, the labels are the tasks; all rows mixed, for those of one object would give each
other away. Columns of these tables are in deviations from their mean, in standard deviations.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.scores import Stream
from shoal.datasets import Dataset, load_ecml_spam, load_enron, load_flights, load_landmine, load_mhc

N_CLASSES = 14  # of yeast
OF_PERSONS = [
    "black", "xage", "female", "educdec", "linc", "lnum", "child", "fchild", "disea", "physlm", "xghindx", "hlthg",
    "hlthf", "hlthp",
]  # fmt: skip
OF_STONES = ["carat", "depth", "table", "x", "y", "z"]


def _of(data: Dataset) -> Stream:
    task = np.unique(data.task, return_inverse=True)[1]
    return Stream(data.name, data.X, data.y, task)


def _package(name: str, path: str) -> Path:
    found = find_spec(name)
    if found is None or found.origin is None:
        raise ImportError(f"this stream is part of {name}: pip install {name}")
    return Path(found.origin).parent / path


def _standardized(columns: pl.DataFrame) -> np.ndarray:
    values = columns.fill_null(strategy="mean").to_numpy().astype(np.float64)
    spread = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0))


def _signs(positive: np.ndarray) -> np.ndarray:
    return np.where(positive, 1.0, -1.0)


def diamonds() -> Stream:
    """53,940 diamonds of 8 clarities."""
    table = pl.read_csv(_package("plotnine", "data/diamonds.csv"))
    each = (table["price"] / table["carat"]).to_numpy()
    X = np.hstack([_standardized(table[OF_STONES]), table[["cut", "color"]].to_dummies().to_numpy()])
    task = np.unique(table["clarity"].to_numpy(), return_inverse=True)[1]
    mixed = np.random.default_rng(0).permutation(len(task))  # the table is sorted by price
    return Stream("diamonds", X[mixed], _signs(each > np.median(each))[mixed], task[mixed])


def randhie() -> Stream:
    """20,190 years of persons in 18 plans of the RAND health insurance experiment."""
    table = pl.read_csv(_package("statsmodels", "datasets/randhie/src/randhie.csv"), infer_schema_length=None)
    table = table.sort("year", maintain_order=True)
    sites = table[["site"]].to_dummies().to_numpy()
    task = np.unique(table["plan"].to_numpy(), return_inverse=True)[1]
    return Stream(
        "randhie", np.hstack([_standardized(table[OF_PERSONS]), sites]), _signs(table["mdvis"].to_numpy() > 1), task
    )


def segment() -> Stream:
    """2,310 patches of pictures, 7 kinds."""
    with zipfile.ZipFile(_package("river", "datasets/segment.csv.zip")) as archive:
        table = pl.read_csv(io.BytesIO(archive.read(archive.namelist()[0])))
    kinds = table["category"].to_numpy()
    truth = kinds[:, None] == np.unique(kinds)
    return _one_row_a_label("segment", _standardized(table.drop("category")), truth)


def yeast() -> Stream:
    """2,417 genes, 14 functions."""
    table = pl.read_csv(_package("river", "datasets/yeast.csv.gz"))
    classes = [f"Class{c}" for c in range(1, N_CLASSES + 1)]
    truth = table[classes].cast(pl.String).to_numpy() == np.array([["1"]])
    return _one_row_a_label("yeast", _standardized(table.drop(classes)), truth)


def _one_row_a_label(name: str, X: np.ndarray, truth: np.ndarray) -> Stream:
    n, K = truth.shape
    mixed = np.random.default_rng(1).permutation(n * K)
    return Stream(name, X[mixed // K], _signs(truth.ravel())[mixed], mixed % K)


STREAMS: dict[str, Callable[[], Stream]] = {
    "flights": lambda: _of(load_flights()),
    "ecml_spam": lambda: _of(load_ecml_spam(transform="log-norm").interleaved()),
    "enron": lambda: _of(load_enron(transform="log-norm")),
    "landmine": lambda: _of(load_landmine().shuffled(0)),
    "mhc": lambda: _of(load_mhc().shuffled(0)),
    "diamonds": diamonds,
    "randhie": randhie,
    "segment": segment,
    "yeast": yeast,
}
