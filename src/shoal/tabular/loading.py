"""`shoal.load`: the model of a file, with the reader of its rows if they came from a table."""

import os
from collections.abc import Collection
from typing import Any

from sklearn.base import is_classifier

from shoal.extras import named_extra
from shoal.model_file import load_model


def load(path: str | os.PathLike[str], *, trusted: Collection[str] = ()) -> Any:
    """The model of a file, of Python, the program or the service; learning on equals never having stopped, bit for bit.

    Parameters
    ----------
    path : str or path
    trusted : import paths, such as ["my_module.MyLearner"]
        Learners of one's own that may be imported if the file holds them, within another learner, too. A module that is
        imported runs: name only what you would import yourself. [default: learners of shoal alone]

    Returns
    -------
    TabularClassifier, TabularRegressor or a learner
        The object that wrote it with `save`. A file of `shoal run --save` or of a service gives a `TabularClassifier`
        or `TabularRegressor` if the rows were a table's, and the learner if they were LIBSVM or VW text or a built-in
        data set.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModuleNotFoundError
        If the model is of a table and polars is not installed.
    ValueError
        If the file is not a shoal model, is truncated or damaged, or holds what no learner could have saved; if its
        learner is not one of shoal and not trusted, or cannot be imported.
    """
    with named_extra(f"the model of a table in {path}"):
        learner, reading = load_model(path, trusted)
        if reading is None or reading.state.get("family") != "table":
            return learner
        from shoal.tabular import estimators  # with polars, which others do without

    kind = estimators.TabularClassifier if is_classifier(learner) else estimators.TabularRegressor
    return estimators.of_file(kind, learner, reading)
