"""The exact posterior of the cluster given points, and the variance that remains.

For Gaussian inputs the sum of the n points is sufficient, and with priors pi

    p(i | X) = softmax_i( (<x(i), sum of x> - n ||x(i)||^2 / 2) / sigma_x^2 + ln pi_i ).

The variance that remains given X, E ||w(j) - tau_rho(X)||^2, is an integral over the mean of the
points. It depends only on the projection of that mean onto the affine span of the centres.
"""

from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks import TaskSet

REACH = 9.0  # a standard normal variable exceeds it with probability 2e-19
MAX_NODES = 600_000
MAX_GRID_DIM = 3  # in more dimensions a grid is too coarse, so we draw random points
DRAWS = 100_000


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """Normalise log weights over the last axis without overflow."""
    scores = scores - scores.max(axis=-1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))


def gaussian_posterior(
    sums: np.ndarray, counts: np.ndarray, centers: np.ndarray, log_prior: np.ndarray, spread: float
) -> np.ndarray:
    """Return p(i | X), (T, m), from the sums (T, d) and counts (T,) of the points of each task."""
    # subtract the mean of the centres first: it cancels in exact arithmetic, not in floats
    origin = centers.mean(axis=0)
    centers, counts = centers - origin, counts[:, None]
    half_norms = 0.5 * np.einsum("id,id->i", centers, centers)
    scores = (sums - counts * origin) @ centers.T - counts * half_norms
    return np.exp(log_softmax(scores / spread**2 + log_prior))


def sphere_posterior(
    X: np.ndarray, offsets: np.ndarray, centers: np.ndarray, prior: np.ndarray, spread: float
) -> np.ndarray:
    """Return p(i | X), (T, m), for points on spheres of radius `spread` around the centres.

    A task has probability 0 for a cluster if one of its points is not on the sphere of that
    cluster. If this excludes all clusters, the clusters with the nearest spheres are taken.
    """
    T, m = offsets.size - 1, prior.size
    off = np.zeros((T, m))
    busy = np.diff(offsets) > 0
    if busy.any():
        radii = np.stack([np.linalg.norm(X - center, axis=1) for center in centers], axis=1)
        off[busy] = np.maximum.reduceat(np.abs(radii - spread), offsets[:-1][busy], axis=0)
    slack = 1e-9 * (spread + np.abs(centers).max(initial=0.0))
    mass = np.where(off <= off.min(axis=1, keepdims=True) + slack, prior, 0.0)
    total = mass.sum(axis=1, keepdims=True)
    return np.divide(mass, total, out=np.broadcast_to(prior, (T, m)).copy(), where=total > 0)


def gaussian_residual(
    w: np.ndarray, x: np.ndarray, prior: np.ndarray, spread: float, n: int
) -> tuple[float, float]:
    """Return E ||w(j) - tau_rho(X)||^2 for n Gaussian points and its error; w, x are (m, d)."""
    # unit: the standard deviation of the mean of n points; coordinates: those of the affine span
    scaled = (x - x.mean(axis=0)) * (np.sqrt(n) / spread)
    u, s, _ = np.linalg.svd(scaled, full_matrices=False)
    rank = int((s > 1e-12 * max(float(s.max(initial=0.0)), 1.0)).sum())
    centers = u[:, :rank] * s[:rank]
    if rank > MAX_GRID_DIM:
        nodes = np.random.default_rng(0).standard_normal((DRAWS, rank))
        return _posterior_spread(w, centers, prior, nodes, None)
    # the trapezoidal rule converges geometrically here: refine until the value is stable
    value, side, scale = np.inf, 20, np.ptp(w, axis=0).max(initial=0.0) ** 2
    while True:
        before, value = value, _posterior_spread(w, centers, prior, *_grid(rank, side))[0]
        side *= 2
        if abs(value - before) <= 1e-14 * scale or side**rank > MAX_NODES or rank == 0:
            return value, abs(value - before) if rank else 0.0


def _grid(rank: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes (side^rank, rank) and weights of the trapezoidal rule for N(0, I)."""
    z = np.linspace(-REACH, REACH, side)
    nodes, weights = np.zeros((1, 0)), np.ones(1)
    for _ in range(rank):
        nodes = np.column_stack([np.repeat(nodes, side, axis=0), np.tile(z, len(nodes))])
        weights = np.outer(weights, np.exp(-0.5 * z**2)).ravel()
    keep = weights > 1e-18  # the corners of the box have no weight
    return nodes[keep], weights[keep] / weights[keep].sum()


def _posterior_spread(
    w: np.ndarray, centers: Any, prior: Any, nodes: Any, weights: np.ndarray
) -> tuple[float, float]:
    """Return the mean posterior variance of w(j) over nodes around each centre, and its error.

    If `weights` is None the nodes are random draws, the same for all clusters.
    """
    w = w - prior @ w
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)
    half_norms = 0.5 * np.einsum("id,id->i", centers, centers)
    squares = np.einsum("ip,ip->i", w, w)
    value = variance = 0.0
    for i in np.flatnonzero(prior):
        p = np.exp(log_softmax((nodes + centers[i]) @ centers.T - half_norms + log_prior))
        tau = p @ w
        spread = np.maximum(p @ squares - np.einsum("kp,kp->k", tau, tau), 0.0)
        value += prior[i] * np.average(spread, weights=weights)
        variance += prior[i] * spread.var()
    return float(value), float(np.sqrt(variance / len(nodes))) if weights is None else 0.0


def flat_points(points: Any, offsets: Any, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs (N, d) and offsets (T+1,) of a TaskSet, of an array, or of one task."""
    if isinstance(points, TaskSet):
        X, offsets = points.X, points.offsets
    else:
        X = np.asarray(points, dtype=np.float64)
        offsets = np.array([0, len(X)]) if offsets is None else np.asarray(offsets, np.int64)
    if X.ndim != 2 or X.shape[1] != d:
        raise DataError(f"points must have {d} features. Got the shape {X.shape}.")
    fits = offsets.ndim == 1 and offsets.size and (offsets[0], offsets[-1]) == (0, len(X))
    if not fits or (np.diff(offsets) < 0).any():
        raise DataError(f"offsets must rise from 0 to {len(X)}, the number of points.")
    return X, offsets


def sums_of_points(X: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum (T, d) and the number (T,) of the points of each task."""
    counts = np.diff(offsets)
    sums = np.zeros((counts.size, X.shape[1]))
    if len(X):
        sums[counts > 0] = np.add.reduceat(X, offsets[:-1][counts > 0], axis=0)
    return sums, counts
