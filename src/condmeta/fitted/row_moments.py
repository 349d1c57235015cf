"""Mean, size and largest value of columns, without overflow, for rows that have weights."""

from __future__ import annotations

import numpy as np

from condmeta.inner.coin import row_norms
from condmeta.tasks.arrays import is_sparse
from condmeta.tasks.numbers import column_ends, power_of_two
from condmeta.tasks.weights import weighted_median

BLOCK = 1 << 17  # numbers in a temporary


def row_moments(X, weight) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean and standard deviation (d,) of rows that count weight (N,) times.

    Of a constant column they are its value and zero, exactly. The third array are powers of two:
    divided by them no square overflows or underflows.
    """
    if is_sparse(X):
        unit = power_of_two(X.largest())
        mean, spread = X.times(1 / unit).moments(weight)
        return unit * mean, unit * spread, unit
    parts, weight = _parts(X), np.ones(len(X)) if weight is None else weight
    share = weight / weight.sum()
    unit = power_of_two(largest_values(X))
    pivot = X[0] / unit
    mean = pivot + sum(share[part] @ (X[part] / unit - pivot) for part in parts)
    square = sum(share[part] @ (X[part] / unit - mean) ** 2 for part in parts)
    return unit * mean, unit * np.sqrt(square), unit


def middle_of(y, centre, weight) -> float:
    """Return the mean or the median of y."""
    unit = float(power_of_two(np.abs(y).max(initial=0.0)))
    if centre is np.mean:
        return float(np.average(y / unit, weights=weight)) * unit
    return weighted_median(y / unit, weight) * unit


def largest_values(X: np.ndarray) -> np.ndarray:
    """Return the largest absolute value of each column (d,)."""
    if not len(X):
        return np.zeros(X.shape[1])
    return np.abs(column_ends(X)).max(axis=0)


def _parts(X: np.ndarray) -> list[slice]:
    """Return parts of the rows whose temporaries stay in the cache."""
    step = max(BLOCK // max(X.shape[1], 1), 1)
    return [slice(lo, lo + step) for lo in range(0, len(X), step)]


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Return rows divided by their norms; rows of zeros stay."""
    size = power_of_two(np.abs(X).max(axis=1, initial=0.0))[:, None]
    X = X if (size == 1).all() else X / size
    norms = row_norms(X)
    return X / np.where(norms > 0, norms, 1.0)[:, None]
