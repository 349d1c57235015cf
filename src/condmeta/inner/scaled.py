"""Statistics of scaled rows, from the packed statistics of rows as they came."""

from typing import NamedTuple, Self

import numpy as np

from condmeta.engine import twin
from condmeta.inner.packed import cut, square_of
from condmeta.inner.squared import SquaredState


class ScaledTasks(NamedTuple):
    """Statistics of some tasks, which are made of packed ones when they are needed.

    The arrays are those of `scaled_squares`; count (m,), see `SquaredState`.
    """

    triangles: np.ndarray
    mean: np.ndarray
    mass: np.ndarray
    at: np.ndarray
    centre: np.ndarray
    by: np.ndarray
    intercept: bool
    count: np.ndarray

    @property
    def squared(self) -> SquaredState:
        """The statistics as whole matrices, made anew at each call."""
        return SquaredState(*scaled_squares(*self[:-1]), self.count)

    def take(self, at: np.ndarray) -> Self:
        """Return the statistics of the tasks at positions `at`."""
        return self._replace(mass=self.mass[at], at=self.at[at], count=self.count[at])

    def columns(self, kept: np.ndarray) -> Self | SquaredState:
        """Return the statistics of the columns of a mask (d,)."""
        return self if kept.all() else self.squared.columns(kept)


@twin
def scaled_squares(triangles, mean, mass, at, centre, by, intercept):
    """Return gram, moment and square (see `SquaredState`) of the tasks at positions `at` (m,).

    triangles, mean: see `Scatter`; mass (m,), the weight of the points of these tasks; rows are
    (x - centre) * by, and a one at the end if `intercept`; labels y - centre; centre, by (d+1,).
    """
    m, p = len(at), mean.shape[1]
    last = p - 1  # the column of y, and then of the intercept
    gram, moment, square = np.empty((m, p, p)), np.empty((m, p)), np.empty(m)
    for here in cut(np.arange(m), p * p):
        tasks, n = at[here], mass[here][:, None]
        center = (mean[tasks] - centre) * by
        whole = triangles[tasks][:, square_of(p)] * np.outer(by, by)
        whole += (n * center)[:, :, None] * center[:, None, :]
        moment[here], square[here] = whole[:, last], whole[:, last, last]
        # The column of ones replaces that of y.
        whole[:, last, :-1] = whole[:, :-1, last] = n * center[:, :-1]
        whole[:, last, last], moment[here, last] = n[:, 0], n[:, 0] * center[:, -1]
        gram[here] = whole
    if not intercept:
        gram, moment = np.ascontiguousarray(gram[:, :-1, :-1]), moment[:, :-1].copy()
    return gram, moment, square
