r"""A learned prior over tasks in groups: stores in regions, regions in countries.

With phi_t = (Phi(s_t), 1) and W = (M, b), the weights of task t are

    w_t = W phi_t + u_region + ... + v_t,   u ~ N(0, H_region), ..., v ~ N(0, H),

and the fit maximises the likelihood of all labels (`condmeta.inner.tree`), less

    (kappa/2) tr(M^T (H_region + ... + H)^-1 M).

Side information of a region enters through the rows of its tasks: a column that is constant within
regions acts on regions. There is one b, so that no two levels share an intercept. Where the
variance of a level goes to zero, J is that of the model without it.

Steps are those of `meta.prior`, with one factor for each level. W moves by C V L^T with L L^T the
sum of all H, and C C^T the inverse information about W if all w_t were observed and the H were
multiples of each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.inner.squared import SquaredState
from condmeta.inner.tree import Tree, sum_children, tree_likelihood
from condmeta.meta.ascent import DEFAULT_STOPPING, Ascent, Stopping
from condmeta.meta.blocks import OneBlock
from condmeta.meta.prior import (
    METRICS,
    SMALLEST,
    FactorFrame,
    LearnedPrior,
    Prior,
    PriorModel,
    maximise,
    moved_noise,
    noise_bounds,
)
from condmeta.meta.ridge import RidgeModel

NONE = "none"  # the metric of a level that is left out
LEAST_SHARE = 0.05  # of the variance that is taken to be between tasks of a group, in the frame


class LevelsPrior(NamedTuple):
    """W (k+1, d), with b in the last row; factors (m, d, d), the top level first; and s2."""

    W: np.ndarray
    factors: np.ndarray
    s2: float

    @property
    def H(self) -> np.ndarray:  # noqa: N802 - the model's name
        """H (d, d) of a task in a group that is not known: the sum of all levels."""
        return np.einsum("mij,mkj->ik", self.factors, self.factors)

    def theta(self, Phi) -> np.ndarray:
        """Return W phi of tasks (T, d)."""
        return Phi @ self.W[:-1] + self.W[-1]

    def widen(self, kept: np.ndarray) -> LevelsPrior:
        """Return the prior of all coordinates, from that of a mask of them: the others are 0."""
        levels = [Prior(self.W, L, self.s2).widen(kept) for L in self.factors]
        return LevelsPrior(levels[0].W, np.array([level.L for level in levels]), self.s2)


def root_of(H) -> np.ndarray:
    """Return L (d, d), lower triangular, of H = L L^T, which may be close to singular."""
    size = max(float(np.trace(H)) / len(H), SMALLEST)
    return np.linalg.cholesky(H + 1e-12 * size * np.eye(len(H)))


def learn_levels(
    stats: SquaredState, Phi, tree: Tree, metrics: tuple[str, ...], kappa: float,
    start: LevelsPrior, *, own=None, stopping=DEFAULT_STOPPING, n_jobs=1,
) -> LearnedPrior:  # fmt: skip
    """Fit the prior to tasks in groups.

    Parameters
    ----------
    stats, Phi : as for `condmeta.meta.ridge.learn_prior`
    tree : Tree of these tasks
    metrics : the form of H of each level, the top first: "identity", "diagonal", "full" or "none"
    start : LevelsPrior, with a factor for each level
    own : (d,) bool array, optional
        The columns whose weights differ; those of the others are the same for all tasks, whatever
        their features, and are not penalised. All by default.
    """
    kept = np.array([metric != NONE for metric in metrics])
    tree = without_levels(tree, kept)
    model = LevelsModel(stats, Phi, kappa, tree, n_jobs, own)
    used = tuple(metric for metric in metrics if metric != NONE)
    learned = maximise(model, used, start._replace(factors=start.factors[kept]), stopping)
    factors = np.zeros_like(start.factors)
    factors[kept] = learned.prior.factors
    return learned._replace(prior=learned.prior._replace(factors=factors))


def without_levels(tree: Tree, kept: np.ndarray) -> Tree:
    """Return the tree without some levels above the tasks: nodes join the parents of these.

    kept (m,) bool; tasks, the last level, are always kept.
    """
    if kept.all():
        return tree
    nodes = np.empty((len(tree.order), len(tree.parents)), np.int64)  # of each task, by level
    node = np.arange(len(tree.order))
    for level in range(len(tree.parents) - 1, -1, -1):
        nodes[tree.order, level] = node = tree.parents[level][node]
    return Tree.of(nodes[:, kept[:-1]])


class LevelsModel(RidgeModel):
    """J of tasks in groups, from their statistics. The tasks are put into the order of the tree."""

    def __init__(self, stats: SquaredState, Phi, kappa: float, tree: Tree, n_jobs: int, own=None):
        block = OneBlock.of(stats.take(tree.order), Phi[tree.order], n_jobs)
        super().__init__(block, kappa)
        _, Phi1, self.n_jobs = block.only
        self.stats, self.Phi1, self.tree = block.only.stats, Phi1[:, -self.rows :], tree
        self.own = np.ones(self.shape[1], bool) if own is None else own

    def climb(self, frame, stopping: Stopping, inverse=None) -> Ascent:
        """Maximise J in one frame."""
        return PriorModel.climb(self, frame, stopping, inverse)

    def frame(self, start, metric) -> LevelsFrame:
        """Return coordinates around a prior."""
        return LevelsFrame(self, start, metric)

    def evaluate(self, prior, correlated=True) -> tuple[float, LevelsPrior]:
        """Return J, and its derivatives with respect to W, the factors and log s2."""
        W, factors, s2 = prior
        value, slopes = tree_likelihood(
            self.stats, self.Phi1 @ W, self.tree.parents, factors, s2, self.n_jobs
        )
        by_W, by_factors = self.Phi1.T @ slopes.theta, slopes.factors
        if self.kappa and len(W) > 1:
            at = np.flatnonzero(self.own)
            inverse = np.linalg.inv(root_of(prior.H[np.ix_(at, at)]))
            V = W[:-1, at] @ inverse.T
            value -= self.kappa / 2 * float(np.vdot(V, V))
            by_W[:-1, at] -= self.kappa * V @ inverse
            pull = np.zeros_like(prior.H)
            pull[np.ix_(at, at)] = inverse.T @ (V.T @ V) @ inverse
            by_factors = by_factors + self.kappa * np.tril(pull @ factors)
        return value, LevelsPrior(by_W, by_factors, slopes.log_s2)

    def adopt(self, prior, metric):
        """Return a start in which no factor is zero: at zero its gradient vanishes."""
        floor = 1e-4 * max(self.natural_variance(prior.s2), SMALLEST)
        block = np.ix_(self.own, self.own)
        factors = np.zeros_like(prior.factors)
        for factor, name, L in zip(factors, metric, prior.factors, strict=True):
            H = METRICS[name]((L @ L.T)[block])
            factor[block] = np.linalg.cholesky(H + floor * np.eye(len(H)))
        W = prior.W if len(prior.W) == self.rows else prior.W[-1:]
        return LevelsPrior(W, factors, prior.s2)

    def information_root(self, shares: np.ndarray) -> np.ndarray:
        """Return C (k+1, k+1) if the variance of a level is its share (m,) of the whole."""
        phi, own = self.Phi1, 1 / shares[-1]
        system = own * (phi.T @ phi)
        rows, precision = own * phi, np.full(len(phi), own)
        for share, parent in zip(shares[-2::-1], self.tree.parents[::-1], strict=True):
            rows, precision = sum_children(rows, parent), sum_children(precision, parent)
            shrink = 1 / (1 + share * precision)
            system -= (rows * (share * shrink)[:, None]).T @ rows
            rows, precision = rows * shrink[:, None], precision * shrink
        k = len(system) - 1
        system[np.arange(k), np.arange(k)] += self.kappa
        system += 1e-10 * np.trace(system) / len(system) * np.eye(len(system))
        return np.linalg.inv(np.linalg.cholesky(system)).T.copy()


class LevelsFrame:
    """Coordinates around a start, where they are zero; one unit is about a standard error.

    They are those of W of the columns that differ, of b of the shared columns, of each factor, and
    of log s2.
    """

    def __init__(self, model: LevelsModel, start: LevelsPrior, metrics):
        self.start, self.metric = start, metrics
        own, shared = np.flatnonzero(model.own), np.flatnonzero(~model.own)
        self.own, self.shared, self.block = own, shared, np.ix_(own, own)
        self.factors = [
            FactorFrame.around(L[self.block], metric, n, np.zeros(len(own)), model.limits)
            for L, metric, n in zip(start.factors, metrics, model.tree.sizes, strict=True)
        ]
        shares = np.einsum("mij,mij->m", start.factors, start.factors)
        shares = shares / max(shares.sum(), SMALLEST)
        shares[-1] = max(shares[-1], LEAST_SHARE)
        self.C, self.L = model.information_root(shares), root_of(start.H[self.block])
        gram = model.gram[np.ix_(shared, shared)] / start.s2
        self.root = np.linalg.inv(root_of(gram)).T if len(shared) else np.empty((0, 0))
        self.noise_unit = np.sqrt(2 / model.n_points)
        sizes = len(start.W) * len(own), len(shared), *(factor.size for factor in self.factors)
        self.cuts = np.cumsum(sizes)
        self.size = int(self.cuts[-1]) + 1

    def bounds(self, least: float, largest: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper bounds of the coordinates; s2 stays in [least, largest]."""
        free = np.full(self.cuts[1], np.inf)
        low, high = zip(*(factor.bounds() for factor in self.factors), strict=True)
        lowest, highest = noise_bounds(self.start.s2, least, largest, self.noise_unit)
        return np.concatenate([-free, *low, lowest]), np.concatenate([free, *high, highest])

    def prior(self, x) -> LevelsPrior:
        """Return the prior at coordinates x."""
        W, s2 = self.start.W.copy(), self.start.s2
        V, beta, *parts = np.split(x, self.cuts)
        W[:, self.own] += self.C @ V.reshape(len(W), -1) @ self.L.T
        W[-1, self.shared] += self.root @ beta
        factors = np.zeros_like(self.start.factors)
        for factor, frame, part in zip(factors, self.factors, parts, strict=False):
            factor[self.block] = frame.factor(part)
        return LevelsPrior(W, factors, moved_noise(s2, self.noise_unit * x[-1:]))

    def holds(self, x) -> bool:
        """Return whether the units are about those of a frame around the prior at coordinates x."""
        _, _, *parts = np.split(x, self.cuts)
        return all(frame.holds(part) for frame, part in zip(self.factors, parts, strict=False))

    def pull(self, gradient: LevelsPrior) -> np.ndarray:
        """Return the gradient with respect to the coordinates, from that by W, L and log s2."""
        by_W = (self.C.T @ gradient.W[:, self.own] @ self.L).ravel()
        by_beta = self.root.T @ gradient.W[-1, self.shared]
        pairs = zip(self.factors, gradient.factors, strict=True)
        pulled = [frame.pull(by_L[self.block]) for frame, by_L in pairs]
        return np.concatenate([by_W, by_beta, *pulled, [self.noise_unit * gradient.s2]])
