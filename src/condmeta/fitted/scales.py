r"""From the user's units to the learner's, and back.

Rows are scaled, the offset of the target is subtracted, and a column of ones is appended for the
intercept. A weight vector w of the scaled rows is, in the user's units,

    coef = w[:d] y_scale / x_scale,   intercept = w[d] y_scale + y_offset - <x_mean, coef>.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.feature_maps.params import naming_failures
from condmeta.fitted.row_moments import largest_values, middle_of, row_moments, unit_rows
from condmeta.fitted.x_transformer import checked_rows
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
from condmeta.tasks.arrays import is_sparse
from condmeta.tasks.numbers import power_of_two

SCALES = ("none", "standard", "rows")
ALMOST_INFINITE = 1e305  # sums and differences of such numbers overflow
LARGEST = 1e100  # of a scaled number: some formulas multiply three of them
FARTHEST = 1e6  # of a scaled number beside ordinary ones: of the sum of squares few digits are left
ROUNDING = 8 * np.finfo(float).eps  # values of one column this close, relative, are one value
LOG_ODDS = "(log odds)"  # the column that a shared classifier adds


@dataclass(frozen=True, eq=False)
class Scales:
    """The scales of one fit.

    Parameters
    ----------
    scale : "none", "standard" (over the training rows; constant columns are only centred) or
        "rows" (each row to unit norm; zero rows stay). "standard" centres only if there is an
        intercept.
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
    constant : (d,) bool array or None
        Columns that say nothing beside the others: constant if there is an intercept, zero if not.
        None in files of older versions.
    y_scale : float
        y is divided by this power of two: 1, unless squares of y would overflow or underflow.
    x_power : (d,) array or None
        Statistics of unscaled rows are divided by these powers of two; None is 1.
    x_size : (d,) array or None
        Root mean squares of the columns, if rows are not centred. None in files of older versions.
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
    constant: np.ndarray | None = None
    y_scale: float = 1.0
    x_power: np.ndarray | None = None
    x_size: np.ndarray | None = None

    @classmethod
    def learn(
        cls, X, y, scale: str, fit_intercept: bool, centre, *, transformer=None, weight=None,
        n_inputs=None, unit_free=False, follows_y=False,
    ) -> Scales:  # fmt: skip
        """Compute the scales of training rows.

        `centre` is np.median, np.mean or None (classes). Rows count weight (N,) times. The
        transformer is fitted already. `unit_free` sets `x_unit` to the largest norm of a row and
        `y_unit` to the mean absolute target. `follows_y`: the learner answers 2 y with twice the
        predictions, so that it may learn from y in other units.
        """
        n_inputs = X.shape[1] if n_inputs is None else n_inputs
        if transformer is not None:
            X = checked_rows(transformer.transform(X), len(X))
        mean, spread, power = row_moments(unit_rows(X) if scale == "rows" else X, weight)
        columns = _columns(mean, spread, scale, fit_intercept, is_sparse(X))
        scales = cls(
            scale, fit_intercept, y_offset=0.0, n_inputs=n_inputs, transformer=transformer,
            x_power=None if (power == 1).all() else power, **columns,
        ).with_target(y, centre, weight, follows_y)  # fmt: skip
        if not unit_free:
            return scales
        x_unit = float(row_norms(scales.rescaled(X)).max(initial=0.0)) or 1.0
        y_unit = float(np.abs(scales.target(y)).mean()) or 1.0
        return replace(scales, x_unit=x_unit, y_unit=y_unit)

    def with_target(self, y, centre, weight=None, follows_y=False) -> Scales:
        """Return these scales with the offset and the size of labels y (see `learn`)."""
        centred = self.fit_intercept and centre is not None
        y_offset, y_scale = middle_of(y, centre, weight) if centred else 0.0, 1.0
        if follows_y:
            with np.errstate(over="ignore"):  # `find_huge` refuses such a y
                y_scale = float(power_of_two(np.abs(y - y_offset).max(initial=0.0)))
        return replace(self, y_offset=y_offset, y_scale=y_scale)

    @classmethod
    def of_moments(cls, mean, spread, first: Scales) -> Scales:
        """Return the scales of all rows, which have this mean and standard deviation (d+1,).

        y is last. Both are in the units of the statistics, which are those of the `first` scales.
        """
        d, how = len(mean) - 1, (first.scale, first.fit_intercept)
        mean, spread = mean * first.units, spread * first.units
        columns = _columns(mean[:d], spread[:d], *how)
        y_offset = float(mean[d]) if first.fit_intercept else 0.0
        units = {"y_scale": first.y_scale, "x_power": first.x_power}
        return cls(*how, y_offset=y_offset, n_inputs=d, **units, **columns)

    def moved_to(self, overall: Scales) -> Scales:
        """Return these scales with the centre and the size that all rows have."""
        names = "x_mean", "x_scale", "x_size", "y_offset", "constant"
        return replace(self, **{name: getattr(overall, name) for name in names})

    def around(self, X, weight) -> Scales:
        """Return these scales with the centre and the size of transformed rows, for `find_huge`."""
        if self.scale == "rows":
            return self
        mean, spread, _ = row_moments(X, weight)
        how = self.scale, self.fit_intercept, is_sparse(X)
        return replace(self, **_columns(mean, spread, *how))

    @property
    def units(self) -> np.ndarray:
        """The powers of two (d+1,) by which statistics of rows are divided, y last."""
        x_power = np.ones(len(self.x_mean)) if self.x_power is None else self.x_power
        return np.append(x_power, self.y_scale)

    @property
    def width(self) -> int:
        """The number of coordinates of a weight vector, intercept included."""
        return len(self.x_mean) + self.fit_intercept

    @property
    def kept(self) -> np.ndarray:
        """Which coordinates (width,) of weights are learned: not those of constant columns."""
        kept = np.ones(self.width, bool)
        if self.constant is not None:
            kept[: len(self.constant)] = ~self.constant
        return kept if kept.any() else ~kept

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
        with naming_failures("The 'x_transform'"):
            rows = checked_rows(self.transformer.transform(X), len(X))
        if rows.shape[1] != len(self.x_mean):
            gave = f"The 'x_transform' gave {rows.shape[1]} columns"
            raise DataError(f"{gave}, expected {len(self.x_mean)} as in fit.")
        return rows

    def scaled(self, X: np.ndarray) -> np.ndarray:
        """Return the scaled rows (N, d), without the intercept column."""
        return self.rescaled(self.transformed(X))

    def rescaled(self, X: np.ndarray) -> np.ndarray:
        """Return transformed rows, scaled; sparse ones stay sparse unless they are centred."""
        if is_sparse(X):
            if self.scale == "standard" and not self.x_mean.any():
                return X.times(1 / self.x_scale)
            X = X if self.scale == "none" else X.toarray()
        if self.scale == "standard":
            return (X - self.x_mean) / self.x_scale
        return unit_rows(X) if self.scale == "rows" else X

    def find_huge(self, X: np.ndarray, y: np.ndarray | None, farthest: float = LARGEST):
        """Return row and column (None: y) of a number too large to be squared, or Nones.

        X (N, d) are transformed rows. `farthest` is given where their squares are added to those of
        other rows: numbers so many times farther than is `usual` are found as well.
        """
        if self.scale != "rows":
            with np.errstate(over="ignore"):
                most = np.fmin(LARGEST * self.x_scale, farthest * self.usual)
                bound = (X.largest() if is_sparse(X) else largest_values(X)) + np.abs(self.x_mean)
            for column in np.flatnonzero(~(bound < most)):
                values = X[:, [column]].toarray()[:, 0] if is_sparse(X) else X[:, column]
                with np.errstate(over="ignore"):
                    far = np.abs(values - self.x_mean[column])
                if not (far < most[column]).all():
                    return int(np.argmax(far)), int(column)
        far = 0.0 if y is None else np.abs(y).max(initial=0.0)
        if far > ALMOST_INFINITE or not far / self.y_scale < LARGEST:
            return int(np.argmax(np.abs(y))), None
        return None, None

    @property
    def usual(self) -> np.ndarray:
        """How far from `x_mean` columns (d,) usually are; NaN where training rows do not show it.

        It is the standard deviation of centred columns that vary, the root mean square of others.
        """
        if self.x_size is not None:
            return np.where(self.x_size > 0, self.x_size, np.nan)
        shown = self.scale == "standard" and self.fit_intercept
        return np.where(self.kept[: len(self.x_mean)] & shown, self.x_scale, np.nan)

    def with_ones(self, scaled: np.ndarray) -> np.ndarray:
        """Return the rows of the linear model (N, width)."""
        if is_sparse(scaled):
            return scaled.with_ones() if self.fit_intercept else scaled
        if not self.fit_intercept:
            return np.ascontiguousarray(scaled)
        return np.hstack([scaled, np.ones((len(scaled), 1))])

    def rows(self, X: np.ndarray) -> np.ndarray:
        """Return scaled rows with the intercept column (N, width)."""
        return self.with_ones(self.scaled(X))

    def target(self, y: np.ndarray) -> np.ndarray:
        """Return y minus its offset, divided by `y_scale`."""
        y = y if self.y_scale == 1.0 else y / self.y_scale
        return y - self.y_offset / self.y_scale if self.y_offset else y

    def answer(self, scores: np.ndarray) -> np.ndarray:
        """Return products of rows and weights as values of y; `scores` is overwritten."""
        if self.y_scale != 1.0:
            scores *= self.y_scale
        scores += self.y_offset
        return scores

    def for_maps(self, scaled, y):
        """Return scaled rows and targets (or None) as maps of points read them."""
        scaled = scaled if self.x_unit == 1.0 else scaled / self.x_unit
        return scaled, y if y is None or self.y_unit == 1.0 else y / self.y_unit

    def to_user(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients (..., d) and intercepts (...) of weight vectors (..., width)."""
        d = len(self.x_mean)
        W = W if self.y_scale == 1.0 else W * self.y_scale
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
        return w / self.y_scale


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
        "constant": optional(maybe(flags("d"))), "y_scale": optional(number(above=0)),
        "x_power": optional(maybe(floats("d", above=0))),
        "x_size": optional(maybe(floats("d", low=0))),
    },
    rule=_width,
)  # fmt: skip


def _columns(mean, spread, scale: str, fit_intercept: bool, sparse=False) -> dict[str, Any]:
    """Return x_mean, x_scale, constant and x_size of rows with this mean and standard deviation."""
    varies = spread > ROUNDING * np.abs(mean)
    constant = ~varies if fit_intercept else ~varies & (mean == 0)
    centred = scale == "standard" and fit_intercept and not sparse  # sparse rows stay sparse
    x_scale = np.where(varies, spread, 1.0) if scale == "standard" else np.ones_like(spread)
    x_size = None if centred or scale == "rows" else np.hypot(mean, spread)
    x_mean = mean if centred else np.zeros_like(mean)
    return {"x_mean": x_mean, "x_scale": x_scale, "constant": constant, "x_size": x_size}
