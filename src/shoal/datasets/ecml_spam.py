"""Personalised spam filtering: the ECML/PKDD 2006 Discovery Challenge (Bickel), one inbox a user."""

from typing import Any, Literal

import numpy as np

from shoal.datasets.dataset import Dataset
from shoal.datasets.files import Source, find
from shoal.datasets.word_counts import check_transform, transformed

_ADDRESS = (
    "https://raw.githubusercontent.com/shohoku11wrj/Spam-Filter/36b41aabee9f953bd799a8a0bc4993d80a9b23cd/"
    "SpamFilterData/evaluation_data_labeled"
)
_WIDTH = {"b": 152_543, "a": 106_780}  # the largest word id of the challenge task's inboxes
_SHA256 = {  # of each user's plain text, in the order of users
    "b": (
        "76bbd7d5051e7ed93be6863e9e1ea760c0438c33f4d40aab9a89bb572845eff2",
        "a21a0445b71b71e7d91efe130c584caa39fe63ef133e87e36459bbd1d1f89da2",
        "9461963d0e8eb85913407adbac88d246ec65e17c44b0dcf3f0f59952793a7d52",
        "7915d1b155869bb36af5b2c5abcfa3589c925c21d62e684d8290b4ece9cac466",
        "fc0cdaa2f5fea06da1480accf3af65f88089dc6b8792a2dc0cfefc25917ed12f",
        "a343292f4d43c520063931e797e737010c9e4e83ef01ab8533556a16e670ab22",
        "82744c9c20869350ed3d55981550122c7f440cdeb5d4ad4da7349b304c61e37f",
        "a3fabecfc03a4a1ea8b140e4ddd86683cb1103791e93aa0b9b70cf16f7e31e53",
        "1c0defafcade34aebaba6738ecc1871fea53266335e743c47f6c95a1d570c2d9",
        "f556f2fe4606f56f7a8319409e9f8fe117782df95ab104dc749624f2da2a5114",
        "c9fb683897630b9a43348eef1eb2b3195434daf0ba5944b57dd51ef1093dae81",
        "9a4692ba855e6201f76344bb2e79056db0caaca58a6532e1bb58cb690b0a26b4",
        "e31ba5fddad7f05b1260c6f04ed88a43a7f73ebb81dfc5189cfa2163b00900aa",
        "f024308b6454ee7735ddbfbfe87c0e011e93d15040a7181ab64680a022cb2434",
        "a291c4b52a2445f388e17bcb2c61660287d087a94e2d1f1a6fd796b59e91dad6",
    ),
    "a": (
        "b067310a31af5f551efd2a26adc3f9c487fbeb20fc3322116924edde2f265088",
        "094636b62ea46b02fb4744200f40b65e3ad11134e1c59ef2bae5ef807c7e4ef4",
        "b63c35f64a9fcdeb6bd26503520f5f081f7356ffdf2876b91575c4c4fe456f07",
    ),
}
_DESCRIPTION = (
    "Word counts of e-mails ({transform}); task = user, label = +1 for spam (half of every inbox). One "
    "dictionary is shared by all users. The mails have no dates: interleave the inboxes, with a seed."
)


def load_ecml_spam(users: Literal["b", "a"] = "b", transform: Literal["counts", "log-norm"] = "counts") -> Dataset:
    """E-mails of 15 users (400 each) or of 3 users (2,500 each), spam or not.

    Parameters
    ----------
    users : "b" or "a"
        The challenge's task B, 15 inboxes of 400 mails (the benchmark of the online multi-task papers), or
        its task A, 3 inboxes of 2,500. The two have different dictionaries.
    transform : "counts" or "log-norm"
        Word counts as they are, or log(1 + count) scaled to unit norm per mail.

    Returns
    -------
    Dataset
        Binary; X is sparse, 152,543 wide for task B and 106,780 for task A; tasks are 0 to 14 or 0 to 2.

    Raises
    ------
    ValueError
        If `users` or `transform` is unknown.
    FileNotFoundError
        If a file is nowhere; see `SHOAL_DATA`.
    """
    if users not in _WIDTH:
        raise ValueError(f"users must be 'b' (15 inboxes) or 'a' (3 inboxes), got {users!r}")
    check_transform(transform)
    from scipy.sparse import vstack

    inboxes = [_load_inbox(users, user) for user in range(len(_SHA256[users]))]
    X = vstack([X for X, _ in inboxes], format="csr")
    sizes = [len(y) for _, y in inboxes]
    return Dataset(
        name="ecml_spam" if users == "b" else "ecml_spam_a",
        X=transformed(X, transform),
        y=np.concatenate([y for _, y in inboxes]),
        task=np.repeat(np.arange(len(inboxes)), sizes),
        feature_names=tuple(f"word{j}" for j in range(1, _WIDTH[users] + 1)),
        description=_DESCRIPTION.format(transform=transform),
        kind="binary",
    )


def _load_inbox(users: str, user: int) -> tuple[Any, Any]:
    from sklearn.datasets import load_svmlight_file

    folder, file = f"task_{users}_lab", f"task_{users}_u{user:02d}_eval_lab.tf"
    source = Source(f"{_ADDRESS}/{folder}/{file}", _SHA256[users][user], gzipped=True)
    path = find("ecml2006_spam", folder, f"{file}.gz", source=source)
    X, y = load_svmlight_file(str(path), n_features=_WIDTH[users], zero_based=False)
    return X, y
