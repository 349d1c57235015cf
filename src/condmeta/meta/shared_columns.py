r"""A learned prior over the weights of some columns; the others have the same for all tasks.

With X_t = (S_t, Z_t), S the shared columns and Z the others,

    y_t = S_t beta + Z_t v_t + noise,   v_t ~ N(W phi_t, H),

and beta, W, H and the noise maximise the penalised likelihood J of `meta.ridge`. Given H and s2,
labels of a task have the covariance V_t = s2 I + Z_t H Z_t^T, and (beta, W) solve the normal
equations of generalised least squares; given beta, `meta.ridge` fits (W, H, s2) to y - S beta. The
two are done in turn. As the estimates of means and of variances are asymptotically independent, a
few turns suffice.
"""

from typing import NamedTuple

import numpy as np

from condmeta.inner.posterior import precision
from condmeta.inner.squared import SquaredState
from condmeta.meta.ascent import Stopping
from condmeta.meta.prior import SMALLEST, LearnedPrior, Prior
from condmeta.meta.ridge import learn_prior

MOST_TURNS = 100


class SharedColumns(NamedTuple):
    """Statistics of T tasks, and which of their columns share their weights.

    stats : SquaredState of all columns; shared, own : positions of columns
    """

    stats: SquaredState
    shared: np.ndarray
    own: np.ndarray

    def residual(self, beta) -> SquaredState:
        """Return the statistics of the own columns and of y - S beta."""
        gram, moment, square, count = self.stats
        across, inside = gram[:, self.own][:, :, self.shared], self._shared_gram()
        left = moment[:, self.own] - across @ beta
        square = (
            square - 2 * moment[:, self.shared] @ beta + np.einsum("i,tij,j", beta, inside, beta)
        )
        own = np.ascontiguousarray(gram[:, self.own][:, :, self.own])
        return SquaredState(own, left, np.maximum(square, 0.0), count)

    def _shared_gram(self) -> np.ndarray:
        return self.stats.gram[:, self.shared][:, :, self.shared]

    def means(self, Phi1, prior: Prior, kappa: float) -> tuple[np.ndarray, Prior]:
        """Return beta, and the prior with W, both at the maximum of J for its H and s2."""
        gram, moment, _, _ = self.stats
        order = np.append(self.shared, self.own)
        gram, moment = gram[:, order][:, :, order], moment[:, order]
        s, r, k = len(self.shared), len(self.own), Phi1.shape[1]
        # X^T V^-1 X = (G - G_z L A^-1 L^T G_z^T / s2) / s2, and likewise for y
        s2 = np.full(len(gram), prior.s2)
        A = precision(np.ascontiguousarray(gram[:, s:, s:]), prior.L, s2)
        root = np.linalg.solve(np.linalg.cholesky(A), prior.L.T @ gram[:, s:])
        to_y = np.linalg.solve(np.linalg.cholesky(A), (moment[:, s:] @ prior.L)[:, :, None])[
            :, :, 0
        ]
        gram = (gram - np.swapaxes(root, 1, 2) @ root / prior.s2) / prior.s2
        moment = (moment - np.einsum("tij,ti->tj", root, to_y) / prior.s2) / prior.s2
        system, right = np.zeros((s + k * r, s + k * r)), np.empty(s + k * r)
        system[:s, :s] = gram[:, :s, :s].sum(axis=0)
        system[:s, s:] = np.einsum("tij,ta->iaj", gram[:, :s, s:], Phi1).reshape(s, k * r)
        system[s:, :s] = system[:s, s:].T
        system[s:, s:] = np.einsum("ta,tb,tij->aibj", Phi1, Phi1, gram[:, s:, s:]).reshape(
            k * r, -1
        )
        right[:s], right[s:] = moment[:, :s].sum(axis=0), (Phi1.T @ moment[:, s:]).ravel()
        if kappa and k > 1:
            inverse = np.linalg.pinv(prior.L)
            penalty = np.kron(np.diag(np.append(np.ones(k - 1), 0.0)), kappa * inverse.T @ inverse)
            system[s:, s:] += penalty
        system.flat[:: len(system) + 1] += max(1e-12 * np.trace(system) / len(system), SMALLEST)
        found = np.linalg.solve(system, right)
        return found[:s], prior._replace(W=found[s:].reshape(k, r))


class LearnedColumns(NamedTuple):
    """beta (s,), and the prior of the weights of the other columns."""

    beta: np.ndarray
    learned: LearnedPrior


def learn_shared(
    data: SharedColumns, Phi, metric: str, kappa: float, start: LearnedColumns | None = None, *,
    stopping: Stopping, n_jobs: int = 1,
) -> LearnedColumns:  # fmt: skip
    """Fit beta and the prior in turn, until a turn raises J by less than tol^2 / 2."""
    used = Phi[:, :0] if np.isinf(kappa) else Phi
    Phi1, penalty = np.column_stack([used, np.ones(len(Phi))]), 0.0 if np.isinf(kappa) else kappa
    if start is None:
        stats = data.residual(np.zeros(len(data.shared)))
        start = LearnedColumns(
            np.zeros(len(data.shared)),
            learn_prior(stats, Phi, metric, kappa, stopping=stopping._replace(max_evaluations=20)),
        )
    beta, learned, passes = start.beta, start.learned, 0
    last = -np.inf
    for _ in range(MOST_TURNS):
        prior = learned.prior._replace(W=learned.prior.W[-Phi1.shape[1] :])
        beta, prior = data.means(Phi1, prior, penalty)
        learned = learn_prior(
            data.residual(beta), Phi, metric, kappa, prior, stopping=stopping, n_jobs=n_jobs
        )
        passes += learned.passes
        if learned.objective - last < stopping.tol**2 / 2 or passes >= stopping.max_evaluations:
            break
        last = learned.objective
    return LearnedColumns(beta, learned._replace(passes=passes))
