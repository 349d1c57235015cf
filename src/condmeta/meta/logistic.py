r"""A learned prior over the weights of tasks with two classes: mean W phi, covariance H.

With phi_t = (Phi(s_t), 1) and W = (M, b),

    w_t ~ N(W phi_t, H),   P(y_ti = 1) = 1 / (1 + exp(-<x_ti, w_t>)),

and a ridge on the map, the fit maximises

    J = sum_t l_t - (kappa/2) tr(M^T H^-1 M),

where l_t <= log P(y_t) is the variational bound of `condmeta.inner.variational`, with its exact
gradient. Steps and coordinates are those of `meta.prior`: no step decreases J, and the fit ends at
a stationary point of J, which is not concave in H. J is below the log likelihood; the bound is
tighter if a task has more points. With very few points in each task, H is somewhat too small.

The two simpler approximations fail for tasks with few points, which this learner is made for. In
Laplace's approximation the curvature of a separable task vanishes as H grows, and H diverges. EM
with normal approximations that are fixed in each round makes H several times too small.
"""

import numpy as np

from condmeta.inner.bernoulli import find_posteriors
from condmeta.inner.variational import Variational, variational_pass
from condmeta.meta.ascent import DEFAULT_STOPPING
from condmeta.meta.blocks import with_one
from condmeta.meta.prior import SMALLEST, LearnedPrior, Prior, PriorModel, maximise
from condmeta.tasks.points import Points

WIDE = 10.0  # standard deviation of f under the prior of the pooled start


def learn_prior(
    points: Points, Phi, metric: str, kappa: float, start: Prior | None = None, *,
    stopping=DEFAULT_STOPPING, accuracy=1e-6, n_jobs=1, trace=None,
) -> LearnedPrior:  # fmt: skip
    """Fit the prior to the tasks; the parameters are those of `meta.ridge.learn_prior`.

    `accuracy` is that of the tasks' posteriors. The `s2` of the prior is 1 and has no meaning.
    """
    model = LogisticModel(points, Phi, kappa, n_jobs, accuracy)
    return maximise(model, metric, start, stopping, trace)


class LogisticModel(PriorModel):
    """J of labels of two classes, from points."""

    def __init__(self, points: Points, Phi, kappa: float, n_jobs: int = 1, accuracy=1e-6):
        Phi1 = with_one(Phi)
        shape = len(Phi), points.X.shape[1]
        super().__init__(shape, points.count.sum(), Phi1.T @ Phi1, kappa)
        self.n_jobs, self.Phi1 = n_jobs, np.ascontiguousarray(Phi1[:, -self.rows :])
        self.points, self.accuracy = points, accuracy
        self.last: Variational | None = None  # the next posteriors are near these

    def likelihood(self, prior: Prior, inverse, correlated: bool):
        """Return the bound and its derivatives; that with respect to log s2 is 0."""
        theta, (X, y, offsets, times) = self.Phi1 @ prior.W, self.points
        how = self.accuracy, self.n_jobs, times
        if self.last is None:
            self.last = find_posteriors(X, y, offsets, theta, prior.L, *how)
        else:
            start = self.last.weight, self.last.push
            found = variational_pass(X, y, offsets, theta, prior.L, *start, *how)
            self.last = Variational(*found)
        z, g, bound, Q, *_ = self.last
        return float(bound.sum()), self.Phi1.T @ g, g.T @ z - Q, 0.0

    def start(self) -> Prior:
        """Return a pooled model of all points as b, M = 0, and an L that gives f variance 1."""
        X, y, _, times = self.points
        d = X.shape[1]
        square = np.average(np.einsum("ij,ij->i", X, X), weights=times)
        unit = 1 / np.sqrt(max(square, SMALLEST)) * np.eye(d)
        none, whole = np.zeros((1, d)), np.array([0, len(y)])
        z = find_posteriors(X, y, whole, none, WIDE * unit, times=times).z
        W = np.zeros((self.rows, d))
        W[-1] = WIDE * unit @ z[0]
        return Prior(W, unit, 1.0)
