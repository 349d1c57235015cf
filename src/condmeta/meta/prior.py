r"""A learned prior over the weights of tasks: the parts that all likelihoods share.

With phi_t = (Phi(s_t), 1), W = (M, b) and H = L L^T, tasks have w_t ~ N(W phi_t, H), and the fit
maximises

    J = log likelihood - (kappa/2) tr(M^T H^-1 M).

Quasi-Newton steps are taken in coordinates whose unit is about a standard error (see `Frame`). We
step in L, not log H, so that a zero variance can be reached. No step decreases J. The code stores
W^T (k+1, d), as the learners do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtri

from condmeta.meta.ascent import REACH, Ascent, Stopping, ascend

METRICS = {
    "identity": lambda H: np.trace(H) / len(H) * np.eye(len(H)),
    "diagonal": lambda H: np.diag(np.diag(H)),
    "full": lambda H: H,
}
SMALLEST = 1e-300  # the least variance: its logarithm stays finite
MAX_NOISE = 100.0  # by what the root of s2 may grow in one frame
FARTHEST = 1e6  # standard errors, of W in one frame: farther out, J is lost in rounding errors
FEW_COLUMNS = 24  # up to which every metric is a candidate
WELL_KNOWN = 4  # observed coefficients for each free entry of H, from which on it can be learned
COLLAPSED = 1e-6  # of a variance that matters: the fit of a simpler metric found none
SMALL_STEP = 1e-3  # standard errors, of differences of gradients
LEAST_INFORMATION = 1e-3  # of that of observed weights
REFRESH = 60  # evaluations after which a new frame is laid in any case


class Limits(NamedTuple):
    """How far a fit goes in one frame.

    growth : how many times its basis a standard deviation may grow
    far : bound of the other entries of the factor, in units of L
    grown, shrunk : changes of the basis after which its unit would be another one
    ends : whether the ascent ends there, and a new frame is laid
    reach : see `ascend`
    """

    growth: float
    far: float
    grown: float
    shrunk: float
    ends: bool
    reach: float


WIDE = Limits(growth=100.0, far=100.0, grown=2.0, shrunk=0.5, ends=False, reach=1.0)
SHORT = Limits(growth=3.0, far=4.0, grown=2.0, shrunk=0.25, ends=True, reach=REACH)


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
        enough = not steps or (stopping.max_evaluations <= REFRESH and frame.holds(found.x))
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

    limits = WIDE

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
        start, slope = np.zeros(frame.size), partial(self.slope, frame)
        holds = frame.holds if self.limits.ends else None
        return ascend(slope, start, *box, stopping, inverse, holds, self.limits.reach)

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

    def floors(self, s2, metric: str) -> np.ndarray:
        """Return standard deviations (d,) that hardly matter, for `FactorFrame`; 0 if not known."""
        return np.zeros(self.shape[1])

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

    L moves by B diag(E) + L (E - diag(E)) with the basis B = L + diag(floor). The floors are small
    beside standard deviations that matter; without them, a standard deviation near zero would
    hardly move. E is lower triangular in units of 1 / sqrt(n), its diagonal of 1 / sqrt(2 n), for n
    nodes whose covariance is L L^T. The metric decides which entries of E are free.

    start, basis : (d, d) arrays; units : the two units, of the diagonal first
    """

    start: np.ndarray
    basis: np.ndarray
    metric: str
    units: np.ndarray
    limits: Limits

    @classmethod
    def around(cls, start, metric: str, n_nodes: int, floor, limits: Limits) -> FactorFrame:
        """Return coordinates around L, with floors (d,) of standard deviations."""
        units = 1 / np.sqrt([2 * n_nodes, n_nodes])
        basis = start + np.diag(floor) if floor.any() else start
        return cls(start, basis, metric, units, limits)

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

        The diagonal of L stays positive. In one frame a standard deviation may shrink by 10,000.
        `limits` says how far it may grow.
        """
        n, unit = self.n_scales, self.units[0]
        most = np.full(self.size, self.limits.far / self.units[1])
        least = -most
        share = np.diag(self.start)[:n] / np.diag(self.basis)[:n]
        least[:n], most[:n] = (1e-4 - 1) * share / unit, self.limits.growth / unit
        return least, most

    def factor(self, x) -> np.ndarray:
        """Return L at coordinates x."""
        L, n = self.start, self.n_scales
        moved = L + self.basis * (self.units[0] * x[:n])
        if self.metric == "full":
            E = np.zeros_like(L)
            E[_below_diagonal(len(L))] = self.units[1] * x[n:]
            moved += L @ E
        return moved

    def holds(self, x) -> bool:
        """Return whether the units are about those of a frame around L at coordinates x."""
        change = 1 + self.units[0] * x[: self.n_scales]  # of the diagonal of the basis
        return bool(change.max() < self.limits.grown and change.min() > self.limits.shrunk)

    def pull(self, by_L) -> np.ndarray:
        """Return the gradient with respect to the coordinates, from that by L."""
        by_E = self.start.T @ by_L
        floor = self.basis.diagonal() - self.start.diagonal()
        scales = self.units[0] * (by_E.diagonal() + floor * by_L.diagonal())
        scales = scales.sum(keepdims=True) if self.metric == "identity" else scales
        if self.metric != "full":
            return scales
        return np.append(scales, self.units[1] * by_E[_below_diagonal(len(by_E))])


@cache
def _below_diagonal(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and columns of the entries below the diagonal."""
    return np.tril_indices(d, -1)


