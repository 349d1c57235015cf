r"""Biased regularisation with a learned metric: the posterior of a task's weights.

A task's weights are w ~ N(theta, H) and its labels y_i ~ N(<x_i, w>, s2). With H = L L^T,
S = X^T X and A = I + L^T S L / s2,

    P = L A^-1 L^T,   m = theta + P X^T (y - X theta) / s2

are the covariance and the mean of w given the points; H is never inverted, and may be singular.
Algorithm 1's regulariser lam/2 ||w - theta||^2 is the case H = s2/(n lam) I.
"""

from typing import Any, NamedTuple

import numpy as np

from condmeta.engine import twin
from condmeta.errors import DivergenceError
from condmeta.inner.algorithms import Solved
from condmeta.inner.context import Context
from condmeta.inner.scaled import ScaledTasks, scaled_squares
from condmeta.inner.squared import NoisyState, SquaredState
from condmeta.persistence.fields import FLAG, floats, instance, maybe, number, optional
from condmeta.persistence.registry import construct, register

PRIOR_POINTS = 4.0  # the weight of the shared s2, in points, in a task's own noise
ROUNDS = 10  # in which weights and own noise are updated in turn
BLOCK = 1 << 21  # numbers in the largest temporary of the NumPy engine


@twin
def posterior_pass(
    gram, moment, square, count, theta, factor, s2, n_jobs, correlated=True, rounds=0,
    prior_points=0.0,
):  # fmt: skip
    """Return the posteriors of T tasks: g (T, d), R (d, d), rss (T,), loglik (T,), s2 (T,).

    gram, moment, square, count: see `SquaredState`; theta (T, d); factor L (d, d), lower
    triangular; s2 (T,). g = X^T (y - X m) / s2 is the gradient of loglik by theta, so that
    m = theta + H g; loglik is the log density of y, rss the expected ||y - X w||^2 given y.
    R = sum_t (I - A_t^-1), or its diagonal alone if not `correlated`; for an invertible L,
    S_t L A_t^-1 / s2_t = L^-T (I - A_t^-1). Each of `rounds` further rounds sets a task's noise to
    (rss + c s2) / (n + c), c = `prior_points`; the returned s2 is the last one.
    """
    T, d = theta.shape
    g, R = np.empty((T, d)), np.zeros((d, d))
    rss, loglik, own = np.empty(T), np.empty(T), s2.copy()
    for lo in range(0, T, max(BLOCK // (d * d), 1)):
        part = slice(lo, lo + max(BLOCK // (d * d), 1))
        S, at, n = gram[part], theta[part], count[part]
        fitted = np.einsum("tij,tj->ti", S, at)
        e = moment[part] - fitted  # X^T (y - X theta)
        residual = square[part] + np.einsum("ti,ti->t", at, fitted - 2 * moment[part])
        residual = np.maximum(residual, 0.0)  # ||y - X theta||^2
        for turn in range(rounds + 1):
            if turn > 0:
                own[part] = (rss[part] + prior_points * s2[part]) / (n + prior_points)
            noise = own[part]
            A = precision(S, factor, noise)
            inverse = np.linalg.inv(A)
            z = np.einsum("tij,tj->ti", inverse, e @ factor) / noise[:, None]
            move = z @ factor.T
            moved = np.einsum("tij,tj->ti", S, move)
            after = residual + np.einsum("ti,ti->t", move, moved - 2 * e)
            # tr(S P) = s2 tr(I - A^-1)
            rss[part] = np.maximum(after, 0.0) + noise * (d - np.einsum("tii->t", inverse))
        g[part] = (e - moved) / noise[:, None]
        R += len(S) * np.eye(d) - inverse.sum(axis=0)
        logdet = 2 * np.log(np.einsum("tii->ti", np.linalg.cholesky(A))).sum(axis=1)
        distance = (residual - np.einsum("ti,ti->t", e, move)) / noise  # squared Mahalanobis
        loglik[part] = -0.5 * (n * np.log(2 * np.pi * noise) + logdet + distance)
    return g, R if correlated else np.diag(np.diag(R)), rss, loglik, own


@twin
def scaled_posterior_pass(
    triangles, mean, mass, at, centre, by, intercept, count, theta, factor, s2, n_jobs,
    correlated=True, rounds=0, prior_points=0.0,
):  # fmt: skip
    """Return `posterior_pass` of the tasks at positions `at` (see `scaled_squares`).

    The compiled twin makes the statistics of a few tasks at a time, which stay in the cache.
    """
    squares = scaled_squares(triangles, mean, mass, at, centre, by, intercept)
    rest = theta, factor, s2, n_jobs, correlated, rounds, prior_points
    return posterior_pass(*squares, count, *rest)


def posterior_of_statistics(
    state: SquaredState | ScaledTasks, theta, factor, s2, n_jobs=1, correlated=True, rounds=0
):
    """Return `posterior_pass` of tasks from their statistics; s2 (T,), or one for all tasks."""
    count, noise = state.count.astype(float), np.empty(len(theta))
    noise[:] = s2
    packed = isinstance(state, ScaledTasks)
    run = scaled_posterior_pass if packed else posterior_pass
    squares = state[:-1] if packed else (state.gram, state.moment, state.square)
    return run(*squares, count, theta, factor, noise, n_jobs, correlated, rounds, PRIOR_POINTS)


def information_of_level(state: SquaredState, factor, s2, n_jobs=1) -> np.ndarray:
    """Return X^T V^-1 X e of tasks (T, d), V = X H X^T + s2 I: what labels say of the level.

    e is the unit vector of the level, the last coordinate; s2 (T,).
    """
    minus_e = np.zeros(state.moment.shape)
    minus_e[:, -1] = -1.0
    blank = state.gram, np.zeros_like(minus_e), np.zeros(len(s2)), state.count.astype(float)
    return posterior_pass(*blank, minus_e, factor, s2, n_jobs, False)[0]


def information(state: SquaredState, factor, s2: float) -> tuple[np.ndarray, np.ndarray]:
    """Return what labels say of w's mean, and of levels: of X^T V^-1 X with V = X H X^T + s2 I.

    The first is the sum over tasks (d, d), the second the last column of each task (T, d).
    """
    A = precision(state.gram, factor, np.full(len(state.gram), s2))
    part = np.linalg.solve(root(A), factor.T @ state.gram) / s2  # s2^2 may be 0 where s2 is not
    rows = part.reshape(-1, len(factor))
    total = state.gram.sum(axis=0) / s2 - rows.T @ rows
    return total, state.gram[:, -1] / s2 - np.einsum("tij,ti->tj", part, part[:, :, -1])


def precision(S, factor, s2) -> np.ndarray:
    """Return A = I + L^T S L / s2 of each task (T, d, d)."""
    A = factor.T @ S @ factor
    A /= s2[:, None, None]
    A[:, np.arange(len(factor)), np.arange(len(factor))] += 1.0
    return A


def root(A) -> np.ndarray:
    """Return C with A = C C^T (T, d, d), for A >= I: rounding of large numbers may hide that."""
    require_finite(A)
    try:
        return np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(A)
        return vectors * np.sqrt(np.maximum(values, 1.0))[:, None, :]


def require_finite(variances) -> None:
    """Raise if a variance is not finite."""
    if not np.isfinite(variances).all():
        raise DivergenceError(
            "The variances leave the range of floating-point numbers. Divide X and y by their "
            "sizes."
        )


def lower_root(H) -> np.ndarray:
    """Return L (d, d), lower triangular, with H = L L^T; H may be singular."""
    # H = R R^T for its symmetric root R, and R = (Q T)^T = T^T Q^T with T^T lower triangular.
    values, vectors = np.linalg.eigh(H)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    L = np.linalg.qr(root.T, mode="r").T
    return np.ascontiguousarray(L * np.where(np.diag(L) < 0, -1.0, 1.0))


class Posterior(NamedTuple):
    """Posteriors of T tasks: mean (T, d), and the noise s2 (T,) that they assume."""

    mean: np.ndarray
    s2: np.ndarray


@register(
    restore=construct,
    fields={
        "factor": floats("d d"), "s2": number(above=0), "own_noise": FLAG,
        "context": optional(maybe(instance("Context", d="d"))),
        "open_root": optional(maybe(floats("d d"))),
    },
)  # fmt: skip
class Gaussian:
    """The inner algorithm A(theta, Z) = m, with a learned metric and noise.

    Parameters
    ----------
    factor : (d, d) array
        L, lower triangular, H = L L^T.
    s2 : float
        The variance of the noise.
    own_noise : bool
        Whether each task has a noise of its own, s2_t = (rss_t + 4 s2) / (n_t + 4), updated in
        turn with its weights.
    context : Context, optional
        How levels depend on inputs.
    open_root : (d, d) array, optional
        R with U = R R^T, what the estimation of the prior adds to the covariance of weights (see
        `meta.estimated_prior`).
    """

    resumable = True
    context: Context | None = None
    open_root: np.ndarray | None = None

    def __init__(
        self, factor, s2: float, own_noise: bool, context: Context | None = None, open_root=None
    ):
        self.factor, self.s2, self.own_noise = factor, float(s2), bool(own_noise)
        if context is not None:
            self.context = context
        if open_root is not None:
            self.open_root = open_root

    def solve(self, theta, X, y):
        """Return m, the gradient X^T (X m - y) / n of the mean squared loss there, and gap 0."""
        m = self.solve_tasks(theta[None], X, y, np.array([0, len(y)])).coef[0]
        return m, X.T @ (X @ m - y) / len(y), 0.0

    def solve_tasks(
        self, theta, X, y, offsets, state=None, n_jobs=1, keep_state=True, weight=None
    ) -> Solved:
        """Return the posterior mean of every task; with `state`, of its earlier points as well."""
        before: SquaredState | NoisyState
        before = SquaredState.start(*theta.shape) if state is None else state
        state = before.extend(X, y, offsets, weight)
        mean = self.posterior(state, theta, n_jobs).mean
        return Solved(mean, np.zeros(len(mean)), state if keep_state else None)

    def posterior(
        self, state: SquaredState | NoisyState | ScaledTasks, theta, n_jobs=1, factors=None
    ) -> Posterior:
        """Return the posterior means and the noise of tasks.

        `factors` (T,) of s2 are those of a `NoisyState`, or given here.
        """
        L, rounds = self.factor, ROUNDS if self.own_noise else 0
        factors = getattr(state, "factors", factors)
        s2 = self.s2 if factors is None else self.s2 * factors
        if self.context is None:
            g, *_, s2 = posterior_of_statistics(state, theta, L, s2, n_jobs, False, rounds)
            return Posterior(theta + g @ L @ L.T, s2)
        state = state.squared if isinstance(state, ScaledTasks) else state
        return self._in_context(state, theta, s2, n_jobs, rounds)

    def _in_context(self, state: Any, theta, s2, n_jobs, rounds) -> Posterior:
        """Return the posteriors if levels depend on inputs.

        The variance v of a level that its unknown m_t adds makes V + v X e (X e)^T of V; with
        u = X^T V^-1 X e, the gradient g becomes g - v u g_e / (1 + v u_e), and u becomes
        u / (1 + v u_e).
        """
        L, context = self.factor, self.context
        theta = theta.copy()
        theta[:, -1] += context.levels(state)
        g, *_, s2 = posterior_of_statistics(state, theta, L, s2, n_jobs, False, rounds)
        u = information_of_level(state, L, s2, n_jobs)
        v = context.variances(state.count)
        u /= (1 + v * u[:, -1])[:, None]
        g -= (v * g[:, -1])[:, None] * u
        mean = theta + g @ L @ L.T
        mean[:, -1] += v * g[:, -1]
        # The level that a row's own x implies counts as far as the labels leave it open, at c.
        open_share = 1 - u @ L @ (np.append(context.center, 1.0) @ L) - v * u[:, -1]
        mean += open_share[:, None] * context.of_row(state)
        return Posterior(mean, s2)

    def covariances(self, state: SquaredState, theta) -> np.ndarray:
        """Return the covariances P (T, d, d) of the weights of tasks given their points."""
        s2 = self.posterior(state, theta).s2
        P = self.factor @ np.linalg.inv(precision(state.gram, self.factor, s2)) @ self.factor.T
        if self.open_root is None:
            return P
        left = self.open_root - P @ (state.gram / s2[:, None, None]) @ self.open_root  # K R
        return P + left @ np.swapaxes(left, 1, 2)

    def label_covariances(self, state: SquaredState, theta) -> tuple[np.ndarray, np.ndarray]:
        """Return P (T, d, d) and s2 (T,): a new label has the variance x^T P x + s2."""
        P, s2 = self.covariances(state, theta), self.posterior(state, theta).s2
        if self.context is not None:
            level = self._open_level(state, s2)
            P += level[:, :, None] * level[:, None, :]
        return P, s2

    def _open_level(self, state: SquaredState, s2) -> np.ndarray:
        """Return a (v / (1 + v u_e))^(1/2), a = (I - H X^T V^-1 X) e (see `_in_context`)."""
        u, v = information_of_level(state, self.factor, s2), self.context.variances(state.count)
        level = -u @ self.factor @ self.factor.T
        level[:, -1] += 1.0
        return level * np.sqrt(v / (1 + v * u[:, -1]))[:, None]

    def spread(self, state: SquaredState, theta, rows, codes, precisions=1.0) -> np.ndarray:
        """Return the standard deviation of a new label at rows (N, d): of x^T P x + s2 / precision.

        `codes` (N,) are positions of the rows' tasks among those of `state` and `theta`. In a
        context P has the square of `_open_level` more, with `open_root` K U K^T, where
        K = I - P X^T X / s2.
        """
        precisions = np.broadcast_to(precisions, len(rows))
        std = np.empty(len(rows))
        order = np.argsort(codes, kind="stable")
        block = max(BLOCK // theta.shape[1] ** 2, 1)
        for lo in range(0, len(theta), block):
            part = state.take(slice(lo, lo + block))
            s2 = self.posterior(part, theta[lo : lo + block]).s2
            lower = root(precision(part.gram, self.factor, s2))
            level = None if self.context is None else self._open_level(part, s2)
            ends = np.searchsorted(codes[order], [lo, lo + block])
            for at in np.array_split(order[slice(*ends)], 1 + (ends[1] - ends[0]) // block):
                task = codes[at] - lo
                # x^T P x = ||C^-1 L^T x||^2 with A = C C^T
                z = np.linalg.solve(lower[task], (rows[at] @ self.factor)[:, :, None])[:, :, 0]
                variance = np.einsum("ij,ij->i", z, z) + s2[task] / precisions[at]
                if level is not None:
                    variance += np.einsum("ij,ij->i", rows[at], level[task]) ** 2
                if self.open_root is not None:
                    C = np.swapaxes(lower[task], 1, 2)
                    Px = np.linalg.solve(C, z[:, :, None])[:, :, 0] @ self.factor.T
                    known = np.einsum("ijk,ik->ij", part.gram[task], Px) / s2[task][:, None]
                    variance += np.sum(((rows[at] - known) @ self.open_root) ** 2, axis=1)
                std[at] = np.sqrt(variance)
        return std
