"""Landmine detection: 29 radar-surveyed fields (Xue, Liao, Carin, Krishnapuram, JMLR 8, 2007)."""

import numpy as np

from shoal.datasets.dataset import Dataset
from shoal.datasets.files import Source, find

_SOURCE = Source(
    "https://raw.githubusercontent.com/daizhongxiang/Federated_Bayesian_Optimization/"
    "30a4548606f2ae9bc62c6bf0eb4110177aa3876a/LandmineData.mat",
    "2163ab20a80e33a8b65593c48cf283c540599dcb291105e63fa4af2ce24c2bea",
)
# Fields counted from 1. The literature's 19 tasks are the foliated fields 1-10 and the bare ones 16-24.
_FIELDS = {29: range(1, 30), 19: (*range(1, 11), *range(16, 25))}
_DESCRIPTION = (
    "Alarm locations in radar-surveyed fields; task = field, label = +1 where a mine lies (about 6 %). Nine "
    "features of the radar image and a constant. The rows of a field are in no recorded order: shuffle them."
)


def load_landmine(n_tasks: int = 29) -> Dataset:
    """Landmine detection: 14,820 locations in 29 fields, or 9,674 in the 19 fields of the literature.

    Parameters
    ----------
    n_tasks : 29 or 19
        Task ids are the field's number in the file, counted from 1, in both.

    Returns
    -------
    Dataset
        Binary; X is dense, (n, 10), the last column constant 1. The classes are very unbalanced: judge by AUC
        or F1.

    Raises
    ------
    ValueError
        If `n_tasks` is neither 29 nor 19.
    FileNotFoundError
        If the file is nowhere; see `SHOAL_DATA`.
    """
    if n_tasks not in _FIELDS:
        raise ValueError(f"landmine comes with 29 or 19 tasks, got n_tasks={n_tasks}")
    from scipy.io import loadmat

    content = loadmat(find("landmine", "LandmineData.mat", source=_SOURCE))
    fields = _FIELDS[n_tasks]
    X = np.concatenate([content["feature"][0, field - 1] for field in fields])
    labels = np.concatenate([content["label"][0, field - 1].ravel() for field in fields])
    sizes = [len(content["feature"][0, field - 1]) for field in fields]
    return Dataset(
        name="landmine" if n_tasks == 29 else f"landmine{n_tasks}",
        X=np.column_stack([X, np.ones(len(X))]),
        y=np.where(labels == 1, 1.0, -1.0),
        task=np.repeat(fields, sizes),
        feature_names=(*(f"radar{j}" for j in range(1, 10)), "constant"),
        description=_DESCRIPTION,
        kind="binary",
    )
