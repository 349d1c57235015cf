"""Models of tasks that are combinations of others, by the number of points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.task_model import TaskModel, TaskModels
from condmeta.tasks import TaskSet
from condmeta.tasks.ids import factorize, positions
from condmeta.typing import Ids, Matrix, Values


class Blends(NamedTuple):
    """Combinations shift + slope * (answers @ weights) for several numbers of points.

    shots (S,), rising; weights (S, C); lines (S, 2): shift and slope. Answers below `least` count
    as this: those of means of counts as 0.
    """

    shots: np.ndarray
    weights: np.ndarray
    lines: np.ndarray
    least: float = -np.inf

    def of(self, answers: np.ndarray, points: Any) -> np.ndarray:
        """Return the combination (N,) of answers (N, C), by the points (N,) of each row's task.

        The largest number of points up to a task's own counts, or the first. Answers (N, C, K) that
        are probabilities of K classes give (N, K).
        """
        at = np.maximum(np.searchsorted(self.shots, points, side="right") - 1, 0)
        answers = np.maximum(answers, self.least)
        mixed = np.einsum("ij...,ij->i...", answers, self.weights[at])
        if mixed.ndim > 1:
            return mixed
        shift, slope = self.lines[at].T
        return shift + slope * mixed


def decided(answers: np.ndarray, classes: Any) -> np.ndarray:
    """Return numbers as they are; of probabilities, the more probable class."""
    if classes is None:
        return answers
    return classes[answers.argmax(axis=1) if answers.ndim > 1 else (answers > 0.5).astype(int)]


def probabilities(answers: np.ndarray, classes: Any) -> np.ndarray:
    """Return the probabilities of the classes (N, K)."""
    if classes is None:
        raise DataError("predict_proba is for classes: this model predicts numbers.")
    return answers if answers.ndim > 1 else np.column_stack([1 - answers, answers])


def answers_of(parts: Any, classes: Any, X: Matrix, **whose: Any) -> np.ndarray:
    """Return what each part says (N, C): numbers, or probabilities of the second class.

    With K > 2 classes they are the probabilities of all (N, C, K).
    """
    if classes is None:
        return np.column_stack([part.predict(X, **whose) for part in parts])
    chances = np.stack([part.predict_proba(X, **whose) for part in parts], axis=1)
    return chances[..., 1] if len(classes) == 2 else chances


class BlendedModel:
    """The model of one task by several learners, what `adapt` of an Auto learner returns.

    Attributes
    ----------
    n_ : int
        Points that the model has seen.

    Examples
    --------
    >>> import condmeta as cm
    >>> auto = cm.AutoRegressor(base=None).fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.1])
    >>> auto.adapt([[1.0]], [1.0]).n_
    1
    """

    def __init__(
        self, parts: Sequence[TaskModel], blends: Blends, classes: np.ndarray | None = None
    ):
        self._parts, self._blends, self._classes = parts, blends, classes

    @property
    def n_(self) -> int:
        return self._parts[0].n_

    def predict(self, X: Matrix) -> np.ndarray:
        """Return the predictions for rows X (N, d)."""
        return decided(self._blended(X), self._classes)

    def predict_proba(self, X: Matrix) -> np.ndarray:
        """Return class probabilities (N, K); of `AutoClassifier` only."""
        return probabilities(self._blended(X), self._classes)

    def _blended(self, X: Matrix) -> np.ndarray:
        answers = answers_of(self._parts, self._classes, X)
        return self._blends.of(answers, np.full(len(answers), self.n_))

    def update(self, X: Matrix, y: Values, sample_weight: Values = None) -> BlendedModel:
        """Add points; their number may change which learner counts."""
        for part in self._parts:
            part.update(X, y, sample_weight)
        return self

    def __repr__(self) -> str:
        return f"BlendedModel(n={self.n_}, parts={len(self._parts)})"


class BlendedModels(Mapping[Any, Any]):
    """Models of many tasks, a mapping from task id to `BlendedModel`.

    Attributes
    ----------
    ids : (T,) array
    n_ : (T,) array

    Examples
    --------
    >>> import condmeta as cm
    >>> auto = cm.AutoRegressor(base=None).fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.1])
    >>> list(auto.adapt([[1.0], [2.0]], [1.0, 2.0], task=["a", "b"]))
    ['a', 'b']
    """

    def __init__(
        self, parts: Sequence[TaskModels], blends: Blends, classes: np.ndarray | None = None
    ):
        self._parts, self._blends, self._classes = parts, blends, classes
        self.ids, self.n_ = parts[0].ids, parts[0].n_

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self):
        return iter(self.ids.tolist())

    def __getitem__(self, task: Ids) -> BlendedModel:
        parts = [part[task] for part in self._parts]
        return BlendedModel(parts, self._blends, self._classes)

    def predict(self, X: Matrix, *, task: Ids = None) -> np.ndarray:
        """Return the predictions for rows X (N, d), each by the model of its task."""
        return decided(self._blended(X, task), self._classes)

    def predict_proba(self, X: Matrix, *, task: Ids = None) -> np.ndarray:
        """Return class probabilities (N, K); of `AutoClassifier` only."""
        return probabilities(self._blended(X, task), self._classes)

    def _blended(self, X: Matrix, task: Ids) -> np.ndarray:
        answers = answers_of(self._parts, self._classes, X, task=task)
        if isinstance(X, TaskSet):
            points = X.restore_order(np.repeat(self.n_[positions(self.ids, X.ids)], X.sizes))
        else:
            codes, ids = factorize(task)
            points = self.n_[positions(self.ids, ids)][codes]
        return self._blends.of(answers, points)

    def __repr__(self) -> str:
        return f"BlendedModels({len(self)} tasks, parts={len(self._parts)})"
