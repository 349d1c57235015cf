r"""How far the map's theta of a task that it has not seen may be off, because W was estimated.

The information about W of T tasks is that of `meta.map_covariance`. With Lambda_t what a task says
about its theta, phi_t = (z_t, 1), and P the precisions of b in its prior (`meta.constant_prior`),

    I(W) = sum_t phi_t phi_t^T (x) Lambda_t + kappa diag(1, .., 1, 0) (x) H^-1
           + diag(0, .., 0, 1) (x) P.

With H = L L^T, sum_t L^T Lambda_t L = Q diag(delta) Q^T, B = L Q and sum_t z_t z_t^T / T =
E diag(rho) E^T, a new task with the coordinates u = E^T z has about

    cov(w) = H + cov(theta) = B diag(1 + sum_j u_j^2 v_j + v_b) B^T,

with v the diagonal of the inverse of I(W) in the coordinates E and B. Covariances between these
coordinates are left out. For a large map, v_j = 1 / (rho_j delta + kappa), as if all tasks had the
same Lambda_t; it is smaller for tasks whose labels are nearly certain.

Poisson counts may vary less than the law says: cov(theta) is then smaller by the same share, as in
quasi-likelihood. If all counts are equal, so are their predictions.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from condmeta.inner.likelihoods import Binomial, Likelihood, NegativeBinomial, Ordered
from condmeta.inner.prior_covariance import LARGEST, PriorCovariance
from condmeta.inner.row_posterior import find_posteriors, weighted_statistics
from condmeta.inner.squared import SquaredState
from condmeta.inner.variational import Variational
from condmeta.meta.constant_prior import ConstantPrior
from condmeta.meta.map_covariance import information_of_theta, paired_information
from condmeta.meta.prior import Prior
from condmeta.meta.rotation import Rotation
from condmeta.tasks.points import Points
from condmeta.tasks.weights import repeats

BLOCK = 1 << 12  # tasks whose information is computed at once
EXACT = 200  # entries of W, up to which all tasks may have other Lambda_t
# The variance of <x, w> that one coordinate of theta may add, at an average row and at any training
# row. The mean of counts grows exponentially with it; probabilities only approach one half.
MOST = {Binomial: (4.0, 16.0), Ordered: (4.0, 16.0), NegativeBinomial: (1.0, 4.0)}
NOT_SEEN = 1e-12  # of the largest square along a direction: rows do not go along such a one
SMALLEST = 1e-300


def weigh_points(points: Points, Z, law: Likelihood, prior: Prior, accuracy=1e-9) -> SquaredState:
    """Return statistics of tasks with their rows weighted as in the posteriors under a prior."""
    return _weighted(points, law, find_posteriors(law, points, prior.theta(Z), prior.L, accuracy))


def _weighted(points: Points, law: Likelihood, found: Variational) -> SquaredState:
    rows = law.rows(points)
    return weighted_statistics(rows.X, rows.offsets, found.weight)


def open_prior(
    points: Points, Z, law: Likelihood, prior: Prior, kappa: float, accuracy=1e-9
) -> PriorCovariance:
    """Return the covariance of a new task's weights around tau, as a function of its features.

    `points` and features `Z` (T, r) are those of the training tasks; `accuracy` is that of their
    posteriors.
    """
    (T, r), d = Z.shape, len(prior.L)
    found = find_posteriors(law, points, prior.theta(Z), prior.L, accuracy)
    gram = _weighted(points, law, found).gram
    L = np.linalg.cholesky(prior.H + max(1e-10 * np.trace(prior.H) / d, SMALLEST) * np.eye(d))
    of_tasks = partial(_information_of_tasks, gram, L)
    delta, Q = np.linalg.eigh(L.T @ sum(known.sum(axis=0) for _, known in of_tasks()) @ L)
    basis, (rho, E) = L @ Q, np.linalg.eigh(Z.T @ Z / T)
    root = ConstantPrior.of(points, type(law), kappa).root(prior.W[-1])[:, None] * basis
    used = 0 if np.isinf(kappa) else r
    variances = np.zeros((r + 1, d))
    if (used + 1) * d <= EXACT:
        phi = np.column_stack([Z @ E[:, :used], np.ones(T)])
        information = sum(
            paired_information(phi[at], basis.T @ known @ basis) for at, known in of_tasks()
        )
        information[np.diag_indices(used * d)] += kappa if used else 0.0
        information[-d:, -d:] += root.T @ root
        variances[r - used :] = _inverse_diagonal(information).reshape(-1, d)
    else:
        by_feature = np.maximum(rho, 0.0)[:, None] * np.maximum(delta, 0.0) + kappa
        variances[:-1] = 1 / np.maximum(by_feature, SMALLEST)
        variances[-1] = _inverse_diagonal(np.diag(delta) + root.T @ root)
    variances *= law.dispersion(points, found)
    most = _bounds(points, basis, *MOST[type(law)])
    if T == 1:  # one task says nothing about others
        most[:] = 0.0
    return PriorCovariance(basis, np.zeros(r), E, np.minimum(variances, LARGEST), most)


def _information_of_tasks(gram, L) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield blocks of tasks, and their Lambda_t."""
    for lo in range(0, len(gram), BLOCK):
        at = slice(lo, lo + BLOCK)
        yield at, information_of_theta(gram[at], L, np.ones(len(gram[at])))


def _inverse_diagonal(information) -> np.ndarray:
    """Return the diagonal of the inverse; directions without information have a huge variance."""
    scale = np.sqrt(np.maximum(np.diag(information), SMALLEST))
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    values = np.maximum(values, len(values) * np.finfo(float).eps)
    with np.errstate(over="ignore"):  # `open_prior` bounds them
        return (vectors**2 / values).sum(axis=1) / scale**2


def _bounds(points: Points, basis, of_mean: float, of_row: float) -> np.ndarray:
    """Return how much each coordinate may add, as a multiple of its variance in H.

    Rows of a rare level lie far from the average row, and their coordinate is the least known: so
    the largest row counts too. A direction that no row has a part in, as where the columns of all
    levels sum to the intercept, adds nothing: it would multiply rounding errors.
    """
    squares = (points.X @ basis) ** 2
    weight = None if points.weight is None else repeats(points.weight)
    mean, largest = np.average(squares, axis=0, weights=weight), squares.max(axis=0, initial=0.0)
    most = np.minimum(of_mean / np.maximum(mean, SMALLEST), of_row / np.maximum(largest, SMALLEST))
    along = largest / np.maximum((basis**2).sum(axis=0), SMALLEST)
    seen = along > NOT_SEEN * along.max(initial=0.0)
    return np.where(seen, np.minimum(most, LARGEST), 0.0)


def of_features(spread: PriorCovariance, rotation: Rotation) -> PriorCovariance:
    """Return the same as a function of the features that a rotation is applied to."""
    directions = spread.directions
    directions = directions if rotation.basis is None else rotation.basis @ directions
    return spread._replace(mean=rotation.mean, directions=directions / rotation.scale[:, None])
