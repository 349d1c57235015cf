r"""The covariance of the estimated map W, given the prior's H and s2.

With phi_t = (Phi(s_t), 1), B_t = X_t^T X_t / s2_t, A_t = I + L^T B_t L and H = L L^T,

    Lambda_t = B_t - B_t L A_t^-1 L^T B_t,
    I(W) = sum_t phi_t phi_t^T (x) Lambda_t + kappa diag(1, .., 1, 0) (x) H^-1

is the information about vec W, and its inverse the model-based covariance. With the scores
s_t = phi_t (x) g_t of the tasks (g_t: see `condmeta.inner.posterior`), the robust covariance

    I^-1 (sum_t s_t s_t^T) I^-1 T / (T - k - 1)

holds also if H or the noise differ between tasks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.inner.posterior import posterior_pass, precision
from condmeta.inner.squared import SquaredState
from condmeta.meta.open_cuts import OpenCuts

BLOCK = 1 << 21  # numbers in the largest temporary
SINGULAR = 1e-11  # of the largest eigenvalue: tasks say nothing about directions with less
SMALLEST = 1e-300


class MapCovariance(NamedTuple):
    """The covariance of a map W (K, d), K = k + 1.

    matrix : (K, d, K, d) array; null : (K, d, q) array, directions that the tasks do not determine.
    """

    matrix: np.ndarray
    null: np.ndarray

    def without(self, constant: np.ndarray) -> MapCovariance:
        """Return the covariance where the weights of some columns (d,) are known to be 0."""
        return self._replace(null=np.where(constant[:, None], 0.0, self.null))

    def std(self, features: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the standard errors of features @ W @ weights^T, (a, K) and (i, d), as (a, i).

        NaN where the tasks do not determine the value.
        """
        half = np.einsum("ij,bjcl,il->bic", weights, self.matrix, weights, optimize=True)
        variance = np.einsum("ab,bic,ac->ai", features, half, features, optimize=True)
        size = np.einsum("ab,ab->a", features, features)[:, None] * np.sum(weights**2, axis=1)
        loose = np.einsum("ab,bjq,ij->aiq", features, self.null, weights, optimize=True)
        unknown = np.sum(loose**2, axis=2) > 1e-8 * size
        return np.where(unknown, np.nan, np.sqrt(np.maximum(variance, 0.0)))

    def of_theta(self, phi: np.ndarray) -> np.ndarray:
        """Return the covariances of theta_t = W^T phi_t of tasks (T, d, d), phi (T, K)."""
        half = np.einsum("ta,aibj->tibj", phi, self.matrix, optimize=True)
        return np.einsum("tibj,tb->tij", half, phi, optimize=True)


def map_covariance(
    stats: SquaredState, Phi, theta, factor, s2, kappa: float, robust: bool, shared=None,
    cuts: OpenCuts | None = None,
) -> MapCovariance:  # fmt: skip
    """Return the covariance of the map of T tasks with points.

    Parameters
    ----------
    stats : SquaredState of T tasks
    Phi : (T, k) array
        In the coordinates of the ridge; kappa = inf leaves them out.
    theta : (T, d) array
        The means W phi of the tasks.
    factor : (d, d) array, L
    s2 : (T,) array
        The noise of each task.
    shared : (d,) bool array, optional
        Weights that side information does not change: only b has entries for them.
    cuts : OpenCuts of the T tasks, if the cuts of ordered classes were estimated as well
    """
    phi, penalty = design(Phi, kappa), penalty_of(Phi, factor, kappa)
    scores = _scores(stats, phi, theta, factor, s2) if robust else None
    information = _information(stats, phi, factor, s2) + penalty
    if cuts is not None:
        information, scores = cuts.taken_out(phi, information, scores)
    return finish_covariance(information, scores, Phi.shape[1] + 1, phi.shape[1], shared)


def finish_covariance(information, scores, rows: int, K: int, shared=None) -> MapCovariance:
    """Return the covariance of a map of so many rows, of which the last K are used.

    Parameters
    ----------
    information : (K d, K d) array
    scores : (T, K d) array of independent scores, for the robust covariance; None: model-based
    shared : see `map_covariance`
    """
    d = len(information) // K
    free = np.ones((K, d), bool)
    if shared is not None:
        free[:-1, shared] = False
    at = np.flatnonzero(free)
    inverse, null = np.zeros_like(information), np.zeros((len(information), len(at)))
    inverse[np.ix_(at, at)], loose = _inverse(information[np.ix_(at, at)])
    null = null[:, : loose.shape[1]]
    null[at] = loose
    if scores is not None:
        half, T = inverse @ scores.T, len(scores)
        inverse = half @ half.T * (T / max(T - K, 1))
    return _padded(inverse, null, rows - K, K, d)


