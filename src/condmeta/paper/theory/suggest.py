r"""The lam and meta_step of Theorem 2, with V, ||(M, b)||_F, R and K estimated from real tasks.

**The map.** With w = M Phi + b + u a label is y = x^T M Phi + x^T b + (x^T u + noise). This is a
linear regression of y on x (Phi, 1)^T over all points. We fit it by ridge regression, with the
penalty that predicts held-out tasks best.

**V.** Let tau be fitted to the other folds. The residuals of a held-out task are r = X u + noise
with u = w - tau(s). If u ~ N(0, v I) and the noise has one variance for all tasks, the residuals
have the covariance noise I + v X X^T. We estimate noise and v by maximum likelihood, and V^2 = d v.
If the covariance of u is not spherical, V^2 is a mean over directions, weighted by the information
of the inputs about each direction: of the right order, but not exact. Because tau is fitted to
other tasks, V is that of a learned map, which is larger than that of the best map.
"""

from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from condmeta.errors import DataError
from condmeta.paper.theory.bounds import Bound, bound_learned, effective_n, largest_slope
from condmeta.paper.theory.oracle import BestMap
from condmeta.paper.theory.radii import radii
from condmeta.paper.theory.sources import features_of
from condmeta.paper.theory.variance import Estimate
from condmeta.tasks import TaskSet
from condmeta.tasks.taskset import require_numbers
from condmeta.typing import FeatureMapLike, InnerName, KernelLike, LossLike, Numbers

PENALTIES = np.geomspace(1e-4, 1e4, 17)  # times the mean eigenvalue of Z^T Z, Z the design
RATIOS = np.array([1e-9, 1e9])  # range of v e / noise, e the largest eigenvalue


