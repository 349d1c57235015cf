r"""A learned prior over task weights: mean W phi, covariance H, noise s2.

With phi_t = (Phi(s_t), 1) and W = (M, b),

    w_t ~ N(W phi_t, H),   y_ti ~ N(<x_ti, w_t>, s2),

and a ridge on the map, the fit maximises

    J = sum_t log N(y_t; X_t W phi_t, s2 I + X_t H X_t^T) - (kappa/2) tr(M^T H^-1 M).

One evaluation reads each task's statistics X^T X, X^T y, y^T y and n, whatever n is. The posterior
of every task (`condmeta.inner.posterior`: H = L L^T, m_t = W phi_t + L z_t, P_t = L A_t^-1 L^T)
gives J and, by Fisher's identity, its gradient:

    dJ/dW = H^-1 (sum_t L z_t phi_t^T - kappa M),   dJ/dlog s2 = (sum_t rss_t / s2 - sum_t n_t) / 2,
    dJ/dL = L^-T (sum_t (A_t^-1 + z_t z_t^T) + kappa L^-1 M M^T L^-T - T I), lower triangle.

Quasi-Newton steps follow, in coordinates in which the information of a complete observation of
all w_t is the identity; plain EM is then a gradient step of length one. J never falls. The code
holds W^T (k+1, d), as the learners do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from condmeta.inner.posterior import posterior_pass
from condmeta.inner.squared import SquaredState

METRICS = {
    "identity": lambda H: np.trace(H) / len(H) * np.eye(len(H)),
    "diagonal": lambda H: np.diag(np.diag(H)),
    "full": lambda H: H,
}
SMALLEST = 1e-300  # of a variance: its logarithm stays finite
MEMORY = 20  # steps that the quasi-Newton method remembers


class Prior(NamedTuple):
    """W (k+1, d), with b in the last row; H (d, d); s2."""

    W: np.ndarray
    H: np.ndarray
    s2: float

    @property
    def factor(self) -> np.ndarray:
        """L (d, d), lower triangular, with H = L L^T."""
        floor = max(1e-13 * np.trace(self.H) / len(self.H), SMALLEST)
        return np.linalg.cholesky(self.H + floor * np.eye(len(self.H)))

    def theta(self, Phi) -> np.ndarray:
        """Return W phi of tasks (T, d)."""
        return Phi @ self.W[:-1] + self.W[-1]


class Learned(NamedTuple):
    """A prior, J there, and the evaluations that it took."""

    prior: Prior
    objective: float
    passes: int


def learn_prior(
    stats: SquaredState, Phi, metric: str, kappa: float, start: Prior | None = None, *,
    tol=1e-3, most=300, n_jobs=1, trace=None,
) -> Learned:  # fmt: skip
    """Fit the prior to the tasks.

    Parameters
    ----------
    stats : SquaredState of T tasks
    Phi : (T, k) array
        Standardised, so that one kappa suits all columns.
    metric : "identity", "diagonal" or "full"
    kappa : float in [0, inf]
        Infinity leaves the side information out: M = 0.
    start : Prior, optional
        Where to begin, e.g. the fit of a neighbouring kappa.
    tol : float
        The end: a plain EM step would move no parameter by more than tol standard errors.
    most : int
        The most evaluations.
    trace : list, optional
        Receives J after every step.
    """
    model = Model(stats, Phi, metric, kappa, n_jobs)
    start = model.start() if start is None else model.adopt(start)
    frame = Frame(model, start)

    def record(intermediate_result):
        if trace is not None:
            trace.append(-intermediate_result.fun)

    def descent(x):
        value, gradient = model.evaluate(*frame.parts(x))
        return -value, -frame.pull(x, gradient)

    options = {"maxiter": most, "maxfun": most, "maxcor": MEMORY, "gtol": tol, "ftol": 0.0}
    found = minimize(
        descent, frame.origin, jac=True, method="L-BFGS-B", callback=record, options=options
    )
    W, L, s2 = frame.parts(found.x)
    return Learned(model.widen(Prior(W, L @ L.T, s2)), float(-found.fun), int(found.nfev))


class Model:
    """J and its gradient, for one metric and kappa."""

    def __init__(self, stats: SquaredState, Phi, metric: str, kappa: float, n_jobs: int):
        self.stats, self.metric, self.n_jobs = stats, metric, n_jobs
        self.width = Phi.shape[1]  # of Phi as it was given
        if np.isinf(kappa):
            Phi, kappa = Phi[:, :0], 0.0
        self.k = Phi.shape[1]
        self.ridge = np.append(np.full(self.k, kappa), 0.0)[:, None]
        self.Phi1 = np.column_stack([Phi, np.ones(len(Phi))])
        self.count = stats.count.astype(float)

    def evaluate(self, W, L, s2: float):
        """Return J, and its derivatives by W (k+1, d), by L (d, d) and by log s2."""
        T, d = self.stats.moment.shape
        z, inverses, rss, loglik = posterior_pass(
            *self.stats[:3], self.count, self.Phi1 @ W, L, np.full(T, s2), self.n_jobs
        )
        inverse = np.linalg.inv(L)
        V = W @ inverse.T  # W L^-T, so that W H^-1 = V L^-1
        value = float(loglik.sum() - 0.5 * np.sum(self.ridge * V**2))
        by_V = self.Phi1.T @ z - self.ridge * V
        by_W = by_V @ inverse
        inside = inverses + z.T @ z + (self.ridge * V).T @ V - T * np.eye(d)
        by_L = np.tril(inverse.T @ inside)
        return value, (by_W, by_L, 0.5 * (rss.sum() / s2 - self.count.sum()))

    def start(self) -> Prior:
        """Return one pooled ridge for all tasks as b, M = 0, half its noise, and a small H."""
        S, moment, square, _ = self.stats
        d, n = moment.shape[1], self.count.sum()
        system = S.sum(axis=0)
        system[np.arange(d), np.arange(d)] += max(1e-3 * np.trace(system) / d, SMALLEST)
        W = np.zeros((self.k + 1, d))
        W[-1] = np.linalg.solve(system, moment.sum(axis=0))
        errors = self.stats.squared_errors(self.Phi1 @ W).sum()
        s2 = max(0.5 * errors / n, 1e-12 * square.sum() / n, SMALLEST)
        per_point = np.einsum("tii->", S) / n  # the mean of ||x||^2
        return Prior(W, s2 / max(per_point, SMALLEST) * np.eye(d), s2)

    def adopt(self, prior: Prior) -> Prior:
        """Return a prior of another metric or kappa as a start."""
        W = prior.W[-1:] if len(prior.W) > self.k + 1 else prior.W
        return Prior(W, METRICS[self.metric](prior.H), prior.s2)

    def widen(self, prior: Prior) -> Prior:
        """Return a prior with a row of W for every column of Phi."""
        W = np.zeros((self.width + 1, prior.W.shape[1]))
        W[-len(prior.W) :] = prior.W
        return prior._replace(W=W)


class Frame:
    """Coordinates around a start: one unit is about a standard error.

    W = W0 + C V L0^T with C C^T = (sum phi phi^T + kappa diag(1, .., 1, 0))^-1; the logarithms of
    the diagonal of L, times sqrt(2 T); the rest of L by the rows of L0, times sqrt(T); log s2,
    times sqrt(N / 2). The metric says which of L are free.
    """

    def __init__(self, model: Model, start: Prior):
        T, d = model.stats.moment.shape
        system = model.Phi1.T @ model.Phi1 + np.diag(model.ridge[:, 0])
        system += 1e-12 * np.trace(system) / len(system) * np.eye(len(system))
        self.C = np.linalg.inv(np.linalg.cholesky(system)).T
        self.W0, self.L0, self.metric = start.W, start.factor, model.metric
        self.log_diagonal = np.log(np.diag(self.L0))
        self.lower = np.tril_indices(d, -1)
        self.units = np.sqrt([2.0 * T, T, model.count.sum() / 2])
        n_diagonal = 1 if self.metric == "identity" else d
        n_lower = len(self.lower[0]) if self.metric == "full" else 0
        self.cuts = np.cumsum([start.W.size, n_diagonal, n_lower])
        self.log_s2 = np.log(start.s2)
        below = (self.L0[self.lower] * self.units[1] / self._rows())[:n_lower]
        self.origin = np.concatenate([np.zeros(start.W.size + n_diagonal), below, [0.0]])

    def _rows(self) -> np.ndarray:
        return np.exp(self.log_diagonal)[self.lower[0]]

    def parts(self, x) -> tuple[np.ndarray, np.ndarray, float]:
        """Return W, L and s2 at coordinates x."""
        V, diagonal, below, noise = np.split(x, self.cuts)
        W = self.W0 + self.C @ V.reshape(self.W0.shape) @ self.L0.T
        L = np.diag(np.exp(np.clip(self.log_diagonal + diagonal / self.units[0], -300, 300)))
        if self.metric == "full":
            L[self.lower] = below * self._rows() / self.units[1]
        s2 = np.exp(np.clip(self.log_s2 + noise[0] / self.units[2], -600, 600))
        return W, L, float(s2)

    def pull(self, x, gradient) -> np.ndarray:
        """Return the gradient by coordinates from those by W, L and log s2."""
        by_W, by_L, by_s2 = gradient
        L = self.parts(x)[1]
        diagonal = np.diag(by_L) * np.diag(L) / self.units[0]
        if self.metric == "identity":
            diagonal = [diagonal.sum()]
        below = []
        if self.metric == "full":
            below = by_L[self.lower] * self._rows() / self.units[1]
        by_V = self.C.T @ by_W @ self.L0
        return np.concatenate([by_V.ravel(), diagonal, below, [by_s2 / self.units[2]]])
