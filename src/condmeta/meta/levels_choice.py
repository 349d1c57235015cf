r"""The choice of the levels of `meta.levels`: which of them differ, and in what form.

Each level above the tasks is left out, or has a covariance of one of three forms. The log density
of the labels of other groups is estimated by Akaike's criterion,

    J - p,

with p free entries of the covariance; the simplest form close to the best is taken. J is a sum of
terms, each given the labels before it, so that it judges new tasks in groups that are known better
and better. (The penalty (p / 2) log n for n groups, that of an evidence, chooses forms that are too
simple to predict well.) Levels are chosen one after the other, from the tasks upwards, and those
that differ once more, on at most a few thousand tasks in whole groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.inner.squared import SquaredState
from condmeta.inner.tree import Tree
from condmeta.meta.ascent import Stopping
from condmeta.meta.levels import NONE, LevelsPrior, learn_levels
from condmeta.meta.prior import METRICS, Prior

ROUGH = Stopping(tol=0.05, max_evaluations=60)  # of fits that are only compared
ENOUGH = 3000  # tasks on which levels are chosen
FIRST_SHARE = 0.3  # of the variance between tasks that a new level starts with
TIE = 1.0  # difference of two scores that counts as none


class LevelsSetting(NamedTuple):
    """One setting of the learner; `levels` are the metrics above the tasks, the top first."""

    metric: str
    noise: str
    kappa: float
    levels: tuple[str, ...]


class LevelsChoice(NamedTuple):
    """The metrics of the levels above the tasks, and where a fit can start.

    scores : list of dict, with the score of each candidate of each level; more is better
    """

    metrics: tuple[str, ...]
    scores: list[dict]
    start: LevelsPrior


def choose_levels(
    stats: SquaredState, Phi, groups, candidates, setting, start: Prior, n_jobs=1
) -> LevelsChoice:
    """Choose the metrics of the levels above the tasks.

    Parameters
    ----------
    stats, Phi : as for `condmeta.meta.ridge.learn_prior`
    groups : (T, m) int array
        The groups that tasks are in, see `Tree.of`.
    candidates : metrics, simplest first; "none" leaves a level out
    setting : RidgeSetting, with the metric of tasks and kappa
    start : Prior, the fit without levels
    """
    some = whole_groups(groups[:, 0])
    tree, m, d = Tree.of(groups[some]), groups.shape[1], stats.moment.shape[1]
    stats, Phi = stats.take(some), Phi[some]
    prior = LevelsPrior(start.W, np.array([*[start.L * 0.0] * m, start.L]), start.s2)
    chosen, scores = [NONE] * m + [setting.metric], []

    def choose_one(level: int, prior: LevelsPrior) -> LevelsPrior:
        fits = {}
        for metric in candidates:
            metrics = (*chosen[:level], metric, *chosen[level + 1 :])
            known = metric == NONE or chosen[level] != NONE
            first = prior if known else with_level(prior, level, metric)
            fits[metric] = learn_levels(
                stats, Phi, tree, metrics, setting.kappa, first, stopping=ROUGH, n_jobs=n_jobs
            )
        score = {metric: fit.objective - free_entries(metric, d) for metric, fit in fits.items()}
        best = max(score.values())
        chosen[level] = next(name for name, value in score.items() if value >= best - TIE)
        scores.extend({"level": level, "metric": m, "score": v} for m, v in score.items())
        return fits[chosen[level]].prior

    for level in range(m - 1, -1, -1):
        prior = choose_one(level, prior)
    differ = [level for level in range(m - 1, -1, -1) if chosen[level] != NONE]
    for level in differ if len(differ) > 1 else []:  # regions may have stood in for countries
        prior = choose_one(level, prior)
    return LevelsChoice(tuple(chosen[:-1]), scores, prior)


def with_level(prior: LevelsPrior, level: int, metric: str) -> LevelsPrior:
    """Return a start in which a level takes a share of the variance between tasks."""
    factors, own = prior.factors.copy(), prior.factors[-1]
    H = METRICS[metric](own @ own.T)
    H = H + 1e-8 * max(np.trace(H) / len(H), 1e-300) * np.eye(len(H))
    factors[level] = np.sqrt(FIRST_SHARE) * np.linalg.cholesky(H)
    factors[-1] = np.sqrt(1 - FIRST_SHARE) * own
    return prior._replace(factors=factors)


def free_entries(metric: str, d: int) -> int:
    """Return the number of free entries of a covariance (d, d)."""
    return {NONE: 0, "identity": 1, "diagonal": d, "full": d * (d + 1) // 2}[metric]


def whole_groups(top: np.ndarray) -> np.ndarray:
    """Return the positions of the tasks of the first groups, about 3,000 tasks; top (T,) ints.

    Groups are taken in the order of their first tasks: the caller mixes these.
    """
    if len(top) <= ENOUGH:
        return np.arange(len(top))
    found, first, sizes = np.unique(top, return_index=True, return_counts=True)
    by_age = np.argsort(first)
    enough = np.cumsum(sizes[by_age]) < ENOUGH
    enough[0] = True
    return np.flatnonzero(np.isin(top, found[by_age[enough]]))
