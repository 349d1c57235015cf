r"""The theory's lam and meta_step from data: V, ||(M, b)||_F, R and K estimated from real tasks.

**The map.** With w = M Phi + b + u a label is y = x^T M Phi + x^T b + (x^T u + noise): a linear
regression of y on x (Phi, 1)^T over all points. It is fitted by ridge regression, whose penalty is
the one that predicts the tasks of left-out folds best.

**V.** The residuals of a task of a left-out fold are r = X u + noise, with u = w - tau(s) and tau
fitted on the other folds. Under u ~ N(0, v I) and noise of one variance they have the covariance
noise I + v X X^T; both numbers are those of greatest likelihood, and V^2 = d v. Where u is not
spherical V^2 is a mean over directions, by how much the inputs tell about each: of the right size,
not exact. As tau comes from other tasks, V is that of a map that can be learned, not the least.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from condmeta.errors import DataError
from condmeta.losses import get_loss
from condmeta.tasks import TaskSet
from condmeta.theory.bounds import Bound, bound_learned
from condmeta.theory.oracle import LinearMap
from condmeta.theory.radii import radii
from condmeta.theory.sources import features_of
from condmeta.theory.variance import Estimate

PENALTIES = np.geomspace(1e-4, 1e4, 17)  # times the mean eigenvalue of the design's second moment
RATIOS = np.array([1e-9, 1e9])  # of v e to the noise, e the greatest eigenvalue


class Suggestion(NamedTuple):
    """Hold the settings that Theorem 2 suggests for some tasks, and the estimates behind them.

    Attributes
    ----------
    lam, meta_step : float
        For `ConditionalSGDRegressor` and its like, in the units of the given X and y.
    bound : Bound
        Theorem 2 at these settings and estimates.
    variance : Estimate
        V^2 of the fitted map on tasks that it has not seen, and its standard error. The V that is
        used is not taken below that error.
    map : LinearMap
        The fitted map, whose norm is ||(M, b)||_F.
    R, K : float
    n : float
        Harmonic mean of the numbers of points.

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.environments.Circle(d=5, n=10, noise=0.5).sample(200, random_state=0)
    >>> found = cm.theory.suggest(tasks, cm.feature_maps.CircleMap())
    >>> found.map.M.shape, 0.1 < found.lam < 10
    ((5, 2), True)
    """

    lam: float
    meta_step: float
    bound: Bound
    variance: Estimate
    map: LinearMap
    R: float
    K: float
    n: float


def suggest(
    tasks: TaskSet,
    Phi: Any = "auto",
    *,
    T: int | None = None,
    loss: Any = "absolute",
    inner: str = "online",
    how: str = "rms",
    folds: int = 5,
) -> Suggestion:
    """Return the lam and meta_step of Theorem 2, with V, ||(M, b)||_F, R and K from the tasks.

    They are the minimisers of a bound, which is within a constant of the truth, and not of the
    error: a start for a search (`ConditionalSGDRegressorCV`), not its replacement.

    Parameters
    ----------
    tasks : TaskSet
        Tasks with targets. X and y are taken as they are: prepare them as the learner would.
    Phi : array (T, k), feature map, list of maps, "auto" or None
        Features of the tasks; None is unconditional. A map that reads the targets of the same
        points breaks the independence that V rests on: give features of other points instead.
    T : int, optional
        Tasks that the learner will see; by default those given.
    loss : loss by name or object, for L
        With the squared loss (L = inf) the largest slope is not known: a DataError.
    inner : {"online", "batch"}
    how : {"rms", "max"}
        R and K as in `radii`.
    folds : int
        Parts that the tasks are cut into, in their order, one left out at a time.

    Returns
    -------
    Suggestion

    Notes
    -----
    Cost: N p^2 + folds p^3 with N points and p = d (k + 1).

    Examples
    --------
    >>> import condmeta as cm
    >>> env = cm.environments.Circle(radius=4.0, d=5, n=10, sigma_w=1.0, noise=1.0)
    >>> found = cm.theory.suggest(env.sample(2000, random_state=0), cm.feature_maps.CircleMap())
    >>> abs(found.variance.value - 5.0) < 3 * found.variance.error   # V^2 = d sigma_w^2
    True
    """
    if tasks.y is None:
        raise DataError("suggest reads the targets of the tasks: there are none.")
    features = features_of(tasks, Phi, len(tasks))[tasks.sizes > 0]
    tasks = tasks.subset(np.flatnonzero(tasks.sizes > 0))
    if not 2 <= folds <= len(tasks):
        raise DataError(f"folds must be from 2 to the number of tasks with points ({len(tasks)}).")
    loss = get_loss(loss)
    residuals, fitted = _cross_fit(tasks, features, folds)
    square = residual_variance(tasks, residuals)
    V2 = max(square.value, square.error)
    if 1e-20 * max(float(np.mean(tasks.y**2)), 1e-300) >= V2:
        raise DataError(
            "The map predicts every label of left-out tasks exactly (V = 0), so the theory's lam "
            "is infinite: use the map itself, or a large lam."
        )
    R, K = radii(tasks, features, how=how)
    T = len(tasks) if T is None else T
    bound = bound_learned(
        V2**0.5, fitted.norm, tasks.sizes, T, L=loss.lipschitz, R=R, K=K, inner=inner
    )
    n = 1 / float(np.mean(1 / tasks.sizes))
    return Suggestion(bound.lam, bound.meta_step, bound, square, fitted, R, K, n)


def residual_variance(tasks: TaskSet, residuals: np.ndarray) -> Estimate:
    """Return E ||w - tau(s)||^2 from residuals (N,) of tau, by maximum likelihood.

    In the left singular vectors of X_t the residuals are independent, with the variances
    noise + v e for the eigenvalues e of X_t X_t^T; the rest of them has e = 0.
    """
    e, q2, count = _spectra(tasks, residuals)
    if not e.any() or count.sum() <= 1:
        raise DataError("V cannot be told from noise: the tasks have too few points, or inputs 0.")
    N, scale = count.sum(), e.max()

    def profile(ratio: float) -> float:
        """Return -2 log likelihood at v = ratio noise, the noise at its best."""
        factor = 1 + ratio * e
        return N * np.log((q2 / factor).sum() / N) + (count * np.log(factor)).sum()

    if not q2.any():
        return Estimate(0.0)
    found = minimize_scalar(
        lambda log: profile(np.exp(log)), bounds=np.log(RATIOS / scale), method="bounded"
    )
    ratio = np.exp(found.x)
    if profile(0.0) <= found.fun:
        ratio = 0.0
    noise = (q2 / (1 + ratio * e)).sum() / N
    # Fisher information of (v, noise)
    variances = noise * (1 + ratio * e)
    vv, vn, nn = ((count * e**power / variances**2).sum() / 2 for power in (2, 1, 0))
    d = tasks.n_features
    error = d / np.sqrt(max(vv - vn**2 / nn, 1e-300))
    return Estimate(float(d * ratio * noise), float(error))


def _spectra(tasks: TaskSet, residuals: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return eigenvalues e, squared residuals along them, and over how many directions these sum.

    One entry a singular vector, and one a task for all the rest.
    """
    e, q2, count = [], [], []
    for lo, hi in pairwise(tasks.offsets):
        r = residuals[lo:hi]
        U, s, _ = np.linalg.svd(tasks.X[lo:hi], full_matrices=False)
        q = (U.T @ r) ** 2
        e += [s**2, [0.0]]
        q2 += [q, [max(r @ r - q.sum(), 0.0)]]
        count += [np.ones(s.size), [hi - lo - s.size]]
    return np.concatenate(e), np.concatenate(q2), np.concatenate(count)


