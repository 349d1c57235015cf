r"""A learned prior over the weights of tasks: the parts that all likelihoods share.

With phi_t = (Phi(s_t), 1), W = (M, b) and H = L L^T, tasks have w_t ~ N(W phi_t, H), and the fit
maximises

    J = log likelihood - (kappa/2) tr(M^T H^-1 M).

Quasi-Newton steps are taken in coordinates in which the information matrix would be the identity if
all w_t were observed. We step in L, not log H, so that a zero variance can be reached. No step
decreases J. The code stores W^T (k+1, d), as the learners do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtri

from condmeta.meta.ascent import Ascent, Stopping, ascend

METRICS = {
    "identity": lambda H: np.trace(H) / len(H) * np.eye(len(H)),
    "diagonal": lambda H: np.diag(np.diag(H)),
    "full": lambda H: H,
}
SMALLEST = 1e-300  # the least variance: its logarithm stays finite
MAX_GROWTH = 100.0  # of a standard deviation in one frame
FARTHEST = 1e6  # standard errors, of W in one frame
FEW_COLUMNS = 24  # up to which every metric is a candidate
WELL_KNOWN = 4  # observed coefficients for each free entry of H, from which on it can be learned
COLLAPSED = 1e-6  # of a variance that matters: the fit of a simpler metric found none
SMALL_STEP = 1e-3  # standard errors, of differences of gradients
LEAST_INFORMATION = 1e-3  # of that of observed weights
REFRESH = 60  # evaluations after which a new frame is laid around the prior reached


class Prior(NamedTuple):
    """W (k+1, d), with b in the last row, L (d, d), lower triangular, and s2.

    s2 is the noise; likelihoods without one have their own positive parameter in its place, a
    number or an array (p,).
    """

    W: np.ndarray
    L: np.ndarray
    s2: Any

    @property
    def H(self) -> np.ndarray:  # noqa: N802 - the model's name
        """H (d, d)."""
        return self.L @ self.L.T

    def theta(self, Phi) -> np.ndarray:
        """Return W phi of tasks (T, d)."""
        return Phi @ self.W[:-1] + self.W[-1]

    def widen(self, kept: np.ndarray) -> Prior:
        """Return the prior of all coordinates, from that of a mask of them: the others are 0."""
        W = np.zeros((len(self.W), len(kept)))
        L = np.zeros((len(kept), len(kept)))
        W[:, kept], L[np.ix_(kept, kept)] = self.W, self.L
        return Prior(W, L, self.s2)


def carried_metrics(d: int, count) -> tuple[str, ...]:
    """Return the metrics that tasks with these numbers of points (T,) can carry, simplest first.

    A task observes as many coefficients as it has points, at most d.
    """
    return metrics_for(d, float(np.minimum(count, d).sum()))


def metrics_for(d: int, observed: float) -> tuple[str, ...]:
    """Return the metrics that so many observed coefficients of all tasks can carry, simplest first.

    Of more than 24 columns a full metric is learned only if there are four of these for each of its
    d (d + 1) / 2 entries.
    """
    full = d <= FEW_COLUMNS or observed >= WELL_KNOWN * d * (d + 1) / 2
    return tuple(METRICS) if full else tuple(name for name in METRICS if name != "full")


class LearnedPrior(NamedTuple):
    """A fitted prior, J there, and the number of evaluations of J."""

    prior: Any
    objective: float
    passes: int


def maximise(
    model: PriorModel, metric: str, start: Prior | None, stopping: Stopping, trace=None,
    inverse=None,
) -> LearnedPrior:  # fmt: skip
    """Fit the prior of a model (see `condmeta.meta.ridge.learn_prior`).

    `inverse` (p, p) is that of minus the Hessian in the coordinates of a `Frame`, if it is about
    known (see `inverse_curvature`): as their units are standard errors, it is nearly the same for
    any number of tasks, and around any prior that is near.
    """
    prior = model.start() if start is None else model.adopt(start, metric)
    passes = 0
    while True:
        frame = model.frame(prior, metric)
        budget = min(stopping.max_evaluations - passes, REFRESH)
        found = model.climb(frame, stopping._replace(max_evaluations=budget), inverse)
        prior, passes = frame.prior(found.x), passes + found.passes
        steps = found.values[1:].tolist()
        if trace is not None:
            trace += steps
        # A short fit is a rough one: it keeps units that are still about right.
        enough = not steps or (stopping.max_evaluations <= REFRESH and frame.holds(prior))
        if enough or passes >= stopping.max_evaluations:
            # W gets a row for every column of Phi.
            W = np.zeros((model.width + 1, prior.W.shape[1]))
            W[-len(prior.W) :] = prior.W
            return LearnedPrior(prior._replace(W=W), float(found.values[-1]), passes)


def inverse_curvature(model: PriorModel, prior: Prior, metric: str) -> np.ndarray:
    """Return about the inverse (p, p) of minus the Hessian of J, in the coordinates of a frame.

    It is made of differences of gradients, one evaluation for each coordinate. Directions with less
    than a thousandth of the information that observed weights would have count as if they had it.
    """
    frame = model.frame(model.adopt(prior, metric), metric)
    gradient = model.slope(frame, np.zeros(frame.size))[1]
    steps = SMALL_STEP * np.eye(frame.size)
    rise = np.array([model.slope(frame, step)[1] - gradient for step in steps]) / SMALL_STEP
    values, vectors = np.linalg.eigh(-(rise + rise.T) / 2)
    return (vectors / np.maximum(values, LEAST_INFORMATION)) @ vectors.T


class PriorModel(ABC):
    """J and its gradient, for one kappa. A subclass adds `likelihood` and `start`."""

    def __init__(self, shape: tuple[int, int], n_points: float, products, kappa: float):
        """Take the shape (T, d) of theta, and the sum of phi phi^T over tasks (k+1, k+1)."""
        self.shape, self.n_points = shape, float(n_points)
        self.width = len(products) - 1  # columns of the given Phi
        self.rows = 1 if np.isinf(kappa) else len(products)  # of W
        self.products = products[-self.rows :, -self.rows :]
        self.kappa = 0.0 if np.isinf(kappa) else kappa

    @cached_property
    def root(self) -> np.ndarray:
        """C (k+1, k+1) of `Frame`, with C C^T = (sum phi phi^T + kappa diag(1, .., 1, 0))^-1."""
        system = self.products.copy()
        k = len(system) - 1
        system[np.arange(k), np.arange(k)] += self.kappa
        system += 1e-12 * np.trace(system) / len(system) * np.eye(len(system))
        return np.linalg.inv(np.linalg.cholesky(system)).T.copy()

    def frame(self, start: Prior, metric: str) -> Frame:
        """Return coordinates around a prior."""
        return Frame.around(self, start, metric)

    def climb(self, frame: Frame, stopping: Stopping, inverse=None) -> Ascent:
        """Maximise J in one frame; `inverse` is about that of minus the Hessian, if known."""
        box = frame.bounds(*self.noise_range())
        return ascend(partial(self.slope, frame), np.zeros(frame.size), *box, stopping, inverse)

    def slope(self, frame: Frame, x) -> tuple[float, np.ndarray]:
        """Return J at coordinates x (p,), and its gradient with respect to them."""
        value, gradient = self.evaluate(frame.prior(x), frame.metric == "full")
        return value, frame.pull(gradient)

    def evaluate(self, prior: Prior, correlated=True) -> tuple[float, Prior]:
        """Return J, and its derivatives with respect to W, L and log s2.

        Those with respect to L are the lower triangle, or the diagonal alone if not `correlated`.
        """
        W, L, _ = prior
        inverse = dtrtri(L, lower=1)[0]
        value, by_W, by_L, by_log_s2 = self.likelihood(prior, inverse, correlated)
        if self.kappa and len(W) > 1:
            V = W[:-1] @ inverse.T  # M L^-T
            value -= self.kappa / 2 * float(np.vdot(V, V))
            by_W[:-1] -= self.kappa * V @ inverse
            by_L = by_L + self.kappa * inverse.T @ (V.T @ V)
        return value, Prior(by_W, by_L, by_log_s2)

    @abstractmethod
    def likelihood(
        self, prior: Prior, inverse, correlated: bool
    ) -> tuple[float, np.ndarray, np.ndarray, Any]:
        """Return the log likelihood, and its derivatives by W (k+1, d), L and log s2.

        `inverse` (d, d) is L^-1.
        """

    @abstractmethod
    def start(self) -> Prior:
        """Return a prior to start from."""

    def noise_range(self) -> tuple[float, float]:
        """Return the least and the largest s2."""
        return SMALLEST, np.inf

    def natural_variance(self, s2: float) -> float:
        """Return a variance of weights that matters, beside the noise; 0 if it is not known."""
        return 0.0

    def adopt(self, prior: Prior, metric: str) -> Prior:
        """Return a start from the fit of another kappa or of a simpler metric."""
        H = METRICS[metric](prior.H)
        # At L = 0 the gradient vanishes: no step would ever leave it, though the variance of one
        # coefficient may be large where that of all together is zero.
        natural, size = self.natural_variance(prior.s2), float(np.trace(H)) / len(H)
        floor = 1e-2 * natural if size < COLLAPSED * natural else 1e-4 * max(size, SMALLEST)
        W = prior.W if len(prior.W) == self.rows else prior.W[-1:]
        return Prior(W, np.linalg.cholesky(H + floor * np.eye(len(H))), prior.s2)


class FactorFrame(NamedTuple):
    """Coordinates of one factor L around a start, where they are zero.

    L moves by L E, with E lower triangular in units of 1 / sqrt(n), its diagonal of 1 / sqrt(2 n),
    for n nodes whose covariance is L L^T. The metric decides which entries of E are free.

    start : (d, d) array; units : the two units, of the diagonal first
    """

    start: np.ndarray
    metric: str
    units: np.ndarray

    @property
    def n_scales(self) -> int:
        """The number of free entries of the diagonal: these coordinates come first."""
        return 1 if self.metric == "identity" else len(self.start)

    @property
    def size(self) -> int:
        """The number of coordinates."""
        d = len(self.start)
        return self.n_scales + (d * (d - 1) // 2 if self.metric == "full" else 0)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper bounds of the coordinates.

        The diagonal of L stays positive. In one frame a standard deviation may shrink by 10,000 and
        grow by 100: a line search that goes further would overflow.
        """
        most = np.full(self.size, MAX_GROWTH / self.units[1])
        least, n = -most, self.n_scales
        least[:n], most[:n] = -(1 - 1e-4) / self.units[0], MAX_GROWTH / self.units[0]
        return least, most

    def factor(self, x) -> np.ndarray:
        """Return L at coordinates x."""
        L, n = self.start, self.n_scales
        moved = L + L * (self.units[0] * x[:n])
        if self.metric == "full":
            E = np.zeros_like(L)
            E[np.tril_indices(len(L), -1)] = self.units[1] * x[n:]
            moved += L @ E
        return moved

    def holds(self, L) -> bool:
        """Return whether the units are about those of a frame around this factor."""
        ratio = np.diag(L) / np.diag(self.start)
        return bool(ratio.max() < 2.0 and ratio.min() > 0.5)

    def pull(self, by_L) -> np.ndarray:
        """Return the gradient with respect to the coordinates, from that by L."""
        by_E = self.start.T @ by_L
        scales = self.units[0] * by_E.diagonal()
        scales = scales.sum(keepdims=True) if self.metric == "identity" else scales
        if self.metric != "full":
            return scales
        return np.append(scales, self.units[1] * by_E[np.tril_indices(len(by_E), -1)])


