r"""The covariance of a new task's weights around tau: H, and what is open about tau itself.

The map is estimated from T tasks, so that tau of a task with unusual side information may be
further off than that of a usual one. With u the features of a task in coordinates in which those of
the training tasks are not correlated, and B B^T = H,

    cov(w) = B diag(1 + min(sum_j u_j^2 v_j + v_b, m)) B^T,

where row j of the variances v belongs to feature j, and v_b to b (see `meta.unseen_map`). The bound
m keeps the mean of counts, which grows exponentially with the variance, in proportion.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from condmeta.persistence.fields import floats
from condmeta.persistence.registry import register_tuple

LARGEST = 1e100  # of variances, and of squared features: their products are finite


class PriorFactors(NamedTuple):
    """Priors of T tasks that differ: factor (T, d, d), whose F F^T is the covariance.

    cold : (T, d, d) array or None, the factors while a task has no points, if these are others.
    """

    factor: np.ndarray
    cold: np.ndarray | None = None

    def take(self, at) -> Self:
        """Return the priors of the tasks at positions `at`."""
        return type(self)(self.factor[at], None if self.cold is None else self.cold[at])

    def of_sizes(self, sizes) -> np.ndarray:
        """Return the factors (T, d, d) of tasks with so many rows (T,)."""
        if self.cold is None:
            return self.factor
        return np.where((sizes == 0)[:, None, None], self.cold, self.factor)


@register_tuple(
    fields={
        "basis": floats("d d"), "mean": floats("k"), "directions": floats("k r"),
        "variances": floats("r+1 d", low=0, high=LARGEST), "most": floats("d", low=0, high=LARGEST),
    }
)  # fmt: skip
class PriorCovariance(NamedTuple):
    """The covariance of weights around tau, as a function of the features Phi of a task.

    basis : (d, d) array, B; mean : (k,), directions : (k, r), u = (Phi - mean) @ directions;
    variances : (r+1, d), v, with that of b in the last row; most : (d,), m.
    """

    basis: np.ndarray
    mean: np.ndarray
    directions: np.ndarray
    variances: np.ndarray
    most: np.ndarray

    def factors(self, Phi) -> np.ndarray:
        """Return the factors (T, d, d) of tasks with features Phi (T, k)."""
        with np.errstate(over="ignore"):
            squares = np.minimum(((Phi - self.mean) @ self.directions) ** 2, LARGEST)
        open_ = np.minimum(squares @ self.variances[:-1] + self.variances[-1], self.most)
        return self.basis * np.sqrt(1 + open_)[:, None, :]

    def widen(self, kept: np.ndarray) -> Self:
        """Return it for all coordinates, from that of a mask of them: the others are 0."""
        basis = np.zeros((len(kept), len(kept)))
        basis[np.ix_(kept, kept)] = self.basis
        variances, most = np.zeros((len(self.variances), len(kept))), np.zeros(len(kept))
        variances[:, kept], most[kept] = self.variances, self.most
        return self._replace(basis=basis, variances=variances, most=most)
