"""Peers for two classes; each predicts the probability of the class 1."""

from __future__ import annotations

from importlib import import_module

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.accuracy.design import Design, codes_of, independent, slices
from condmeta.tasks import TaskSet


class PooledLogistic:
    """One logistic regression on inputs, side columns and their products."""

    def fit(self, train: TaskSet) -> None:
        """Learn from the training tasks."""
        self.design = Design(train)
        self.model = _logistic().fit(self.design.fixed(train)[:, 1:], train.y)

    def predict(self, support: TaskSet, query: TaskSet) -> np.ndarray:
        """Return P(y = 1) of the query points (N,)."""
        return self.model.predict_proba(self.design.fixed(query)[:, 1:])[:, 1]


class LogisticPerTask:
    """A logistic regression for each task; the share of all tasks if its support has one class."""

    def fit(self, train: TaskSet) -> None:
        """Learn units and the share of the second class."""
        self.design, self.share = Design(train), train.y.mean()

    def predict(self, support: TaskSet, query: TaskSet) -> np.ndarray:
        """Return P(y = 1) of the query points (N,)."""
        out = np.full(len(query.y), self.share)
        X, Q = self.design.inputs(support), self.design.inputs(query)
        for shown, asked in zip(slices(support), slices(query), strict=True):
            if len(np.unique(support.y[shown])) == 2:
                model = _logistic().fit(X[shown], support.y[shown])
                out[asked] = model.predict_proba(Q[asked])[:, 1]
        return out


class GpboostLogit:
    """GPBoost's mixed model: Bernoulli labels, independent random coefficients."""

    def __init__(self):
        self.module = import_module("gpboost")

    def fit(self, train: TaskSet) -> None:
        """Learn fixed effects and variances with the package's defaults, on one thread."""
        self.design = Design(train)
        self.kept = independent(self.design.fixed(train))
        self.model = self._model(train)
        self.model.fit(y=train.y, X=self._fixed(train))
        self.beta = np.asarray(self.model.get_coef()).ravel()
        self.variances = np.asarray(self.model.get_cov_pars()).ravel()

    def _fixed(self, tasks: TaskSet) -> np.ndarray:
        return self.design.fixed(tasks)[:, self.kept]

    def _model(self, tasks: TaskSet):
        Z = self.design.random(tasks)
        return self.module.GPModel(
            group_data=codes_of(tasks), group_rand_coef_data=Z[:, 1:],
            ind_effect_group_rand_coef=[1] * (Z.shape[1] - 1), likelihood="bernoulli_logit",
            num_parallel_threads=1,
        )  # fmt: skip

    def predict(self, support: TaskSet, query: TaskSet) -> np.ndarray:
        """Return P(y = 1) of the query points (N,)."""
        Z = self.design.random(query)
        known = {"cov_pars": self.variances, "predict_response": True}
        asked = {"group_rand_coef_data_pred": Z[:, 1:], **known}
        if not len(support.y):
            new = codes_of(query) + 10**6  # no group of the fit
            found = self.model.predict(group_data_pred=new, X_pred=self._fixed(query), **asked)
        else:
            found = self._model(support).predict(
                y=support.y, group_data_pred=codes_of(query),
                offset=self._fixed(support) @ self.beta,
                offset_pred=self._fixed(query) @ self.beta, **asked,
            )  # fmt: skip
        return np.asarray(found["mu"]).ravel()


def _logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)
