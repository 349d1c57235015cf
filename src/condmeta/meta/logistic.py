r"""A learned prior over the weights of tasks with rows of one form: mean W phi, covariance H.

With phi_t = (Phi(s_t), 1) and W = (M, b),

    w_t ~ N(W phi_t, H),   y_ti ~ p(. | f = <x_ti, w_t>),

for a likelihood p of `condmeta.inner.likelihoods` (two classes, counts, ordered classes), and a
ridge on the map, the fit maximises

    J = sum_t l_t - (kappa/2) tr(M^T H^-1 M) + log p(b),

with the weak prior p(b) of `meta.constant_prior`. l_t <= log P(y_t) is the variational bound of
`condmeta.inner.variational`, with its exact gradient. Steps and coordinates are those of
`meta.prior`: no step decreases J, and the fit ends at a stationary point of J, which is not concave
in H. The bound is tighter if a task has more points. With very few points in each task, H is
somewhat too small.

The two simpler approximations fail for tasks with few points, which this learner is made for. In
Laplace's approximation the curvature of a separable task vanishes as H grows, and H diverges. EM
with normal approximations that are fixed in each round makes H several times too small.
"""

import numpy as np

from condmeta.inner.likelihoods import Binomial, Likelihood
from condmeta.inner.row_posterior import find_posteriors, pass_over
from condmeta.inner.variational import Variational
from condmeta.meta.ascent import DEFAULT_STOPPING
from condmeta.meta.blocks import with_one
from condmeta.meta.constant_prior import ConstantPrior
from condmeta.meta.prior import SMALLEST, LearnedPrior, Prior, PriorModel, maximise
from condmeta.tasks.points import Points
from condmeta.tasks.weights import masses

WIDE = 10.0  # standard deviation of f under the prior of the pooled start


def learn_prior(
    points: Points, Phi, metric: str, kappa: float, start: Prior | None = None, *,
    likelihood: type[Likelihood] = Binomial, parameter=None, stopping=DEFAULT_STOPPING,
    accuracy=1e-6, n_jobs=1, trace=None,
) -> LearnedPrior:  # fmt: skip
    """Fit the prior to the tasks; the parameters are those of `meta.ridge.learn_prior`.

    `accuracy` is that of the tasks' posteriors. The `s2` of the prior is the parameter of the
    likelihood; a `parameter` that is given is not learned.
    """
    model = RowModel(points, Phi, kappa, likelihood, parameter, n_jobs, accuracy)
    return maximise(model, metric, start, stopping, trace)


class RowModel(PriorModel):
    """J of labels with rows of one form, from points."""

    def __init__(
        self, points: Points, Phi, kappa: float, likelihood: type[Likelihood] = Binomial,
        parameter=None, n_jobs: int = 1, accuracy=1e-6,
    ):  # fmt: skip
        Phi1 = with_one(Phi)
        shape = len(Phi), points.X.shape[1]
        super().__init__(shape, points.count.sum(), Phi1.T @ Phi1, kappa)
        self.n_jobs, self.Phi1 = n_jobs, np.ascontiguousarray(Phi1[:, -self.rows :])
        self.points, self.accuracy = points, accuracy
        self.kind, self.given = likelihood, parameter
        self.of_b = ConstantPrior.of(points, likelihood, kappa)
        self.last: Variational | None = None  # the next posteriors are near these

    def likelihood(self, prior: Prior, inverse, correlated: bool):
        """Return the bound + log p(b) and its derivatives, the last by the log of the parameter."""
        theta, likelihood = self.Phi1 @ prior.W, self.kind(prior.s2)
        rows = likelihood.rows(self.points)
        if self.last is None:
            start = likelihood.start(self.points, rows, theta)
        else:
            start = self.last.weight, self.last.push
        found = pass_over(rows, theta, prior.L, start, self.accuracy, self.n_jobs)
        self.last = found
        by_parameter = likelihood.by_log_parameter(self.points, rows, found)
        value = float(found.bound.sum()) + likelihood.constant(self.points)
        cost, by_b = self.of_b.cost(prior.W[-1])
        by_W = self.Phi1.T @ found.g
        by_W[-1] -= by_b
        return value - cost, by_W, found.g.T @ found.z - found.Q, by_parameter

    def noise_range(self) -> tuple[float, float]:
        """Return the least and the largest parameter."""
        return self.kind.limits(self.points) if self.given is None else (self.given, self.given)

    def start(self) -> Prior:
        """Return a pooled model of all points as b, M = 0, and an L that gives f variance 1."""
        X, y, _, weight = self.points
        d = X.shape[1]
        square = np.average(np.einsum("ij,ij->i", X, X), weights=masses(weight))
        unit = 1 / np.sqrt(max(square, SMALLEST)) * np.eye(d)
        parameter = self.kind.first(self.points) if self.given is None else self.given
        none, whole = np.zeros((1, d)), self.points._replace(offsets=np.array([0, len(y)]))
        z = find_posteriors(self.kind(parameter), whole, none, WIDE * unit).z
        W = np.zeros((self.rows, d))
        W[-1] = WIDE * unit @ z[0]
        return Prior(W, unit, parameter)
