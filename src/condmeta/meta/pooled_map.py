r"""A map fitted to the rows of all tasks by least squares, for tasks without points.

The prior mean of `meta.ridge` is the best start for a task with points: it has the slopes within
tasks. For a task without any, the slopes of all rows together may be better. With
phi_t = (Phi(s_t), 1) and N rows that end with a one, the pooled map minimises

    sum_t ||y_t - X_t W phi_t||^2 + N ridge ||W||^2,

without a penalty on the common level. Its form is "additive" (one slope for each input, and levels
that go with Phi) or "products" (slopes go with Phi as well). Form and ridge have the least error on
held-out tasks.
"""

from collections.abc import Sequence
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

    def solve(self, ridges: Sequence[float]) -> np.ndarray:
        """Return the solutions (R, p) with ridges on all coefficients but the last, the level."""
        p, ridge = len(self.h), np.array(ridges)[:, None]
        penalty = np.hstack([np.tile(ridge, p - 1), np.full_like(ridge, NO_RIDGE)])
        systems = self.G + self.n * penalty[:, :, None] * np.eye(p)
        return np.linalg.solve(systems, self.h[:, None])[..., 0]


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
    return _as_maps(found.solve([form.ridge]), form.name, *shape)[0]


def held_out_maps(stats: SquaredState, Phi, folds) -> tuple[list[PooledForm], np.ndarray]:
    """Return the forms, and their maps (forms, folds, k+1, d) without each fold of tasks.

    `folds` has positions (train, held) of tasks; no task is outside `train` in two folds.
    """
    (T, k), d = Phi.shape, stats.moment.shape[1]
    left_out = [np.setdiff1d(np.arange(T), train) for train, _ in folds]
    groups = [*left_out, np.setdiff1d(np.arange(T), np.concatenate(left_out))]
    blocks = [OneBlock.of(stats.take(at), Phi[at]).only for at in groups]
    forms, maps = [], []
    for name, equations in FORMS.items():
        if name == "products" and (k == 0 or (k + 1) * d > LARGEST):
            continue
        parts = [equations(block) for block in blocks]
        others = [parts[:f] + parts[f + 1 :] for f in range(len(folds))]
        sums = [Equations(*map(sum, zip(*each, strict=True))) for each in others]
        forms += [PooledForm(name, ridge) for ridge in RIDGES]
        solutions = np.stack([found.solve(RIDGES) for found in sums], axis=1)
        maps.append(_as_maps(solutions, name, k + 1, d))
    return forms, np.concatenate(maps)


def _as_maps(solutions: np.ndarray, name: str, k: int, d: int) -> np.ndarray:
    """Return the coefficients (..., p) of a form as maps (..., k, d)."""
    lead = solutions.shape[:-1]
    if name == "products":
        return solutions.reshape(*lead, k, d)
    W = np.zeros((*lead, k, d))
    W[..., -1, :-1], W[..., -1] = solutions[..., : d - 1], solutions[..., d - 1 :]
    return W
