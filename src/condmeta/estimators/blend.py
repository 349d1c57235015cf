"""Models of tasks that are convex combinations of others, by the number of points."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from condmeta.tasks import TaskSet
from condmeta.tasks.ids import factorize, positions


def blend(answers, weights, shots, points) -> np.ndarray:
    """Return the combination (N,) of answers (N, C), by the points (N,) of each row's task.

    weights (S, C) stand for the numbers of points `shots` (S,), rising; the largest up to a task's
    own number counts, or the first.
    """
    at = np.maximum(np.searchsorted(shots, points, side="right") - 1, 0)
    return np.einsum("ij,ij->i", answers, weights[at])


class BlendedModel:
    """The model of one task by several learners, what `AutoRegressor.adapt` returns.

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

    def __init__(self, parts, weights, shots):
        self._parts, self._weights, self._shots = parts, weights, shots

    @property
    def n_(self) -> int:
        return self._parts[0].n_

    def predict(self, X) -> np.ndarray:
        """Return the predictions for rows X (N, d)."""
        answers = np.column_stack([part.predict(X) for part in self._parts])
        return blend(answers, self._weights, self._shots, np.full(len(answers), self.n_))

    def update(self, X, y) -> BlendedModel:
        """Add points; their number may change which learner counts."""
        for part in self._parts:
            part.update(X, y)
        return self

    def __repr__(self) -> str:
        return f"BlendedModel(n={self.n_}, parts={len(self._parts)})"


class BlendedModels(Mapping):
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

    def __init__(self, parts, weights, shots):
        self._parts, self._weights, self._shots = parts, weights, shots
        self.ids, self.n_ = parts[0].ids, parts[0].n_

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self):
        return iter(self.ids.tolist())

    def __getitem__(self, task) -> BlendedModel:
        parts = [part[task] for part in self._parts]
        return BlendedModel(parts, self._weights, self._shots)

    def predict(self, X, *, task=None) -> np.ndarray:
        """Return the predictions for rows X (N, d), each by the model of its task."""
        answers = np.column_stack([part.predict(X, task=task) for part in self._parts])
        if isinstance(X, TaskSet):
            points = X.restore_order(np.repeat(self.n_[positions(self.ids, X.ids)], X.sizes))
        else:
            codes, ids = factorize(task)
            points = self.n_[positions(self.ids, ids)][codes]
        return blend(answers, self._weights, self._shots, points)

    def __repr__(self) -> str:
        return f"BlendedModels({len(self)} tasks, parts={len(self._parts)})"
