"""Models of tasks with more than two classes: what `adapt` returns (see `AgainstRest`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.task_model import TaskModel, TaskModels
from condmeta.text import pluralize
from condmeta.typing import Ids, Matrix, Values

LEAST = 1e-300  # a probability of which the logarithm is finite


def chances_of(positive: list[np.ndarray]) -> np.ndarray:
    """Return the probabilities of K classes (N, K), from those of each against the rest (N,)."""
    P = np.maximum(np.column_stack(positive), LEAST)
    return P / P.sum(axis=1, keepdims=True)


class ClassModel:
    """The model of one task with more than two classes, what `adapt` returns.

    Attributes
    ----------
    classes_ : (K,) array
    coef_ : (K, d) array
    intercept_ : (K,) array
    theta_ : (K, d) array, or (K, d+1) with the intercept last
    n_ : int, or float if points have weights

    Examples
    --------
    >>> import condmeta as cm
    >>> X, y = [[-1.0], [0.0], [1.0]], ["a", "b", "c"]
    >>> learner = cm.PooledClassifier().fit(X, y)
    >>> learner.adapt(X, y).predict([[-2.0], [2.0]]).tolist()
    ['a', 'c']
    """

    def __init__(self, parts: list[TaskModel], classes: np.ndarray):
        self._parts, self.classes_ = parts, classes

    def _stacked(self, name: str) -> np.ndarray:
        return np.stack([getattr(part, name) for part in self._parts])

    @property
    def coef_(self) -> np.ndarray:
        return self._stacked("coef_")

    @property
    def intercept_(self) -> np.ndarray:
        return self._stacked("intercept_")

    @property
    def theta_(self) -> np.ndarray:
        return self._stacked("theta_")

    @property
    def n_(self) -> int:
        return self._parts[0].n_

    def predict(self, X: Matrix) -> np.ndarray:
        """Return the most probable class of rows X (N, d)."""
        return self.classes_[np.argmax(self.decision_function(X), axis=1)]

    def predict_proba(self, X: Matrix) -> np.ndarray:
        """Return the probabilities of the classes (N, K); logistic loss only."""
        return chances_of([part.predict_proba(X)[:, 1] for part in self._parts])

    def decision_function(self, X: Matrix) -> np.ndarray:
        """Return log probabilities (N, K), or scores where there are none."""
        if self._parts[0]._predictor.probabilistic:
            return np.log(self.predict_proba(X))
        return np.column_stack([part.decision_function(X) for part in self._parts])

    def update(self, X: Matrix, y: Values, sample_weight: Values = None) -> ClassModel:
        """Add points; the result equals one `adapt` on all of them."""
        own = require_classes(y, self.classes_)
        for label, part in zip(self.classes_, self._parts, strict=True):
            part.update(X, (own == label).astype(int), sample_weight)
        return self

    def __repr__(self) -> str:
        return f"ClassModel(n={self.n_}, classes={len(self.classes_)})"


class ClassModels(Mapping):
    """Models of many tasks with more than two classes, a mapping from task id to `ClassModel`.

    Attributes
    ----------
    ids : (T,) array
    classes_ : (K,) array
    coef_ : (T, K, d) array
    intercept_ : (T, K) array
    theta_ : (T, K, d) array, or (T, K, d+1) with the intercept last
    n_ : (T,) array

    Examples
    --------
    >>> import condmeta as cm
    >>> X, y = [[-1.0], [0.0], [1.0]], ["a", "b", "c"]
    >>> models = cm.PooledClassifier().fit(X, y).adapt(X, y, task=[1, 1, 2])
    >>> list(models), models.coef_.shape
    ([1, 2], (2, 3, 1))
    """

    def __init__(self, parts: list[TaskModels], classes: np.ndarray):
        self._parts, self.classes_ = parts, classes
        self.ids, self.n_ = parts[0].ids, parts[0].n_

    def _stacked(self, name: str) -> np.ndarray:
        return np.stack([getattr(part, name) for part in self._parts], axis=1)

    coef_ = ClassModel.coef_
    intercept_ = ClassModel.intercept_
    theta_ = ClassModel.theta_

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self):
        return iter(self.ids.tolist())

    @cached_property
    def _index(self) -> dict[Any, int]:
        return {task: t for t, task in enumerate(self.ids.tolist())}

    def __getitem__(self, task) -> ClassModel:
        return self.at(self._index[task])

    def at(self, t: int) -> ClassModel:
        """Return the model of the task at position t."""
        return ClassModel([part.at(t) for part in self._parts], self.classes_)

    def predict(self, X: Matrix, *, task: Ids = None) -> np.ndarray:
        """Return the most probable class of rows X (N, d), each by the model of its task."""
        return self.classes_[np.argmax(self.decision_function(X, task=task), axis=1)]

    def predict_proba(self, X: Matrix, *, task: Ids = None) -> np.ndarray:
        """Return the probabilities of the classes (N, K); logistic loss only."""
        return chances_of([part.predict_proba(X, task=task)[:, 1] for part in self._parts])

    def decision_function(self, X: Matrix, *, task: Ids = None) -> np.ndarray:
        """Return log probabilities (N, K), or scores where there are none."""
        if self._parts[0]._predictor.probabilistic:
            return np.log(self.predict_proba(X, task=task))
        return np.column_stack([part.decision_function(X, task=task) for part in self._parts])

    def __repr__(self) -> str:
        tasks = pluralize(len(self), "task")
        return f"ClassModels({tasks}, classes={len(self.classes_)})"


def require_classes(y: Any, classes: np.ndarray) -> np.ndarray:
    """Return labels as an array, or raise if one is no class."""
    y = np.asarray(y)
    unknown = [label for label in np.unique(y).tolist() if label not in classes.tolist()]
    if unknown:
        raise DataError(f"y holds labels {unknown} that are not classes: {classes.tolist()}.")
    return y