class Frame:
    """Coordinates around a start, where they are zero; one unit is about a standard error.

    L moves as in `FactorFrame`, with its basis B, for T tasks. W moves by C (V L^T, v B^T) with
    C C^T = (sum phi phi^T + kappa diag(1, .., 1, 0))^-1: the ridge on the map grows without end
    where L goes to zero, so that a unit of the map has to be small there, but one of b, the last
    row, has not. log s2, last, moves in units of sqrt(2 / N).
    """

    def __init__(self, start: Prior, factor: FactorFrame, C, noise_unit: float):
        self.start, self.factor, self.C, self.noise_unit = start, factor, C, noise_unit
        self.metric = factor.metric
        self.cut = start.W.size + self.factor.size
        self.size = self.cut + np.size(start.s2)

    @classmethod
    def around(cls, model: PriorModel, start: Prior, metric: str) -> Frame:
        """Return the frame of a model around a prior."""
        floor = model.floors(start.s2, metric)
        factor = FactorFrame.around(start.L, metric, model.shape[0], floor, model.limits)
        return cls(start, factor, model.root, 1 / np.sqrt(model.n_points / 2))

    def bounds(self, least: float, largest: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper bounds of the coordinates; s2 stays in [least, largest]."""
        lowest, highest = np.full((2, self.size), [[-FARTHEST], [FARTHEST]])
        at = slice(self.start.W.size, self.cut)
        lowest[at], highest[at] = self.factor.bounds()
        noise = noise_bounds(self.start.s2, least, largest, self.noise_unit)
        lowest[self.cut :], highest[self.cut :] = noise
        return lowest, highest

    def prior(self, x) -> Prior:
        """Return the prior at coordinates x."""
        (W, L, s2), a, c = self.start, self.start.W.size, self.cut
        s2 = moved_noise(s2, self.noise_unit * x[c:])
        V, B = x[:a].reshape(W.shape), self.factor.basis
        if B is L:
            W = W + self.C @ V @ L.T
        else:
            W = W + self.C @ np.vstack([V[:-1] @ L.T, V[-1:] @ B.T])
        return Prior(W, self.factor.factor(x[a:c]), s2)

    def holds(self, x) -> bool:
        """Return whether the units are about those of a frame around the prior at coordinates x."""
        return self.factor.holds(x[self.start.W.size : self.cut])

    def pull(self, gradient: Prior) -> np.ndarray:
        """Return the gradient with respect to the coordinates, from that by W, L and log s2."""
        by_W = self.C.T @ gradient.W
        L, B = self.start.L, self.factor.basis
        by_V = by_W @ L if B is L else np.vstack([by_W[:-1] @ L, by_W[-1:] @ B])
        by_noise = np.atleast_1d(self.noise_unit * gradient.s2)
        return np.concatenate([by_V.ravel(), self.factor.pull(gradient.L), by_noise])


def noise_bounds(s2, least: float, largest: float, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of the coordinates log(s2' / s2) / unit.

    s2 is a number, or an array (p,). Its root grows by `MAX_NOISE` at most.
    """
    s2 = np.atleast_1d(s2)
    lowest = np.minimum(np.log(least / s2) / unit, 0.0)
    highest = np.maximum(np.log(largest / s2) / unit, 0.0)
    return lowest, np.minimum(highest, 2 * np.log(MAX_NOISE) / unit)


def moved_noise(s2, log_growth: np.ndarray):
    """Return s2 times the exponential of a growth (p,) that cannot overflow."""
    moved = s2 * np.exp(np.minimum(log_growth, 500.0))
    return moved if isinstance(s2, np.ndarray) else float(moved[0])
