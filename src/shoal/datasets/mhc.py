"""MHC-I binding: which peptides bind to which molecules of the immune system (IEDB; Kim et al., 2014)."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from shoal.datasets.dataset import Dataset
from shoal.datasets.files import find

if TYPE_CHECKING:
    import polars as pl

BINDER_NM = 500  # a peptide with an IC50 below this binds: the field's usual limit

_FILE = "curated_training_data.no_mass_spec"
_ALLELES = """A*01:01 A*02:01 A*02:02 A*02:03 A*02:06 A*03:01 A*11:01 A*31:01 A*33:01 A*68:01 A*68:02 B*07:02"""
_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
_LENGTH = 9
_DESCRIPTION = (
    "Peptides of nine amino acids ({encoding}) and their measured affinity to 12 human MHC-I molecules; task = allele, "
    f"label = +1 if the peptide binds, IC50 < {BINDER_NM} nM (48 %). No order is recorded: shuffle the rows."
)


def load_mhc(encoding: Literal["one-hot", "pairs"] = "one-hot") -> Dataset:
    """MHC-I binding: 18,003 measurements of 5,917 peptides with 12 alleles of the A1, A2, A3 and B7 supertypes.

    The rows are the quantitative measurements of Sette's laboratory in the training data of MHCflurry 2018; the choice
    comes close to the 12 tasks and 18,664 peptides of the ROMCO paper, which does not list its alleles.

    Parameters
    ----------
    encoding : "one-hot" or "pairs"
        The amino acid at each of the nine places, 180 features; or the papers' counts of the 400 pairs of
        neighbouring amino acids, eight a peptide.

    Returns
    -------
    Dataset
        Binary; X is sparse; tasks are the alleles' names, such as "HLA-A*02:01".

    Raises
    ------
    ValueError
        If `encoding` is unknown.
    FileNotFoundError
        If the file is nowhere; see `SHOAL_DATA`.
    """
    if encoding not in ("one-hot", "pairs"):
        raise ValueError(f"encoding must be 'one-hot' or 'pairs', got {encoding!r}")
    table = _read(find("mhc1_binding", f"{_FILE}.zip"))
    acids = _acid_numbers(table["peptide"].to_list())
    X, names = _one_hot(acids) if encoding == "one-hot" else _pairs(acids)
    return Dataset(
        name="mhc" if encoding == "one-hot" else "mhc_pairs",
        X=X,
        y=np.where(table["ic50"].to_numpy() < BINDER_NM, 1.0, -1.0),
        task=table["allele"].to_numpy().astype(str),
        feature_names=names,
        description=_DESCRIPTION.format(encoding=encoding),
        kind="binary",
    )


def _read(path: Path) -> pl.DataFrame:
    """The chosen measurements, in the order of the file."""
    import polars as pl

    with zipfile.ZipFile(path) as archive:
        content = archive.read(f"{_FILE}.csv")
    columns = ["allele", "peptide", "ic50", "measurement_type", "measurement_source"]
    table = pl.read_csv(content, columns=columns, schema_overrides={"ic50": pl.Float64})
    return table.filter(
        pl.col("allele").is_in([f"HLA-{allele}" for allele in _ALLELES.split()]),
        pl.col("peptide").str.len_bytes() == _LENGTH,
        pl.col("measurement_type") == "quantitative",
        pl.col("measurement_source").str.starts_with("Sette"),
    )


def _acid_numbers(peptides: list[str]) -> NDArray[np.int64]:
    """(n, 9) numbers of the amino acids, 0 to 19."""
    letters = np.array(peptides, dtype=f"S{_LENGTH}").view(np.uint8).reshape(-1, _LENGTH)
    return np.searchsorted(np.frombuffer(_ACIDS.encode(), np.uint8), letters)


def _one_hot(acids: NDArray[np.int64]) -> tuple[Any, tuple[str, ...]]:
    names = tuple(f"{place}{acid}" for place in range(1, _LENGTH + 1) for acid in _ACIDS)
    return _counts(acids + 20 * np.arange(_LENGTH), len(names)), names


def _pairs(acids: NDArray[np.int64]) -> tuple[Any, tuple[str, ...]]:
    names = tuple(first + second for first in _ACIDS for second in _ACIDS)
    return _counts(20 * acids[:, :-1] + acids[:, 1:], len(names)), names


def _counts(columns: NDArray[np.int64], width: int) -> Any:
    """Rows that count how often each column is named."""
    n, k = columns.shape
    X = csr_matrix((np.ones(n * k), columns.ravel(), np.arange(0, n * k + 1, k)), shape=(n, width))
    X.sum_duplicates()
    return X
