r"""From the user's units to the learner's, and back.

Rows are scaled, the target's offset is taken off, and a column of ones is appended for the
intercept. A weight vector w of the prepared rows is, in the user's units,

    coef = w[:d] / x_scale,   intercept = w[d] + y_offset - <x_mean, coef>.
"""

from __future__ import annotations

import numpy as np

from condmeta.errors import DataError

SCALES = ("none", "standard", "rows")


class Preparation:
    """The frozen scales of one fit.

    Parameters
    ----------
    scale : "none", "standard" (over the training rows; constant columns untouched) or "rows"
        (each row to unit norm; zero rows stay). "standard" centres only if there is an intercept.
    fit_intercept : bool
    x_mean, x_scale : (d,) arrays
    y_offset : float
    x_unit, y_unit : float
        What maps of points read is divided by these; 1 unless the learner must not depend on units.
    """

    def __init__(self, scale, fit_intercept, x_mean, x_scale, y_offset, x_unit=1.0, y_unit=1.0):
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.x_mean = x_mean
        self.x_scale = x_scale
        self.y_offset = y_offset
        self.x_unit, self.y_unit = x_unit, y_unit

    @classmethod
    def learn(cls, X, y, scale: str, fit_intercept: bool, centre) -> Preparation:
        """Read the scales off training rows; `centre` is np.median, np.mean or None (classes)."""
        d = X.shape[1]
        x_mean, x_scale = np.zeros(d), np.ones(d)
        if scale == "standard":
            spread = X.std(axis=0)
            # The spread of a constant column is rounding noise of its size, not exactly zero.
            varies = spread > 1e-12 * np.abs(X).max(axis=0, initial=0.0)
            x_scale[varies] = spread[varies]
            if fit_intercept:
                x_mean[varies] = X.mean(axis=0)[varies]
        y_offset = float(centre(y)) if fit_intercept and centre is not None else 0.0
        return cls(scale, fit_intercept, x_mean, x_scale, y_offset)

    @property
    def width(self) -> int:
        """The number of coordinates of a weight vector, intercept included."""
        return len(self.x_mean) + self.fit_intercept

    def scaled(self, X: np.ndarray) -> np.ndarray:
        """Return the scaled rows (N, d), without the intercept column."""
        if self.scale == "standard":
            return (X - self.x_mean) / self.x_scale
        if self.scale == "rows":
            norms = np.sqrt(np.einsum("ij,ij->i", X, X))
            return X / np.where(norms > 0, norms, 1.0)[:, None]
        return X

    def with_ones(self, scaled: np.ndarray) -> np.ndarray:
        """Return the rows of the linear model (N, width)."""
        if not self.fit_intercept:
            return np.ascontiguousarray(scaled)
        return np.hstack([scaled, np.ones((len(scaled), 1))])

    def rows(self, X: np.ndarray) -> np.ndarray:
        """Return scaled rows with the intercept column (N, width)."""
        return self.with_ones(self.scaled(X))

    def target(self, y: np.ndarray) -> np.ndarray:
        """Return y without its offset."""
        return y - self.y_offset if self.y_offset else y

    def for_maps(self, scaled, y):
        """Return scaled rows and targets (or None) as maps of points read them."""
        scaled = scaled if self.x_unit == 1.0 else scaled / self.x_unit
        return scaled, y if y is None or self.y_unit == 1.0 else y / self.y_unit

    def to_user(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients (..., d) and intercepts (...) of weight vectors (..., width)."""
        d = len(self.x_mean)
        coef = W[..., :d] / self.x_scale
        intercept = self.y_offset - coef @ self.x_mean
        return coef, intercept + W[..., d] if self.fit_intercept else intercept

    def from_user(self, theta) -> np.ndarray:
        """Return the weight vector (width,) of a bias in the user's units.

        A scalar or d numbers give the coefficients; the intercept is then such that the mean
        training input predicts `y_offset`. d + 1 numbers give the intercept too, last.
        """
        d = len(self.x_mean)
        given = theta
        try:
            theta = np.asarray(theta, dtype=float)
        except (TypeError, ValueError):
            theta = np.array(np.nan)
        if not np.isfinite(theta).all():
            raise DataError(
                f"The 'theta' parameter must hold finite numbers. Got {given!r} instead."
            )
        if theta.ndim == 0:
            theta = np.full(d, float(theta))
        with_intercept = self.fit_intercept and theta.shape == (d + 1,)
        if theta.shape != (d,) and not with_intercept:
            allowed = f"{d} or {d + 1} numbers" if self.fit_intercept else f"{d} numbers"
            raise DataError(
                f"The 'theta' parameter must be a number or {allowed}. "
                f"Got an array of shape {theta.shape} instead."
            )
        w = np.zeros(self.width)
        w[:d] = theta[:d] * self.x_scale
        if with_intercept:
            w[d] = theta[d] - self.y_offset + self.x_mean @ theta[:d]
        return w
