r"""A map fitted to the rows of all tasks by least squares, for tasks without points.

The prior mean of `meta.ridge` is the best start for a task with points: it has the slopes within
tasks. For a task without any, the slopes of all rows together may be better. With
phi_t = (Phi(s_t), 1) and N rows that end with a one, the pooled map minimises

    sum_t ||y_t - X_t W phi_t||^2 + N ridge ||W||^2,

without a penalty on the common level. Its form is "additive" (one slope for each input, and levels
that go with Phi) or "products" (slopes go with Phi as well). Form and ridge have the least error on
held-out tasks.
"""

from typing import NamedTuple

import numpy as np

from condmeta.inner.squared import SquaredState
from condmeta.meta.blocks import Block, Blocks, OneBlock

RIDGES = (1.0, 0.1, 0.01, 0.001)
LARGEST = 400  # coefficients of a map with products
NO_RIDGE = 1e-9  # for the level; two tasks may have the same rows
BLOCK = 1 << 20  # numbers in a temporary


class PooledForm(NamedTuple):
    """The form of a pooled map, and its ridge."""

    name: str
    ridge: float


class Equations(NamedTuple):
    """The normal equations G w = h of p coefficients, from n rows."""

    G: np.ndarray
    h: np.ndarray
    n: float

    def solve(self, ridge: float) -> np.ndarray:
        """Return the solution (p,) with a ridge on all coefficients but the last, the level."""
        penalty = np.append(np.full(len(self.h) - 1, ridge), NO_RIDGE)
        return np.linalg.solve(self.G + self.n * np.diag(penalty), self.h)


def additive(block: Block) -> Equations:
    """Return the equations of slopes, then of levels by phi."""
    stats, phi = block.stats, block.Phi1
    n, sums = stats.gram[:, -1, -1], stats.gram[:, -1, :-1]
    slopes, both = stats.gram[:, :-1, :-1].sum(axis=0), sums.T @ phi
    G = np.block([[slopes, both], [both.T, (phi * n[:, None]).T @ phi]])
    h = np.append(stats.moment[:, :-1].sum(axis=0), stats.moment[:, -1] @ phi)
    return Equations(G, h, float(n.sum()))


def products(block: Block) -> Equations:
    """Return the equations of all products of phi and inputs."""
    stats, phi = block.stats, block.Phi1
    (T, k), d = phi.shape, stats.moment.shape[1]
    G = np.zeros((k * k, d * d))
    step = max(BLOCK // (k * k), 1)
    for part in (slice(lo, lo + step) for lo in range(0, T, step)):
        pairs = (phi[part, :, None] * phi[part, None, :]).reshape(-1, k * k)
        G += pairs.T @ stats.gram[part].reshape(-1, d * d)
    G = G.reshape(k, k, d, d).transpose(0, 2, 1, 3).reshape(k * d, k * d)
    return Equations(G, (phi.T @ stats.moment).ravel(), float(stats.gram[:, -1, -1].sum()))


FORMS = {"additive": additive, "products": products}


def pooled_map(blocks: Blocks, form: PooledForm, shape: tuple[int, int]) -> np.ndarray:
    """Return the pooled map W of tasks; its shape is (k+1, d)."""
    found = Equations(*blocks.map_sum(FORMS[form.name]))
    return _as_map(found.solve(form.ridge), form.name, *shape)


def held_out_maps(stats: SquaredState, Phi, folds) -> dict[PooledForm, list[np.ndarray]]:
    """Return the maps of each form and ridge, one for each fold (train, held) of tasks."""
    k, d = Phi.shape[1] + 1, stats.moment.shape[1]
    maps = {}
    for name, equations in FORMS.items():
        if name == "products" and (k == 1 or k * d > LARGEST):
            continue
        parts = [equations(OneBlock.of(stats.take(at), Phi[at]).only) for at, _ in folds]
        for ridge in RIDGES:
            found = [_as_map(part.solve(ridge), name, k, d) for part in parts]
            maps[PooledForm(name, ridge)] = found
    return maps


def _as_map(solution, name: str, k: int, d: int) -> np.ndarray:
    """Return the coefficients of a form as a map (k, d)."""
    if name == "products":
        return solution.reshape(k, d)
    W = np.zeros((k, d))
    W[-1, :-1], W[:, -1] = solution[: d - 1], solution[d - 1 :]
    return W
