r"""From the user's units to the learner's, and back.

Rows are scaled, the offset of the target is subtracted, and a column of ones is appended for the
intercept. A weight vector w of the scaled rows is, in the user's units,

    coef = w[:d] / x_scale,   intercept = w[d] + y_offset - <x_mean, coef>.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from condmeta.errors import DataError
from condmeta.inner.coin import row_norms
from condmeta.persistence import register
from condmeta.persistence.fields import (
    FLAG,
    flags,
    floats,
    instance,
    maybe,
    number,
    one_of,
    optional,
)
from condmeta.tasks.weights import weighted_median

SCALES = ("none", "standard", "rows")
BLOCK = 1 << 17  # numbers in a temporary
LOG_ODDS = "(log odds)"  # the column that a shared classifier adds


@dataclass(frozen=True, eq=False)
class Scales:
    """The scales of one fit.

    Parameters
    ----------
    scale : "none", "standard" (over the training rows; constant columns untouched) or "rows"
        (each row to unit norm; zero rows stay). "standard" centres only if there is an intercept.
    fit_intercept : bool
    x_mean, x_scale : (d,) arrays
    y_offset : float
    n_inputs : int
        Columns of X as the user gives it. A transformer may change their number to d, and a shared
        classifier appends one.
    x_unit, y_unit : float
        Maps of points read rows and targets divided by these; 1 unless the learner must not depend
        on units.
    transformer : fitted transformer or None
        Applied to X before scaling.
    """

    scale: str
    fit_intercept: bool
    x_mean: np.ndarray
    x_scale: np.ndarray
    y_offset: float
    n_inputs: int
    x_unit: float = 1.0
    y_unit: float = 1.0
    transformer: Any = None

    @classmethod
    def learn(
        cls, X, y, scale: str, fit_intercept: bool, centre, *, transformer=None, weight=None,
        n_inputs=None, unit_free=False,
    ) -> Scales:  # fmt: skip
        """Compute the scales of training rows.

        `centre` is np.median, np.mean or None (classes). Rows count weight (N,) times; the
        transformer gets the weights if its `fit` takes them. `unit_free` sets `x_unit` to the
        largest norm of a row and `y_unit` to the mean absolute target.
        """
        n_inputs = X.shape[1] if n_inputs is None else n_inputs
        if transformer is not None:
            knows = weight is not None and has_fit_parameter(transformer, "sample_weight")
            transformer = clone(transformer).fit(X, **({"sample_weight": weight} if knows else {}))
            X = _checked(transformer.transform(X), len(X))
        d = X.shape[1]
        x_mean, x_scale = np.zeros(d), np.ones(d)
        if scale == "standard":
            mean, spread = _moments(X, weight)
            varies = _varies(X, mean, spread)
            x_scale[varies] = spread[varies]
            if fit_intercept:
                x_mean[varies] = mean[varies]
        y_offset = _middle(y, centre, weight) if fit_intercept and centre is not None else 0.0
        parts = scale, fit_intercept, x_mean, x_scale, y_offset, n_inputs
        scales = cls(*parts, transformer=transformer)
        if not unit_free:
            return scales
        x_unit = float(row_norms(scales.rescaled(X)).max(initial=0.0)) or 1.0
        y_unit = float(np.abs(scales.target(y)).mean()) or 1.0
        return cls(*parts, x_unit, y_unit, transformer)

    @classmethod
    def of_moments(cls, mean, spread, scale: str, fit_intercept: bool) -> Scales:
        """Return the scales of rows that have this mean and standard deviation (d+1,), y last."""
        d = len(mean) - 1
        x_mean, x_scale = np.zeros(d), np.ones(d)
        if scale == "standard":
            reach = np.abs(mean[:d]) + spread[:d]
            varies = spread[:d] > 1e-12 * reach
            x_scale[varies] = spread[:d][varies]
            x_mean[varies] = mean[:d][varies] * fit_intercept
        y_offset = float(mean[d]) if fit_intercept else 0.0
        return cls(scale, fit_intercept, x_mean, x_scale, y_offset, d)

    @property
    def width(self) -> int:
        """The number of coordinates of a weight vector, intercept included."""
        return len(self.x_mean) + self.fit_intercept

    def names(self, given) -> list[str]:
        """Return the names of the d columns, from those of X or None."""
        if given is None:
            given = [f"x{j}" for j in range(self.n_inputs)]
        if self.transformer is None:
            return [*given, *[LOG_ODDS] * (len(self.x_mean) - self.n_inputs)]
        try:
            return [str(name) for name in self.transformer.get_feature_names_out(list(given))]
        except (AttributeError, ValueError, TypeError):
            return [f"z{j}" for j in range(len(self.x_mean))]

    def transformed(self, X: np.ndarray) -> np.ndarray:
        """Return the rows (N, d) before they are scaled."""
        if self.transformer is None:
            return X
        if not len(X):
            return np.empty((0, len(self.x_mean)))
        return _checked(self.transformer.transform(X), len(X))

    def scaled(self, X: np.ndarray) -> np.ndarray:
        """Return the scaled rows (N, d), without the intercept column."""
        return self.rescaled(self.transformed(X))

    def rescaled(self, X: np.ndarray) -> np.ndarray:
        """Return transformed rows, scaled."""
        if self.scale == "standard":
            return (X - self.x_mean) / self.x_scale
        if self.scale == "rows":
            norms = row_norms(X)
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
        """Return y minus its offset."""
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

    def user_vector(self, W: np.ndarray) -> np.ndarray:
        """Return weight vectors in the user's units, the intercept last where there is one."""
        coef, intercept = self.to_user(W)
        if not self.fit_intercept:
            return coef
        return np.concatenate([coef, np.asarray(intercept)[..., None]], axis=-1)

    def user_matrix(self) -> np.ndarray:
        """Return C (width, width): `user_vector(w)` is C w plus a constant."""
        unit, zero = np.eye(self.width), np.zeros(self.width)
        return (self.user_vector(unit) - self.user_vector(zero)).T

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


