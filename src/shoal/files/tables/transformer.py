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
    mean and variance and its values, and new columns where `new_columns` asks for them. `transform` learns nothing,
    leaves out unknown values and columns, and gives always the same number of features. NaN, None and absent columns
    are missing values. Memory is bounded: a column of categories has at most 1,000 values of its own and 1,024 hashed
    ones, a column of text 2**hash_bits features.

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
    strict : bool
        Refuse tables whose columns are not those of the first one. By default an absent column is missing values and
        an unknown one is not used; a warning names each once, and `notes_` counts their rows.
    new_columns : int
        The most columns that `partial_fit` learns beyond those of `fit`.

    Attributes
    ----------
    n_features_in_ : int
        Columns of the tables.
    feature_names_in_ : (n_features_in_,) array of str
        Their names, but for those of `ignore`.
    notes_ : list of str
        What was done with each column, and which were absent or unknown in how many rows.

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
        strict: bool = False,
        new_columns: int = 0,
    ) -> None:
        self.text = text
        self.category = category
        self.numeric = numeric
        self.date = date
        self.ignore = ignore
        self.date_format = date_format
        self.hash_bits = hash_bits
        self.keep_names = keep_names
        self.strict = strict
        self.new_columns = new_columns

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, then learn the kinds, statistics and values of the columns."""
        frame = as_table(X)
        if frame.height == 0:
            raise ValueError("X has no rows, expected at least one")
        return self._learn(self._begun(frame), frame)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from more rows; the first ones decide the kinds of the columns.

        Raises ValueError if a row cannot be read, by its number; then nothing changes.
        """
        frame = as_table(X, list(getattr(self, "feature_names_in_", ())))
        return self._learn(self._encoder if hasattr(self, "_encoder") else self._begun(frame), frame)

    def transform(self, X: Any) -> csr_matrix:
        """(n, features) features of the rows; a warning names each column that is absent or unknown, once."""
        check_is_fitted(self, "feature_names_in_")
        pieces = self._read(self._encoder, as_table(X, self.feature_names_in_.tolist()), learns=False)
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
        return made._note(StreamEncoder.from_dict(state["encoder"], made._notation()))

    @property
    def notes_(self) -> list[str]:
        """How each column became features, and which were absent or unknown in how many rows, a sentence each."""
        return self._encoder.notes() + self._encoder.unmatched.notes()

    def _begun(self, frame: pl.DataFrame) -> StreamEncoder:
        """A new encoder, whose columns are those of the first rows."""
        options = {name: getattr(self, name) for name in (*KINDS, "ignore")}
        ReadOptions(**options, date_format=self.date_format, hash_bits=self.hash_bits)
        given = {column: kind for kind in KINDS for column in options[kind]}
        for name in given:
            if name not in frame.columns:
                raise ValueError(unknown_name("X has no column", name, frame.columns))
        encoder = StreamEncoder(given, self._notation(), self.hash_bits, keep_names=self.keep_names)
        encoder.decide(self._features(frame.head(SAMPLE)))
        return encoder

    def _learn(self, encoder: StreamEncoder, frame: pl.DataFrame) -> Self:
        mark = encoder.mark()
        try:
            pieces = self._read(encoder, frame, learns=True)
        except ValueError:
            encoder.rollback(mark)
            raise
        for values, n in pieces:
            encoder.encode(values, n)
        return self._note(encoder)

    def _read(
        self, encoder: StreamEncoder, frame: pl.DataFrame, *, learns: bool
    ) -> list[tuple[dict[str, Values], int]]:
        """The values of all rows, 30,000 at a time; columns that do not fit are counted, and named once."""
        frame, found = self._features(frame), []
        if frame.height and encoder is getattr(self, "_encoder", None):
            encoder.unmatched.strict = self.strict
            frame = encoder.matched(frame, self._n_first + self.new_columns if learns else 0)
            encoder.unmatched.warn()
        for first in range(0, frame.height, ROWS):
            piece = frame[first : first + ROWS]
            values, problems = encoder.read(piece, learns=learns)
            if problems:
                row, problem = min(problems)
                raise ValueError(f"row {first + row}: {problem}")
            found.append((values, piece.height))
        return found

    def _features(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.drop([name for name in self.ignore if name in frame.columns])

    def _note(self, encoder: StreamEncoder) -> Self:
        """Take the encoder, which has learned rows."""
        if getattr(self, "_encoder", None) is not encoder:
            self._encoder, self._n_first = encoder, len(encoder.column_names)
        self.feature_names_in_ = np.array(encoder.column_names, np.object_)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    def _notation(self) -> Notation:
        return Notation(strings=False, date_format=self.date_format)
