"""The inner algorithm of a learned prior with rows of one form, and the state of predictions.

`Bernoulli`, `Counts` and `Ordinal` differ in their likelihood alone (`condmeta.inner.likelihoods`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.inner.algorithms import Solved
from condmeta.inner.likelihoods import Binomial, Likelihood, NegativeBinomial, Ordered
from condmeta.inner.posterior import precision
from condmeta.inner.prior_covariance import LARGEST, PriorCovariance, PriorFactors
from condmeta.inner.scores import row_scores
from condmeta.inner.squared import SquaredState
from condmeta.inner.variational import RowForm, Variational, invert, variational_pass
from condmeta.losses import LogisticLoss
from condmeta.persistence.fields import floats, instance, maybe, number, optional
from condmeta.persistence.registry import construct, register, register_tuple
from condmeta.tasks.points import Points

BLOCK = 1 << 20  # numbers in the largest temporary


def find_posteriors(
    likelihood: Likelihood, points: Points, theta, factor, tol=1e-9, n_jobs=1, start=None
) -> Variational:
    """Return the posteriors of tasks (see `variational_pass`).

    `start` is the weight and push of each row; by default that of the likelihood.
    """
    rows = likelihood.rows(points)
    start = start or likelihood.start(points, rows, theta)
    return pass_over(rows, theta, factor, start, tol, n_jobs)


def pass_over(rows: RowForm, theta, factor, start, tol=1e-9, n_jobs=1) -> Variational:
    """Return the posteriors of tasks from their rows."""
    X, offsets, a, b, e, times = rows
    return Variational(
        *variational_pass(X, a, b, e, offsets, theta, factor, *start, tol, n_jobs, times)
    )


def weighted_statistics(X, offsets, weight) -> SquaredState:
    """Return statistics of tasks with gram = X^T diag(weight) X; their labels are zero."""
    return SquaredState.of(np.sqrt(weight)[:, None] * X, np.zeros(len(X)), offsets)


@register_tuple(fields={"covariance": floats("T d d", low=-LARGEST, high=LARGEST)})
class Covariances(NamedTuple):
    """The state of T tasks that predictions need: covariance (T, d, d) of the weights."""

    covariance: np.ndarray

    predicts = True  # so that model files always hold it

    def of_rows(self, rows, codes) -> np.ndarray:
        """Return the variance of <x, w> of rows (N, d); `codes` (N,) are positions of tasks."""
        out, block = np.empty(len(rows)), max(BLOCK // rows.shape[1] ** 2, 1)
        for lo in range(0, len(rows), block):
            at = slice(lo, lo + block)
            parts = rows[at], self.covariance[codes[at]], rows[at]
            out[at] = np.einsum("ij,ijk,ik->i", *parts, optimize=True)
        return np.maximum(out, 0.0)


def solve_rows(
    likelihood: Likelihood, points: Points, theta, factor, n_jobs=1, keep_state=True
) -> Solved:
    """Return the posterior mean of every task, and its covariance as the state.

    `factor` is L (d, d) of all tasks, or an array (T, d, d) of their own.
    """
    rows = likelihood.rows(points)
    start = likelihood.start(points, rows, theta)
    if factor.ndim == 3:
        return _solve_each(rows, theta, factor, start, n_jobs, keep_state)
    found = pass_over(rows, theta, factor, start, n_jobs=n_jobs)
    mean = theta + found.z @ factor.T
    if not keep_state:
        return Solved(mean)
    # P = L A^-1 L^T; H of tasks without points
    gram = weighted_statistics(rows.X, rows.offsets, found.weight).gram
    inverse, _ = invert(precision(gram, factor, np.ones(len(gram))))
    return Solved(mean, state=Covariances(factor @ inverse @ factor.T))


def _solve_each(rows: RowForm, theta, factor, start, n_jobs, keep_state) -> Solved:
    """Solve tasks with a factor for each: with w = theta + L u, rows L^T x have the prior N(0, I).

    <x, theta> moves into e.
    """
    (T, d), codes = theta.shape, np.repeat(np.arange(len(theta)), np.diff(rows.offsets))
    white = np.einsum("ni,nij->nj", rows.X, factor[codes], optimize=True)
    level = row_scores(rows.X, theta, codes, n_jobs)
    rows = rows._replace(X=np.ascontiguousarray(white), e=rows.e - level)
    found = pass_over(rows, np.zeros((T, d)), np.eye(d), start, n_jobs=n_jobs)
    mean = theta + np.einsum("tij,tj->ti", factor, found.z)
    if not keep_state:
        return Solved(mean)
    gram = weighted_statistics(rows.X, rows.offsets, found.weight).gram
    inverse, _ = invert(np.eye(d) + gram)
    return Solved(mean, state=Covariances(factor @ inverse @ np.swapaxes(factor, 1, 2)))


class RowPosterior:
    """The inner algorithm A(theta, Z) = mean of the posterior, with a learned metric.

    Parameters
    ----------
    factor : (d, d) array
        L, lower triangular; L L^T is the covariance of a new task's weights around theta: H, and
        what is left open about theta.
    prior_covariance : PriorCovariance, optional
        This covariance as a function of a task's features; without, it is the same for all tasks.
    cold_covariance : PriorCovariance, optional
        The same for tasks without points, if these have another prior.
    """

    prior_covariance: PriorCovariance | None = None
    cold_covariance: PriorCovariance | None = None
    resumable = False  # the covariance is invalid once points are added
    keeps_rows = True  # from which a task is solved again: see `condmeta.fitted.kept_rows`
    likelihood: Likelihood

    def __init__(self, factor, prior_covariance: PriorCovariance | None = None):
        self.factor = factor
        if prior_covariance is not None:
            self.prior_covariance = prior_covariance

    def priors(self, Phi) -> PriorFactors | None:
        """Return the priors of tasks with features Phi (T, k), if they differ; else None."""
        if self.prior_covariance is None:
            return None
        cold = None if self.cold_covariance is None else self.cold_covariance.factors(Phi)
        return PriorFactors(self.prior_covariance.factors(Phi), cold)

    def solve(self, theta, X, y):
        """Return the mean, the gradient of the averaged loss there, and no gap."""
        points = Points(X, y, np.array([0, len(y)]))
        found = find_posteriors(self.likelihood, points, theta[None], self.factor)
        return theta + self.factor @ found.z[0], -found.g[0] / len(y), 0.0

    def solve_tasks(
        self, theta, X, y, offsets, state=None, n_jobs=1, keep_state=True, weight=None
    ) -> Solved:
        """Return the mean of every task, and its covariance as the state.

        The `state` is that of tasks without points: their `PriorFactors`, if these differ.
        """
        points, factor = Points(X, y, offsets, weight), self.factor
        factor = factor if state is None else state.of_sizes(points.sizes)
        return solve_rows(self.likelihood, points, theta, factor, n_jobs, keep_state)

    def allows(self, y) -> bool:
        """Return whether labels (N,) are some that the likelihood knows."""
        return bool((np.abs(y) <= 1).all())

    def variances(self, state: Covariances, rows, codes) -> np.ndarray:
        """Return <x, P x> of rows (N, d); `codes` (N,) are positions of their tasks."""
        return state.of_rows(rows, codes)


PRIOR = {
    "factor": floats("d d"),
    "prior_covariance": optional(maybe(instance("PriorCovariance", d="d"))),
}


@register(restore=construct, fields=PRIOR)
class Bernoulli(RowPosterior):
    """Labels of two classes, -1 and +1, or shares of trials."""

    loss = LogisticLoss()
    likelihood = Binomial()


@register(
    restore=construct,
    fields=PRIOR
    | {
        "alpha": number(above=0),
        "cold_covariance": optional(maybe(instance("PriorCovariance", d="d"))),
    },
)
class Counts(RowPosterior):
    """Counts with a negative binomial law: variance mu + alpha mu^2."""

    def __init__(
        self, factor, alpha: float, prior_covariance: PriorCovariance | None = None,
        cold_covariance: PriorCovariance | None = None,
    ):  # fmt: skip
        super().__init__(factor, prior_covariance)
        self.alpha = float(alpha)
        if cold_covariance is not None:
            self.cold_covariance = cold_covariance

    def allows(self, y) -> bool:
        """Return whether labels (N,) are counts."""
        return bool((y >= 0).all())

    @property
    def likelihood(self) -> NegativeBinomial:
        """The likelihood with this alpha."""
        return NegativeBinomial(self.alpha)


@register(restore=construct, fields=PRIOR | {"gaps": floats("g", above=0)})
class Ordinal(RowPosterior):
    """Ordered classes; `gaps` (K-2,) lie between the cuts, the first of which is 0."""

    loss = LogisticLoss()

    def __init__(self, factor, gaps: np.ndarray, prior_covariance: PriorCovariance | None = None):
        super().__init__(factor, prior_covariance)
        self.gaps = gaps

    def allows(self, y) -> bool:
        """Return whether labels (N,) are the numbers of classes, or two classes -1 and +1."""
        if not len(self.gaps):
            return super().allows(y)
        return bool((y == np.floor(y)).all() and (y >= 0).all() and (y <= len(self.gaps) + 1).all())

    @property
    def likelihood(self) -> Ordered:
        """The likelihood with these cuts."""
        return Ordered(self.gaps)
