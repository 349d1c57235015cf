r"""Algorithm 1 for a whole grid of (lam, meta_step) at once, with the online inner algorithm.

Grid points are independent; they are the last axis of every array ("lanes", L of them). Three facts
make a grid cheap:

1. An inner run needs its task's Gram matrix K = X X^T, the same for all lanes, and X theta:
   z_i = <x_i, theta> - (1/(lam (i-1))) sum_{j<i} K_ij s_j,   g = X^T s / n.
2. A query point x is predicted by <x, theta> - (1/lam) sum_j c_j s_j <x, x_j> with
   c_j = (1/n) sum_{j<i<=n} 1/(i-1), c_n = 0: the mean iterate is never formed.
3. Evaluation does not feed back: train first and keep the gradients g_t; an evaluation task v then
   follows all maps along the training tasks by rank-one steps kk(t, v) g_t, kk = <Phi, Phi> + 1,
   and several steps can be judged at once, as further lanes.

Ties follow the rule of `condmeta.inner.online`. A lane that diverges gets an infinite error.
"""

from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from condmeta.engine import twin
from condmeta.inner.online import HUGE, TIE, loss_is_unbounded

BLOCK = 1 << 19  # numbers in the largest temporary of the NumPy engine
STEPS = 8  # steps of a curve that it judges at once


class GridPoints(NamedTuple):
    """Points of tasks as the functions of this module take them: without weights.

    X (N, d), y (N,), offsets (T+1,).
    """

    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray


@twin
def grid_train(
    grad_sum, weighted_sum, phi_sum, X, y, offsets, Phi, lam, meta_step, loss, linear, at_average,
    gradients, n_jobs,
):  # fmt: skip
    """Run Algorithm 1 over T tasks for L lanes, in place on the state.

    grad_sum, weighted_sum (k+1, d, L); phi_sum (k+1,); X (N, d); y (N,); offsets (T+1,), every task
    with points; Phi (T, k); lam, meta_step (L,); linear, at_average: bool, see `meta.sgd`.
    `gradients` (T, d, L) receives g_t; without rows it receives nothing. A lane that diverges is
    nan from there on.
    """
    phi1 = np.ones(len(phi_sum))
    with np.errstate(over="ignore", invalid="ignore"):
        for t, (lo, hi) in enumerate(pairwise(offsets)):
            step = phi_sum[-1] + 1
            phi1[:-1] = Phi[t]
            theta = -meta_step * np.tensordot(phi1, grad_sum, 1)
            if at_average and step > 1:
                theta = step * theta + meta_step * np.tensordot(phi1, weighted_sum, 1)
                theta /= step - 1
            rows = X[lo:hi]
            support = Support.of(rows[None], y[None, lo:hi], np.array([hi - lo]))
            z, size = rows @ theta[None], _norms(theta[None])
            g = rows.T @ support.slopes(z, size, lam, loss)[0] / (hi - lo)
            if len(gradients):
                gradients[t] = g
            update = phi1[:, None, None] * g
            grad_sum += update
            update *= step * (step + 1) / 2 if linear else step
            weighted_sum += update
            phi_sum += phi1


@twin
def grid_score(theta, X, y, offsets, Xq, yq, offsets_q, lam, loss, n_jobs):
    """Return the mean query loss (V, L) of V tasks, each solved from theta (V, d, L) on its points.

    X, y, offsets: the points that the tasks learn from; Xq, yq, offsets_q: those they are judged
    by. lam (L,). A task without points predicts by theta; infinity where a pass diverges.
    """
    errors = np.empty((len(theta), len(lam)))
    support, query = GridPoints(X, y, offsets), GridPoints(Xq, yq, offsets_q)
    for tasks in _blocks(support, query, len(lam)):
        padded, start = Padded.of(support, query, tasks), theta[tasks]
        with np.errstate(over="ignore", invalid="ignore"):
            z, size = padded.X @ start, _norms(start)
        errors[tasks] = padded.losses(z, size, lam, loss)
    return errors


