r"""Noise with heavy tails: Student's t in place of the normal distribution.

A label is <x, w> + e with e ~ t_nu, of scale s: normal noise of variance s2 / u, where u has a
Gamma distribution of shape and rate nu/2. Given the posterior N(m, P) of w, the mean of u is

    u_i = (nu + 1) / (nu + E r_i^2 / s2),   E r_i^2 = (y_i - <x_i, m>)^2 + x_i^T P x_i,

and given u the posterior is that of `Gaussian` with precisions u. Both in turn raise a lower bound
of the log likelihood (see `bound_terms`), and end at a fixed point of it.
"""

import numpy as np
from scipy.special import digamma, gammaln

from condmeta.inner.algorithms import Solved
from condmeta.inner.context import Context
from condmeta.inner.posterior import Gaussian, precision
from condmeta.inner.squared import SquaredState
from condmeta.persistence.fields import floats, instance, maybe, number, optional
from condmeta.persistence.registry import construct, register
from condmeta.tasks.points import Points
from condmeta.tasks.splits import task_rows
from condmeta.tasks.weights import repeats, row_sizes, task_sums

ROUNDS = 100  # in which weights of rows and posteriors are updated in turn, at most
TOL = 1e-5  # the change of every weight of a task at which its rounds end


@register(
    restore=construct,
    fields={
        "factor": floats("d d"), "s2": number(above=0), "nu": number(above=2),
        "context": optional(maybe(instance("Context", d="d"))),
        "open_root": optional(maybe(floats("d d"))),
    },
)  # fmt: skip
class StudentGaussian(Gaussian):
    """The inner algorithm of `Gaussian` whose noise has Student's t distribution.

    s2 is the squared scale of the noise; its variance is s2 nu / (nu - 2). Statistics hold rows
    with the weights that they had when they came: rows that come later are weighed by what the
    earlier ones say about the task, and these keep their weights.
    """

    own_noise = False

    def __init__(
        self, factor, s2: float, nu: float, context: Context | None = None, open_root=None
    ):
        super().__init__(factor, s2, False, context, open_root)
        del self.own_noise  # of the class: it is no parameter
        self.nu = float(nu)

    @classmethod
    def around(cls, inner: Gaussian, nu: float) -> "StudentGaussian":
        """Return the algorithm with the prior of another one."""
        return cls(inner.factor, inner.s2, nu, inner.context, inner.open_root)

    @property
    def normal(self) -> Gaussian:
        """The algorithm for rows that have been weighed."""
        return Gaussian(self.factor, self.s2, False, self.context, self.open_root)

    def solve_tasks(
        self, theta, X, y, offsets, state=None, n_jobs=1, keep_state=True, weight=None
    ) -> Solved:
        """Return the posterior mean of every task; with `state`, of its earlier points as well."""
        rows = self.weighed(theta, Points(X, y, offsets, weight), state, n_jobs)
        return super().solve_tasks(theta, *rows[:3], state, n_jobs, keep_state, rows.weight)

    def weighed(
        self, theta, rows: Points, state: SquaredState | None = None, n_jobs=1, tol=TOL
    ) -> Points:
        """Return rows of T tasks with precisions u times their own, at the fixed point.

        theta (T, d); `state` holds earlier points of the tasks. There may be several fixed points:
        with few rows, a far label may come from a task far from its prior, or be an outlier. The
        rounds start at the u of labels predicted from the prior and `state`: r^2 / (s2 + x^T P x)
        in place of E r^2 / s2.
        """
        before = SquaredState.start(*theta.shape) if state is None else state
        repeat = np.ones(len(rows.y)) if rows.weight is None else repeats(rows.weight)
        own, u = row_sizes(rows.weight, len(rows.y)), np.zeros(len(rows.y))
        tasks, at, part, now = np.arange(len(theta)), np.arange(len(rows.y)), rows, before
        for turn in range(ROUNDS):
            errors, left_open = self._squared_errors(now, theta[tasks], part, n_jobs)
            noise = self.s2 / own[at]
            errors = (errors + left_open) / noise if turn else errors / (left_open + noise)
            after = (self.nu + 1) / (self.nu + errors)
            moved, u[at] = np.abs(after - u[at]) > tol, after
            again = np.flatnonzero(task_sums(1.0 * moved, part.offsets))
            if not len(again):
                break
            at = at[task_rows(part.offsets, again)[0]]
            tasks, part = tasks[again], part.take(again)
            weight = np.column_stack([repeat[at], own[at] * u[at]])
            now = before.take(tasks).extend(*part[:3], weight)
        return rows._replace(weight=np.column_stack([repeat, own * u]))

    def _squared_errors(self, state: SquaredState, theta, rows: Points, n_jobs):
        """Return (y - <x, m>)^2 and x^T P x of rows (N,), by the posteriors of their tasks."""
        mean, s2 = self.posterior(state, theta, n_jobs).mean, np.full(len(theta), self.s2)
        P = self.factor @ np.linalg.inv(precision(state.gram, self.factor, s2)) @ self.factor.T
        if self.context is not None:
            level = self._open_level(state, s2)
            P += level[:, :, None] * level[:, None, :]
        errors, variances = np.empty(len(rows.y)), np.empty(len(rows.y))
        for n in np.unique(rows.sizes[rows.sizes > 0]):  # tasks of equal size form one stack
            tasks = np.flatnonzero(rows.sizes == n)
            at = rows.offsets[tasks][:, None] + np.arange(n)
            X = rows.X[at]
            errors[at] = (rows.y[at] - np.einsum("tni,ti->tn", X, mean[tasks])) ** 2
            variances[at] = np.einsum("tni,tni->tn", X @ P[tasks], X)
        return errors, variances

    def label_covariances(self, state: SquaredState, theta) -> tuple[np.ndarray, np.ndarray]:
        """Return P (T, d, d) and the variances of the noise (T,)."""
        P, s2 = super().label_covariances(state, theta)
        return P, s2 * self.nu / (self.nu - 2)

    def spread(self, state: SquaredState, theta, rows, codes, precisions=1.0) -> np.ndarray:
        """Return the standard deviation of a new label at rows (see `Gaussian.spread`)."""
        precisions = np.asarray(precisions) * (self.nu - 2) / self.nu
        return super().spread(state, theta, rows, codes, precisions)


def bound_terms(u: np.ndarray, nu: float) -> np.ndarray:
    """Return what rows of weights u (N,) add to log N(y; precisions u), for a bound of log p(y).

    With the distribution Gamma(a, a/u_i) of the precisions, a = (nu + 1)/2, it is
    (E log u_i - log u_i) / 2 less the divergence from Gamma(nu/2, nu/2).
    """
    a, half = (nu + 1) / 2, nu / 2
    divergence = (
        (a - half) * digamma(a) - gammaln(a) + gammaln(half)
        + half * np.log(a / (half * u)) + half * u - a
    )  # fmt: skip
    return (digamma(a) - np.log(a)) / 2 - divergence


def bound_of_weights(weighed: Points, weight: np.ndarray | None, nu: float) -> float:
    """Return the sum of `bound_terms` of weighed rows, which had other weights before."""
    u = weighed.weight[:, 1] / row_sizes(weight, len(weighed.y))
    return float((repeats(weighed.weight) * bound_terms(u, nu)).sum())
