r"""Biased regularisation with a learned metric, for rows of one form: a normal posterior.

A task's weights are w ~ N(theta, H), and the log likelihood of row i is, with f_i = <x_i, w>,

    a_i (f_i - e_i) - b_i log(1 + exp(f_i - e_i)) + a constant.

Labels of two classes, shares, counts and ordered classes all have this form: see the modules of
`condmeta.inner` that make such rows (`binomial`, `negative_binomial`, `ordered`). With H = L L^T
and w = theta + L u the posterior of u has no closed form; among all normals N(z, S) the one nearest
to it in Kullback-Leibler's sense maximises

    l(z, S) = sum_i (a_i (m_i - e_i) - b_i E[softplus(f_i - e_i)]) - KL(N(z, S) || N(0, I)),
    f_i ~ N(m_i, v_i),   m_i = <x_i, theta + L z>,   v_i = <L^T x_i, S L^T x_i>,

which is at most log P(y). At the maximum, with s = softplus', r_i = a_i - b_i E[s(f_i - e_i)],
D = diag(b_i E[s'(f_i - e_i)]) and g = X^T r,

    S^-1 = A = I + L^T X^T D X L,   z = L^T g,

the posterior of a Gaussian model with a weight D_i for each row. l is bounded by log P(y), which
keeps H finite even if every task is separable; H may be singular. Since l is at its maximum over z
and S, their derivatives vanish, and only the explicit dependence on theta and L remains:

    dl/dtheta = g,   dl/dL = g z^T - X^T D X L A^-1.

Steps: (weight, push) of each row move towards (D, D <L^T x, z> + r), as far as l does not fall:
natural gradient ascent. In these terms A = I + L^T X^T diag(weight) X L and A z = L^T X^T push. A
row that counts several times does so in the sum of l, in r and in D.
"""

from typing import NamedTuple, Self

import numpy as np

from condmeta.engine import twin
from condmeta.inner.averaged import averaged_loss
from condmeta.inner.posterior import require_finite

BLOCK = 1 << 20  # numbers in the largest temporary of the NumPy engine
STEPS = 200  # at most; about ten are enough
SHORTEST = 1e-6  # share of a step


class Variational(NamedTuple):
    """The result of `variational_pass` for T tasks with N rows.

    z, g (T, d); bound l (T,); Q (d, d), the lower triangle of the sum of X^T D X L A^-1;
    weight, push, r (N,); loss (N,), E[softplus(f - e)] once, however often the row counts.
    """

    z: np.ndarray
    g: np.ndarray
    bound: np.ndarray
    Q: np.ndarray
    weight: np.ndarray
    push: np.ndarray
    r: np.ndarray
    loss: np.ndarray


class RowForm(NamedTuple):
    """Rows of T tasks: X (N, d), offsets (T+1,), a, b, e (N,); times (N,) they count, or None."""

    X: np.ndarray
    offsets: np.ndarray
    a: np.ndarray
    b: np.ndarray
    e: np.ndarray
    times: np.ndarray | None = None


@twin
def variational_pass(X, a, b, e, offsets, theta, factor, weight, push, tol, n_jobs, times=None):
    """Return the arrays of `Variational` for T tasks, started at weight and push (N,).

    X (N, d), a, b, e (N,), offsets (T+1,), theta (T, d), factor L (d, d), lower triangular; times
    (N,), how often each row counts. A task is done when a step would change weight and push by at
    most tol, divided by times and by a where it is above 1.
    """
    T, d = theta.shape
    z, g, bound, Q = np.zeros((T, d)), np.zeros((T, d)), np.zeros(T), np.zeros((d, d))
    weight, push, r, loss = weight.copy(), push.copy(), np.zeros(len(a)), np.zeros(len(a))
    for tasks, rows, real in _blocks(offsets, d):
        counts = real if times is None else real * times[rows]
        points = X[rows] * real[:, :, None]  # padding becomes rows of zeros
        bias = np.einsum("tnd,td->tn", points, theta[tasks]) - e[rows] * real
        block = _Block(points @ factor, a[rows] * real, b[rows] * real, bias, counts)
        lam, beta = _ascend(block, weight[rows] * real, push[rows] * real, tol)
        at = block.at(lam, beta)
        z[tasks], bound[tasks], g[tasks] = at.z, at.value, np.einsum("tnd,tn->td", points, at.r)
        Q += np.tril(np.einsum("tni,tnj->ij", points, at.D[:, :, None] * at.solved, optimize=True))
        weight[rows[real]], push[rows[real]] = lam[real], beta[real]
        r[rows[real]], loss[rows[real]] = at.r[real], at.loss[real]
    return z, g, bound, Q, weight, push, r, loss


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
    """z, l, m - bias, E[softplus], r, D and A^-1 L^T x of the rows of some tasks."""

    z: np.ndarray
    value: np.ndarray
    moved: np.ndarray
    loss: np.ndarray
    r: np.ndarray
    D: np.ndarray
    solved: np.ndarray


class _Block(NamedTuple):
    """Tasks in one stack: L^T x (t, n, d), a, b, <x, theta> - e, and how often rows count."""

    white: np.ndarray
    a: np.ndarray
    b: np.ndarray
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
        mean = self.bias + moved
        loss, slope, curvature = averaged_loss(mean, variance)
        # tr A^-1 = d - sum_i weight_i v_i
        far = np.einsum("td,td->t", z, z) - np.einsum("tn,tn->t", lam, variance)
        fit = ((self.a * mean - self.b * loss) * self.counts).sum(axis=1)
        r, D = self.counts * (self.a - self.b * slope), self.counts * self.b * curvature
        return _At(z, fit - (far + logdet) / 2, moved, loss, r, D, solved)


def invert(A) -> tuple[np.ndarray, np.ndarray]:
    """Return A^-1 and logdet A of matrices A >= I, which may be very ill-conditioned."""
    require_finite(A)
    values, vectors = np.linalg.eigh(A)
    values = np.maximum(values, 1.0)  # rounding may lose the I beside entries of 1e16
    inverse = (vectors / values[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    return inverse, np.log(values).sum(axis=1)


def _ascend(block: _Block, lam, beta, tol):
    """Return weight and push (b, n) at the maximum of l."""
    live, here = np.arange(len(lam)), block.at(lam, beta)
    unit = np.where(block.counts > 0, block.counts, 1.0) * np.maximum(block.a, 1.0)
    for _ in range(STEPS):
        to_lam, to_beta = here.D - lam[live], here.D * here.moved + here.r - beta[live]
        change = np.maximum(np.abs(to_lam), np.abs(to_beta))
        more = (change / unit).max(axis=1) > tol
        live, to_lam, to_beta, unit = live[more], to_lam[more], to_beta[more], unit[more]
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
