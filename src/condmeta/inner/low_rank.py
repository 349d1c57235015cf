r"""The posterior of a task's weights if tasks differ in a few directions only.

The prior covariance is H = F F^T with F (d, r) and r much smaller than d. With w = theta + F v,
v ~ N(0, I) and Z = X F, a task is a regression of its residuals on r columns:

    y - X theta = Z v + noise,   E[w | y] = theta + F E[v | y],   var <x, w> = var <F^T x, v>.

Statistics of a task are those of (Z, y - X theta): r x r numbers instead of d x d.
"""

import numpy as np

from condmeta.inner.algorithms import Solved
from condmeta.inner.posterior import Gaussian, Posterior
from condmeta.inner.scores import task_scores
from condmeta.inner.squared import SquaredState
from condmeta.persistence.registry import construct, register


@register(restore=construct)
class LowRankGaussian:
    """The inner algorithm A(theta, Z) = E[w | Z], with a covariance of low rank.

    Parameters
    ----------
    factor : (d, r) array
        F, H = F F^T.
    s2 : float
        The variance of the noise.
    own_noise : bool
        Whether each task has a noise of its own, as for `Gaussian`.

    A state is the `SquaredState` of (X F, y - X theta): it belongs to one theta.
    """

    resumable = True

    def __init__(self, factor, s2: float, own_noise: bool):
        self.factor, self.s2, self.own_noise = factor, float(s2), bool(own_noise)

    @property
    def reduced(self) -> Gaussian:
        """The same algorithm in the coordinates v, around zero."""
        return Gaussian(np.eye(self.factor.shape[1]), self.s2, self.own_noise)

    @property
    def state_width(self) -> int:
        """The number of columns of a state, r."""
        return self.factor.shape[1]

    def solve(self, theta, X, y):
        """Return m, the gradient X^T (X m - y) / n of the mean squared loss there, and gap 0."""
        m = self.solve_tasks(theta[None], X, y, np.array([0, len(y)])).coef[0]
        return m, X.T @ (X @ m - y) / len(y), 0.0

    def solve_tasks(
        self, theta, X, y, offsets, state=None, n_jobs=1, keep_state=True, weight=None
    ) -> Solved:
        """Return the posterior mean of every task; with `state`, of its earlier points as well."""
        before = SquaredState.start(len(theta), self.state_width) if state is None else state
        residual = y - task_scores(X, theta, offsets)
        state = before.extend(X @ self.factor, residual, offsets, weight)
        mean = self.posterior(state, theta, n_jobs).mean
        return Solved(mean, np.zeros(len(mean)), state if keep_state else None)

    def posterior(self, state: SquaredState, theta, n_jobs=1) -> Posterior:
        """Return the posterior means and the noise of tasks."""
        v, s2 = self.reduced.posterior(state, np.zeros_like(state.moment), n_jobs)
        return Posterior(theta + v @ self.factor.T, s2)

    def spread(self, state: SquaredState, theta, rows, codes) -> np.ndarray:
        """Return the standard deviation of a new label at rows (N, d) (see `Gaussian.spread`)."""
        zero = np.zeros_like(state.moment)
        return self.reduced.spread(state, zero, rows @ self.factor, codes)
