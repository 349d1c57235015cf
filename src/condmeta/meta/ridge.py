r"""A learned prior over task weights: mean W phi, covariance H, noise s2.

With phi_t = (Phi(s_t), 1) and W = (M, b),

    w_t ~ N(W phi_t, H),   y_ti ~ N(<x_ti, w_t>, s2),

and a ridge on the map, the fit maximises

    J = sum_t log N(y_t; X_t W phi_t, s2 I + X_t H X_t^T) - (kappa/2) tr(M^T H^-1 M).

One evaluation reads each task's statistics X^T X, X^T y, y^T y and n, whatever n is. With
H = L L^T, what `condmeta.inner.posterior` says of every task gives J and its gradient:

    dJ/dW = sum_t g_t phi_t^T - kappa H^-1 M,   dJ/dlog s2 = (sum_t rss_t / s2 - sum_t n_t) / 2,
    dJ/dL = sum_t g_t g_t^T L - L^-T R + kappa H^-1 M M^T L^-T, lower triangle.

Quasi-Newton steps follow, in coordinates in which a complete observation of all w_t would have
the identity as its information. In L, unlike in the logarithm of H, a variance of zero is no
further away than any other. J never falls. The code holds W^T (k+1, d), as the learners do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtri

from condmeta.inner.posterior import posterior_pass
from condmeta.inner.squared import SquaredState

METRICS = {
    "identity": lambda H: np.trace(H) / len(H) * np.eye(len(H)),
    "diagonal": lambda H: np.diag(np.diag(H)),
    "full": lambda H: H,
}
SMALLEST = 1e-300  # of a variance: its logarithm stays finite
MEMORY = 20  # steps that the quasi-Newton method remembers
RISE = 100.0  # of a standard deviation in one frame
REFRESH = 60  # evaluations after which the coordinates are laid around the place reached


class Prior(NamedTuple):
    """W (k+1, d), with b in the last row, L (d, d), lower triangular, and s2."""

    W: np.ndarray
    L: np.ndarray
    s2: float

    @property
    def H(self) -> np.ndarray:  # noqa: N802 - the model's name
        """H (d, d)."""
        return self.L @ self.L.T

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
    tol=1e-2, most=300, n_jobs=1, trace=None,
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
        The end: the gradient is below tol standard errors of a parameter, whichever it is.
    most : int
        The most evaluations.
    trace : list, optional
        Receives J after every step.
    """
    return maximise(Model(stats, Phi, kappa, n_jobs), metric, start, tol, most, trace)


def maximise(
    model: PriorModel, metric: str, start: Prior | None, tol: float, most: int, trace=None
) -> Learned:
    """Fit the prior of a model (see `learn_prior`)."""
    model.correlated = metric == "full"
    prior = model.start() if start is None else model.adopt(start, metric)
    passes = 0
    while True:
        frame = Frame(model, prior, metric)
        found = _ascend(model, frame, tol, min(most - passes, REFRESH), trace)
        prior, passes = frame.prior(found.x), passes + found.passes
        # A short fit is a rough one: it makes do with units that still hold.
        enough = found.steps == 0 or (most <= REFRESH and frame.holds(prior))
        if enough or passes >= most:
            return Learned(model.widen(prior), found.objective, passes)


class Ascent(NamedTuple):
    """Coordinates in a frame, J there, and how many steps and evaluations led to it."""

    x: np.ndarray
    objective: float
    steps: int
    passes: int


def _ascend(model: PriorModel, frame: Frame, tol: float, most: int, trace) -> Ascent:
    """Maximise J in one frame."""
    from scipy.optimize import fmin_l_bfgs_b  # slow to import; `minimize` does the same slower

    def descent(x):
        value, gradient = model.evaluate(frame.prior(x))
        return -value, -frame.pull(gradient)

    def record(intermediate_result):
        trace.append(-intermediate_result.fun)

    x, value, about = fmin_l_bfgs_b(
        descent, np.zeros(frame.size), bounds=frame.bounds(), m=MEMORY, factr=0.0, pgtol=tol,
        maxfun=most, callback=None if trace is None else record,
    )  # fmt: skip
    return Ascent(x, float(-value), about["nit"], about["funcalls"])


