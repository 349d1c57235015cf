"""Statistics of rows in other units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.estimators.preparation import Preparation
from condmeta.inner.squared import SquaredState


class Units(NamedTuple):
    """The change from rows X and labels y to rows X B and labels y + shift.

    Weights change from w to B^-1 w, and the last one, the intercept, by the shift. A shift needs
    an intercept: the last column of X is then one.
    """

    B: np.ndarray
    shift: float

    @classmethod
    def between(cls, one: Preparation, other: Preparation) -> Units:
        """Return the change from the rows of one preparation to those of another."""
        d = len(one.x_mean)
        B = np.eye(one.width)
        B[np.arange(d), np.arange(d)] = one.x_scale / other.x_scale
        if one.fit_intercept:
            B[d, :d] = (one.x_mean - other.x_mean) / other.x_scale
        return cls(B, one.y_offset - other.y_offset)

    @property
    def is_none(self) -> bool:
        """Whether nothing changes."""
        return not self.shift and np.array_equal(self.B, np.eye(len(self.B)))

    def change(self, stats: SquaredState) -> SquaredState:
        """Return the statistics in the new units."""
        if self.is_none:
            return stats
        gram, moment, square, count = stats
        if self.shift:
            square = square + 2 * self.shift * moment[:, -1] + self.shift**2 * count
            moment = moment + self.shift * gram[:, :, -1]
        return SquaredState(self.B.T @ gram @ self.B, moment @ self.B, square, count)

    def old_weights(self, W) -> np.ndarray:
        """Return weight vectors (..., width) in the old units; a last row b takes the shift."""
        W = W @ self.B.T
        if self.shift:
            W[-1, -1] -= self.shift
        return W

    def old_covariance(self, H) -> np.ndarray:
        """Return a covariance of weights in the old units."""
        return self.B @ H @ self.B.T
