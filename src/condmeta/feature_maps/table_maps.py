"""Maps of the side table; they work for a task without points."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from condmeta.errors import DataError
from condmeta.feature_maps.params import FOURIER, FeatureMap, Fourier
from condmeta.persistence import register


class TableMap(FeatureMap):
    """Map the (T, p) numbers of a side table to (T, k)."""

    reads_numbers = True

    def fit(self, X: np.ndarray, y: object = None) -> Self:
        """Return self: this map has nothing to learn."""
        return self

    def fit_transform(self, X: np.ndarray, y: object = None) -> np.ndarray:
        """Fit, then transform."""
        return self.fit(X).transform(X)


@register(fields={})
class Identity(TableMap):
    """Use the side table unchanged: Phi(s) = s.

    Examples
    --------
    >>> Identity().fit_transform(np.array([[1.0, 2.0]]))
    array([[1., 2.]])
    """

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return X."""
        return np.asarray(X, dtype=np.float64)

    def names_out(self, input_names: Sequence[str]) -> list[str]:
        """Name the features."""
        return list(input_names)


@register(fields={})
class CircleMap(TableMap):
    """Place a number on the unit circle: Phi(s) = (cos 2 pi s, sin 2 pi s).

    Examples
    --------
    >>> CircleMap().fit_transform(np.array([[0.25]])).round(12)
    array([[0., 1.]])
    """

    def fit(self, X: np.ndarray, y: object = None) -> Self:
        """Check that there is one column."""
        if np.shape(X)[1:] != (1,):
            raise DataError(
                f"CircleMap reads one side column, got {np.shape(X)[1]}: "
                "keep one, or use another feature map."
            )
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return (T, 2)."""
        angle = 2 * np.pi * np.asarray(X, dtype=np.float64)
        return np.concatenate([np.cos(angle), np.sin(angle)], axis=1)

    def names_out(self, input_names: Sequence[str]) -> list[str]:
        """Name the features."""
        return [f"cos(2 pi {input_names[0]})", f"sin(2 pi {input_names[0]})"]


@register(fields=FOURIER)
class RandomFourier(Fourier, TableMap):
    """Map side information to random Fourier features of a Gaussian kernel.

    phi(x) = sqrt(2/k) cos(U x + v), rows of U ~ N(0, std^2 I), v ~ U[0, 2 pi]^k. Hence
    E <phi(x), phi(x')> = exp(-std^2 ||x - x'||^2 / 2).

    Parameters
    ----------
    n_features : int
        Number of features k.
    std : float in (0, inf)
        Standard deviation of the frequencies, one over the lengthscale of the kernel.
    random_state : int, Generator, RandomState or None
        Seed; None draws new features at each fit.

    Examples
    --------
    >>> RandomFourier(n_features=3, random_state=0).fit_transform(np.zeros((2, 1))).shape
    (2, 3)
    """

    def fit(self, X: np.ndarray, y: object = None) -> Self:
        """Draw frequencies `U_` (k, p) and phases `v_` (k,)."""
        self._draw(np.shape(X)[1])
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return (T, k)."""
        return self._phi(np.asarray(X, dtype=np.float64))

    def names_out(self, input_names: Sequence[str]) -> list[str]:
        """Name the features."""
        return [f"fourier{j}" for j in range(self.v_.size)]
