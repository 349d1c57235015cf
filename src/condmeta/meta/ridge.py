r"""A learned prior over task weights: mean W phi, covariance H, noise s2, by EM.

With phi_t = (Phi(s_t), 1) and W = (M, b),

    w_t ~ N(W phi_t, H),   y_ti ~ N(<x_ti, w_t>, s2),

and a ridge on the map, the fit climbs

    J = sum_t log N(y_t; X_t W phi_t, s2 I + X_t H X_t^T) - (kappa/2) tr(M^T H^-1 M).

A pass reads each task's statistics X^T X, X^T y, y^T y and n, whatever n is. Its E step is the
posterior of every task (`condmeta.inner.posterior`), its M step

    W = (sum_t m_t phi_t^T) (sum_t phi_t phi_t^T + kappa diag(1, .., 1, 0))^-1,
    H = (1/T) (sum_t P_t + r_t r_t^T + kappa M M^T),   r_t = m_t - W phi_t,   s2 = sum rss / sum n,

H projected to the metric. J never falls. The code holds W^T (k+1, d), as the learners do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.inner.posterior import posterior_pass
from condmeta.inner.squared import SquaredState
from condmeta.meta.squarem import climb

METRICS = {
    "identity": lambda H: np.trace(H) / len(H) * np.eye(len(H)),
    "diagonal": lambda H: np.diag(np.diag(H)),
    "full": lambda H: H,
}
SMALLEST = 1e-300  # of a variance: its logarithm stays finite
LARGEST_START = 1500  # unknowns of the pooled ridge that EM starts from


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
    """A prior, J there, and the passes that it took."""

    prior: Prior
    objective: float
    passes: int


def learn_prior(
    stats: SquaredState, Phi, metric: str, kappa: float, start: Prior | None = None, *,
    tol=1e-8, most=500, n_jobs=1,
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
    tol, most
        J changes by less than tol |J|, or so many passes were made.
    """
    model = Model(stats, Phi, metric, kappa, n_jobs)
    start = model.start() if start is None else model.adopt(start)
    found, objective, passes = climb(model.step, start, _to_vector, model.from_vector, tol, most)
    return Learned(model.widen(found), objective, passes)


class Model:
    """One EM problem: what its passes share."""

    def __init__(self, stats: SquaredState, Phi, metric: str, kappa: float, n_jobs: int):
        self.stats, self.metric, self.n_jobs = stats, metric, n_jobs
        self.width = Phi.shape[1]  # of Phi as it was given
        if np.isinf(kappa):
            Phi, kappa = Phi[:, :0], 0.0
        self.kappa, self.k = kappa, Phi.shape[1]
        self.Phi1 = np.column_stack([Phi, np.ones(len(Phi))])
        self.count = stats.count.astype(float)
        system = self.Phi1.T @ self.Phi1
        system[np.arange(self.k), np.arange(self.k)] += kappa
        system += 1e-12 * np.trace(system) / len(system) * np.eye(len(system))
        self.gain = np.linalg.inv(system)

    def step(self, prior: Prior) -> tuple[float, Prior]:
        """Return J at a prior, and the prior after one EM pass."""
        L = prior.factor
        mean, inverses, rss, loglik = posterior_pass(
            *self.stats[:3], self.count, self.Phi1 @ prior.W, L,
            np.full(len(self.count), prior.s2), self.n_jobs,
        )  # fmt: skip
        penalty = 0.0
        if self.kappa:
            penalty = self.kappa / 2 * np.sum(np.linalg.solve(L, prior.W[:-1].T) ** 2)
        W = self.gain @ (self.Phi1.T @ mean)
        r, M = mean - self.Phi1 @ W, W[:-1]
        H = (L @ inverses @ L.T + r.T @ r + self.kappa * M.T @ M) / len(mean)
        s2 = max(rss.sum() / self.count.sum(), SMALLEST)
        return float(loglik.sum() - penalty), Prior(W, METRICS[self.metric](H), float(s2))

    def start(self) -> Prior:
        """Return the pooled ridge of y on x (x) phi, half its noise, and a small H."""
        S, moment, square, _ = self.stats
        d = moment.shape[1]
        Phi1 = self.Phi1 if d * (self.k + 1) <= LARGEST_START else self.Phi1[:, -1:]
        size = d * Phi1.shape[1]
        system = np.einsum("ta,tb,tij->aibj", Phi1, Phi1, S, optimize=True).reshape(size, size)
        right = np.einsum("ta,ti->ai", Phi1, moment).ravel()
        system[np.arange(size), np.arange(size)] += max(1e-3 * np.trace(system) / size, SMALLEST)
        W = np.zeros((self.k + 1, d))
        W[-Phi1.shape[1] :] = np.linalg.solve(system, right).reshape(-1, d)
        errors = self.stats.squared_errors(self.Phi1 @ W).sum()
        s2 = max(0.5 * errors / self.count.sum(), 1e-12 * square.sum() / self.count.sum(), SMALLEST)
        per_point = np.einsum("tii->", S) / self.count.sum()  # the mean of ||x||^2
        return Prior(W, s2 / max(per_point, SMALLEST) * np.eye(d), s2)

    def adopt(self, prior: Prior) -> Prior:
        """Return a prior of another metric or kappa as a start."""
        W = prior.W
        if len(W) > self.k + 1:
            W = W[-1:]
        return Prior(W, METRICS[self.metric](prior.H), prior.s2)

    def widen(self, prior: Prior) -> Prior:
        """Return a prior with a row of W for every column of Phi."""
        W = np.zeros((self.width + 1, prior.W.shape[1]))
        W[-len(prior.W) :] = prior.W
        return prior._replace(W=W)

    def from_vector(self, x) -> Prior:
        """Return the prior of coordinates that `_to_vector` gave."""
        d = self.stats.moment.shape[1]
        W, diagonal, lower, s2 = np.split(x, np.cumsum([(self.k + 1) * d, d, d * (d - 1) // 2]))
        L = np.diag(np.exp(diagonal))
        L[np.tril_indices(d, -1)] = lower
        return Prior(W.reshape(-1, d), L @ L.T, float(np.exp(s2[0])))


def _to_vector(prior: Prior) -> np.ndarray:
    """Return W, the logarithms of the diagonal of L, the rest of L, and log s2."""
    L = prior.factor
    lower = L[np.tril_indices(len(L), -1)]
    return np.concatenate([prior.W.ravel(), np.log(np.diag(L)), lower, [np.log(prior.s2)]])
