"""`TableEncoder`: the features of tables as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from shoal.files.messages import unknown_name
from shoal.files.options import ReadOptions
from shoal.files.saved_state import State
from shoal.files.tables.column_kinds import Values
from shoal.files.tables.encoder import StreamEncoder
from shoal.files.tables.frames import as_table
from shoal.files.tables.values_in_text import Notation

KINDS = ("text", "category", "numeric", "date")
SAMPLE = 1_000  # rows that decide the kinds of the columns
ROWS = 30_000  # encoded at once


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Data frames, dict rows and arrays to sparse features: numbers scaled, categories one-hot, words hashed.

    The features are those of `open_stream`. `fit`, or `partial_fit` batch by batch, learns the kind of each column, its
    mean and variance and its values. `transform` learns nothing, leaves out unknown values and columns, and gives
    always the same number of features. NaN, None and absent columns are missing values. Memory is bounded: a column of
    categories has at most 1,000 values of its own and 1,024 hashed ones, a column of text 2**hash_bits features.

    Parameters
    ----------
    text, category, numeric, date : sequences of str
        Columns to read as words, as values of their own, as numbers or as dates; the first rows decide for others.
    ignore : sequence of str
        Columns that are no features, such as the label or the task, if the frame has them.
    date_format : str, optional
        How the dates of `date` are written if they are text; by default as ISO 8601 says.
    hash_bits : int
        The words of a text column share 2**hash_bits features.
    keep_names : bool
        Features of words are called `column=word` instead of `column#number`.

    Attributes
    ----------
    n_features_in_ : int
        Columns of the tables.
    feature_names_in_ : (n_features_in_,) array of str
        Their names, but for those of `ignore`.
    notes_ : list of str
        What was done with each column.

    Examples
    --------
    >>> rows = [{"delay": 2.0, "carrier": "UA"}, {"delay": 4.0, "carrier": "B6"}, {"carrier": "UA"}]
    >>> encoder = TableEncoder().fit(rows)
    >>> encoder.get_feature_names_out().tolist()
    ['constant', 'delay', 'carrier=UA', 'carrier=B6', 'delay=missing']
    >>> encoder.transform(rows).toarray()
    array([[ 1., -1.,  1.,  0.,  0.],
           [ 1.,  1.,  0.,  1.,  0.],
           [ 1.,  0.,  1.,  0.,  1.]])
    """

    def __init__(
        self,
        *,
        text: Sequence[str] = (),
        category: Sequence[str] = (),
        numeric: Sequence[str] = (),
        date: Sequence[str] = (),
        ignore: Sequence[str] = (),
        date_format: str | None = None,
        hash_bits: int = 18,
        keep_names: bool = False,
    ) -> None:
        self.text = text
        self.category = category
        self.numeric = numeric
        self.date = date
        self.ignore = ignore
        self.date_format = date_format
        self.hash_bits = hash_bits
        self.keep_names = keep_names

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, then learn the kinds, statistics and values of the columns."""
        frame = as_table(X)
        if frame.height == 0:
            raise ValueError("X has no rows, expected at least one")
        return self._begin(frame)._learn(frame)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from more rows; the first ones decide the kinds of the columns."""
        frame = as_table(X, list(getattr(self, "feature_names_in_", ())))
        if not hasattr(self, "_encoder"):
            self._begin(frame)
        return self._learn(frame)

    def transform(self, X: Any) -> csr_matrix:
        """(n, features) features of the rows; a warning names each column that is absent or unknown, once."""
        check_is_fitted(self, "feature_names_in_")
        frame, unmatched = self._features(as_table(X, self.feature_names_in_.tolist())), self._encoder.unmatched
        if frame.height:
            unmatched.count(*self._encoder.compared(frame.columns), frame.height)
            unmatched.warn()
        pieces = [self._read(piece, learns=False) for piece in frame.iter_slices(ROWS)]
        found = [self._encoder.encode(values, n, learns=False) for values, n in pieces]
        if not found:
            return csr_matrix((0, len(self._encoder.feature_names)))
        return found[0] if len(found) == 1 else vstack(found, format="csr")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the features: `column`, `column=value`, `column#bucket` (with `keep_names` `column=word`),
        `column=missing`."""
        check_is_fitted(self, "feature_names_in_")
        return np.array(self._encoder.feature_names, np.object_)

    def to_dict(self) -> State:
        """The whole state, for JSON. `shoal.TabularClassifier` saves encoder and learner together."""
        check_is_fitted(self, "feature_names_in_")
        parameters = {
            name: value if value is None or isinstance(value, (str, int)) else list(value)
            for name, value in self.get_params().items()
        }
        return {"parameters": parameters, "encoder": self._encoder.to_dict()}

    @classmethod
    def from_dict(cls, state: State) -> Self:
        """The encoder of a saved state, which goes on bit for bit."""
        made = cls(**state["parameters"])
        made._encoder = StreamEncoder.from_dict(state["encoder"], made._notation())
        made._note_names()
        return made

    @property
    def notes_(self) -> list[str]:
        """How each column became features, a sentence each."""
        return self._encoder.notes()

    def _begin(self, frame: pl.DataFrame) -> Self:
        options = {name: getattr(self, name) for name in (*KINDS, "ignore")}
        ReadOptions(**options, date_format=self.date_format, hash_bits=self.hash_bits)
        given = {column: kind for kind in KINDS for column in options[kind]}
        for name in given:
            if name not in frame.columns:
                raise ValueError(unknown_name("X has no column", name, frame.columns))
        self._encoder = StreamEncoder(given, self._notation(), self.hash_bits, keep_names=self.keep_names)
        self._encoder.decide(self._features(frame.head(SAMPLE)))
        return self

    def _learn(self, frame: pl.DataFrame) -> Self:
        for piece in self._features(frame).iter_slices(ROWS):
            self._encoder.encode(*self._read(piece, learns=True))
        self._note_names()
        return self

    def _read(self, frame: pl.DataFrame, *, learns: bool) -> tuple[dict[str, Values], int]:
        values, problems = self._encoder.read(frame, learns=learns)
        if problems:
            row, problem = min(problems)
            raise ValueError(f"row {row}: {problem}")
        return values, frame.height

    def _features(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.drop([name for name in self.ignore if name in frame.columns])

    def _note_names(self) -> None:
        self.feature_names_in_ = np.array(self._encoder.column_names, np.object_)
        self.n_features_in_ = len(self.feature_names_in_)

    def _notation(self) -> Notation:
        return Notation(strings=False, date_format=self.date_format)
