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

import condmeta as cm
from benchmarks.accuracy.classifiers import GpboostLogit, LogisticPerTask, PooledLogistic
from benchmarks.accuracy.design import slices
from benchmarks.accuracy.ours import Classifier
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


METHODS = {
    "ConditionalLogistic": lambda: Classifier(cm.ConditionalLogistic),
    "AutoClassifier": lambda: Classifier(cm.AutoClassifier),
    "pooled": PooledLogistic,
    "per task": LogisticPerTask,
    "GPBoost": GpboostLogit,
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
