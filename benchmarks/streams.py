"""The streams that systems are compared on: five of `shoal.datasets`, and four tables that ship inside packages.

diamonds, randhie, segment and yeast need `pip install "shoal[bench]"`; all others but flights need SHOAL_DATA. Numbers
of the four tables are brought to mean 0 and deviation 1 over all rows: without that linear learners do worse on them.
"""

from collections.abc import Callable
from importlib.resources import as_file, files
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks.scores import Stream
from shoal.datasets import Dataset, load_ecml_spam, load_enron, load_flights, load_landmine, load_mhc

SEED = 1
# The regressors of Cameron and Trivedi, Microeconometrics, 2005, table 20.4: what is known of a person before the year.
PERSON = (
    "logc", "idp", "lpi", "fmde", "linc", "lfam", "xage", "female", "child", "fchild", "black", "educdec", "physlm",
    "disea", "hlthg", "hlthf", "hlthp",
)  # fmt: skip


def diamonds() -> Stream:
    """Does a carat of this diamond cost more than the median? A task is a clarity; rows in random order."""
    from plotnine.data import diamonds as table

    numbers = _scaled(table[["carat", "depth", "table", "x", "y", "z"]])
    categories = [_one_hot(table[column]) for column in ("cut", "color")]
    price = (table["price"] / table["carat"]).to_numpy()
    rows = np.random.default_rng(SEED).permutation(len(table))
    X = np.hstack([numbers, *categories])[rows]
    return Stream("diamonds", X, _signs(price > np.median(price))[rows], numbered(table["clarity"])[rows])


def randhie() -> Stream:
    """Does this person see a doctor more than once this year? A task is an insurance plan; in order of the years."""
    import pandas as pd

    with as_file(files("statsmodels.datasets.randhie") / "src" / "randhie.csv") as path:
        table = pd.read_csv(path).sort_values("year", kind="stable")
    known = table[[*PERSON]]
    X = _scaled(known.fillna(known.mean()))  # four persons have no schooling noted
    return Stream("randhie", X, _signs(table["mdvis"] > 1), numbered(table["plan"]))


def segment() -> Stream:
    """Is this patch of an outdoor image sky, grass, ...? A row for each patch and kind; a task is a kind."""
    from river.datasets import ImageSegments

    patches, kinds = zip(*ImageSegments(), strict=True)
    number = numbered(kinds)
    return _row_a_label("segment", patches, number[:, None] == np.arange(number.max() + 1))


def yeast() -> Stream:
    """Has this gene that function? A row for each gene and function; a task is a function."""
    from river.datasets import Yeast

    genes, functions = zip(*Yeast(), strict=True)
    return _row_a_label("yeast", genes, np.array([[*has.values()] for has in functions]))


def _row_a_label(name: str, objects: Any, holds: Any) -> Stream:
    """All (object, label) in one random order: side by side, one positive row would tell that the next are negative."""
    n, n_labels = holds.shape
    which, task = np.divmod(np.random.default_rng(SEED).permutation(n * n_labels), n_labels)
    X = _scaled([[*features.values()] for features in objects])
    return Stream(name, X[which], _signs(holds[which, task]), task)


def _scaled(X: Any) -> Any:
    return StandardScaler().fit_transform(np.asarray(X, dtype=np.float64))


def _one_hot(column: Any) -> Any:
    number = numbered(column)
    return np.eye(number.max() + 1)[number]


def numbered(values: Any) -> Any:
    """0 to K - 1 in the order of the sorted values."""
    return np.unique(np.asarray(values), return_inverse=True)[1]


def _signs(positive: Any) -> Any:
    return np.where(positive, 1.0, -1.0)


def _of(load: Callable[[], Dataset]) -> Callable[[], Stream]:
    def stream() -> Stream:
        data = load()
        return Stream(data.name, data.X, data.y, numbered(data.task))

    return stream


STREAMS: dict[str, Callable[[], Stream]] = {
    "flights": _of(load_flights),
    "ecml_spam": _of(lambda: load_ecml_spam(transform="log-norm").interleaved()),
    "enron": _of(lambda: load_enron(transform="log-norm")),
    "landmine": _of(lambda: load_landmine().shuffled(0)),
    "mhc": _of(lambda: load_mhc().shuffled(0)),
    "diamonds": diamonds,
    "randhie": randhie,
    "segment": segment,
    "yeast": yeast,
}


def read(name: str, n_rows: int | None = None) -> Stream:
    """The stream of that name, or its first rows."""
    stream = STREAMS[name]()._replace(name=name)
    return stream if n_rows is None else stream.first(n_rows)
