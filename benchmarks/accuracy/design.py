"""The columns for the peers: standardised inputs and side columns, and their products."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.linalg import qr

from condmeta.tasks import TaskSet


class Design:
    """Units learned from training tasks: inputs, side columns and target have mean 0 and spread 1.

    Columns that do not vary are dropped.
    """

    def __init__(self, train: TaskSet):
        self._x = _units(train.X)
        self._s = _units(_side(train))
        self.y_mean, self.y_scale = train.y.mean(), train.y.std()

    def target(self, tasks: TaskSet) -> np.ndarray:
        """Return the target (N,) in units of the design."""
        return (tasks.y - self.y_mean) / self.y_scale

    def to_user(self, y: np.ndarray) -> np.ndarray:
        """Undo `target`."""
        return self.y_mean + self.y_scale * y

    def inputs(self, tasks: TaskSet) -> np.ndarray:
        """Return X (N, d)."""
        return _apply(self._x, tasks.X)

    def side(self, tasks: TaskSet) -> np.ndarray:
        """Return the side columns of each row's task, (N, k)."""
        return _apply(self._s, _side(tasks))[codes_of(tasks)]

    def random(self, tasks: TaskSet) -> np.ndarray:
        """Return (1, x), (N, d+1): what has a coefficient of its own in every task."""
        return _with_one(self.inputs(tasks))

    def fixed(self, tasks: TaskSet) -> np.ndarray:
        """Return (1, x) (x) (1, s), (N, (d+1)(k+1)): main effects and all products; 1 is first."""
        x, s = self.random(tasks), _with_one(self.side(tasks))
        return (s[:, :, None] * x[:, None, :]).reshape(len(x), s.shape[1] * x.shape[1])

    def both(self, tasks: TaskSet) -> np.ndarray:
        """Return (x, s), (N, d+k), for learners that find their own products."""
        return np.column_stack([self.inputs(tasks), self.side(tasks)])


def codes_of(tasks: TaskSet) -> np.ndarray:
    """Return the position of each row's task, (N,)."""
    return np.repeat(np.arange(len(tasks)), tasks.sizes)


def slices(tasks: TaskSet) -> list[slice]:
    """Return the rows of each task."""
    return [slice(a, b) for a, b in pairwise(tasks.offsets)]


def independent(F: np.ndarray) -> np.ndarray:
    """Return which columns span all, the first ones kept: lme4 drops aliased columns too."""
    scale = np.linalg.norm(F, axis=0)
    R, order = qr(F / np.where(scale > 0, scale, 1.0), mode="r", pivoting=True)
    size = np.abs(np.diag(R[: F.shape[1]]))
    return np.sort(order[: int((size > 1e-7 * size[0]).sum())])


def _side(tasks: TaskSet) -> np.ndarray:
    if tasks.side is None:
        return np.empty((len(tasks), 0))
    return np.column_stack(list(tasks.side.take(tasks.ids).data.values())).astype(float)


def _units(values: np.ndarray):
    spread = values.std(axis=0)
    kept = spread > 1e-12 * (1 + np.abs(values).max(axis=0, initial=0.0))
    return kept, values[:, kept].mean(axis=0), spread[kept]


def _apply(units, values: np.ndarray) -> np.ndarray:
    kept, mean, scale = units
    return (values[:, kept] - mean) / scale


def _with_one(values: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(values)), values])