def _width(state: dict, sizes: dict[str, int]) -> None:
    sizes["w"] = sizes["d"] + bool(state["fit_intercept"])
    sizes["n"] = state["n_inputs"]


register(
    Scales,
    name="Preparation",
    fields={
        "scale": one_of(*SCALES), "fit_intercept": FLAG, "x_mean": floats("d"),
        "x_scale": floats("d", above=0), "y_offset": number(),
        "n_inputs": number(low=0, whole=True),
        "x_unit": number(above=0), "y_unit": number(above=0), "transformer": maybe(instance()),
        "constant": optional(maybe(flags("d"))),
    },
    rule=_width,
)  # fmt: skip


def _moments(X, weight) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation (d,) of rows that count weight (N,) times."""
    if weight is not None:
        mean = np.average(X, axis=0, weights=weight)
        return mean, np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    n, rows = len(X), max(BLOCK // max(X.shape[1], 1), 1)
    blocks = [X[lo : lo + rows] for lo in range(0, n, rows)]
    mean = sum(block.sum(axis=0) for block in blocks) / n
    return mean, np.sqrt(sum(((block - mean) ** 2).sum(axis=0) for block in blocks) / n)


def _varies(X, mean, spread) -> np.ndarray:
    """Return which columns are not constant.

    The spread of a constant column is rounding noise of its size, not exactly zero. No value is
    more than sqrt(N) spreads from the mean, so only nearly flat columns are checked in full.
    """
    varies = spread > 2e-12 * np.abs(mean)
    for column in np.flatnonzero(~varies):
        varies[column] = spread[column] > 1e-12 * np.abs(X[:, column]).max(initial=0.0)
    return varies


def _middle(y, centre, weight) -> float:
    """Return the mean or the median of y."""
    if weight is None:
        return float(centre(y))
    return float(np.average(y, weights=weight)) if centre is np.mean else weighted_median(y, weight)


def _checked(rows, n: int) -> np.ndarray:
    """Return the output of a transformer as finite numbers, or raise."""
    rows = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
    if rows.ndim != 2 or len(rows) != n or rows.dtype.kind not in "fiub":
        raise DataError(
            f"The 'x_transform' gave an array of shape {rows.shape} and type {rows.dtype}, "
            f"expected numbers of shape ({n}, d)."
        )
    if not np.isfinite(rows).all():
        row = int(np.argmax(~np.isfinite(rows).all(axis=1)))
        raise DataError(f"The 'x_transform' gave NaN or infinity in row {row}.")
    return np.ascontiguousarray(rows, dtype=np.float64)