def best_map(stats: SquaredState, Phi, W, factor, s2, kappa: float) -> np.ndarray:
    """Return the map (k+1, d) of largest J for a given prior, by one Newton step from W.

    J is quadratic in W, so that one step is exact. Directions that the tasks do not determine stay.
    """
    phi, penalty = design(Phi, kappa), penalty_of(Phi, factor, kappa)
    used = W[-phi.shape[1] :]
    information = _information(stats, phi, factor, s2) + penalty
    slope = _scores(stats, phi, phi @ used, factor, s2).sum(axis=0) - penalty @ used.ravel()
    best = W.copy()
    best[-phi.shape[1] :] += (_inverse(information)[0] @ slope).reshape(used.shape)
    return best


def design(Phi, kappa: float) -> np.ndarray:
    """Return phi (T, K): the features that the map uses, and a one."""
    used = Phi[:, :0] if np.isinf(kappa) else Phi
    return np.column_stack([used, np.ones(len(Phi))])


def penalty_of(Phi, factor, kappa: float) -> np.ndarray:
    """Return kappa diag(1, .., 1, 0) (x) H^-1, (K d, K d)."""
    d = len(factor)
    if np.isinf(kappa):
        return np.zeros((d, d))
    H = factor @ factor.T
    H[np.diag_indices(d)] += max(1e-10 * np.trace(H) / d, SMALLEST)
    ones = np.append(np.ones(Phi.shape[1]), 0.0)
    return np.kron(np.diag(ones), kappa * np.linalg.inv(H) if kappa > 0 else np.zeros_like(H))


def _information(stats: SquaredState, phi, factor, s2) -> np.ndarray:
    """Return sum_t phi_t phi_t^T (x) Lambda_t, (K d, K d)."""
    (T, K), d = phi.shape, len(factor)
    information = np.zeros((K * d, K * d))
    for part in _blocks(T, max(d * d, K * K)):
        known = information_of_theta(stats.gram[part], factor, s2[part])
        information += paired_information(phi[part], known)
    return information


def paired_information(phi, known) -> np.ndarray:
    """Return sum_t phi_t phi_t^T (x) Lambda_t, (K d, K d), from phi (T, K) and Lambda (T, d, d)."""
    (T, K), d = phi.shape, known.shape[1]
    pairs = (phi[:, :, None] * phi[:, None, :]).reshape(T, K * K)
    summed = (pairs.T @ known.reshape(T, d * d)).reshape(K, K, d, d)
    return summed.transpose(0, 2, 1, 3).reshape(K * d, K * d)


def _scores(stats: SquaredState, phi, theta, factor, s2) -> np.ndarray:
    """Return the scores s_t = phi_t (x) g_t of tasks (T, K d)."""
    g = posterior_pass(*stats[:3], stats.count.astype(float), theta, factor, s2, 1, False)[0]
    return (phi[:, :, None] * g[:, None, :]).reshape(len(phi), -1)


def information_of_theta(S, factor, s2) -> np.ndarray:
    """Return Lambda_t of tasks (T, d, d): the information about theta_t."""
    B = S / s2[:, None, None]
    BL = B @ factor
    return B - BL @ np.linalg.solve(precision(S, factor, s2), np.swapaxes(BL, 1, 2))


def _inverse(information) -> tuple[np.ndarray, np.ndarray]:
    """Return the pseudo-inverse of an information matrix, and its null space."""
    scale = np.sqrt(np.maximum(np.diag(information), 0.0))
    scale = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    kept = values > SINGULAR * max(values[-1], SMALLEST)
    root = vectors[:, kept] / np.sqrt(values[kept]) / scale[:, None]
    loose = np.linalg.qr(vectors[:, ~kept] / scale[:, None])[0]
    return root @ root.T, loose


def _padded(inverse, null, unused: int, K: int, d: int) -> MapCovariance:
    """Return the covariance with zeros for features that the map does not use."""
    matrix = np.zeros((unused + K, d, unused + K, d))
    matrix[unused:, :, unused:, :] = inverse.reshape(K, d, K, d)
    loose = np.zeros((unused + K, d, null.shape[1]))
    loose[unused:] = null.reshape(K, d, -1)
    return MapCovariance(matrix, loose)


def coefficient_covariances(stats: SquaredState, factor, s2, of_theta) -> np.ndarray:
    """Return the covariances of the weights of tasks (T, d, d) given their points.

    P_t + K_t V_t K_t^T with P = L A^-1 L^T, K = I - P B, and V (T, d, d) the covariances of theta.
    """
    A = precision(stats.gram, factor, s2)
    P = factor @ np.linalg.solve(A, np.broadcast_to(factor.T, A.shape))
    keep = np.eye(len(factor)) - P @ (stats.gram / s2[:, None, None])
    return P + keep @ of_theta @ np.swapaxes(keep, 1, 2)


def _blocks(T: int, size: int):
    step = max(BLOCK // size, 1)
    return (slice(lo, lo + step) for lo in range(0, T, step))
