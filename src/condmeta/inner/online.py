r"""Fine-tuning: one online pass over a task's points (the paper's, sign corrected).

    w_1 = theta,   w_{i+1} = w_i - (s_i x_i + lam (w_i - theta)) / (lam i)

has the closed form

    w_{i+1} = theta - u_i / (lam i),   u_i = sum_{j <= i} s_j x_j,

which costs O(d) a step and cancels no digits. The predictor is the mean of w_1..w_n. It includes
w_1 = theta and not w_{n+1}: one point alone returns theta. The meta-gradient comes from the last
iterate w_{n+1}: g = -lam (w_{n+1} - theta) = u_n / n.

Ties: a residual r_i of a piecewise linear loss counts as zero, and its slope as 0, when
|r_i| <= 1e-10 (|y_i| + ||x_i|| (||theta|| + n max_j ||x_j|| / (lam max(i-1, 1)))). Otherwise
rounding would decide a sign that is zero in exact arithmetic.
"""

from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from condmeta.engine import twin
from condmeta.inner.solution import Solution, check_inputs, dual_value, objective
from condmeta.losses import get_loss
from condmeta.persistence.fields import floats, point_counts
from condmeta.persistence.registry import register_tuple
from condmeta.typing import LossLike, Numbers

TIE = 1e-10
HUGE = 1e6  # a residual this many times the task's scale means that the pass diverges


@register_tuple(
    fields={
        "slope_sum": floats("T d"), "path_sum": floats("T d"), "radius": floats("T", low=0),
        "count": point_counts("T"),
    }
)  # fmt: skip
class OnlineState(NamedTuple):
    """The state of the online pass of each of T tasks: all that further points need.

    Attributes
    ----------
    slope_sum : (T, d)   u_n = sum of s_j x_j
    path_sum : (T, d)    sum over i = 2..n of u_{i-1} / (i-1); the mean iterate follows from it
    radius : (T,)        largest ||x_j|| so far
    count : (T,)         n, the points seen
    """

    slope_sum: np.ndarray
    path_sum: np.ndarray
    radius: np.ndarray
    count: np.ndarray

    @classmethod
    def start(cls, n_tasks: int, n_features: int) -> Self:
        """Return the state of tasks that have seen no point."""
        shape = (n_tasks, n_features)
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(n_tasks), np.zeros(n_tasks, np.int64))

    def coef(self, theta: np.ndarray, lam: float) -> np.ndarray:
        """Return the mean iterate of each task, theta itself where there are no points."""
        return theta - self.path_sum / (lam * np.maximum(self.count, 1)[:, None])


def online(
    theta: Numbers, X: Numbers, y: Numbers, lam: float, loss: LossLike = "absolute"
) -> Solution:
    """Run the online inner algorithm on one task.

    Parameters
    ----------
    theta : (d,) array or float
        Where the pass starts.
    X, y : (n, d) and (n,) arrays
        The points, in the order in which they are read.
    lam : float in (0, inf)
        Regularisation; the step at point i is 1 / (lam i).
    loss : name or loss object

    Returns
    -------
    Solution
        `coef` is the mean of w_1..w_n, `last` is w_{n+1}.

    Examples
    --------
    >>> from condmeta.inner import online
    >>> run = online([0.5, 0.25], [[1, 0], [0, 1], [1, 1]], [2, -1, 0.5], lam=0.8)
    >>> run.slopes, run.coef.round(4), run.gradient.round(4)
    (array([-1.,  1.,  1.]), array([1.125 , 0.0417]), array([0.    , 0.6667]))
    """
    loss = get_loss(loss)
    theta, X, y = check_inputs(theta, X, y, lam)
    u, path, slopes = np.zeros_like(theta), np.zeros_like(theta), np.empty_like(y)
    run_points(theta, X, y, lam, loss, u, path, 0.0, 0, slopes)
    coef = theta - path / (lam * len(y))
    gradient = u / len(y)
    primal = objective(coef, theta, X, y, lam, loss)
    if hasattr(loss, "conjugate"):
        dual = dual_value(slopes, theta, X, y, lam, loss)
    else:  # Fenchel's equality at the points where the slopes were taken
        steps = slopes[:, None] * X
        u_before = np.cumsum(steps, axis=0) - steps
        moved = np.einsum("ij,ij->i", X, u_before) / np.maximum(np.arange(len(X)), 1)
        z = X @ theta - moved / lam
        dual = gradient @ theta - gradient @ gradient / (2 * lam)
        dual += float(np.mean(loss.value(z, y) - slopes * z))
    return Solution(coef, theta - gradient / lam, gradient, slopes, primal, dual, primal - dual)


@twin
def online_tasks(theta, X, y, offsets, lam, loss, slope_sum, path_sum, radius, count, n_jobs):
    """Run the online inner algorithm on T tasks, from their states and in place.

    theta, slope_sum, path_sum (T, d); X (N, d); y (N,); offsets (T+1,); radius, count (T,).
    Returns -1, or the position of the first task whose pass diverges.
    """
    for t, (lo, hi) in enumerate(pairwise(offsets)):
        if lo == hi:
            continue
        radius[t], finite = run_points(
            theta[t], X[lo:hi], y[lo:hi], lam, loss, slope_sum[t], path_sum[t], radius[t], count[t]
        )
        if not finite:
            return t
        count[t] += hi - lo
    return -1


@np.errstate(over="ignore", invalid="ignore")  # an overflow is a status here, not a warning
def run_points(theta, X, y, lam, loss, u, path, radius, count, slopes=None) -> tuple[float, bool]:
    """Run one task's pass over its points, in place on u and path; return (radius, finite)."""
    norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    radius = max(radius, norms.max())
    n = count + len(y)
    size = np.sqrt(theta @ theta)
    start = X @ theta
    limit = HUGE * (np.abs(y) + np.abs(start)).max() if loss_is_unbounded(loss) else np.inf
    ties = hasattr(loss, "native")
    for j, (x, label) in enumerate(zip(X, y, strict=True)):
        before = max(count + j, 1)  # i - 1, or 1 at the first point, where u = 0
        z = start[j] - x @ u / (lam * before)
        path += u / before
        tie = TIE * (abs(label) + norms[j] * (size + n * radius / (lam * before)))
        s = loss.slope(z, label, tie) if ties else loss.slope(z, label)
        if not abs(s) <= limit:
            return radius, False
        u += s * x
        if slopes is not None:
            slopes[j] = s
    return radius, bool(np.isfinite(u).all())


def loss_is_unbounded(loss) -> bool:
    """Return whether slopes can grow without bound, so that a pass can diverge."""
    return not np.isfinite(getattr(loss, "lipschitz", np.inf))
