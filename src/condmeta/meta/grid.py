r"""Algorithm 1 for a whole grid of (lam, meta_step) at once, with the online inner algorithm.

Grid points are independent; they are the last axis of every array ("lanes", L of them). Three facts
make a grid cheap:

1. An inner run needs its task's Gram matrix K = X X^T, the same for all lanes, and X theta:
   z_i = <x_i, theta> - (1/(lam (i-1))) sum_{j<i} K_ij s_j,   g = X^T s / n.
2. A query point x is predicted by <x, theta> - (1/lam) sum_j c_j s_j <x, x_j> with
   c_j = (1/n) sum_{j<i<=n} 1/(i-1), c_n = 0: the mean iterate is never formed.
3. Evaluation does not feed back: train first and keep the gradients g_t; an evaluation task v then
   follows all maps along the training tasks by rank-one steps kk(t, v) g_t, kk = <Phi, Phi> + 1.

Ties have the rule of `condmeta.inner.online`. A lane whose pass diverges gets an infinite error.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from condmeta.engine import twin
from condmeta.inner.online import HUGE, TIE, loss_is_unbounded

BLOCK = 1 << 16  # numbers in the largest temporary of the NumPy engine


class Points(NamedTuple):
    """Points of tasks in flat arrays: X (N, d), y (N,), offsets (T+1,)."""

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
    `gradients` (T, d, L) receives g_t, and may have no rows if they are not wanted. A lane that
    diverges is nan from there on. The compiled twin runs blocks of lanes on `n_jobs` threads.
    """
    phi1 = np.ones(len(phi_sum))
    for t, (lo, hi) in enumerate(pairwise(offsets)):
        step = phi_sum[-1] + 1
        phi1[:-1] = Phi[t]
        theta = -meta_step * np.tensordot(phi1, grad_sum, 1)
        if at_average and step > 1:
            theta = (step * theta + meta_step * np.tensordot(phi1, weighted_sum, 1)) / (step - 1)
        rows = X[lo:hi]
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = slopes_of(
                theta[None], rows[None], y[None, lo:hi], np.array([hi - lo]), lam, loss
            )
            g = rows.T @ slopes[0] / (hi - lo)
        if len(gradients):
            gradients[t] = g
        update = phi1[:, None, None] * g
        grad_sum += update
        weighted_sum += (step * (step + 1) / 2 if linear else step) * update
        phi_sum += phi1


@twin
def grid_score(theta, X, y, offsets, Xq, yq, offsets_q, lam, loss, n_jobs):
    """Return the mean query loss (V, L) of V tasks, each solved from theta (V, d, L) on its points.

    X, y, offsets: the points that the tasks learn from; Xq, yq, offsets_q: those they are judged
    by. lam (L,). A task without points predicts by theta; infinity where a pass diverges.
    """
    errors = np.empty((len(theta), len(lam)))
    support, query = Points(X, y, offsets), Points(Xq, yq, offsets_q)
    for tasks in _blocks(support, query, len(lam)):
        padded = Padded.of(support, query, tasks)
        errors[tasks] = padded.losses(theta[tasks], lam, loss)
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
    support, query = Points(X, y, offsets), Points(Xq, yq, offsets_q)
    sizes = np.bincount(group, minlength=n_groups)
    for tasks in _blocks(support, query, L):
        padded = Padded.of(support, query, tasks)
        share = np.zeros((n_groups, len(tasks)))
        share[group[tasks], np.arange(len(tasks))] = 1.0 / sizes[group[tasks]]
        A, B, theta = np.zeros((3, len(tasks), d, L))
        for t in range(1, T + 1):
            weight = t * (t + 1) / 2 if linear else t
            with np.errstate(invalid="ignore"):
                move = kk[t - 1, tasks][:, None, None] * gradients[t - 1]
                A += move
                B += np.multiply(move, weight, out=move)
                # in place from here on: temporaries of this size cost more than the arithmetic
                np.divide(B, -t if at_average else -weight, out=theta)
                theta += (t + 1) / t * A if at_average else A
                theta *= -meta_step
            curves[:, t - 1] += share @ padded.losses(theta, lam, loss)
    return curves


class Padded(NamedTuple):
    """Some tasks padded with zero rows to one size, which leaves every result as it is.

    X (V, n, d), y (V, n), count (V,); Xq (V, m, d), yq (V, m); gram_q (V, m, n) = Xq X^T C with the
    weights c_j of the mean iterate; weight (V, m) sums to one over the query points of a task.
    """

    X: np.ndarray
    y: np.ndarray
    count: np.ndarray
    Xq: np.ndarray
    yq: np.ndarray
    gram_q: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, support: Points, query: Points, tasks) -> Padded:
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
        return cls(X, y, count, Xq, yq, gram_q, weight)

    def losses(self, theta, lam, loss) -> np.ndarray:
        """Return the mean query loss (V, L) from theta (V, d, L)."""
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = slopes_of(theta, self.X, self.y, self.count, lam, loss)
            z = self.Xq @ theta - self.gram_q @ slopes / lam
            lost = loss.value(z, self.yq[:, :, None])
            mean = np.einsum("vm,vml->vl", self.weight, lost)
        return np.where(np.isfinite(mean), mean, np.inf)


def slopes_of(theta, X, y, count, lam, loss) -> np.ndarray:
    """Return the slopes s (V, n, L) of the online passes from theta (V, d, L) over X (V, n, d).

    nan from where a pass diverges on.
    """
    z = X @ theta
    gram = X @ np.swapaxes(X, 1, 2)
    norms = np.sqrt(np.einsum("vii->vi", gram))
    reach = count * norms.max(axis=1, initial=0.0)
    size = np.sqrt(np.einsum("vdl,vdl->vl", theta, theta))
    limit = None
    if loss_is_unbounded(loss):
        limit = HUGE * (np.abs(y[:, :, None]) + np.abs(z)).max(axis=1)
    reach = reach[:, None] / lam
    slopes = np.empty_like(z)
    for i in range(X.shape[1]):
        before = max(i, 1)
        past = np.matmul(gram[:, i : i + 1, :i], slopes[:, :i])[:, 0]
        tie = TIE * (np.abs(y[:, i, None]) + norms[:, i, None] * (size + reach / before))
        s = loss.slope(z[:, i] - past / (lam * before), y[:, i, None], tie)
        if limit is not None:
            s[~(np.abs(s) <= limit)] = np.nan
        s[i >= count] = 0.0  # padding
        slopes[:, i] = s
    return slopes


def _pad(points: Points, tasks) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y, offsets = points
    count = np.diff(offsets)[tasks]
    index = np.arange(count.max(initial=0))
    rows = np.where(index < count[:, None], offsets[tasks][:, None] + index, -1)
    inside = rows >= 0
    if not len(X):
        return np.zeros((*rows.shape, X.shape[1])), np.zeros(rows.shape), count
    return np.where(inside[..., None], X[rows], 0.0), np.where(inside, y[rows], 0.0), count


def _blocks(support: Points, query: Points, lanes: int):
    """Cut the tasks, in order, into blocks of similar size whose temporaries stay bounded."""
    size = np.diff(support.offsets) + np.diff(query.offsets) + 1
    order = np.argsort(size, kind="stable")
    start = 0
    while start < len(order):
        stop = start + 1
        while (
            stop < len(order)
            and size[order[stop]] <= 1.5 * size[order[start]] + 2
            and (stop - start) * size[order[stop]] * lanes <= BLOCK
        ):
            stop += 1
        yield order[start:stop]
        start = stop
