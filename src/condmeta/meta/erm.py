r"""The convex surrogate of conditional meta-learning, minimised to optimality.

With phi_t = (Phi(s_t), 1) and W = (M, b),

    F(W) = (1/T) sum_t min_v [(1/n_t) sum_i l(<x_ti, W phi_t + v>, y_ti) + lam/2 ||v||^2]
           + 1/2 sum_j rho_j ||W_j||^2.

Row j of W^T, the effect of one side feature, has the ridge rho_j = kappa lam / T: kappa tasks
worth, where one task weighs lam. So has b, up to kappa = `BASE`: however little side features say,
tasks have a common start. F is strongly convex.

The inner minima are exact (`condmeta.inner.batch`): slopes a_t of the loss, g_t = X_t^T a_t / n_t,

    dF/dW^T = (1/T) sum_t phi_t g_t^T + rho W^T.

The same slopes are feasible in the dual of the whole program, in which W is eliminated:

    D(a) = -(1/T) sum_t [||g_t||^2 / (2 lam) + (1/n_t) sum_i l*(a_ti)] - sum_j ||G_j||^2 / (2 rho_j)

with G = (1/T) sum_t phi_t g_t^T, so that every evaluation bounds how far F is from its minimum:

    F(W) - min F <= F(W) - D(a) = sum_j ||dF/dW_j||^2 / (2 rho_j) + (1/T) sum_t gap_t.

Quasi-Newton steps (L-BFGS) go in coordinates in which the curvature of F is at most one. The code
holds W^T (k+1, d), as the learners do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from condmeta.inner.batch import batch_tasks
from condmeta.meta.points import WeightedPoints

BASE = 10.0  # the largest ridge on b, in tasks
MEMORY = 20  # steps that the quasi-Newton method remembers


class Evaluation(NamedTuple):
    """F at W (k+1, d), its gradient there, and a bound on F - min F."""

    W: np.ndarray
    objective: float
    gradient: np.ndarray
    gap: float


class Learned(NamedTuple):
    """A map W (k+1, d) with b in its last row, F there, its certificate, and the evaluations."""

    W: np.ndarray
    objective: float
    gap: float
    passes: int


def learn_map(
    points: WeightedPoints, Phi, loss, lam: float, kappa: float, start=None, *,
    tol=1e-6, most=500, n_jobs=1,
) -> Learned:  # fmt: skip
    """Minimise F.

    Parameters
    ----------
    points : WeightedPoints of T tasks
    Phi : (T, k) array
        Of one scale, so that one kappa suits all columns.
    loss : loss object with a conjugate
    lam : float in (0, inf)
    kappa : float in (0, inf]
        Infinity leaves the side information out: M = 0.
    start : (k+1, d) array, optional
        Where to begin, e.g. the map of a neighbouring lam.
    tol : float
        The end: the certificate is at most tol F.
    most : int
        The most evaluations, each a solve of all tasks.
    """
    model = Surrogate(points, Phi, loss, lam, kappa, tol / 10, n_jobs)
    best, passes = model.evaluate(model.narrow(start)), 1
    while best.gap > tol * best.objective and passes < most:
        found, evaluations = _descend(model, best, tol, most - passes)
        passes += evaluations
        if not found.gap < best.gap:  # rounding stops the line search
            break
        best = found
    return Learned(model.widen(best.W), best.objective, best.gap, passes)


def _descend(model: Surrogate, start: Evaluation, tol: float, most: int) -> tuple[Evaluation, int]:
    """Minimise F from a start; return the best certified evaluation and how many there were."""
    best, unit = start, start.objective
    C = model.coordinates() * np.sqrt(unit)  # F / unit then changes by about one

    def descent(x):
        nonlocal best
        found = model.evaluate(start.W + C @ x.reshape(start.W.shape))
        best = min(best, found, key=lambda each: each.gap)
        return found.objective / unit, (C.T @ found.gradient).ravel() / unit

    def stop_if_certified(intermediate_result):
        if best.gap <= tol * best.objective:
            raise StopIteration

    options = {"maxfun": most, "maxiter": most, "maxcor": MEMORY, "gtol": 0.0, "ftol": 0.0}
    done = minimize(
        descent, np.zeros(start.W.size), jac=True, method="L-BFGS-B", callback=stop_if_certified,
        options=options,
    )  # fmt: skip
    return best, done.nfev


class Surrogate:
    """F, its gradient and its certificate, for one lam and one kappa."""

    def __init__(
        self, points: WeightedPoints, Phi, loss, lam: float, kappa: float, tol=1e-9, n_jobs=1
    ):
        self.points, self.loss, self.lam, self.n_jobs = points, loss, lam, n_jobs
        self.tol = tol  # of the inner solves
        self.width = Phi.shape[1]  # of Phi as it was given
        Phi = Phi[:, :0] if np.isinf(kappa) else Phi
        self.Phi1 = np.column_stack([Phi, np.ones(len(Phi))])
        self.rho = np.append(np.full(Phi.shape[1], kappa), min(kappa, BASE)) * lam / len(Phi)
        n = np.repeat(points.count, points.sizes)
        self.weights = 1.0 / (n * len(points.sizes))  # of a point in F
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
        return Evaluation(
            W, float(value + np.sum(rho * W**2) / 2), gradient,
            float(np.sum(gradient**2 / rho) / 2 + slack),
        )  # fmt: skip

    def coordinates(self) -> np.ndarray:
        """Return C (k+1, k+1): with W = C V the curvature of F in V is at most one.

        The curvature of a task in theta is at most lam.
        """
        system = self.lam * self.Phi1.T @ self.Phi1 / len(self.Phi1) + np.diag(self.rho)
        system += 1e-12 * np.trace(system) / len(system) * np.eye(len(system))
        return np.linalg.inv(np.linalg.cholesky(system)).T

    def narrow(self, W) -> np.ndarray:
        """Return a start with the rows that this kappa has; zero if there is none."""
        rows = self.Phi1.shape[1]
        return np.zeros((rows, self.points.X.shape[1])) if W is None else W[-rows:]

    def widen(self, W) -> np.ndarray:
        """Return a map with a row for every column of Phi."""
        wide = np.zeros((self.width + 1, W.shape[1]))
        wide[-len(W) :] = W
        return wide
