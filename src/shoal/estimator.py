"""A scikit-learn estimator over a model: hyper-parameters go in, what was learned can be seen and saved.

A learner gives its `algorithm` (a value, see `shoal.model.algorithm`) or, if it holds other learners, a core.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from shoal.engine.arrays import FloatArray, IntArray
from shoal.model import persistence
from shoal.model.algorithm import Algorithm, Size
from shoal.model.core import Core, CoreLike
from shoal.model.model import Model
from shoal.model.parameters import alike, hyper_parameters
from shoal.model.state import named_leaves
from shoal.model.targets import Targets


class Estimator(BaseEstimator):  # type: ignore[misc]
    """Hyper-parameters, and the model that learned with them."""

    estimator_names: ClassVar[tuple[str, ...]] = ()  # hyper-parameters that are learners themselves

    @property
    def algorithm(self) -> Algorithm[Any]:
        """What learns: most kinds set it as an attribute of the class."""
        raise NotImplementedError

    @property
    def targets(self) -> Targets:
        """What is predicted: an attribute of the class, likewise."""
        raise NotImplementedError

    _model: Model | None = None
    _read_from: tuple[Any, ...] = ()  # the hyper-parameters that the model has

    def new_core(self) -> CoreLike:
        """What learns, with the hyper-parameters of now, before the first row.

        Raises
        ------
        ValueError
            If a hyper-parameter is out of its range.
        """
        return Core(self.algorithm, self.get_params(deep=False))

    @property
    def simultaneous(self) -> bool:
        """Does `rounds=None` mean that rows of different tasks form a round?"""
        return self.algorithm.simultaneous

    # ---- the model ---------------------------------------------------------------------------------------

    def _new_model(self) -> Model:
        return Model(self.new_core(), self.targets, type(self).__name__, getattr(self, "classes", None))

    def _begun(self) -> Model:
        """The model, with the hyper-parameters of now; a new one, not kept yet, if there is none."""
        values = hyper_parameters(self)
        if self._model is None:
            return self._new_model()
        if not alike(values, self._read_from):
            self._model.core.adopt(self.new_core())
            self._read_from = values
        return self._model

    def _keep(self, model: Model) -> None:
        if model is not self._model:
            self._model, self._read_from = model, hyper_parameters(self)

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if self._model is not None:
            self._model.core.attach(self.new_core())

    def _fitted_model(self) -> Model:
        if self._model is None or not self._model.is_fitted:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' or 'partial_fit' with appropriate "
                "arguments before using this estimator."
            )
        return self._begun()

    def _known(self, attribute: str) -> Model:
        """The model, for an attribute that there is once it has learned a row."""
        if self._model is None or not self._model.is_fitted:
            raise AttributeError(f"{type(self).__name__} has no {attribute} before it has learned a row")
        return self._model

    def _state(self, attribute: str) -> Any:
        return self._known(attribute).core.state

    def _setup(self) -> Any:
        """The hyper-parameters of now, as the algorithm takes them."""
        core: Any = self._begun().core
        return core.setup

    # ---- what can be seen --------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None and self._model.is_fitted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def tasks_(self) -> list[Any]:
        """Task ids in the order of their columns."""
        if self._model is None:
            raise AttributeError(f"{type(self).__name__} has no tasks_ before it has learned a row")
        return self._model.tasks.ids

    def knows_task(self, task: Hashable) -> bool:
        """Has a row of this task been learned, or was it declared?"""
        return self._model is not None and task in self._model.tasks.column

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self._known("n_features_in_").features.count

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Column names, where the rows came with names."""
        names = None if self._model is None else self._model.features.names
        if names is None:
            raise AttributeError(f"{type(self).__name__} has no feature_names_in_: its rows came without names")
        return np.fromiter(names, object, len(names))

    @property
    def relation_(self) -> FloatArray | None:
        """(n_tasks, n_tasks) task relationship in force, or None."""
        return None

    @property
    def task_updates_(self) -> IntArray:
        """(n_tasks,) examples of each task that were used in updates of its own model."""
        return self._known("task_updates_").updates()

    @property
    def n_updates_(self) -> int:
        """Examples used in updates so far: the papers' nSV."""
        return int(self.task_updates_.sum())

    # ---- persistence -------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, companion: Any = None) -> None:
        """Write the model to one file (safetensors with a JSON header), whole or not at all.

        Parameters
        ----------
        path : path of the file
        companion : JSON value, optional
            What belongs to the model, such as how a file's columns became its features; `load_with_companion`
            gives it back.

        Raises
        ------
        ValueError
            If a hyper-parameter or a task id has no plain form (a function, an object of your own).
        """
        model = self._fitted_model()
        known = persistence.Known(model.tasks, model.features, self.targets.to_header(model.labels))
        packed = model.core.pack(Size(len(model.tasks), model.features.count))
        persistence.save(path, self, known, named_leaves(packed), companion)

    def _restore(self, known: persistence.Known, arrays: persistence.Arrays) -> None:
        """Take what `save` wrote. Raises ValueError if no such learner could have written it."""
        model = self._new_model()
        if model.core.named_tasks and model.core.named_tasks != known.tasks.ids:
            raise ValueError("its tasks are not those of its relation")
        model.tasks, model.features = known.tasks, known.features
        model.labels = self.targets.from_header(known.labels)
        model.core.expect_labels(model.labels)
        persistence.take(model.core, arrays, Size(len(known.tasks), known.features.count))
        self._keep(model)