def _cross_fit(tasks: TaskSet, features: np.ndarray, folds: int) -> tuple[np.ndarray, LinearMap]:
    """Return the residuals of each task by a map of the other folds, and the map of all tasks."""
    T = len(tasks)
    Phi1 = np.column_stack([features, np.ones(T)])
    task_of_row = np.repeat(np.arange(T), tasks.sizes)
    parts = np.split(np.arange(len(tasks.y)), tasks.offsets[T * np.arange(1, folds) // folds])

    def design(rows: np.ndarray) -> np.ndarray:
        products = tasks.X[rows, :, None] * Phi1[task_of_row[rows], None, :]
        return products.reshape(len(rows), -1)

    grams = []
    for rows in parts:
        Z = design(rows)
        grams.append((Z.T @ Z, Z.T @ tasks.y[rows]))
    A, g = sum(part[0] for part in grams), sum(part[1] for part in grams)
    penalties = PENALTIES * max(np.trace(A) / len(A), 1e-300)
    residuals = np.empty((len(tasks.y), penalties.size))
    for rows, (own_A, own_g) in zip(parts, grams, strict=True):
        predicted = design(rows) @ _ridge(A - own_A, g - own_g, penalties)
        residuals[rows] = tasks.y[rows, None] - predicted
    # on a tie the larger penalty, hence the smaller norm
    best = penalties.size - 1 - int(np.argmin((residuals**2).mean(axis=0)[::-1]))
    W = _ridge(A, g, penalties[[best]])[:, 0].reshape(tasks.n_features, -1)
    return residuals[:, best], LinearMap(W[:, :-1], W[:, -1])


def _ridge(A: np.ndarray, g: np.ndarray, penalties: np.ndarray) -> np.ndarray:
    """Return (A + penalty I)^-1 g for all penalties, (p, number of penalties)."""
    values, vectors = np.linalg.eigh(A)
    return vectors @ ((vectors.T @ g)[:, None] / (np.maximum(values, 0.0)[:, None] + penalties))
