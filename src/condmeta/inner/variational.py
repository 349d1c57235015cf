r"""Biased regularisation with a learned metric, for two classes: a normal posterior of the weights.

A task's weights are w ~ N(theta, H) and its labels, -1 or +1, have P(y_i = 1) = s(<x_i, w>) with
s(f) = 1 / (1 + exp(-f)). With H = L L^T and w = theta + L u the posterior of u has no closed form;
among all normals N(z, S) the one nearest to it in Kullback-Leibler's sense maximises

    l(z, S) = -sum_i E[log(1 + exp(-y_i f_i))] - KL(N(z, S) || N(0, I)) <= log P(y),
    f_i ~ N(<x_i, theta + L z>, v_i),   v_i = <L^T x_i, S L^T x_i>.

At the maximum, with r_i = y_i E[s(-y_i f_i)], D = diag(E[s'(f_i)]) and g = X^T r,

    S^-1 = A = I + L^T X^T D X L,   z = L^T g,

the posterior of a Gaussian model with a weight D_i for each point. l is bounded by log P(y), which
keeps H finite even if every task is separable; H may be singular. Since l is at its maximum over z
and S, their derivatives vanish, and only the explicit dependence on theta and L remains:

    dl/dtheta = g,   dl/dL = g z^T - X^T D X L A^-1.

Steps: (weight, push) of each point move towards (D, D <L^T x, z> + r), as far as l does not fall:
natural gradient ascent. In these terms A = I + L^T X^T diag(weight) X L and A z = L^T X^T push. A
point that counts several times does so in the sum of l, in r and in D.
"""

from typing import NamedTuple, Self

import numpy as np

from condmeta.engine import twin
from condmeta.inner.averaged import averaged_loss

BLOCK = 1 << 20  # numbers in the largest temporary of the NumPy engine
STEPS = 200  # at most; about ten are enough
SHORTEST = 1e-6  # share of a step


class Variational(NamedTuple):
    """The result of `variational_pass` for T tasks with N points.

    z, g (T, d); bound l (T,); Q (d, d), the lower triangle of the sum of X^T D X L A^-1;
    weight, push (N,).
    """

    z: np.ndarray
    g: np.ndarray
    bound: np.ndarray
    Q: np.ndarray
    weight: np.ndarray
    push: np.ndarray


@twin
def variational_pass(X, y, offsets, theta, factor, weight, push, tol, n_jobs, times=None):
    """Return the arrays of `Variational` for T tasks, started at weight and push (N,).

    X (N, d), y (N,), offsets (T+1,), theta (T, d), factor L (d, d), lower triangular; times (N,),
    how often each point counts. A task is done when a step would change weight and push by at most
    tol, divided by times.
    """
    T, d = theta.shape
    z, g, bound, Q = np.zeros((T, d)), np.zeros((T, d)), np.zeros(T), np.zeros((d, d))
    weight, push = weight.copy(), push.copy()
    for tasks, rows, real in _blocks(offsets, d):
        counts = real if times is None else real * times[rows]
        points = X[rows] * real[:, :, None]  # padding becomes rows of zeros
        bias = np.einsum("tnd,td->tn", points, theta[tasks])
        block = _Block(points @ factor, y[rows] * real, bias, counts)
        lam, beta = _ascend(block, weight[rows] * real, push[rows] * real, tol)
        at = block.at(lam, beta)
        z[tasks], bound[tasks], g[tasks] = at.z, at.value, np.einsum("tnd,tn->td", points, at.r)
        Q += np.tril(np.einsum("tni,tnj->ij", points, at.D[:, :, None] * at.solved, optimize=True))
        weight[rows[real]], push[rows[real]] = lam[real], beta[real]
    return z, g, bound, Q, weight, push


def _blocks(offsets, d):
    """Yield tasks of similar size (b,), the rows of their points (b, n), and which are real."""
    sizes = np.diff(offsets)
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]
    while len(order):
        n = sizes[order[-1]]
        count = max(BLOCK // (max(n, d) * d), 1)
        tasks, order = order[-count:], order[:-count]
        real = np.arange(n) < sizes[tasks][:, None]
        yield tasks, offsets[tasks][:, None] + np.where(real, np.arange(n), 0), real


class _At(NamedTuple):
    """z, l, f - bias, r, D and A^-1 L^T x of the points of some tasks."""

    z: np.ndarray
    value: np.ndarray
    moved: np.ndarray
    r: np.ndarray
    D: np.ndarray
    solved: np.ndarray


class _Block(NamedTuple):
    """Tasks in one stack: rows L^T x (b, n, d), labels, <x, theta>, and how often points count."""

    white: np.ndarray
    sign: np.ndarray
    bias: np.ndarray
    counts: np.ndarray

    def take(self, at) -> Self:
        return type(self)(*(array[at] for array in self))

    def at(self, lam, beta) -> _At:
        """Return the state of the tasks for weights and pushes (b, n)."""
        white, d = self.white, self.white.shape[2]
        A = np.eye(d) + np.swapaxes(white, 1, 2) @ (lam[:, :, None] * white)
        inverse, logdet = invert(A)
        z = np.einsum("tij,tj->ti", inverse, np.einsum("tnd,tn->td", white, beta))
        moved, solved = np.einsum("tnd,td->tn", white, z), white @ inverse
        variance = np.maximum(np.einsum("tnd,tnd->tn", solved, white), 0.0)
        loss, wrong, D = averaged_loss(-self.sign * (self.bias + moved), variance)
        # tr A^-1 = d - sum_i weight_i v_i
        far = np.einsum("td,td->t", z, z) - np.einsum("tn,tn->t", lam, variance)
        value = -(loss * self.counts).sum(axis=1) - (far + logdet) / 2
        r = self.counts * self.sign * wrong
        return _At(z, value, moved, r, D * self.counts, solved)


def invert(A) -> tuple[np.ndarray, np.ndarray]:
    """Return A^-1 and logdet A of matrices A >= I, which may be very ill-conditioned."""
    values, vectors = np.linalg.eigh(A)
    values = np.maximum(values, 1.0)  # rounding may lose the I beside entries of 1e16
    inverse = (vectors / values[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    return inverse, np.log(values).sum(axis=1)


def _ascend(block: _Block, lam, beta, tol):
    """Return weight and push (b, n) at the maximum of l."""
    live, here, counts = np.arange(len(lam)), block.at(lam, beta), block.counts
    for _ in range(STEPS):
        to_lam, to_beta = here.D - lam[live], here.D * here.moved + here.r - beta[live]
        change = np.maximum(np.abs(to_lam), np.abs(to_beta))
        more = (change / np.where(counts > 0, counts, 1)).max(axis=1) > tol
        live, to_lam, to_beta, counts = live[more], to_lam[more], to_beta[more], counts[more]
        if not len(live):
            break
        part, value, length = block.take(live), here.value[more], np.ones((len(live), 1))
        while True:
            new_lam, new_beta = lam[live] + length * to_lam, beta[live] + length * to_beta
            here = part.at(new_lam, new_beta)
            # A fall within rounding errors does not count.
            low = here.value < value - 1e-10 * (1 + np.abs(value))
            low &= length[:, 0] > SHORTEST
            if not low.any():
                break
            length[low] /= 2
        lam[live], beta[live] = new_lam, new_beta
    return lam, beta
