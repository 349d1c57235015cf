r"""Unbiased products of fitted coefficients, from tasks with unknown weights.

With w_t = W phi_t + u_t, phi = (Phi, 1), Cov(u) = H and noise s2, the labels of a task are

    y_t = X_t W phi_t + e_t,   V_t = Cov(e_t) = X_t H X_t^T + s2 I,

one regression with the normal equations G vec(W) = u, where G and u are sums of G_b and u_b over
blocks b of tasks. A product of estimates is too large by the variance of the estimate. The product
of c_b = G^-1 u_b, the part of a block in the fit, and W_-b, the fit to the other blocks, is not:
with independent blocks and E[u | s, X] = 0, for any true H and noise of the tasks,

    E sum_b c_b (x) W_-b = W (x) W,

up to a ridge of FLOOR, which determines directions that only one block has information about.

(Kline, Saggio, Solvsten, "Leave-out estimation of variance components", Econometrica 2020.)
"""

from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from condmeta.inner.posterior import posterior_of_statistics, precision
from condmeta.inner.squared import SquaredState
from condmeta.meta.prior import SMALLEST, Prior

FLOOR = 1e-4  # of the diagonal of G: directions known from the deleted block alone are fitted as 0


class BlockEquations:
    """The normal equations of blocks of tasks.

    Parameters
    ----------
    stats : SquaredState of T tasks
    Phi : (T, k) array
    prior : Prior
        H and s2 set the weights; the estimates are unbiased for any values.
    block : (T,) int array, the block of each task, 0..B-1
    """

    def __init__(self, stats: SquaredState, Phi: Any, prior: Prior, block: Any):
        T, self.d = stats.moment.shape
        self.count = int(block.max()) + 1
        Phi1 = np.column_stack([Phi, np.ones(T)])
        self.k1 = Phi1.shape[1]
        # X^T V^-1 X (T, d, d) and X^T V^-1 y (T, d): the gradient of the likelihood at theta = 0
        half = stats.gram @ prior.L / prior.s2
        inverse = np.linalg.inv(precision(stats.gram, prior.L, np.full(T, prior.s2)))
        info = stats.gram / prior.s2 - half @ inverse @ np.swapaxes(half, 1, 2)
        moment = posterior_of_statistics(stats, np.zeros((T, self.d)), prior.L, prior.s2)[0]
        p = self.d * self.k1
        self.G, self.u = np.empty((self.count, p, p)), np.empty((self.count, p))
        for b in range(self.count):
            at = np.flatnonzero(block == b)
            outer = (Phi1[at, :, None] * Phi1[at, None, :]).reshape(len(at), -1)
            whole = (info[at].reshape(len(at), -1).T @ outer).reshape(self.d, self.d, self.k1, -1)
            self.G[b] = whole.transpose(0, 2, 1, 3).reshape(p, p)
            self.u[b] = (moment[at].T @ Phi1[at]).ravel()
        self.sum_G, self.sum_u = self.G.sum(axis=0), self.u.sum(axis=0)
        diagonal = np.einsum("ii->i", self.sum_G)  # a view
        diagonal += np.maximum(FLOOR * diagonal, SMALLEST)

    @cached_property
    def fits(self) -> np.ndarray:
        """W without the blocks a and b (B, B, d, k+1); a = b leaves out one."""
        B = self.count
        fits = np.empty((B, B, self.d, self.k1))
        for a in range(B):
            for b in range(a, B):
                G, u = self.sum_G - self.G[a], self.sum_u - self.u[a]
                if b > a:
                    G -= self.G[b]
                    u -= self.u[b]
                fits[a, b] = fits[b, a] = _solve(G, u).reshape(self.d, self.k1)
        return fits

    def products(self, drop: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return c_b and W_-b, both (B, d, k+1), of all blocks, or of all but one."""
        keep = np.array([b for b in range(self.count) if b != drop])
        G = self.sum_G.copy() if drop is None else self.sum_G - self.G[drop]
        parts = _solve(G, self.u[keep].T).T.reshape(-1, self.d, self.k1)
        return parts, self.fits[keep, keep if drop is None else drop]


def _solve(G: Any, u: Any) -> np.ndarray:
    """Return G^-1 u; G is overwritten."""
    factor = cho_factor(G, lower=True, overwrite_a=True, check_finite=False)
    return cho_solve(factor, u, check_finite=False)