@twin
def grid_curves(
    gradients, kk, X, y, offsets, Xq, yq, offsets_q, group, n_groups, lam, meta_step, loss, linear,
    at_average, n_jobs,
):  # fmt: skip
    """Return the mean query loss after every training task, (n_groups, T, L).

    gradients (T, d, L) of `grid_train`; kk (T, V) = <Phi(train), Phi(evaluation)> + 1; points of
    the V evaluation tasks as in `grid_score`; group (V,) int: which mean a task belongs to.
    Entry [c, t-1, l] is the mean over tasks of group c, predicted by the average map after t tasks.
    """
    T, d, L = gradients.shape
    curves = np.zeros((n_groups, T, L))
    support, query = GridPoints(X, y, offsets), GridPoints(Xq, yq, offsets_q)
    with np.errstate(over="ignore", invalid="ignore"):
        moves = -meta_step * gradients
    dead = np.logical_or.accumulate(~np.isfinite(moves).all(axis=1), axis=0)
    moves.swapaxes(1, 2)[dead] = 0.0  # a product with 0 would carry nan to the steps before
    # Kept for all steps: new arrays of their size would cost more than the arithmetic.
    flat = np.empty((2, 2 + STEPS, d * L))
    known, after = flat.reshape(2, 2 + STEPS, d, L)
    for tasks in _blocks(support, query, STEPS * L):
        padded, sums = Padded.of(support, query, tasks), np.zeros((len(tasks), 2, d, L))
        shapes = padded.X.shape[:2], tasks.shape, padded.support.y.shape
        rooms = [np.empty((*shape, STEPS * L)) for shape in shapes]  # of z, ||theta||, the slopes
        for lo in range(0, T, STEPS):
            n = min(STEPS, T - lo)
            known[2 : 2 + n] = moves[lo : lo + n]
            matrices = _step_matrices(kk[lo : lo + n, tasks], lo, linear, at_average)
            z, size, slopes = (room[..., : n * L] for room in rooms)
            with np.errstate(over="ignore", invalid="ignore"):
                for v, matrix in enumerate(matrices):  # one by one: small arrays stay in the cache
                    known[:2] = sums[v]
                    np.matmul(matrix, flat[0, : 2 + n], out=flat[1, : 2 + n])
                    theta, sums[v] = after[:n], after[n : 2 + n]
                    np.matmul(padded.X[v], theta, out=z[v].reshape(-1, n, L).swapaxes(0, 1))
                    size[v] = _norms(theta).ravel()
            errors = padded.losses(z, size, np.tile(lam, n), loss, slopes)
            for error, c in zip(errors.reshape(-1, n, L), group[tasks], strict=True):
                curves[c, lo : lo + n] += error
    curves /= np.maximum(np.bincount(group, minlength=n_groups), 1)[:, None, None]
    curves[np.bincount(group, minlength=n_groups) > 0] += np.where(dead, np.inf, 0.0)
    return curves


def _step_matrices(kk, before: int, linear, at_average) -> np.ndarray:
    """Return n steps of V tasks as matrices (V, n+2, 2+n) from (A, B, moves) to (thetas, A, B).

    A = sum kk move and B = sum q kk move are the sums of `meta.sgd`, here before the first step and
    after the last; kk (n, V). A step predicts by theta = a A - b B.
    """
    t = before + 1.0 + np.arange(len(kk))
    q = t * (t + 1) / 2 if linear else t
    a, b = ((t + 1) / t, 1 / t) if at_average else (np.ones_like(t), 1 / q)
    rows = np.vstack([np.tril(a[:, None] - b[:, None] * q), np.ones_like(q), q])
    sums = np.vstack([np.column_stack([a, -b]), np.eye(2)])
    both = np.empty((kk.shape[1], len(t) + 2, len(t) + 2))
    both[:, :, :2], both[:, :, 2:] = sums, rows * kk.T[:, None, :]
    return both


def _norms(theta) -> np.ndarray:
    """Return ||theta|| (..., L) of theta (..., d, L)."""
    return np.sqrt(np.einsum("...dl,...dl->...l", theta, theta))