class PriorModel(ABC):
    """J and its gradient, for one kappa; a likelihood adds `likelihood` and `start`."""

    correlated = True  # whether all of the derivative by L is wanted, and not its diagonal alone

    def __init__(self, Phi, kappa: float, count, n_features: int, n_jobs: int):
        self.n_jobs, self.count = n_jobs, count.astype(float)
        self.shape = len(Phi), n_features
        self.width = Phi.shape[1]  # of Phi as it was given
        Phi, self.kappa = (Phi[:, :0], 0.0) if np.isinf(kappa) else (Phi, kappa)
        self.Phi1 = np.column_stack([Phi, np.ones(len(Phi))])
        self.triangle = np.tri(n_features)

    def evaluate(self, prior: Prior) -> tuple[float, Prior]:
        """Return J, and its derivatives by W, L and log s2."""
        W, L, _ = prior
        value, slope, by_L, by_log_s2 = self.likelihood(prior)
        by_W = self.Phi1.T @ slope
        if self.kappa and len(W) > 1:
            inverse = dtrtri(L, lower=1)[0]
            V = W[:-1] @ inverse.T  # M L^-T
            value -= self.kappa / 2 * float(np.sum(V**2))
            by_W[:-1] -= self.kappa * V @ inverse
            by_L = by_L + self.kappa * inverse.T @ (V.T @ V)
        return value, Prior(by_W, self.triangle * by_L, by_log_s2)

    @abstractmethod
    def likelihood(self, prior: Prior) -> tuple[float, np.ndarray, np.ndarray, float]:
        """Return its logarithm, and the derivatives by theta (T, d), L and log s2."""

    @abstractmethod
    def start(self) -> Prior:
        """Return a prior to begin with."""

    def quietest(self) -> float:
        """Return the least s2."""
        return SMALLEST

    def adopt(self, prior: Prior, metric: str) -> Prior:
        """Return the fit of another kappa or of a simpler metric as a start."""
        H = METRICS[metric](prior.H)
        # Where L is zero J is flat, so that no step would ever leave it.
        floor = 1e-4 * max(np.trace(H) / len(H), SMALLEST)
        W = prior.W if len(prior.W) == self.Phi1.shape[1] else prior.W[-1:]
        return Prior(W, np.linalg.cholesky(H + floor * np.eye(len(H))), prior.s2)

    def widen(self, prior: Prior) -> Prior:
        """Return a prior with a row of W for every column of Phi."""
        W = np.zeros((self.width + 1, prior.W.shape[1]))
        W[-len(prior.W) :] = prior.W
        return prior._replace(W=W)


class Model(PriorModel):
    """J of labels with normal noise, from statistics."""

    def __init__(self, stats: SquaredState, Phi, kappa: float, n_jobs: int):
        super().__init__(Phi, kappa, stats.count, stats.moment.shape[1], n_jobs)
        self.stats = stats

    def likelihood(self, prior: Prior) -> tuple[float, np.ndarray, np.ndarray, float]:
        """Return it by the statistics of the tasks."""
        W, L, s2 = prior
        g, R, rss, loglik = posterior_pass(
            *self.stats[:3], self.count, self.Phi1 @ W, L, np.full(len(self.count), s2),
            self.n_jobs, self.correlated,
        )  # fmt: skip
        by_log_s2 = float(rss.sum() / s2 - self.count.sum()) / 2
        if self.correlated:
            R = R + np.tril(R, -1).T
        by_L = g.T @ (g @ L) - dtrtri(L, lower=1)[0].T @ R
        return float(loglik.sum()), g, by_L, by_log_s2

    def quietest(self) -> float:
        """Return the least s2: labels that can be fitted exactly would have none."""
        return max(1e-10 * float(self.stats.square.sum() / self.count.sum()), SMALLEST)

    def start(self) -> Prior:
        """Return one pooled ridge for all tasks as b, M = 0, half its noise, and a small L."""
        S, moment, _, _ = self.stats
        d, n = moment.shape[1], self.count.sum()
        system = S.sum(axis=0)
        system[np.arange(d), np.arange(d)] += max(1e-3 * np.trace(system) / d, SMALLEST)
        W = np.zeros((self.Phi1.shape[1], d))
        W[-1] = np.linalg.solve(system, moment.sum(axis=0))
        errors = self.stats.squared_errors(self.Phi1 @ W).sum()
        s2 = max(0.5 * errors / n, self.quietest())
        per_point = np.einsum("tii->", S) / n  # the mean of ||x||^2
        return Prior(W, np.sqrt(s2 / max(per_point, SMALLEST)) * np.eye(d), s2)


