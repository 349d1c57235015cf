"""Maps of a task's own points; they need at least one point."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from condmeta.errors import DataError
from condmeta.feature_maps.params import FOURIER, FeatureMap, Fourier
from condmeta.persistence import register
from condmeta.tasks.weights import task_sums

_BLOCK_VALUES = 1 << 20  # features of points held in memory at a time (8 MB)


class PointMap(FeatureMap):
    """Map the points of each task to (T, k); a task without points has a row of zeros.

    If the points have weights (N,), means are weighted.
    """

    reads_points = True
    needs_y = False

    def fit_tasks(
        self,
        X: np.ndarray,
        y: np.ndarray | None,
        offsets: np.ndarray,
        weight: np.ndarray | None = None,
    ) -> Self:
        """Return self: this map has nothing to learn."""
        return self


@register(fields={})
class MeanInput(PointMap):
    """Describe a task by the mean of its inputs: Phi(Z) = mean of x.

    Examples
    --------
    >>> MeanInput().transform_tasks(np.array([[1.0], [3.0]]), None, np.array([0, 2, 2]))
    array([[2.],
           [0.]])
    """

    def transform_tasks(
        self,
        X: np.ndarray,
        y: np.ndarray | None,
        offsets: np.ndarray,
        weight: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return (T, d)."""
        return _task_means(lambda rows: X[rows], offsets, X.shape[1], weight)

    def names_out(self, input_names: Sequence[str]) -> list[str]:
        """Name the features."""
        return [f"mean({name})" for name in input_names]


@register(fields={})
class MeanInputOutput(PointMap):
    """Describe a task by the mean of vec(x (y, 1)^T): Phi(Z) = (mean of y x, mean of x).

    Examples
    --------
    >>> MeanInputOutput().transform_tasks(np.array([[1.0], [3.0]]), np.array([2.0, 2.0]), [0, 2])
    array([[4., 2.]])
    """

    needs_y = True

    def transform_tasks(
        self,
        X: np.ndarray,
        y: np.ndarray | None,
        offsets: np.ndarray,
        weight: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return (T, 2 d)."""
        if y is None:
            raise DataError("MeanInputOutput reads y: give the points of each task their targets.")

        def features(rows: slice) -> np.ndarray:
            return np.concatenate([y[rows, None] * X[rows], X[rows]], axis=1)

        return _task_means(features, offsets, 2 * X.shape[1], weight)

    def names_out(self, input_names: Sequence[str]) -> list[str]:
        """Name the features."""
        return [f"mean(y*{n})" for n in input_names] + [f"mean({n})" for n in input_names]


@register(fields=FOURIER)
class MeanFourier(Fourier, PointMap):
    """Describe a task by the mean over its inputs of random Fourier features.

    Phi(Z) = mean of phi(x), phi as in `RandomFourier`: the mean embedding of the inputs. Tasks may
    have any number of points; their order does not matter.

    Parameters
    ----------
    n_features, std, random_state
        As for `RandomFourier`.

    Examples
    --------
    >>> points = np.zeros((3, 2)), None, np.array([0, 1, 3])
    >>> MeanFourier(n_features=4, random_state=0).fit_tasks(*points).transform_tasks(*points).shape
    (2, 4)
    """

    def fit_tasks(
        self,
        X: np.ndarray,
        y: np.ndarray | None,
        offsets: np.ndarray,
        weight: np.ndarray | None = None,
    ) -> Self:
        """Draw frequencies `U_` (k, d) and phases `v_` (k,)."""
        self._draw(X.shape[1])
        return self

    def transform_tasks(
        self,
        X: np.ndarray,
        y: np.ndarray | None,
        offsets: np.ndarray,
        weight: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return (T, k)."""
        return _task_means(lambda rows: self._phi(X[rows]), offsets, self.v_.size, weight)

    def names_out(self, input_names: Sequence[str]) -> list[str]:
        """Name the features."""
        return [f"mean(fourier{j})" for j in range(self.v_.size)]


def _task_means(features: Any, offsets: np.ndarray, width: int, weight: Any) -> np.ndarray:
    """Average the features of the points of each task, block by block."""
    offsets = np.asarray(offsets)
    sizes = np.diff(offsets)
    out = np.zeros((sizes.size, width))
    filled = np.flatnonzero(sizes)  # reduceat would read a row of the next task for an empty task
    starts = offsets[filled]
    for rows in _blocks(offsets[np.append(filled, sizes.size)], _BLOCK_VALUES // max(1, width)):
        inside = slice(*np.searchsorted(starts, [rows.start, rows.stop]))
        first = starts[inside] - rows.start
        at = filled[inside]
        if not first.size or first[0] > 0:  # the rest of a task that is larger than a block
            at = np.append(filled[inside.start - 1], at)
            first = np.append(0, first)
        values = features(rows)
        if weight is not None:
            values = values * weight[rows, None]
        out[at] += np.add.reduceat(values, first, axis=0)
    count = sizes if weight is None else task_sums(weight, offsets)
    return out / np.where(sizes > 0, count, 1)[:, None]


def _blocks(edges: np.ndarray, most: int) -> Iterator[slice]:
    """Yield blocks of rows that end with a task, unless one task is larger than a block.

    The sums of a task then do not depend on the tasks around it.
    """
    start, stop = int(edges[0]), int(edges[-1])
    while start < stop:
        task_end = int(edges[np.searchsorted(edges, start + max(1, most), side="right") - 1])
        next_edge = int(edges[np.searchsorted(edges, start, side="right")])
        end = task_end if task_end > start else min(start + max(1, most), next_edge)
        yield slice(start, end)
        start = end
