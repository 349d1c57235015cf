r"""Biased regularisation: the exact minimiser around theta, the paper's batch inner algorithm.

    A(theta, Z) = argmin_w  (1/n) sum_i l(<x_i, w>, y_i) + lam/2 ||w - theta||^2

Everything is read off the dual point a (one slope a_i of the loss for each point):

    g = X^T a / n      the meta-gradient, for any feasible a an eps-subgradient of the meta-loss,
    A = theta - g / lam,
    gap = (1/n) sum_i [l(z_i) + l*(a_i) - a_i z_i],  z = X A      (= primal - dual >= eps >= 0).

A point that counts m_i times has m_i a_i in place of a_i in g and m_i times its term in sums, and n
is the sum of all m_i. The solvers then look for m a, which has a box m times wider and a curvature
m times smaller.

The loss alone decides how a is found: in closed form (squared), by Newton steps (logistic), as a
box-constrained quadratic program (the piecewise ones: `condmeta.inner.box_qp`), or by coordinate
ascent, which needs nothing but the slope (the user's own losses).
"""

from itertools import pairwise

import numpy as np

from condmeta.engine import twin
from condmeta.errors import DataError
from condmeta.inner.box_qp import solve_box_qp
from condmeta.inner.solution import Solution, check_inputs, dual_value, objective
from condmeta.losses import LogisticLoss, Loss, get_loss
from condmeta.tasks.weights import task_sums
from condmeta.typing import LossLike, Numbers

MAX_ITER = 1000


def batch(
    theta: Numbers,
    X: Numbers,
    y: Numbers,
    lam: float,
    loss: LossLike = "absolute",
    tol: float = 1e-6,
) -> Solution:
    """Solve one task exactly by biased regularisation.

    Parameters
    ----------
    theta : (d,) array or float
        The bias.
    X, y : (n, d) and (n,) arrays
    lam : float in (0, inf)
    loss : name or loss object with a conjugate
    tol : float
        The gap is at most `tol` times the mean loss at theta. Note that
        ||w - w*|| <= sqrt(2 gap / lam): comparing weights needs a small gap.

    Returns
    -------
    Solution

    Examples
    --------
    >>> from condmeta.inner import batch
    >>> run = batch([0.5, 0.25], [[1, 0], [0, 1], [1, 1]], [2, -1, 0.5], lam=0.8)
    >>> run.coef.round(4), run.slopes.round(4), bool(run.gap < 1e-12)
    (array([ 0.7917, -0.2917]), array([-1. ,  1. ,  0.3]), True)
    """
    loss = require_conjugate(get_loss(loss))
    theta, X, y = check_inputs(theta, X, y, lam)
    offsets = np.array([0, len(y)])
    coef, gradient, gap, slopes = batch_tasks(theta[None], X, y, offsets, lam, loss, tol, 1)
    primal = objective(coef[0], theta, X, y, lam, loss)
    dual = dual_value(slopes, theta, X, y, lam, loss)
    return Solution(coef[0], coef[0], gradient[0], slopes, primal, dual, float(gap[0]))


@twin
def batch_tasks(theta, X, y, offsets, lam, loss, tol, n_jobs, weight=None):
    """Solve T independent tasks; the compiled twin runs them on `n_jobs` threads.

    theta (T, d); X (N, d); y (N,); offsets (T+1,); weight (N,) > 0, how often each point counts.
    Returns coef (T, d), gradient (T, d), gap (T,), slopes (N,); a task without points keeps theta.
    """
    gradient, gap, slopes = np.zeros_like(theta), np.zeros(len(theta)), np.zeros(len(y))
    for t, (lo, hi) in enumerate(pairwise(offsets)):
        if lo < hi:
            points, m = (X[lo:hi], y[lo:hi]), np.ones(hi - lo) if weight is None else weight[lo:hi]
            a = solve_dual(theta[t], *points, m, lam, loss, tol)
            gradient[t] = points[0].T @ (m * a) / m.sum()
            gap[t] = certified_gap(a, theta[t], *points, m, lam, loss)
            slopes[lo:hi] = a
    return theta - gradient / lam, gradient, gap, slopes


def solve_dual(theta, X, y, m, lam, loss, tol) -> np.ndarray:
    """Return the dual point a of one task; its points count m (n,) times."""
    if isinstance(loss, LogisticLoss):
        return _newton(theta, X, y, m, lam, loss)
    if not isinstance(loss, Loss):
        return _coordinate_ascent(theta, X, y, m, lam, loss, tol)
    residual, c = y - X @ theta, lam * m.sum()
    q = loss.curvature
    if np.isinf(loss.high):  # squared: (q I + R R^T / c) r a = -r residual, r = sqrt(m), R = r X
        root = np.sqrt(m)
        return _solve_shifted(root[:, None] * X, -root * residual / q, 1.0 / (c * q)) / root
    target = tol * np.sum(m * loss.value(X @ theta, y))
    if target == 0:  # theta fits every point: it is the minimiser
        return np.zeros_like(y)
    low, high = loss.box(y)
    if not loss.dead_zone:
        a = solve_box_qp(X, residual, c, q / m, m * low, m * high, target, m.sum()) / m
        return np.clip(a, low, high)  # the division may round beyond
    # |a| = p + n with a = p - n: a dead zone doubles the rows, with signs.
    both, twice = np.vstack([X, -X]), np.concatenate([m, m])
    shifted = np.concatenate([residual, -residual]) + loss.dead_zone
    width = twice * np.concatenate([high, -low])
    nothing = np.zeros_like(width)
    p = solve_box_qp(both, shifted, c, q / twice, nothing, width, target, twice.sum())
    return np.clip((p[: len(y)] - p[len(y) :]) / m, low, high)