class Suggestion(NamedTuple):
    """Hold the lam and meta_step that Theorem 2 suggests for some tasks, and the estimates.

    Attributes
    ----------
    lam, meta_step : float
        For `ConditionalSGDRegressor` and similar learners, in the units of the given X and y.
    bound : Bound
        The bound of Theorem 2 with these settings and estimates.
    variance : Estimate
        V^2 of the fitted map on held-out tasks, and its standard error. The bound uses the larger
        of the two as V^2.
    map : BestMap
        The fitted map; `map.norm` is ||(M, b)||_F.
    R, K : float
        The norms of inputs and features, see `radii`.
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
    map: BestMap
    R: float
    K: float
    n: float


def suggest(
    tasks: TaskSet, Phi: FeatureMapLike | KernelLike | Numbers = "auto", *, T: int | None = None,
    loss: LossLike = "absolute", inner: InnerName = "online", how: Literal["rms", "max"] = "rms",
    folds: int = 5,
) -> Suggestion:  # fmt: skip
    """Return the lam and meta_step of Theorem 2, with V, ||(M, b)||_F, R and K from the tasks.

    They minimise a bound, not the error, and the bound is right only up to a constant. Use them as
    the centre of a search (`ConditionalSGDRegressorCV`), not in place of one.

    Parameters
    ----------
    tasks : TaskSet
        Tasks with targets. X and y are not scaled: scale them as the learner does.
    Phi : array (T, k), feature map, list of maps, "auto" or None
        Features of the tasks; None means no features (unconditional). Do not give a map that reads
        the targets of these points: the estimate of V would be wrong. Compute such features from
        other points, and give them as an array.
    T : int, optional
        Number of tasks that the learner will be fitted to; by default `len(tasks)`.
    loss : str or loss
        Determines L. The squared loss raises a DataError, because its slopes are unbounded.
    inner : {"online", "batch"}
    how : {"rms", "max"}
        How `radii` computes R and K.
    folds : int
        Number of folds; tasks are assigned to folds in their order.

    Notes
    -----
    Cost: N p^2 + folds p^3 operations, with N points and p = d (k + 1).

    Examples
    --------
    >>> import condmeta as cm
    >>> env = cm.environments.Circle(radius=4.0, d=5, n=10, sigma_w=1.0, noise=1.0)
    >>> found = cm.theory.suggest(env.sample(2000, random_state=0), cm.feature_maps.CircleMap())
    >>> abs(found.variance.value - 5.0) < 3 * found.variance.error   # V^2 = d sigma_w^2
    True
    """
    require_numbers(tasks, "suggest")
    features = features_of(tasks, Phi, len(tasks))[tasks.sizes > 0]
    tasks = tasks.subset(np.flatnonzero(tasks.sizes > 0))
    if len(tasks) < 2:
        raise DataError(f"suggest needs at least 2 tasks with points. Got {len(tasks)}.")
    if not 2 <= folds <= len(tasks):
        raise DataError(f"folds must be from 2 to {len(tasks)}, the number of tasks with points.")
    L = largest_slope(loss)
    residuals, fitted = _cross_fit(tasks, features, folds)
    square = residual_variance(tasks, residuals)
    V2 = max(square.value, square.error)
    if 1e-20 * max(float(np.mean(tasks.y**2)), 1e-300) >= V2:
        raise DataError(
            "The map predicts every label of held-out tasks exactly (V = 0), so the lam of the "
            "theory is infinite: use the map itself, or a large lam."
        )
    R, K = radii(tasks, features, how=how)
    T = len(tasks) if T is None else T
    n = effective_n(tasks.sizes)
    bound = bound_learned(V2**0.5, fitted.norm, tasks.sizes, T, L=L, R=R, K=K, inner=inner)
    return Suggestion(bound.lam, bound.meta_step, bound, square, fitted, R, K, n)


def residual_variance(tasks: TaskSet, residuals: np.ndarray) -> Estimate:
    """Return the maximum likelihood estimate of E ||w - tau(s)||^2 from the residuals (N,) of tau.

    Along the eigenvectors of X_t X_t^T the residuals are independent. Their variances are
    noise + v e with e the eigenvalue.
    """
    e, q2, count = _spectra(tasks, residuals)
    if not e.any() or count.sum() <= 1:
        raise DataError("V cannot be estimated: all inputs are 0, or there is only one point.")
    N = count.sum()

    def profile(ratio: float) -> float:
        """Return -2 log likelihood at v = ratio noise, maximised over the noise."""
        factor = 1 + ratio * e
        return N * np.log((q2 / factor).sum() / N) + (count * np.log(factor)).sum()

    if not q2.any():
        return Estimate(0.0)
    bounds = np.log(RATIOS / e.max())
    found = minimize_scalar(lambda log: profile(np.exp(log)), bounds=bounds, method="bounded")
    ratio = 0.0 if profile(0.0) <= found.fun else np.exp(found.x)
    noise = (q2 / (1 + ratio * e)).sum() / N
    # Fisher information of (v, noise)
    variances = noise * (1 + ratio * e)
    vv, vn, nn = ((count * e**power / variances**2).sum() / 2 for power in (2, 1, 0))
    d = tasks.n_features
    error = d / np.sqrt(max(vv - vn**2 / nn, 1e-300))
    return Estimate(float(d * ratio * noise), float(error))


def _spectra(tasks: TaskSet, residuals: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return eigenvalues, squared residuals along their eigenvectors, and numbers of directions.

    Each singular vector has an entry of one direction. The other directions of a task have the
    eigenvalue 0 and share one entry.
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


def _cross_fit(tasks: TaskSet, features: np.ndarray, folds: int) -> tuple[np.ndarray, BestMap]:
    """Return the residuals of each task from a map of the other folds, and the map of all tasks."""
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
    A, g = map(sum, zip(*grams, strict=True))
    penalties = PENALTIES * max(np.trace(A) / len(A), 1e-300)
    residuals = np.empty((len(tasks.y), penalties.size))
    for rows, (own_A, own_g) in zip(parts, grams, strict=True):
        predicted = design(rows) @ _ridge(A - own_A, g - own_g, penalties)
        residuals[rows] = tasks.y[rows, None] - predicted
    # if two penalties are equally good, take the larger, which has the smaller norm
    best = penalties.size - 1 - int(np.argmin((residuals**2).mean(axis=0)[::-1]))
    W = _ridge(A, g, penalties[[best]])[:, 0].reshape(tasks.n_features, -1)
    return residuals[:, best], BestMap(W[:, :-1], W[:, -1])


def _ridge(A: np.ndarray, g: np.ndarray, penalties: np.ndarray) -> np.ndarray:
    """Return (A + penalty I)^-1 g for all penalties, (p, number of penalties)."""
    values, vectors = np.linalg.eigh(A)
    return vectors @ ((vectors.T @ g)[:, None] / (np.maximum(values, 0.0)[:, None] + penalties))