class Support(NamedTuple):
    """Points that V tasks learn from, and the parts of their passes that all lanes share.

    X (V, n, d) and y (V, n), zero beyond count (V,); past (V, n, n) = K_ij / max(i-1, 1);
    ties (V, n, 3): coefficients of 1, ||theta|| and 1 / lam in the residual that counts as zero.
    """

    X: np.ndarray
    y: np.ndarray
    count: np.ndarray
    past: np.ndarray
    ties: np.ndarray

    @classmethod
    def of(cls, X, y, count) -> Self:
        """Return the parts of padded points."""
        gram = X @ np.swapaxes(X, 1, 2)
        before = np.maximum(np.arange(X.shape[1]), 1)
        norms = np.sqrt(np.einsum("vii->vi", gram))
        reach = (count * norms.max(axis=1, initial=0.0))[:, None]
        ties = TIE * np.stack([np.abs(y), norms, norms * reach / before], axis=2)
        return cls(X, y, count, gram / before[:, None], ties)

    def slopes(self, z, size, lam, loss, out=None) -> np.ndarray:
        """Return the slopes s (V, n, L) of the online passes from theta: z = X theta (V, n, L).

        size (V, L) = ||theta||. Slopes are nan from the point at which a pass diverges.
        """
        y, by_lam, padding = self.y[:, :, None], 1 / lam, self.count.min() < self.X.shape[1]
        has_ties, has_limit = hasattr(loss, "native"), loss_is_unbounded(loss)
        limit = HUGE * (np.abs(y) + np.abs(z)).max(axis=1, initial=0.0) if has_limit else None
        scales = np.stack([np.ones_like(size), size, np.broadcast_to(by_lam, size.shape)], axis=1)
        slopes = np.empty(z.shape) if out is None else out
        for i in range(self.X.shape[1]):
            moved = np.matmul(self.past[:, i : i + 1, :i], slopes[:, :i])[:, 0]
            moved *= by_lam
            at = np.subtract(z[:, i], moved, out=moved), y[:, i]
            tie = np.matmul(self.ties[:, i : i + 1], scales)[:, 0]
            s = loss.slope(*at, tie) if has_ties else loss.slope(*at)
            if limit is not None:
                s[~(np.abs(s) <= limit)] = np.nan
            if padding:
                s[self.count <= i] = 0.0
            slopes[:, i] = s
        return slopes


class Padded(NamedTuple):
    """Some tasks padded with zero rows to one size, which does not change any result.

    X (V, n+m, d): points, then query points; yq (V, m); gram_q (V, m, n) = Xq X^T C with the
    weights c_j of the mean iterate; weight (V, m) sums to one over the query points of a task.
    """

    support: Support
    X: np.ndarray
    yq: np.ndarray
    gram_q: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, support: GridPoints, query: GridPoints, tasks) -> Self:
        """Pad the tasks at positions `tasks`."""
        X, y, count = _pad(support, tasks)
        Xq, yq, count_q = _pad(query, tasks)
        index = np.arange(X.shape[1])
        # 1/(i-1) for i = j+1..n, summed from the end: c_j, and 0 for the last point and the padding
        terms = np.where(index < count[:, None], 1.0 / np.maximum(index, 1), 0.0)
        terms[:, :1] = 0.0
        tail = np.cumsum(terms[:, ::-1], axis=1)[:, ::-1] - terms
        c = tail / np.maximum(count, 1)[:, None]
        gram_q = (Xq @ np.swapaxes(X, 1, 2)) * c[:, None, :]
        weight = (np.arange(Xq.shape[1]) < count_q[:, None]) / np.maximum(count_q, 1)[:, None]
        both = np.concatenate([X, Xq], axis=1)
        return cls(Support.of(X, y, count), both, yq, gram_q, weight)

    def losses(self, z, size, lam, loss, slopes=None) -> np.ndarray:
        """Return the mean query loss (V, L) of passes from theta: z = X theta, size = ||theta||."""
        n = self.support.y.shape[1]
        mean, by_lam = np.empty_like(size), 1 / lam
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = self.support.slopes(z[:, :n], size, lam, loss, out=slopes)
            for v, gram in enumerate(self.gram_q):  # one by one: small arrays stay in the cache
                moved = gram @ slopes[v]
                moved *= by_lam
                mean[v] = self.weight[v] @ loss.value(z[v, n:] - moved, self.yq[v][:, None])
        return np.where(np.isfinite(mean), mean, np.inf)


def _pad(points: GridPoints, tasks) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y, offsets = points
    count = np.diff(offsets)[tasks]
    index = np.arange(count.max(initial=0))
    rows = np.where(index < count[:, None], offsets[tasks][:, None] + index, -1)
    inside = rows >= 0
    if not len(X):
        return np.zeros((*rows.shape, X.shape[1])), np.zeros(rows.shape), count
    return np.where(inside[..., None], X[rows], 0.0), np.where(inside, y[rows], 0.0), count


def _blocks(support: GridPoints, query: GridPoints, lanes: int):
    """Yield blocks of tasks of similar size, small enough for bounded temporaries."""
    size = np.diff(support.offsets) + np.diff(query.offsets) + 1
    order, start = np.argsort(size, kind="stable"), 0
    for stop, next_size in enumerate(size[order[1:]], start=1):
        similar = next_size <= 1.5 * size[order[start]] + 2
        if not similar or (stop - start) * next_size * lanes > BLOCK:
            yield order[start:stop]
            start = stop
    if len(order):
        yield order[start:]
