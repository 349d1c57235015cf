r"""A learned prior over the weights of some columns; tasks share those of the others.

With x = (x_own, x_shared), the score of a row is <x_own, v_t> + <x_shared, beta>, v_t ~ N(W phi_t,
H). Given beta the second part is fixed: it is subtracted from e in the rows of any likelihood (see
`condmeta.inner.likelihoods`), so that the bound of `meta.logistic` holds as it is, and its
derivative with respect to beta is sum_i r_i x_shared,i. Both are learned in one ascent, with one
unit of beta about a standard error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condmeta.inner.likelihoods import Likelihood
from condmeta.meta.ascent import Stopping
from condmeta.meta.logistic import RowModel
from condmeta.meta.prior import Frame, LearnedPrior, Prior, maximise
from condmeta.tasks.points import Points
from condmeta.tasks.weights import repeats, row_sizes


class SharedPrior(NamedTuple):
    """A `Prior` of the own columns, and beta (s,) of the shared ones."""

    W: np.ndarray
    L: np.ndarray
    s2: Any
    beta: np.ndarray

    @property
    def own(self) -> Prior:
        """The prior of the own columns."""
        return Prior(self.W, self.L, self.s2)


class ColumnParts(NamedTuple):
    """Positions of the columns with weights of each task, and of those that share theirs."""

    own: np.ndarray
    shared: np.ndarray

    def split(self, points: Points) -> tuple[Points, Points]:
        """Return points with the own columns, and points with the shared columns."""
        own, shared = (np.ascontiguousarray(points.X[:, columns]) for columns in self)
        return points._replace(X=own), points._replace(X=shared)

    def reduce(self, points: Points, beta) -> Points:
        """Return points with the own columns; the shared part of their scores is fixed."""
        own, shared = self.split(points)
        return shifted(own, shared.X @ beta)


def shifted(points: Points, shift) -> Points:
    """Return points with a fixed part (N,) of their scores."""
    n = len(points.y)
    times = np.ones(n) if points.weight is None else repeats(points.weight)
    return points._replace(weight=np.column_stack([times, row_sizes(points.weight, n), shift]))


def learn_shared_rows(
    points: Points, parts: ColumnParts, Phi, metric: str, kappa: float,
    start: SharedPrior | None = None, *, likelihood: type[Likelihood], parameter=None,
    stopping: Stopping, n_jobs: int = 1,
) -> LearnedPrior:  # fmt: skip
    """Fit beta and the prior; the parameters are those of `meta.logistic.learn_prior`."""
    model = SharedRowModel(points, parts, Phi, kappa, likelihood, parameter, n_jobs)
    return maximise(model, metric, start, stopping)


class SharedRowModel(RowModel):
    """J of labels with rows of one form, some columns of which share their weights."""

    def __init__(
        self, points: Points, parts: ColumnParts, Phi, kappa, likelihood: type[Likelihood],
        parameter=None, n_jobs=1,
    ):  # fmt: skip
        self.own, self.shared = parts.split(points)
        super().__init__(self.own, Phi, kappa, likelihood, parameter, n_jobs)
        everything = np.concatenate(parts)
        self.pooled = points._replace(X=np.ascontiguousarray(points.X[:, everything])), Phi, kappa

    def evaluate(self, prior: SharedPrior, correlated=True) -> tuple[float, SharedPrior]:
        """Return J, and its derivatives with respect to W, L, the log parameter and beta."""
        self.points = shifted(self.own, self.shared.X @ prior.beta)
        value, slope = super().evaluate(prior.own, correlated)
        return value, SharedPrior(*slope, self._columns(prior).T @ self.last.r)

    def _columns(self, prior: SharedPrior) -> np.ndarray:
        """Return the shared columns of the likelihood's rows, which may be several for a point."""
        return self.kind(prior.s2).rows(self.shared).X

    def frame(self, start: SharedPrior, metric: str) -> SharedFrame:
        """Return coordinates around a prior."""
        law = self.kind(start.s2)
        theta = np.zeros((len(self.own.offsets) - 1, self.own.X.shape[1]))
        weight, _ = law.start(self.own, law.rows(self.own), theta)
        S = self._columns(start)
        information = S.T @ (weight[:, None] * S)
        information += 1e-12 * (1 + np.trace(information)) * np.eye(len(information))
        unit = np.linalg.inv(np.linalg.cholesky(information)).T
        return SharedFrame(super().frame(start.own, metric), start.beta, unit)

    def start(self) -> SharedPrior:
        """Return a pooled model of all columns."""
        points, Phi, kappa = self.pooled
        pooled = RowModel(points, Phi, kappa, self.kind, self.given).start()
        r = self.own.X.shape[1]
        W, L = pooled.W[:, :r].copy(), pooled.L[:r, :r].copy()
        return SharedPrior(W, L, pooled.s2, pooled.W[-1, r:])

    def adopt(self, prior: SharedPrior, metric: str) -> SharedPrior:
        """Return a start from the fit of another kappa or of a simpler metric."""
        return SharedPrior(*super().adopt(prior.own, metric), prior.beta)


class SharedFrame:
    """Coordinates of a prior (see `Frame`), then those of beta in units (s, s)."""

    def __init__(self, own: Frame, beta, unit):
        self.own, self.beta, self.unit, self.metric = own, beta, unit, own.metric
        self.size = own.size + len(beta)

    def bounds(self, least: float, largest: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper bounds of the coordinates."""
        low, high = self.own.bounds(least, largest)
        free = np.full(len(self.beta), np.inf)
        return np.append(low, -free), np.append(high, free)

    def prior(self, x) -> SharedPrior:
        """Return the prior at coordinates x."""
        beta = self.beta + self.unit @ x[self.own.size :]
        return SharedPrior(*self.own.prior(x[: self.own.size]), beta)

    def holds(self, x) -> bool:
        """Return whether the units are about those of a frame around the prior at coordinates x."""
        return self.own.holds(x[: self.own.size])

    def pull(self, slope: SharedPrior) -> np.ndarray:
        """Return the gradient with respect to the coordinates."""
        return np.append(self.own.pull(slope.own), self.unit.T @ slope.beta)
