"""ConditionalLogistic on new tasks with 0, 5 and 20 points: log loss and calibration.

Two clusters with logistic labels (d = 6, the cluster is the side information, 5 draws), and
Contraception of the R package mlmRev (women of districts of Bangladesh; side information: mean age
and share of urban women; 20 splits of the districts). The peer is the best at each number of
points of one logistic regression on inputs, side columns and their products (scikit-learn), one on
each task's own points (scikit-learn; the share of the training tasks without points, or with one
class), and GPBoost's mixed model with random slopes, its fixed effects the same products. Goal: 1 %
above it, and 2 standard errors of the paired difference. Calibration: the mean distance of
predicted and true shares in ten groups of equal size, with its standard error.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import condmeta as cm
from benchmarks.accuracy.design import Design, codes_of, slices
from benchmarks.accuracy.problem import Problem, split
from benchmarks.common import no_goal, row
from benchmarks.ridge import verdict
from condmeta.datasets.packages import read_mlmrev
from condmeta.environments import Clusters
from condmeta.tasks import TaskSet, TaskTable

POINTS = 0, 5, 20


def two_clusters(seed: int) -> TaskSet:
    """Draw tasks whose cluster is their side information, scaled so that f is of size 3."""
    d, n, count = 6, 40, 300
    centers = np.random.default_rng(0).normal(size=(2, d))
    env = Clusters(
        2 * centers / np.sqrt(d), np.zeros((2, d)), sigma_w=2.5 / np.sqrt(d), n=n, snr=None
    )
    tasks = env.sample(count, random_state=seed)
    f = np.einsum("ij,ij->i", tasks.X, np.repeat(tasks.weights, n, axis=0))
    y = (np.random.default_rng(seed).random(len(f)) < expit(f)).astype(float)
    side = TaskTable({"second": (tasks.clusters == 1).astype(float)}, ids=tasks.ids)
    return TaskSet(tasks.X, y, tasks.offsets, tasks.ids, side)


def contraception(seed: int) -> TaskSet:
    """Load districts: does a woman use contraception, by age, living children and town?"""
    table = read_mlmrev("Contraception")
    age = table["age"].to_numpy() / 10
    town = (table["urban"] == "Y").to_numpy().astype(float)
    children = [(table["livch"] == level).to_numpy().astype(float) for level in ("1", "2", "3+")]
    X = np.column_stack([age, age**2, town, *children])
    tasks = TaskSet.from_arrays(X, (table["use"] == "Y").to_numpy() * 1.0, table["district"])
    means = np.array([tasks.X[rows].mean(axis=0) for rows in slices(tasks)])
    return tasks.with_side(TaskTable({"age": means[:, 0], "town": means[:, 2]}, ids=tasks.ids))


PROBLEMS = {
    "two clusters": (Problem("", two_clusters, 150, 150, POINTS, 20), 5),
    "Contraception": (Problem("", contraception, 40, 20, POINTS, 20), 20),
}


class Ours:
    """A learner of condmeta."""

    def __init__(self, learner):
        self.learner = learner

    def fit(self, train: TaskSet) -> None:
        """Learn from the training tasks."""
        self.learner.fit(train)

    def predict(self, support: TaskSet, query: TaskSet) -> np.ndarray:
        """Return P(y = 1) of the query points (N,)."""
        models = self.learner.adapt(support)
        return models.predict_proba(query.X, task=query.ids[codes_of(query)])[:, 1]


class Pooled:
    """One logistic regression."""

    def fit(self, train: TaskSet) -> None:
        """Learn from the training tasks."""
        self.design = Design(train)
        self.model = _logistic().fit(self.design.fixed(train)[:, 1:], train.y)

    def predict(self, support: TaskSet, query: TaskSet) -> np.ndarray:
        """Return P(y = 1) of the query points (N,)."""
        return self.model.predict_proba(self.design.fixed(query)[:, 1:])[:, 1]


class PerTask:
    """A logistic regression for each task."""

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


class Gpboost:
    """GPBoost's mixed model: Bernoulli labels, independent random coefficients."""

    def fit(self, train: TaskSet) -> None:
        """Learn fixed effects and variances with the package's defaults, on one thread."""
        import gpboost

        self.module, self.design = gpboost, Design(train)
        self.model = self._model(train)
        self.model.fit(y=train.y, X=self.design.fixed(train))
        self.beta = np.asarray(self.model.get_coef()).ravel()
        self.variances = np.asarray(self.model.get_cov_pars()).ravel()

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
            fixed = self.design.fixed(query)
            found = self.model.predict(group_data_pred=new, X_pred=fixed, **asked)
        else:
            found = self._model(support).predict(
                y=support.y, group_data_pred=codes_of(query),
                offset=self.design.fixed(support) @ self.beta,
                offset_pred=self.design.fixed(query) @ self.beta, **asked,
            )  # fmt: skip
        return np.asarray(found["mu"]).ravel()


def _logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


METHODS = {
    "ConditionalLogistic": lambda: Ours(cm.ConditionalLogistic()),
    "AutoClassifier": lambda: Ours(cm.AutoClassifier()),
    "pooled": Pooled,
    "per task": PerTask,
    "GPBoost": Gpboost,
}
OURS = "ConditionalLogistic", "AutoClassifier"


def predictions(problem: Problem, splits: int):
    """Return the labels of each split, and by method what it said at each number of points."""
    labels, said = [], {name: [] for name in METHODS}
    for seed in range(splits):
        train, supports, query = split(problem, seed)
        labels.append(query.y)
        for name, make in METHODS.items():
            method = make()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                method.fit(train)
                told = np.array([method.predict(support, query) for support in supports])
            said[name].append(np.clip(told, 1e-9, 1 - 1e-9))
    return labels, said


def losses(labels, said) -> np.ndarray:
    """Return the mean log loss of each split, by number of points (splits, sizes)."""
    return np.array(
        [
            -np.log(np.where(y > 0, told, 1 - told)).mean(axis=1)
            for y, told in zip(labels, said, strict=True)
        ]
    )


def calibration(labels, said, at: int) -> tuple[float, float]:
    """Return the mean distance of predicted and true shares in ten groups, and its noise."""
    y = np.concatenate(labels)
    p = np.concatenate([told[at] for told in said])
    groups = np.array_split(np.argsort(p, kind="stable"), 10)
    off = [abs(y[group].mean() - p[group].mean()) for group in groups]
    spread = [np.sqrt((p[group] * (1 - p[group])).mean()) for group in groups]
    return float(np.mean(off)), float(np.mean(spread) / np.sqrt(len(groups[0])))


def main() -> list[dict]:
    """Compare log losses on both data sets, then show the calibration."""
    rows = []
    for title, (problem, splits) in PROBLEMS.items():
        labels, said = predictions(problem, splits)
        found = {name: losses(labels, told) for name, told in said.items()}
        peers = [name for name in METHODS if name not in OURS]
        for at, points in enumerate(POINTS):
            best = min(peers, key=lambda name: found[name][:, at].mean())
            peer = found[best][:, at]
            for name in OURS:
                ours = found[name][:, at]
                what = f"{title}, {points} points: {name}"
                rows.append(verdict(what, ours, peer, 1.0, f"peer: {best}"))
            off, noise = calibration(labels, said[OURS[0]], at)
            rows.append(row(f"{title}, {points} points: calibration", f"{off:.3f}", f"{noise:.3f}",
                            no_goal(off / noise), "peer: binomial noise of a share"))  # fmt: skip
    return rows
