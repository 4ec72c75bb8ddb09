"""Enron-Spam: the mail of six users, each with fresh spam (Metsis, Androutsopoulos, Paliouras, CEAS 2006)."""

import tarfile
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from shoal.datasets.dataset import Dataset
from shoal.datasets.files import find
from shoal.datasets.word_counts import check_transform, transformed

_USERS = range(1, 7)
_DESCRIPTION = (
    "Words of the mails of six Enron employees ({transform}); task = user, label = +1 for spam (26 to 75 % of an "
    "inbox). One dictionary for all. Each user's mails in their order of arrival, the inboxes side by side in time."
)


class Mail(NamedTuple):
    """One mail of a user; sorted, they are in order of arrival."""

    serial: int  # the authors' numbering, which mixes the spam in as if it had come with the ham
    is_spam: bool
    text: str


def load_enron(transform: Literal["counts", "log-norm"] = "counts", min_mails: int = 2) -> Dataset:
    """33,715 mails of six users, spam or not, each user's in order of arrival.

    A user's mails keep their order; the i-th of a user's n mails comes at time i/n, so that all inboxes begin and end
    together. Words are runs of two letters or more, a to z. Users 1 and 4, 2 and 5, 3 and 6 have the same source of
    spam.

    Parameters
    ----------
    transform : "counts" or "log-norm"
        Word counts as they are, or log(1 + count) scaled to unit norm per mail.
    min_mails : int >= 1
        Leave out words that occur in fewer mails.

    Returns
    -------
    Dataset
        Binary; X is sparse; tasks are the users' numbers, 1 to 6.

    Raises
    ------
    ValueError
        If `transform` is unknown or `min_mails` is below 1.
    FileNotFoundError
        If an archive, `enron_spam/enron1.tar.xz` to `enron6.tar.xz`, is nowhere; see `SHOAL_DATA`. Each holds the texts
        of one user in the folders `enron1/ham` and `enron1/spam`, as the authors publish them.
    """
    check_transform(transform)
    if min_mails < 1:
        raise ValueError(f"min_mails must be at least 1, got {min_mails}")
    from sklearn.feature_extraction.text import CountVectorizer

    by_user = inboxes()
    sizes = [len(inbox) for inbox in by_user.values()]
    time = np.concatenate([np.arange(size) / size for size in sizes])
    order = np.argsort(time, kind="stable")
    mails = [mail for inbox in by_user.values() for mail in inbox]
    words = CountVectorizer(token_pattern="[a-z]{2,}", min_df=min_mails, dtype=np.float64)
    counts = words.fit_transform(mails[i].text for i in order)
    return Dataset(
        name="enron",
        X=transformed(counts, transform),
        y=np.array([1.0 if mails[i].is_spam else -1.0 for i in order]),
        task=np.repeat(_USERS, sizes)[order],
        feature_names=tuple(words.get_feature_names_out().tolist()),
        description=_DESCRIPTION.format(transform=transform),
        kind="binary",
    )


def inboxes() -> dict[int, list[Mail]]:
    """The mails of each user in order of arrival."""
    return {user: _read_inbox(find("enron_spam", f"enron{user}.tar.xz")) for user in _USERS}


def _read_inbox(path: Path) -> list[Mail]:
    """A user's mails in order of arrival."""
    with tarfile.open(path, "r:xz") as archive:
        mails = [_read_mail(archive, member) for member in archive if member.name.endswith((".ham.txt", ".spam.txt"))]
    return sorted(mails)


def _read_mail(archive: tarfile.TarFile, member: Any) -> Mail:
    """A member is called `enron1/ham/0001.1999-12-10.farmer.ham.txt`: serial, date, owner, kind."""
    name = member.name.rsplit("/", 1)[-1]
    file = archive.extractfile(member)
    assert file is not None  # members of that name are files
    return Mail(int(name.split(".", 1)[0]), name.endswith(".spam.txt"), file.read().decode("latin-1"))
