"""The data sets by name, as the program calls them: `dataset:NAME`."""

from collections.abc import Callable
from typing import NamedTuple

from shoal.datasets.conjoint import make_conjoint
from shoal.datasets.dataset import Dataset
from shoal.datasets.ecml_spam import load_ecml_spam
from shoal.datasets.enron import load_enron
from shoal.datasets.flights import load_flights
from shoal.datasets.jester import load_jester
from shoal.datasets.landmine import load_landmine
from shoal.datasets.mhc import load_mhc
from shoal.datasets.rcv1 import load_rcv1
from shoal.datasets.related_tasks import make_related_tasks
from shoal.datasets.school import load_school
from shoal.datasets.sentiment import load_sentiment


class _Entry(NamedTuple):
    description: str
    load: Callable[[], Dataset]


_ENTRIES = {
    "flights": _Entry("late flights out of New York, a task per destination (needs shoal[data])", load_flights),
    "landmine": _Entry("radar images with or without a mine, a task per field, 29 fields", load_landmine),
    "landmine19": _Entry("the 19 fields of landmine that the literature uses", lambda: load_landmine(19)),
    "school": _Entry("exam scores of pupils, a task per school (regression)", load_school),
    "ecml_spam": _Entry("e-mails of 15 users, spam or not, a task per user", load_ecml_spam),
    "enron": _Entry("mails of six users in order of arrival, spam or not, a task per user", load_enron),
    "mhc": _Entry("peptides that bind to a molecule of the immune system or not, a task per allele", load_mhc),
    "sentiment": _Entry("reviews of 16 kinds of products and films, good or bad", load_sentiment),
    "jester": _Entry("jokes that 30 people like or not, a task per person", load_jester),
    "rcv1_d1": _Entry("newswire stories on four unrelated topics, a task per topic", load_rcv1),
    "conjoint": _Entry("simulated choices between products, a task per person", lambda: make_conjoint()[0]),
    "related_tasks": _Entry("simulated linear tasks with a common part", make_related_tasks),
}


def names() -> dict[str, str]:
    """The name of each data set and what it is, in one line.

    Examples
    --------
    >>> from shoal.datasets import names
    >>> names()["school"]
    'exam scores of pupils, a task per school (regression)'
    """
    return {name: entry.description for name, entry in _ENTRIES.items()}


def load(name: str) -> Dataset:
    """The data set of that name with its default options.

    Raises
    ------
    ValueError
        If there is no such name.

    Examples
    --------
    >>> from shoal.datasets import load
    >>> load("related_tasks")
    Dataset('related_tasks', 1,000 rows, 10 tasks, 20 features, binary)
    """
    if name not in _ENTRIES:
        raise ValueError(f"there is no data set {name!r}; choose one of {', '.join(_ENTRIES)}")
    return _ENTRIES[name].load()
