r"""Natural cubic splines of the columns of X: linear models of tasks are then non-linear in x.

A column x with knots a_1 < .. < a_K keeps itself and gets K - 2 columns more,

    b_j(x) = (c_j(x) - c_{K-1}(x)) / (a_K - a_1)^2,
    c_j(x) = ((x - a_j)_+^3 - (x - a_K)_+^3) / (a_K - a_j),   j = 1 .. K - 2:

the natural cubic splines, which are straight lines outside of the knots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.persistence.fields import InvalidFieldError, floats
from condmeta.persistence.registry import register_tuple

SPLINES = "splines"  # the word for them, as a parameter
QUANTILES = 0.05, 0.35, 0.65, 0.95  # of a column: its knots
FEWEST_VALUES = 6  # a column with fewer different values stays a line
MOST_COLUMNS = 8  # with splines; if more could have some, none has


def _knots_rise(state: dict, sizes: dict[str, int]) -> None:
    knots = state["knots"]
    bends = np.isfinite(knots)
    if (bends.any(axis=1) != bends.all(axis=1)).any() or (np.diff(knots[bends[:, 0]]) <= 0).any():
        raise InvalidFieldError("knots", "must rise in every column, or be NaN in all of it")


@register_tuple(fields={"knots": floats("n k", nan=True)}, rule=_knots_rise)
class Splines(NamedTuple):
    """Splines of columns with knots (d, K); a row of NaN leaves its column as it is.

    Examples
    --------
    >>> import numpy as np
    >>> splines = Splines.learn(np.column_stack([np.arange(101.0), np.arange(101) % 2]))
    >>> splines.transform(np.array([[50.0, 1.0], [200.0, 0.0]])).shape
    (2, 4)
    >>> splines.get_feature_names_out(["age", "sex"])
    ['age', 'sex', 'age (bend 1)', 'age (bend 2)']
    """

    knots: np.ndarray

    @classmethod
    def learn(cls, X: np.ndarray, weight=None) -> Splines:
        """Learn the knots from rows X (N, d), which count weight (N,) times."""
        knots = np.array([_knots(column, weight) for column in X.T])
        if np.isfinite(knots[:, 0]).sum() > MOST_COLUMNS:
            knots[:] = np.nan
        return cls(knots)

    @property
    def bends(self) -> np.ndarray:
        """Which columns (d,) have splines."""
        return np.isfinite(self.knots[:, 0])

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return X, followed by the splines of its columns."""
        more = [_bends(X[:, j], self.knots[j]) for j in np.flatnonzero(self.bends)]
        return np.hstack([X, *more])

    def get_feature_names_out(self, names) -> list[str]:
        """Return the names of the columns that `transform` returns."""
        bent = [names[j] for j in np.flatnonzero(self.bends)]
        more = range(1, self.knots.shape[1] - 1)
        return [*names, *(f"{name} (bend {number})" for name in bent for number in more)]


def _knots(column: np.ndarray, weight) -> np.ndarray:
    """Return quantiles of a column, or NaN if it has few values or two knots are the same."""
    order = np.argsort(column, kind="stable")
    values = column[order]
    none = np.full(len(QUANTILES), np.nan)
    if np.count_nonzero(np.diff(values)) < FEWEST_VALUES - 1:
        return none
    mass = np.arange(1.0, len(values) + 1) if weight is None else np.cumsum(weight[order])
    at = np.searchsorted(mass, np.array(QUANTILES) * mass[-1])
    knots = values[np.minimum(at, len(values) - 1)]
    return knots if (np.diff(knots) > 0).all() else none


def _bends(x: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Return the splines (N, K-2) of a column."""
    *first, last = knots
    unit = last - knots[0]
    z, a = (x - knots[0]) / unit, (np.array(first) - knots[0]) / unit
    # Beyond the last knot cubes would cancel, or overflow: there the splines are lines.
    within, beyond = np.minimum(z, 1.0)[:, None], np.maximum(z - 1, 0.0)[:, None]
    c = np.maximum(within - a, 0.0) ** 3 / (1 - a) + 3 * beyond * (1 - a)
    return c[:, :-1] - c[:, -1:]
