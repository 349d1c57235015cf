r"""The covariance of the estimated map W of tasks in groups, given the prior's H and s2.

With Lambda_t and P = L A^-1 L^T, B of the nodes as in `condmeta.inner.tree`, let F_t = phi_t (x)
Lambda_t be minus the derivative of what task t says by vec W. A group has F = sum over its
children, of which it says F (I - P B) to its own group, and

    I(W) = sum_t phi_t phi_t^T (x) Lambda_t - sum_groups F P F^T + penalty

is the information about vec W. The robust covariance sums the scores phi_t (x) r_t over groups of
the top level, which are independent of each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.inner.nested import NestedGaussian, NestedState
from condmeta.inner.posterior import precision
from condmeta.inner.tree import Tree, Upward, go_down, go_up, sum_children, tree_down
from condmeta.meta.levels import root_of
from condmeta.meta.map_covariance import (
    MapCovariance,
    design,
    finish_covariance,
    paired_information,
    penalty_of,
)


class LevelsCovariance(NamedTuple):
    """The covariance of the map, and how the weights of tasks depend on it.

    covariance : MapCovariance
    tree : Tree; messages : Lambda (T, d, d) of the tasks, in its order
    slopes : (G, d, K, d) array, the derivatives of the means of the smallest groups by W
    """

    covariance: MapCovariance
    tree: Tree
    messages: np.ndarray
    slopes: np.ndarray

    def of_means(self, Phi, H, part: slice) -> np.ndarray:
        """Return the covariances (T, d, d) of the means of tasks, as far as the map is uncertain.

        Phi (T, k) of all tasks and `part` are in the order of the tree; H (d, d) of the tasks.
        """
        K, d = self.covariance.matrix.shape[:2]
        phi = np.column_stack([Phi[part], np.ones(len(Phi[part]))])
        slopes = self.slopes[self.tree.parents[-1][part]].copy()
        slopes[:, np.arange(d), :, np.arange(d)] += phi[None]
        keep = np.eye(d) - H @ self.messages[part]
        slopes = np.einsum("tij,tjbl->tibl", keep, slopes).reshape(len(phi), d, K * d)
        return slopes @ self.covariance.matrix.reshape(K * d, -1) @ np.swapaxes(slopes, 1, 2)


def levels_covariance(
    state: NestedState, Phi, tree: Tree, inner: NestedGaussian, s2, kappa: float, robust: bool,
    shared=None,
) -> LevelsCovariance:  # fmt: skip
    """Return the covariance of the map of tasks in groups; all arrays in the order of the tree.

    Parameters
    ----------
    state : NestedState of T tasks
    Phi : (T, k) array, in the coordinates of the ridge; kappa = inf leaves them out
    s2 : (T,) array, the noise of each task
    shared : (d,) bool array, weights that side information does not change, or None
    """
    factors, phi = inner.factors, design(Phi, kappa)
    up = go_up(state.squared, state.base, tree.parents, factors, s2)
    information, slopes = tree_information(up, tree.parents, factors, phi)
    scores = None
    if robust:
        groups = go_down(up, tree.parents, factors)[-1]
        r = tree_down(up.messages[-1], up.g[-1], *groups, tree.parents[-1], 1)[0]
        scores = (phi[:, :, None] * r[:, None, :]).reshape(len(phi), -1)
        for parent in tree.parents[::-1]:
            scores = sum_children(scores, parent)
    penalty = penalty_of(Phi, root_of(inner.covariance_below(-1)), kappa)
    rows = Phi.shape[1] + 1, phi.shape[1]
    covariance = finish_covariance(information + penalty, scores, *rows, shared)
    unused = Phi.shape[1] + 1 - phi.shape[1]
    slopes = np.pad(slopes, ((0, 0), (0, 0), (unused, 0), (0, 0)))
    return LevelsCovariance(covariance, tree, up.messages[-1], slopes)


def tree_information(up: Upward, parents, factors, phi) -> tuple[np.ndarray, np.ndarray]:
    """Return the information about vec W (K d, K d), and the derivatives of group means by W.

    The latter are (G, d, K, d), those of the smallest groups; phi (T, K).
    """
    (_, K), d = phi.shape, factors.shape[1]
    information = paired_information(phi, up.messages[-1])
    said = np.einsum("ta,tij->taij", phi, up.messages[-1])
    own, kept = [], []  # of each level above the tasks: H F (I - P B), and I - P B
    for level in range(len(parents) - 1, -1, -1):
        F, B, factor = sum_children(said, parents[level]), up.gram[level], factors[level]
        P = factor @ np.linalg.inv(precision(B, factor, np.ones(len(B)))) @ factor.T
        rows = F.reshape(len(F), K * d, d)
        information -= np.einsum("gaj,gbj->ab", rows @ P, rows, optimize=True)
        keep = np.eye(d) - P @ B
        said = F @ keep[:, None]
        own.insert(0, np.einsum("ij,gabj->giab", factor @ factor.T, said))
        kept.insert(0, keep)
    slopes = -own[0]
    for level in range(1, len(own)):
        above = slopes[parents[level - 1]]
        slopes = np.einsum("gij,gjab->giab", kept[level], above) - own[level]
    return information, slopes
