"""Weights in the units of other scales."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condmeta.fitted.scales import Scales
from condmeta.inner.context import Context


class ChangeOfScale(NamedTuple):
    """From weights of rows in one scale to weights in another: w -> B w, intercepts + shift."""

    B: np.ndarray
    shift: float

    @classmethod
    def between(cls, one: Scales, other: Scales) -> ChangeOfScale:
        """Return the change from the weights of `one` to those of `other`, of equal `y_scale`."""
        d = len(one.x_mean)
        B = np.eye(one.width)
        B[np.arange(d), np.arange(d)] = other.x_scale / one.x_scale
        if one.fit_intercept:
            B[d, :d] = (other.x_mean - one.x_mean) / one.x_scale
        return cls(B, (one.y_offset - other.y_offset) / one.y_scale)

    def map(self, W) -> np.ndarray:
        """Return a map (k+1, width) with b in its last row."""
        W = W @ self.B.T
        if self.shift:
            W[-1, -1] += self.shift
        return W

    def covariance(self, H) -> np.ndarray:
        """Return a covariance of weights."""
        return self.B @ H @ self.B.T

    def context(self, context: Context) -> Context:
        """Return a context; its coordinates a stay the same."""
        stretch = np.diag(self.B)[:-1]  # new scale over old one
        center = (context.center - self.B[-1, :-1]) / stretch
        return context._replace(center=center, axes=context.axes * stretch)


def in_units_of_y(s2: float, objective: float, n_points: Any, y_scale: float) -> dict[str, float]:
    """Return the noise and the log likelihood of y, from those of y / y_scale."""
    with np.errstate(over="ignore"):
        s2 = float(np.square(y_scale) * s2)
    return {"s2_": s2, "objective_": float(objective - n_points * np.log(y_scale))}
