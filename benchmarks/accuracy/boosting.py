"""Gradient boosting on inputs and side columns, corrected for each task by its support."""

from __future__ import annotations

from importlib import import_module

import numpy as np
from sklearn.model_selection import GroupKFold

from benchmarks.accuracy.design import Design, codes_of
from condmeta.tasks import TaskSet


class BoostedMean:
    """A boosted model f(x, s), plus the mean residual of the support shrunken by n / (n + ratio).

    The ratio is the variance within tasks over that between them.
    """

    package = ""  # imported when the method is made: a fit is timed without it

    def __init__(self):
        self.module = import_module(self.package)

    def fit(self, train: TaskSet) -> None:
        """Fit f, and the ratio."""
        self.design = Design(train)
        rows, y, codes = self.design.both(train), self.design.target(train), codes_of(train)
        self.learn(rows, y, codes)

    def learn(self, rows, y, codes) -> None:
        """Set `ratio` and what `base` needs."""
        raise NotImplementedError

    def base(self, rows) -> np.ndarray:
        """Return f of rows (N, d+k)."""
        raise NotImplementedError

    def predict(self, support: TaskSet, query: TaskSet) -> np.ndarray:
        """Predict the query points, (N,)."""
        design, out = self.design, self.base(self.design.both(query))
        if len(support.X):
            residual = design.target(support) - self.base(design.both(support))
            total = np.bincount(codes_of(support), residual, minlength=len(support))
            out = out + (total / (support.sizes + self.ratio))[codes_of(query)]
        return design.to_user(out)


class PlainTrees(BoostedMean):
    """Trees that know nothing of tasks; the ratio comes from residuals of tasks left out."""

    def fresh(self):
        """Return a regressor with its defaults."""
        raise NotImplementedError

    def learn(self, rows, y, codes) -> None:
        """Fit to all, and to four fifths of the tasks in turn."""
        residual = np.empty(len(y))
        for known, left in GroupKFold(5).split(rows, y, codes):
            residual[left] = y[left] - self.fresh().fit(rows[known], y[known]).predict(rows[left])
        self.ratio = variance_ratio(residual, codes)
        self.model = self.fresh().fit(rows, y)

    def base(self, rows) -> np.ndarray:
        """Return f of rows (N, d+k)."""
        return self.model.predict(rows)


class LightGBM(PlainTrees):
    """LightGBM with its defaults."""

    package = "lightgbm"

    def fresh(self):
        """Return a regressor with its defaults."""
        return self.module.LGBMRegressor(n_jobs=1, verbose=-1, random_state=0)


class ScikitTrees(PlainTrees):
    """scikit-learn's histogram boosting with its defaults."""

    package = "sklearn.ensemble"

    def fresh(self):
        """Return a regressor with its defaults."""
        return self.module.HistGradientBoostingRegressor(random_state=0)


class GpboostTrees(BoostedMean):
    """GPBoost: trees and a random intercept, learned together; else its defaults.

    The number of rounds is chosen on tasks left out, as its authors advise: a fixed 100 follows
    the side columns of single tasks.
    """

    package = "gpboost"

    def learn(self, rows, y, codes) -> None:
        """Choose the rounds, then fit to all tasks; on one thread."""
        params = {"verbose": -1, "num_threads": 1, "seed": 0, "metric": "l2"}
        found = self.module.cv(
            params, self.module.Dataset(rows, y), gp_model=self._effects(codes),
            num_boost_round=1000, early_stopping_rounds=20, verbose_eval=False,
            folds=list(GroupKFold(5).split(rows, y, codes)), use_gp_model_for_validation=True,
        )  # fmt: skip
        effects = self._effects(codes)
        self.model = self.module.train(
            params, self.module.Dataset(rows, y), gp_model=effects,
            num_boost_round=len(found["l2-mean"]),
        )  # fmt: skip
        noise, between = np.asarray(effects.get_cov_pars()).ravel()[:2]
        self.ratio = noise / max(between, 1e-12)

    def _effects(self, codes):
        return self.module.GPModel(group_data=codes, likelihood="gaussian", num_parallel_threads=1)

    def base(self, rows) -> np.ndarray:
        """Return f of rows (N, d+k): the mean of a task that was never seen."""
        unseen = np.full(len(rows), -1)
        return self.model.predict(rows, group_data_pred=unseen, predict_var=False)["response_mean"]


def variance_ratio(residual: np.ndarray, codes: np.ndarray) -> float:
    """Return the variance of residuals within tasks over that of their means, by moments."""
    count = np.bincount(codes)
    means = np.bincount(codes, residual) / count
    within = np.sum((residual - means[codes]) ** 2) / max(len(codes) - len(count), 1)
    between = np.var(means, ddof=1) - within * np.mean(1 / count)
    return float(within / max(between, 1e-6 * within + 1e-300))
