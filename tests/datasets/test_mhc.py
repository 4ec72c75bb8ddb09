"""The counts of the MHC-I measurements, as their README measured them, and their two encodings."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from shoal.datasets import load_mhc

ROWS_AND_PEPTIDES = {  # rows, distinct peptides
    "HLA-A*01:01": (834, 806), "HLA-A*02:01": (2_920, 2_730), "HLA-A*02:02": (1_510, 1_466),
    "HLA-A*02:03": (1_657, 1_627), "HLA-A*02:06": (1_640, 1_610), "HLA-A*03:01": (1_457, 1_424),
    "HLA-A*11:01": (1_489, 1_447), "HLA-A*31:01": (1_419, 1_392), "HLA-A*33:01": (1_422, 1_394),
    "HLA-A*68:01": (1_420, 1_390), "HLA-A*68:02": (1_639, 1_609), "HLA-B*07:02": (596, 568),
}  # fmt: skip


def test_counts(benchmark_files: Callable[[str], Path]) -> None:
    benchmark_files("mhc1_binding")
    data = load_mhc()
    assert data.X.shape == (18_003, 180)
    assert round(float((data.y > 0).mean()), 3) == 0.476
    peptide = np.array([row.tobytes() for row in data.X.indices.reshape(-1, 9)], dtype=object)
    found = {}
    for allele in np.unique(data.task):
        of_allele = peptide[data.task == allele]
        found[str(allele)] = (len(of_allele), len(set(of_allele)))
    assert found == ROWS_AND_PEPTIDES
    assert len(set(peptide)) == 5_917


def test_the_encodings_are_of_the_same_peptides(benchmark_files: Callable[[str], Path]) -> None:
    benchmark_files("mhc1_binding")
    one_hot, pairs = load_mhc(), load_mhc(encoding="pairs")
    np.testing.assert_array_equal(one_hot.task, pairs.task)
    np.testing.assert_array_equal(one_hot.y, pairs.y)
    assert pairs.X.shape == (18_003, 400)
    assert (pairs.X.sum(axis=1) == 8).all()
    assert len(np.unique(pairs.X.indices)) == 400
    for row in (0, 9_000, 18_002):
        places = {one_hot.feature_names[j] for j in one_hot.X[row].indices}
        peptide = "".join(name[1] for name in sorted(places))
        counted = {pairs.feature_names[j]: n for j, n in zip(pairs.X[row].indices, pairs.X[row].data, strict=True)}
        expected = [peptide[i : i + 2] for i in range(8)]
        assert counted == {pair: expected.count(pair) for pair in expected}


def test_which_measurements_are_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = """allele,peptide,ic50,measurement_inequality,measurement_type,measurement_source,original_allele
HLA-A*02:01,ACDEFGHIK,499.9,=,quantitative,Sette - purified MHC,HLA-A2
HLA-A*02:01,YYYYYYYYY,500,>,quantitative,Sette - purified MHC,HLA-A2
HLA-A*02:01,ACDEFGHIKL,10,=,quantitative,Sette - purified MHC,HLA-A2
HLA-A*02:01,ACDEFGHIK,10,=,qualitative,Sette - purified MHC,HLA-A2
HLA-A*02:01,ACDEFGHIK,10,=,quantitative,Buus - purified MHC,HLA-A2
H-2-Kb,ACDEFGHIK,10,=,quantitative,Sette - purified MHC,H-2-Kb
HLA-B*07:02,LMNPQRSTV,20000,=,quantitative,Sette - cellular MHC,HLA-B7
"""
    (tmp_path / "mhc1_binding").mkdir()
    with zipfile.ZipFile(tmp_path / "mhc1_binding" / "curated_training_data.no_mass_spec.zip", "w") as archive:
        archive.writestr("curated_training_data.no_mass_spec.csv", rows)
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))
    data = load_mhc()
    assert data.task.tolist() == ["HLA-A*02:01", "HLA-A*02:01", "HLA-B*07:02"]
    assert data.y.tolist() == [1, -1, -1]
    peptides = [[data.feature_names[j] for j in row.indices] for row in data.X]
    assert peptides[0] == ["1A", "2C", "3D", "4E", "5F", "6G", "7H", "8I", "9K"]
    assert peptides[2] == ["1L", "2M", "3N", "4P", "5Q", "6R", "7S", "8T", "9V"]
    pairs = load_mhc(encoding="pairs")
    assert [pairs.feature_names[j] for j in pairs.X[1].indices] == ["YY"]
    assert pairs.X[1].data.tolist() == [8]


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(ValueError, match="encoding must be 'one-hot' or 'pairs', got 'blosum'"):
        load_mhc("blosum")  # type: ignore[arg-type]