class Frame:
    """Coordinates around a start, where they are zero; one unit is about a standard error.

    W moves by C V L^T, C C^T = (sum phi phi^T + kappa diag(1, .., 1, 0))^-1; L moves as in
    `FactorFrame`, for T tasks; log s2, last, in units of sqrt(2 / N).
    """

    def __init__(self, start: Prior, metric: str, C, units):
        self.start, self.metric, self.C, self.units = start, metric, C, units
        self.factor = FactorFrame(start.L, metric, units[:2])
        self.cut = start.W.size + self.factor.size
        self.size = self.cut + np.size(start.s2)

    @classmethod
    def around(cls, model: PriorModel, start: Prior, metric: str) -> Frame:
        """Return the frame of a model around a prior."""
        T = model.shape[0]
        return cls(start, metric, model.root, 1 / np.sqrt([2 * T, T, model.n_points / 2]))

    def bounds(self, least: float, largest: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper bounds of the coordinates; s2 stays in [least, largest]."""
        free = np.full(self.start.W.size, FARTHEST)  # farther out, J is lost in rounding errors
        low, high = self.factor.bounds()
        lowest, highest = noise_bounds(self.start.s2, least, largest, self.units[2])
        return np.concatenate([-free, low, lowest]), np.concatenate([free, high, highest])

    def prior(self, x) -> Prior:
        """Return the prior at coordinates x."""
        (W, L, s2), a, c = self.start, self.start.W.size, self.cut
        s2 = moved_noise(s2, self.units[2] * x[c:])
        return Prior(W + self.C @ x[:a].reshape(W.shape) @ L.T, self.factor.factor(x[a:c]), s2)

    def holds(self, prior: Prior) -> bool:
        """Return whether the units are about those of a frame around this prior."""
        return self.factor.holds(prior.L)

    def pull(self, gradient: Prior) -> np.ndarray:
        """Return the gradient with respect to the coordinates, from that by W, L and log s2."""
        by_W = (self.C.T @ gradient.W @ self.start.L).ravel()
        by_noise = np.atleast_1d(self.units[2] * gradient.s2)
        return np.concatenate([by_W, self.factor.pull(gradient.L), by_noise])


def noise_bounds(s2, least: float, largest: float, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of the coordinates log(s2' / s2) / unit; in one frame s2 may grow by 1e4.

    s2 is a number, or an array (p,).
    """
    s2 = np.atleast_1d(s2)
    lowest = np.minimum(np.log(least / s2) / unit, 0.0)
    highest = np.maximum(np.log(largest / s2) / unit, 0.0)
    return lowest, np.minimum(highest, 2 * np.log(MAX_GROWTH) / unit)


def moved_noise(s2, log_growth: np.ndarray):
    """Return s2 times the exponential of a growth (p,) that cannot overflow."""
    moved = s2 * np.exp(np.minimum(log_growth, 500.0))
    return moved if isinstance(s2, np.ndarray) else float(moved[0])