class Frame:
    """Coordinates around a start, zero there: one unit is about a standard error.

    W moves by C V L^T, C C^T = (sum phi phi^T + kappa diag(1, .., 1, 0))^-1; L moves by L E, with E
    lower triangular in units of 1 / sqrt(T), its diagonal of 1 / sqrt(2 T); log s2 in units of
    sqrt(2 / N). The metric says which entries of E are free.
    """

    def __init__(self, model: PriorModel, start: Prior, metric: str):
        T, d = model.shape
        system = model.Phi1.T @ model.Phi1
        k = len(system) - 1
        system[np.arange(k), np.arange(k)] += model.kappa
        system += 1e-12 * np.trace(system) / len(system) * np.eye(len(system))
        self.C = np.linalg.inv(np.linalg.cholesky(system)).T
        self.start, self.metric = start, metric
        self.lower = np.tril_indices(d, -1)
        self.units = 1 / np.sqrt([2 * T, T, model.count.sum() / 2])
        n_lower = len(self.lower[0]) if metric == "full" else 0
        sizes = start.W.size, 1 if metric == "identity" else d, n_lower
        self.cuts = tuple(np.cumsum(sizes).tolist())
        self.size = self.cuts[-1] + 1
        self.quietest = model.quietest()

    def bounds(self) -> list[tuple[float | None, float | None]]:
        """Return the ranges of the coordinates: the diagonal of L and s2 are kept off zero.

        In one frame a standard deviation may fall ten thousandfold and rise a hundredfold: a line
        search that looks further would come to where J is no number.
        """
        n_map, n_diagonal, n_lower = np.diff(self.cuts, prepend=0).tolist()
        lowest = np.log(self.quietest / self.start.s2) / self.units[2]
        positive = (-(1 - 1e-4) / self.units[0], RISE / self.units[0])
        below = (-RISE / self.units[1], RISE / self.units[1])
        noise = (min(float(lowest), 0.0), 2 * np.log(RISE) / self.units[2])
        free = (None, None)
        return [free] * n_map + [positive] * n_diagonal + [below] * n_lower + [noise]

    def prior(self, x) -> Prior:
        """Return the prior at coordinates x."""
        a, b, c = self.cuts
        W, L, s2 = self.start
        moved = L + L * (self.units[0] * x[a:b])
        if self.metric == "full":
            E = np.zeros_like(L)
            E[self.lower] = self.units[1] * x[b:c]
            moved += L @ E
        growth = np.exp(min(self.units[2] * x[c], 500.0))
        return Prior(W + self.C @ x[:a].reshape(W.shape) @ L.T, moved, float(s2 * growth))

    def holds(self, prior: Prior) -> bool:
        """Tell whether the units are about those of a frame around this prior."""
        ratio = np.diag(prior.L) / np.diag(self.start.L)
        return bool(ratio.max() < 2.0 and ratio.min() > 0.5)

    def pull(self, gradient: Prior) -> np.ndarray:
        """Return the gradient by coordinates from that by W, L and log s2."""
        by_W, by_L, by_log_s2 = gradient
        L = self.start.L
        diagonal = np.einsum("ij,ij->j", L, by_L) * self.units[0]  # of L^T by_L
        if self.metric == "identity":
            diagonal = diagonal.sum(keepdims=True)
        below = diagonal[:0]
        if self.metric == "full":
            below = self.units[1] * (L.T @ by_L)[self.lower]
        by_V = (self.C.T @ by_W @ L).ravel()
        return np.concatenate([by_V, diagonal, below, [self.units[2] * by_log_s2]])
