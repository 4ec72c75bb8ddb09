"""School: exam scores of London pupils (ILEA; encoding of Bakker and Heskes, JMLR 4, 2003)."""

import numpy as np

from shoal.datasets.dataset import Dataset
from shoal.datasets.files import Source, find

_SOURCE = Source(
    "https://raw.githubusercontent.com/jiayuzhou/MALSAR/fb9751594983df020ddc4f7e4a40520ee7c37989/data/school.mat",
    "57fb3238fdd03a9aa17276e2ce18d9bbb5d128c3261e794fe6233b58b6909068",
)
# The columns in the order of the file; a one-hot group has as many columns as its number says.
_GROUPS = {
    "year": 3,
    "free_meals": 1,
    "vr_band1": 1,
    "gender": 2,
    "vr_band": 3,
    "ethnic_group": 11,
    "school_gender": 3,
    "denomination": 3,
    "constant": 1,
}
_PERCENTAGES = [3, 4]  # free school meals, pupils in VR band 1: per cent of the school's pupils in that year
_DESCRIPTION = (
    "Exam scores of pupils in London, 1985-1987; task = school, target = score (1 to 70). Year, school and "
    "pupil one-hot, two percentages divided by 100, a constant. No order is recorded: shuffle the rows."
)


def load_school() -> Dataset:
    """School: the exam scores of 15,362 pupils of 139 schools.

    Returns
    -------
    Dataset
        Regression; X is dense, (15362, 28), the last column constant 1; tasks are numbered 1 to 139. The
        band of verbal reasoning (vr_band) of 15 pupils is unknown: zeros. The scores vary with standard
        deviation 12.7, which is the RMSE of always predicting their mean.

    Raises
    ------
    FileNotFoundError
        If the file is nowhere; see `SHOAL_DATA`.
    """
    from scipy.io import loadmat

    content = loadmat(find("school", "school.mat", source=_SOURCE))
    schools = content["X"][0]
    X = np.concatenate(list(schools)).astype(np.float64)  # the file's uint8 would wrap around
    X[:, _PERCENTAGES] /= 100
    return Dataset(
        name="school",
        X=X,
        y=np.concatenate([scores.ravel() for scores in content["Y"][0]]).astype(np.float64),
        task=np.repeat(np.arange(1, len(schools) + 1), [len(rows) for rows in schools]),
        feature_names=_feature_names(),
        description=_DESCRIPTION,
        kind="regression",
    )


def _feature_names() -> tuple[str, ...]:
    return tuple(
        group if size == 1 else f"{group}={level}" for group, size in _GROUPS.items() for level in range(1, size + 1)
    )
