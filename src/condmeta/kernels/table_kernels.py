"""Kernels on the coordinates of a side table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from condmeta.feature_maps.params import FeatureMap
from condmeta.persistence import register
from condmeta.persistence.fields import number
from condmeta.tasks.messages import bad_parameter

if TYPE_CHECKING:
    from condmeta.kernels.set_kernels import PointSets


class Kernel(FeatureMap, ABC):
    """A feature map given by its inner products k(a, b) = <Phi(a), Phi(b)>.

    `native` is the kernel's kind and scale in the compiled core, or None if it is not compiled.
    """

    native: tuple[int, float] | None = None

    def __call__(self, a: Any, b: Any) -> float:
        """Return k(a, b) of two rows."""
        rows = (np.asarray(row, dtype=float).reshape(1, -1) for row in (a, b))
        return float(self.gram(*rows)[0, 0])

    @abstractmethod
    def gram(self, A: np.ndarray | PointSets, B: np.ndarray | PointSets) -> np.ndarray:
        """Return the values k(a, b) of all pairs, (len(A), len(B))."""

    def _positive(self, name: str) -> float:
        """Return a parameter; raise a DataError unless it is a positive number."""
        value = getattr(self, name)
        if not isinstance(value, Real) or isinstance(value, bool) or not 0 < value < np.inf:
            raise bad_parameter(f"{name} of {type(self).__name__}", "a float in (0, inf)", value)
        return float(value)


@register(fields={})
class LinearKernel(Kernel):
    """Use coordinates as features: k(a, b) = <a, b>.

    Examples
    --------
    >>> LinearKernel()([1.0, 2.0], [3.0, 1.0])
    5.0
    """

    native = (0, 0.0)

    def gram(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return <a, b> of rows (T, p) and (U, p), as (T, U)."""
        # Not A @ B.T: the bits of a pair must not depend on the pairs around it.
        return np.einsum("ik,jk->ij", A, B)


class DistanceKernel(Kernel):
    """A kernel exp(-scale distance(a, b)); the scale depends on the lengthscale."""

    metric = "euclidean"

    def __init__(self, lengthscale: float = 1.0):
        self.lengthscale = lengthscale

    def gram(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return the kernel of rows (T, p) and (U, p), as (T, U)."""
        from scipy.spatial.distance import cdist  # slow to import

        # Distances from differences: norms and inner products would lose digits.
        return np.exp(-self.native[1] * cdist(A, B, self.metric))


@register(fields={"lengthscale": number(low=1e-150, high=1e150)})
class GaussianKernel(DistanceKernel):
    """Compare tasks by distance: k(a, b) = exp(-||a - b||^2 / (2 lengthscale^2)).

    Parameters
    ----------
    lengthscale : float in (0, inf)
        Distance at which tasks begin to differ. The features of `feature_map="auto"` have unit
        variance: two tasks with p features are about sqrt(2 p) apart.

    Examples
    --------
    >>> round(GaussianKernel(lengthscale=2.0)([0.0], [2.0]), 4)
    0.6065
    """

    metric = "sqeuclidean"

    @property
    def native(self) -> tuple[int, float]:
        """Kind and scale, for the compiled core."""
        return 1, 0.5 / self._positive("lengthscale") ** 2


@register(fields={"lengthscale": number(low=1e-150, high=1e150)})
class LaplaceKernel(DistanceKernel):
    """Compare tasks by distance, with a kink at zero: k(a, b) = exp(-||a - b|| / lengthscale).

    Parameters
    ----------
    lengthscale : float in (0, inf)

    Examples
    --------
    >>> round(LaplaceKernel()([0.0, 0.0], [3.0, 4.0]), 6)
    0.006738
    """

    @property
    def native(self) -> tuple[int, float]:
        """Kind and scale, for the compiled core."""
        return 2, 1.0 / self._positive("lengthscale")