def certified_gap(a, theta, X, y, m, lam, loss) -> float:
    """Return the duality gap of a and its weight vector, as a sum of non-negative terms."""
    z = X @ (theta - X.T @ (m * a) / (lam * m.sum()))
    terms = np.maximum(loss.value(z, y) + loss.conjugate(a, y) - a * z, 0.0)
    return float(np.sum(m * terms) / m.sum())


def mean_loss_at(theta, X, y, offsets, loss, weight=None) -> np.ndarray:
    """Return the mean loss of each task at its theta (T,), the unit of `tol`; 0 without points."""
    sizes = np.diff(offsets)
    z = np.einsum("ij,ij->i", X, np.repeat(theta, sizes, axis=0))
    lost, count = loss.value(z, y), np.maximum(sizes, 1)
    if weight is not None:
        lost, count = weight * lost, np.where(sizes > 0, task_sums(weight, offsets), 1.0)
    return np.bincount(np.repeat(np.arange(len(sizes)), sizes), lost, len(sizes)) / count


def require_conjugate(loss):
    """Return the loss, or raise if the batch inner algorithm cannot use it."""
    if hasattr(loss, "conjugate"):
        return loss
    raise DataError(
        f"The loss {type(loss).__name__} has no method 'conjugate', which inner='batch' needs for "
        "its certificate. Add it, or use inner='online'."
    )


def _solve_shifted(X, b, scale) -> np.ndarray:
    """Return (I + scale X X^T)^-1 b, through the smaller of the two Gram matrices."""
    n, d = X.shape
    if n <= d:
        return np.linalg.solve(np.eye(n) + scale * (X @ X.T), b)
    return b - X @ np.linalg.solve(np.eye(d) / scale + X.T @ X, X.T @ b)


def _newton(theta, X, y, m, lam, loss) -> np.ndarray:
    """Minimise the smooth primal by damped Newton steps, to rounding; return the slopes there."""
    d, n = X.shape[1], m.sum()
    v = np.zeros(d)
    value = objective(theta, theta, X, y, lam, loss, m)
    for _ in range(MAX_ITER):
        a = loss.slope(X @ (theta + v), y)
        p = np.abs(a)
        curvature = (X.T * (m * (p * (1 - p)))) @ X / n + lam * np.eye(d)
        step = np.linalg.solve(curvature, X.T @ (m * a) / n + lam * v)
        length = 1.0
        while True:
            trial = objective(theta + v - length * step, theta, X, y, lam, loss, m)
            if trial <= value + 1e-13 * value or length < 1e-10:  # not above, up to rounding
                break
            length /= 2
        v = v - length * step
        # Quadratic convergence: a step of 1e-9 leaves an error of 1e-18.
        if np.abs(step).max() <= 1e-9 * (1e-3 + np.abs(v).max()) or length < 1e-10:
            break
        value = trial
    return loss.slope(X @ (theta + v), y)


def _coordinate_ascent(theta, X, y, m, lam, loss, tol) -> np.ndarray:
    """Ascend the dual one coordinate at a time, by bisection on the slope alone.

    With the others fixed, a_i is the root of a = l'(z_i - (a - a_i) m_i ||x_i||^2 / (lam n)): the
    right side falls as a grows, so the root lies between a_i and the slope at z_i.
    """
    n = m.sum()
    a = np.asarray(loss.slope(X @ theta, y), dtype=float)
    v = -X.T @ (m * a) / (lam * n)
    step = m * np.einsum("ij,ij->i", X, X) / (lam * n)
    target = tol * float(np.sum(m * loss.value(X @ theta, y)) / n)
    for _ in range(MAX_ITER):
        for i in range(len(y)):
            z = X[i] @ (theta + v)
            lo, hi = sorted((a[i], float(loss.slope(z, y[i]))))
            for _ in range(60):
                middle = (lo + hi) / 2
                if loss.slope(z - (middle - a[i]) * step[i], y[i]) > middle:
                    lo = middle
                else:
                    hi = middle
            v -= m[i] * (hi - a[i]) * X[i] / (lam * n)
            a[i] = hi
        if certified_gap(a, theta, X, y, m, lam, loss) <= target:
            break
    return a
