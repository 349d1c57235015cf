r"""How far the map's theta of a task that it has not seen may be off, because W was estimated.

The information about W of T tasks is that of `meta.map_covariance`. With Lambda the mean of what a
task says about its theta, and features z_t whose products have the mean R, it is about

    I(W) = T (R, 1) (x) Lambda + kappa diag(1, .., 1, 0) (x) H^-1.

With H = L L^T, L^T Lambda L = Q diag(delta) Q^T, B = L Q and R = E diag(rho) E^T, a new task with
the coordinates u = E^T z has

    cov(w) = H + cov(theta) = B diag(1 + sum_j u_j^2 / (T rho_j delta + kappa) + 1 / (T delta)) B^T.
"""

import numpy as np

from condmeta.inner.likelihoods import Likelihood
from condmeta.inner.prior_covariance import LARGEST, PriorCovariance
from condmeta.inner.row_posterior import find_posteriors, weighted_statistics
from condmeta.inner.squared import SquaredState
from condmeta.meta.map_covariance import information_of_theta
from condmeta.meta.prior import Prior
from condmeta.meta.rotation import Rotation
from condmeta.tasks.points import Points
from condmeta.tasks.weights import repeats

BLOCK = 1 << 12  # tasks whose information is computed at once
MOST = 1.0  # variance of <x, w>, at an average row, that one coordinate of theta may add
MOST_OF_ROW = 4.0  # the same at any training row
NOT_SEEN = 1e-12  # of the largest square along a direction: rows do not go along such a one
SMALLEST = 1e-300


def weigh_points(points: Points, Z, law: Likelihood, prior: Prior, accuracy=1e-9) -> SquaredState:
    """Return statistics of tasks with their rows weighted as in the posteriors under a prior."""
    rows = law.rows(points)
    found = find_posteriors(law, points, prior.theta(Z), prior.L, accuracy)
    return weighted_statistics(rows.X, rows.offsets, found.weight)


def open_prior(
    points: Points, Z, law: Likelihood, prior: Prior, kappa: float, accuracy=1e-9
) -> PriorCovariance:
    """Return the covariance of a new task's weights around tau, as a function of its features.

    `points` and features `Z` (T, r) are those of the training tasks; `accuracy` is that of their
    posteriors.
    """
    (T, r), d = Z.shape, len(prior.L)
    stats = weigh_points(points, Z, law, prior, accuracy)
    L = np.linalg.cholesky(prior.H + max(1e-10 * np.trace(prior.H) / d, SMALLEST) * np.eye(d))
    blocks = (stats.gram[lo : lo + BLOCK] for lo in range(0, T, BLOCK))
    known = sum(information_of_theta(part, L, np.ones(len(part))).sum(axis=0) for part in blocks)
    delta, Q = np.linalg.eigh(L.T @ known @ L)  # T times the delta of the formula
    basis, delta = L @ Q, np.maximum(delta, SMALLEST)
    rho, E = np.linalg.eigh(Z.T @ Z / T)
    by_feature = np.zeros((r, d))
    if not np.isinf(kappa):
        information = np.maximum(rho, 0.0)[:, None] * delta + kappa
        by_feature = 1 / np.maximum(information, SMALLEST)
    variances = np.vstack([by_feature, 1 / delta])
    most = _bounds(points, basis)
    if T == 1:  # one task says nothing about others
        most[:] = 0.0
    return PriorCovariance(basis, np.zeros(r), E, np.minimum(variances, LARGEST), most)


def _bounds(points: Points, basis) -> np.ndarray:
    """Return how much each coordinate may add, as a multiple of its variance in H.

    Rows of a rare level lie far from the average row, and their coordinate is the least known: so
    the largest row counts too. A direction that no row has a part in, as where the columns of all
    levels sum to the intercept, adds nothing: it would multiply rounding errors.
    """
    squares = (points.X @ basis) ** 2
    weight = None if points.weight is None else repeats(points.weight)
    mean, largest = np.average(squares, axis=0, weights=weight), squares.max(axis=0, initial=0.0)
    most = np.minimum(
        MOST / np.maximum(mean, SMALLEST), MOST_OF_ROW / np.maximum(largest, SMALLEST)
    )
    along = largest / np.maximum((basis**2).sum(axis=0), SMALLEST)
    seen = along > NOT_SEEN * along.max(initial=0.0)
    return np.where(seen, np.minimum(most, LARGEST), 0.0)


def of_features(spread: PriorCovariance, rotation: Rotation) -> PriorCovariance:
    """Return the same as a function of the features that a rotation is applied to."""
    directions = spread.directions
    directions = directions if rotation.basis is None else rotation.basis @ directions
    return spread._replace(mean=rotation.mean, directions=directions / rotation.scale[:, None])
