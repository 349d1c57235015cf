r"""Normal weights on a tree: stores in regions, regions in countries, to any depth.

A node's weights are x = x_parent + theta + N(0, H), H = L L^T; theta is known, and zero above the
tasks. Tasks are the leaves: their points say exp(<G, x> - x^T B x / 2) about x, with B = X^T X / s2
and G = X^T y / s2. With A = I + L^T B L and e = G - B theta, a node says about its parent's weights
exp(const + <g, .> - . Lambda . / 2),

    Lambda = B - B L A^-1 L^T B,   g = e - B L A^-1 L^T e,
    const = <G, theta> - theta^T B theta / 2 + e^T L A^-1 L^T e / 2 - logdet A / 2,

and a parent's B, G and const are the sums over its children. The consts of the top nodes add up to
the log likelihood. From the top down, with mean a and covariance C of the parent (0 at the top),

    r = g - Lambda a,   K = I - H Lambda,
    mean = a + theta + H r,   covariance = L A^-1 L^T + K C K^T

are those of a node given all points. The derivatives of the log likelihood are r by theta and

    sum (r r^T + Lambda C Lambda - Lambda) L   by L.

The cost is linear in the number of nodes.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from condmeta.engine import twin
from condmeta.inner.posterior import BLOCK, precision
from condmeta.inner.squared import SquaredState


class Tree(NamedTuple):
    """The nodes above T tasks, level by level, the top first; nodes of one parent are neighbours.

    order : (T,) positions of the tasks, in the order of the tree
    parents : tuple of (n,) arrays; the parent of each node of the levels below the top: the last
    are those of the tasks, in the order of the tree
    first : tuple of (n,) arrays; the position of one task below each node of a level with children
    """

    order: np.ndarray
    parents: tuple[np.ndarray, ...]
    first: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, groups: np.ndarray) -> Self:
        """Return the tree of tasks from the groups (T, m) that they are in, the largest first.

        A group is known by its numbers in this column and in those before it.

        Examples
        --------
        >>> Tree.of(np.array([[1, 0], [0, 0], [1, 0], [1, 2]])).parents
        (array([0, 1, 1]), array([0, 1, 1, 2]))
        """
        if not groups.shape[1]:
            return cls(np.arange(len(groups)), (), ())
        order = np.lexsort(groups.T[::-1])
        ordered = groups[order]
        new = np.ones((len(groups), groups.shape[1]), bool)
        new[1:] = np.logical_or.accumulate(ordered[1:] != ordered[:-1], axis=1)
        nodes = [np.cumsum(column) - 1 for column in new.T]  # of each task, by level
        starts = [np.flatnonzero(column) for column in new.T]
        above = [node[start] for node, start in zip(nodes, starts[1:], strict=False)]
        return cls(order, (*above, nodes[-1]), tuple(order[start] for start in starts))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of nodes of each level, tasks last."""
        return (*(len(first) for first in self.first), len(self.order))

    def means(self, values: np.ndarray, level: int) -> np.ndarray:
        """Return the means (n, k) of values (T, k), in the order of the tree, by node."""
        sums, count = values, np.ones((len(values), 1))
        for parent in self.parents[: level - len(self.parents) - 1 : -1]:
            sums, count = sum_children(sums, parent), sum_children(count, parent)
        return sums / count


