"""Features in the coordinates that a ridge on the map is solved in."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np

from condmeta.tasks.numbers import power_of_two

MOST_COLUMNS = 2000  # among which copies are looked for

MapSum = Callable[..., tuple]


class Rotation(NamedTuple):
    """Put features on one scale, and with more features than tasks keep their row space alone.

    A ridge on M keeps its rows in the span of the training features, so that nothing is lost.

    Attributes
    ----------
    mean, scale : (k,) arrays
    basis : (k, r) array with orthonormal columns, or None for the identity
    """

    mean: np.ndarray
    scale: np.ndarray
    basis: np.ndarray | None

    @classmethod
    def learn(cls, Phi, centre: bool = True) -> Self:
        """Read it off the features of the training tasks (T, k).

        Without `centre` columns are divided by their root mean square, and the mean is zero. If a
        column is there m times, these are divided by sqrt(m): a ridge takes them for one column.
        """
        return cls.of_sums(lambda function, *params: function(Phi, *params), lambda: Phi, centre)

    @classmethod
    def of_sums(cls, map_sum: MapSum, every: Callable[[], np.ndarray], centre=True) -> Self:
        """Read it off sums over blocks of tasks.

        `map_sum(function, *params)` is the sum of function(Phi, *params) over blocks; `every()`
        returns Phi of all tasks, which is needed if there are more features than tasks.
        """
        n, total, largest = map_sum(_totals)
        largest = largest.values
        unit = power_of_two(largest)  # squares neither overflow nor underflow
        mean = total / n if centre else np.zeros_like(total)
        (squares,) = map_sum(_squares, mean, unit)
        scale = unit * np.sqrt(squares / n)
        # The spread of a constant column is rounding noise of its size, not exactly zero.
        scale = np.where(scale > 1e-12 * largest, scale, 1.0)
        if 1 < len(mean) <= MOST_COLUMNS:
            (products,) = map_sum(_products, mean, scale)
            scale = scale * np.sqrt(np.maximum(_alike(products, n).sum(axis=0), 1))
        basis = None
        if len(mean) > n:
            basis = np.linalg.svd((every() - mean) / scale, full_matrices=False)[2].T
        return cls(mean, scale, basis)

    def apply(self, Phi) -> np.ndarray:
        """Return the coordinates (T, r) of features."""
        Z = (Phi - self.mean) / self.scale
        return Z if self.basis is None else Z @ self.basis

    def undo(self, W) -> np.ndarray:
        """Return the map (k+1, d) of features from that of their coordinates (r+1, d)."""
        M = W[:-1] if self.basis is None else self.basis @ W[:-1]
        M = M / self.scale[:, None]
        return np.vstack([M, W[-1] - self.mean @ M])


class Largest(NamedTuple):
    """Numbers whose sum with others is the larger of each pair."""

    values: np.ndarray

    def __add__(self, other) -> Largest:
        return Largest(np.maximum(self.values, other.values))


def _totals(Phi) -> tuple:
    """Return the number of tasks, the sum of their features, and the largest of their sizes."""
    return len(Phi), Phi.sum(axis=0), Largest(np.abs(Phi).max(axis=0, initial=0.0))


def _squares(Phi, mean, unit) -> tuple[np.ndarray]:
    return ((((Phi - mean) / unit) ** 2).sum(axis=0),)


def _products(Phi, mean, scale) -> tuple[np.ndarray]:
    Z = (Phi - mean) / scale
    return (Z.T @ Z,)


def _alike(products, n: int) -> np.ndarray:
    """Return which columns (k, k) of n rows are equal up to sign, from products of these."""
    return np.abs(products) > (1 - 1e-9) * n
