r"""The convex surrogate of conditional meta-learning, minimised to optimality.

With phi_t = (Phi(s_t), 1) and W = (M, b),

    F(W) = (1/T) sum_t min_v [(1/n_t) sum_i l(<x_ti, W phi_t + v>, y_ti) + lam/2 ||v||^2]
           + 1/2 sum_j rho_j ||W_j||^2.

Row j of W^T, the effect of one side feature, has the ridge rho_j = kappa lam / T: it weighs as much
as kappa tasks, each of weight lam. So has b, up to kappa = `BASE`: tasks keep a common start even
if side features explain nothing. F is strongly convex.

The inner minima are exact (`condmeta.inner.batch`): with slopes a_t of the loss and
g_t = X_t^T a_t / n_t,

    dF/dW^T = (1/T) sum_t phi_t g_t^T + rho W^T.

The same slopes are feasible in the dual of the whole program, after W is eliminated:

    D(a) = -(1/T) sum_t [||g_t||^2 / (2 lam) + (1/n_t) sum_i l*(a_ti)] - sum_j ||G_j||^2 / (2 rho_j)

with G = (1/T) sum_t phi_t g_t^T. So every evaluation bounds the distance of F from its minimum:

    F(W) - min F <= F(W) - D(a) = sum_j ||dF/dW_j||^2 / (2 rho_j) + (1/T) sum_t gap_t.

Quasi-Newton steps (L-BFGS) are taken in coordinates in which the curvature of F is at most one. The
code stores W^T (k+1, d), as the learners do.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from condmeta.inner.batch import batch_tasks
from condmeta.tasks.points import Points

BASE = 10.0  # the largest ridge on b, in tasks
MEMORY = 20  # pairs that the quasi-Newton method stores


class Evaluation(NamedTuple):
    """F at W (k+1, d), its gradient there, and a bound on F - min F."""

    W: np.ndarray
    objective: float
    gradient: np.ndarray
    gap: float


class LearnedMap(NamedTuple):
    """A map W (k+1, d) with b in its last row, F there, a bound on F - min F, and evaluations."""

    W: np.ndarray
    objective: float
    gap: float
    passes: int


class Surrogate:
    """F, its gradient and its certificate, for one lam and one kappa."""

    def __init__(self, points: Points, Phi, loss, lam: float, kappa: float, tol=1e-9, n_jobs=1):
        self.points, self.loss, self.lam, self.n_jobs = points, loss, lam, n_jobs
        self.tol = tol  # of the inner solves
        Phi = Phi[:, :0] if np.isinf(kappa) else Phi
        self.Phi1 = np.column_stack([Phi, np.ones(len(Phi))])
        self.rho = np.append(np.full(Phi.shape[1], kappa), min(kappa, BASE)) * lam / len(Phi)
        # The weight of a point in F.
        self.weights = 1.0 / (np.repeat(points.count, points.sizes) * len(points.sizes))
        if points.weight is not None:
            self.weights = points.weight * self.weights

    def evaluate(self, W) -> Evaluation:
        """Solve all tasks around W phi."""
        X, y, offsets, times = self.points
        theta, rho = self.Phi1 @ W, self.rho[:, None]
        _, g, gaps, a = batch_tasks(
            theta, X, y, offsets, self.lam, self.loss, self.tol, self.n_jobs, times
        )
        slack = gaps.mean()
        # F from the duals of the tasks; their gaps make it the primal value.
        duals = np.sum(g * theta) - np.sum(g**2) / (2 * self.lam)
        value = duals / len(theta) - self.weights @ self.loss.conjugate(a, y) + slack
        gradient = self.Phi1.T @ g / len(theta) + rho * W
        gap = np.sum(gradient**2 / rho) / 2 + slack
        return Evaluation(W, float(value + np.sum(rho * W**2) / 2), gradient, float(gap))


def learn_map(
    points: Points, Phi, loss, lam: float, kappa: float, start=None, *,
    tol=1e-6, max_evaluations=500, n_jobs=1,
) -> LearnedMap:  # fmt: skip
    """Minimise F.

    Parameters
    ----------
    points : Points of T tasks
    Phi : (T, k) array
        All columns on one scale, so that one kappa suits them all.
    loss : loss object with a conjugate
    lam : float in (0, inf)
    kappa : float in (0, inf]
        Infinity leaves the side information out: M = 0.
    start : (k+1, d) array, optional
        Where to start, e.g. the map of a neighbouring lam.
    tol : float
        The fit ends when the bound on F - min F is at most tol F.
    max_evaluations : int
        Of F; each solves all tasks.
    """
    model = Surrogate(points, Phi, loss, lam, kappa, tol / 10, n_jobs)
    shape = model.Phi1.shape[1], points.X.shape[1]
    best, passes = model.evaluate(np.zeros(shape) if start is None else start[-shape[0] :]), 1
    while best.gap > tol * best.objective and passes < max_evaluations:
        found, evaluations = _descend(model, best, tol, max_evaluations - passes)
        passes += evaluations
        if not found.gap < best.gap:  # rounding stops the line search
            break
        best = found
    W = np.pad(best.W, ((Phi.shape[1] + 1 - shape[0], 0), (0, 0)))  # a row for each column of Phi
    return LearnedMap(W, best.objective, best.gap, passes)


def _descend(
    model: Surrogate, start: Evaluation, tol: float, max_evaluations: int
) -> tuple[Evaluation, int]:
    """Minimise F from a start; return the evaluation with the least gap, and their number."""
    best, unit = start, start.objective
    # With W = C V the curvature of F in V is at most one: that of a task in theta is at most lam.
    system = model.lam * model.Phi1.T @ model.Phi1 / len(model.Phi1) + np.diag(model.rho)
    system += 1e-12 * np.trace(system) / len(system) * np.eye(len(system))
    C = np.linalg.inv(np.linalg.cholesky(system)).T
    C = C * np.sqrt(unit)  # F / unit then changes by about one

    def descent(x):
        nonlocal best
        found = model.evaluate(start.W + C @ x.reshape(start.W.shape))
        best = min(best, found, key=lambda each: each.gap)
        return found.objective / unit, (C.T @ found.gradient).ravel() / unit

    def stop_if_certified(intermediate_result):
        if best.gap <= tol * best.objective:
            raise StopIteration

    done = minimize(
        descent, np.zeros(start.W.size), jac=True, method="L-BFGS-B", callback=stop_if_certified,
        options={"maxfun": max_evaluations, "maxiter": max_evaluations, "maxcor": MEMORY,
                 "gtol": 0.0, "ftol": 0.0},
    )  # fmt: skip
    return best, done.nfev