def sum_children(values: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """Return the sums over the children of each node; `parent` never decreases."""
    starts = np.flatnonzero(np.append(True, parent[1:] != parent[:-1]))
    return np.add.reduceat(values, starts, axis=0)


@twin
def tree_up(gram, moment, theta, factor, s2, n_jobs):
    """Return what n nodes say about their parents: Lambda (n, d, d), g (n, d), const (n,).

    gram (n, d, d), moment (n, d); theta (n, d); factor (d, d), lower triangular; s2 (n,): B is
    gram / s2, G is moment / s2.
    """
    n, d = theta.shape
    messages, g, const = np.empty((n, d, d)), np.empty((n, d)), np.empty(n)
    for lo in range(0, n, max(BLOCK // (d * d), 1)):
        part = slice(lo, lo + max(BLOCK // (d * d), 1))
        noise, at = s2[part], theta[part]
        B, G = gram[part] / noise[:, None, None], moment[part] / noise[:, None]
        A = precision(gram[part], factor, noise)
        e = G - np.einsum("tij,tj->ti", B, at)
        pulled = np.linalg.solve(A, np.swapaxes(B @ factor, 1, 2))  # A^-1 L^T B
        z = np.linalg.solve(A, (e @ factor)[:, :, None])[:, :, 0]
        Lambda = B - B @ factor @ pulled
        messages[part] = (Lambda + np.swapaxes(Lambda, 1, 2)) / 2
        g[part] = e - np.einsum("tij,tj->ti", B, z @ factor.T)
        logdet = 2 * np.log(np.einsum("tii->ti", np.linalg.cholesky(A))).sum(axis=1)
        about_theta = np.einsum("ti,ti->t", at, G + e) / 2
        const[part] = about_theta + np.einsum("ti,ti->t", e @ factor, z) / 2 - logdet / 2
    return messages, g, const


@twin
def tree_down(messages, g, mean, covariance, parent, n_jobs):
    """Return r (n, d), the sum of Lambda C Lambda (d, d), and tr(Lambda C) (n,), of n nodes.

    mean a (p, d) and covariance C (p, d, d) of the parents; parent (n,), their positions.
    """
    n, d = g.shape
    r, spread, trace = np.empty((n, d)), np.zeros((d, d)), np.empty(n)
    for lo in range(0, n, max(BLOCK // (d * d), 1)):
        part = slice(lo, lo + max(BLOCK // (d * d), 1))
        Lambda, at = messages[part], parent[part]
        r[part] = g[part] - np.einsum("tij,tj->ti", Lambda, mean[at])
        pulled = Lambda @ covariance[at]
        spread += np.einsum("tij,tjk->ik", pulled, Lambda, optimize=True)
        trace[part] = np.einsum("tii->t", pulled)
    return r, spread, trace


class Nodes(NamedTuple):
    """Weights of the nodes of a level given all points: mean (n, d), covariance (n, d, d)."""

    mean: np.ndarray
    covariance: np.ndarray


class Upward(NamedTuple):
    """What the up pass leaves of each level, the top first.

    gram, moment : B and G of the nodes above the tasks; messages, g : what all nodes say
    value : the log likelihood
    """

    gram: list[np.ndarray]
    moment: list[np.ndarray]
    messages: list[np.ndarray]
    g: list[np.ndarray]
    value: float


class Slopes(NamedTuple):
    """Derivatives of the log likelihood by theta (T, d), by each L (m, d, d), and by log s2."""

    theta: np.ndarray
    factors: np.ndarray
    log_s2: float


def go_up(stats: SquaredState, theta, parents, factors, s2, n_jobs=1) -> Upward:
    """Pass from the tasks to the top.

    Parameters
    ----------
    stats, theta : SquaredState of T tasks and (T, d) array, in the order of the tree
    parents : see `Tree`
    factors : (m, d, d) array
        L of each level, the top first, tasks last.
    s2 : (T,) array
    """
    d = theta.shape[1]
    up = tree_up(stats.gram, stats.moment, theta, factors[-1], s2, n_jobs)
    messages, g, (gram, moment) = [up[0]], [up[1]], ([], [])
    normal = stats.count * np.log(2 * np.pi * s2) + stats.square / s2
    value = float(up[2].sum() - normal.sum() / 2)
    for parent, factor in zip(parents[::-1], factors[-2::-1], strict=True):
        gram.insert(0, sum_children(messages[0], parent))
        moment.insert(0, sum_children(g[0], parent))
        n = len(gram[0])
        up = tree_up(gram[0], moment[0], np.zeros((n, d)), factor, np.ones(n), n_jobs)
        messages.insert(0, up[0])
        g.insert(0, up[1])
        value += float(up[2].sum())
    return Upward(gram, moment, messages, g, value)


def nodes_of(up: Upward, level: int, factor, above: Nodes | None, parent) -> Nodes:
    """Return the weights of the nodes of a level above the tasks, from those of the level above."""
    B, g, Lambda = up.gram[level], up.g[level], up.messages[level]
    inverse = np.linalg.inv(precision(B, factor, np.ones(len(B))))
    own = factor @ inverse @ factor.T
    if above is None:
        return Nodes(g @ factor @ factor.T, own)
    a, C = above.mean[parent], above.covariance[parent]
    r = g - np.einsum("tij,tj->ti", Lambda, a)
    K = np.eye(len(factor)) - own @ B
    return Nodes(a + r @ factor @ factor.T, own + K @ C @ np.swapaxes(K, 1, 2))


def go_down(up: Upward, parents, factors) -> list[Nodes]:
    """Return the weights of the nodes of each level above the tasks, given all points."""
    levels: list[Nodes] = []
    for level in range(len(parents)):
        above = levels[-1] if level else None
        levels.append(nodes_of(up, level, factors[level], above, parents[level - 1]))
    return levels


def tree_likelihood(
    stats: SquaredState, theta, parents, factors, s2: float, n_jobs=1
) -> tuple[float, Slopes]:
    """Return the log likelihood of all points, and its derivatives; arguments as for `go_up`."""
    noise = np.full(len(theta), s2)
    up = go_up(stats, theta, parents, factors, noise, n_jobs)
    levels = go_down(up, parents, factors)
    slopes = np.empty_like(factors)
    residual, mean, tail = up.g[0], None, 0.0
    for level, factor in enumerate(factors):
        said = up.gram[level - 1] if level else up.messages[0]  # summed by parents already
        inside = -said.sum(axis=0)
        if level:
            above, parent = levels[level - 1], parents[level - 1]
            residual, spread, trace = tree_down(
                up.messages[level], up.g[level], *above, parent, n_jobs
            )
            inside, mean, tail = inside + spread, above.mean[parent], trace.sum()
        slopes[level] = np.tril((residual.T @ residual + inside) @ factor)
    # E ||y - X w||^2 / s2, where B m = G - r and the trace of B V is that of H (Lambda - Lambda C
    # Lambda) + Lambda C
    H = factors[-1] @ factors[-1].T
    mean = theta + residual @ H if mean is None else mean + theta + residual @ H
    explained = np.vdot(mean, stats.moment / s2 + residual)
    expected = stats.square.sum() / s2 - explained - np.vdot(H, inside) + tail
    by_log_s2 = float(expected - stats.count.sum()) / 2
    return up.value, Slopes(residual, slopes, by_log_s2)


def without_task(up: Upward, groups: Nodes, parent) -> Nodes:
    """Return the weights of the parents of T tasks given all points but those of the task.

    With C the covariance of the parent given all points, that without the task is
    (I - C Lambda)^-1 C, and its mean is lower by this covariance times r.
    """
    Lambda, mean, C = up.messages[-1], groups.mean[parent], groups.covariance[parent]
    r = up.g[-1] - np.einsum("tij,tj->ti", Lambda, mean)
    left = np.eye(C.shape[1]) - C @ Lambda
    without = np.linalg.solve(left, C)
    without = (without + np.swapaxes(without, 1, 2)) / 2
    return Nodes(mean - np.einsum("tij,tj->ti", without, r), without)
