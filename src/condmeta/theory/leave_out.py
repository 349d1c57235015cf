r"""Unbiased products of fitted coefficients, from tasks of which none shows its weights.

With w_t = W phi_t + u_t, phi = (Phi, 1), Cov(u) = H and noise s2, the labels of a task are

    y_t = X_t W phi_t + e_t,   V_t = Cov(e_t) = X_t H X_t^T + s2 I,

one regression with the normal equations G vec(W) = u, the sums of parts G_b, u_b over blocks b of
tasks. Products of estimates are too large by the variance of the estimate. The part
c_b = G^-1 u_b that a block has in the fit, times the fit W_-b of the other blocks, is not: with
independent blocks and E[u | s, X] = 0, whatever H and the noise of the tasks really are,

    E sum_b c_b (x) W_-b = W (x) W,

but for a ridge of FLOOR, without which a direction that one block alone tells about would be open.

(Kline, Saggio, Solvsten, "Leave-out estimation of variance components", Econometrica 2020.)
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from condmeta.inner.posterior import pass_of, precision
from condmeta.inner.squared import SquaredState
from condmeta.meta.prior import SMALLEST, Prior

FLOOR = 1e-4  # of the diagonal of G: keeps directions that a deleted block alone tells about at 0


class Products(NamedTuple):
    """Parts c_b and fits W_-b of B blocks, both (B, d, k+1)."""

    parts: np.ndarray
    others: np.ndarray


class Blocks:
    """The normal equations of blocks of tasks.

    Parameters
    ----------
    stats : SquaredState of T tasks
    Phi : (T, k) array
    prior : Prior
        H and s2, which set the weights; the estimates are unbiased for any.
    block : (T,) int array, the block of each task, 0..B-1
    """

    def __init__(self, stats: SquaredState, Phi, prior: Prior, block):
        T, self.d = stats.moment.shape
        self.count = int(block.max()) + 1
        Phi1 = np.column_stack([Phi, np.ones(T)])
        self.k1 = Phi1.shape[1]
        info, moment = whitened(stats, prior)
        p = self.d * self.k1
        self.G, self.u = np.empty((self.count, p, p)), np.empty((self.count, p))
        for b in range(self.count):
            at = np.flatnonzero(block == b)
            outer = (Phi1[at, :, None] * Phi1[at, None, :]).reshape(len(at), -1)
            whole = (info[at].reshape(len(at), -1).T @ outer).reshape(self.d, self.d, self.k1, -1)
            self.G[b] = whole.transpose(0, 2, 1, 3).reshape(p, p)
            self.u[b] = (moment[at].T @ Phi1[at]).ravel()
        self.sum_G, self.sum_u = self.G.sum(axis=0), self.u.sum(axis=0)
        diagonal = np.arange(p)
        floor = FLOOR * self.sum_G[diagonal, diagonal]
        self.sum_G[diagonal, diagonal] += np.maximum(floor, SMALLEST)

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

    def products(self, drop: int | None = None) -> Products:
        """Return the parts and fits of all blocks, or of all but one."""
        keep = np.array([b for b in range(self.count) if b != drop])
        G = self.sum_G.copy() if drop is None else self.sum_G - self.G[drop]
        parts = _solve(G, self.u[keep].T).T.reshape(-1, self.d, self.k1)
        others = self.fits[keep, keep if drop is None else drop]
        return Products(parts, others)


def whitened(stats: SquaredState, prior: Prior) -> tuple[np.ndarray, np.ndarray]:
    """Return X^T V^-1 X (T, d, d) and X^T V^-1 y (T, d) of tasks."""
    T, d = stats.moment.shape
    # At theta = 0 the gradient of the likelihood is X^T V^-1 y.
    moment = pass_of(stats, np.zeros((T, d)), prior.L, prior.s2)[0]
    half = stats.gram @ prior.L / prior.s2
    inverse = np.linalg.inv(precision(stats.gram, prior.L, np.full(T, prior.s2)))
    return stats.gram / prior.s2 - half @ inverse @ np.swapaxes(half, 1, 2), moment


def _solve(G, u) -> np.ndarray:
    """Return G^-1 u; G, which belongs to the caller no longer, is written over."""
    factor = cho_factor(G, lower=True, overwrite_a=True, check_finite=False)
    return cho_solve(factor, u, check_finite=False)
