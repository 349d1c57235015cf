"""ConditionalLogistic compared with pooled and independent models, and its calibration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from condmeta import (
    ConditionalLogistic,
    IndependentClassifier,
    PooledClassifier,
    TaskSet,
    TaskTable,
)
from condmeta.environments import Clusters

TRAIN, TEST, N = 300, 300, 40


def two_clusters(seed, d=6):
    """Return tasks whose cluster is their side information, scaled so that f is of size 3."""
    centers = np.random.default_rng(0).normal(size=(2, d))
    zero = np.zeros((2, d))
    env = Clusters(2 * centers / np.sqrt(d), zero, sigma_w=2.5 / np.sqrt(d), n=N, snr=None)
    tasks = env.sample(TRAIN + TEST, random_state=seed)
    f = np.einsum("ij,ij->i", tasks.X, np.repeat(tasks.weights, N, axis=0))
    y = (np.random.default_rng(seed).random(len(f)) < expit(f)).astype(int)
    side = TaskTable(np.eye(2)[tasks.clusters], ids=range(TRAIN + TEST))
    return tasks.X.reshape(-1, N, d), y.reshape(-1, N), side


def support(X, y, points):
    """Return the first points of the test tasks, as `adapt` takes them."""
    task = np.repeat(np.arange(TRAIN, TRAIN + TEST), points)
    return X[TRAIN:, :points].reshape(-1, X.shape[2]), y[TRAIN:, :points].ravel(), task


def scores_and_probabilities(model, X, y, side, points):
    """Return f and P(y = 1) (TEST, 20) at the last 20 points, from `points` of the others."""
    call = {"task": np.repeat(np.arange(TRAIN, TRAIN + TEST), 20)}
    if points:
        rows, labels, ids = support(X, y, points)
        model = model.adapt(rows, labels, task=ids, side_info=side)
    else:
        call["side_info"] = side
    query = X[TRAIN:, 20:].reshape(-1, X.shape[2])
    f, p = model.decision_function(query, **call), model.predict_proba(query, **call)[:, 1]
    return f.reshape(TEST, 20), p.reshape(TEST, 20)


def probabilities(*call):
    return scores_and_probabilities(*call)[1]


def fitted(X, y, side):
    """Return the learners, trained on 20 points of each training task."""
    rows, labels = X[:TRAIN, :20].reshape(-1, X.shape[2]), y[:TRAIN, :20].ravel()
    train = TaskSet.from_arrays(rows, labels, np.repeat(np.arange(TRAIN), 20))
    return {
        "conditional": ConditionalLogistic().fit(train, side_info=side.take(range(TRAIN))),
        "pooled": PooledClassifier().fit(train),
        "own": IndependentClassifier(loss="logistic").fit(train),
    }


def log_loss(p, y):
    """Return the mean log loss of each task."""
    return -np.log(np.where(y == 1, p, 1 - p)).mean(axis=1)


@pytest.fixture(scope="module")
def drawn():
    runs = []
    for seed in range(2):
        X, y, side = two_clusters(seed)
        runs.append((X, y, side, fitted(X, y, side)))
    return runs


@pytest.mark.parametrize("points", [0, 5, 20])
def test_not_worse_than_the_best_simple_classifier(drawn, points):
    """At most 1 % and two standard errors above; below by far where it should be."""
    gaps, best_losses = [], []
    for X, y, side, models in drawn:
        loss = {
            name: log_loss(
                probabilities(model, X, y, side if name == "conditional" else None, points),
                y[TRAIN:, 20:],
            )
            for name, model in models.items()
        }
        best = min(("pooled", "own"), key=lambda name: loss[name].mean())
        gaps.append(loss["conditional"] - loss[best])
        best_losses.append(loss[best].mean())
    gap = np.concatenate(gaps)
    error = gap.std() / np.sqrt(len(gap))
    assert gap.mean() <= 0.01 * np.mean(best_losses) + 2 * error
    assert gap.mean() < -2 * error


def worst_bin(p, truth):
    """Return by how much the worst of ten bins is off, beyond 0.02, in units of its noise.

    Labels of one task depend on each other through its weights, so that the noise of a bin is that
    of the tasks' sums.
    """
    bins, worst = np.minimum((10 * p).astype(int), 9), -np.inf
    for b in range(10):
        inside = bins == b
        if inside.sum() >= 100:
            residual = np.where(inside, truth - p, 0.0).sum(axis=1)
            noise = np.sqrt((residual**2).sum())
            worst = max(worst, (abs(residual.sum()) - 0.02 * inside.sum()) / noise)
    return worst


@pytest.mark.parametrize("points", [0, 5, 20])
def test_probabilities_are_calibrated(drawn, points):
    """In every bin, up to noise and 0.02; without the average over the posterior they are not."""
    runs = [
        (*scores_and_probabilities(models["conditional"], X, y, side, points), y[TRAIN:, 20:])
        for X, y, side, models in drawn
    ]
    f, p, truth = (np.concatenate(part) for part in zip(*runs, strict=True))
    assert worst_bin(p, truth) <= 3
    assert worst_bin(expit(f), truth) > 3
    gap = log_loss(expit(f), truth) - log_loss(p, truth)
    assert gap.mean() > 2 * gap.std() / np.sqrt(len(gap))


def few_tasks(W, rng, n_tasks, n):
    """Return tasks with the weights W phi + N(0, .16 I), the intercept last."""
    k, d = len(W) - 1, W.shape[1] - 1
    side, X = rng.normal(size=(n_tasks, k)), rng.normal(size=(n_tasks, n, d))
    w = side @ W[:-1] + W[-1] + 0.4 * rng.normal(size=(n_tasks, d + 1))
    f = np.einsum("tij,tj->ti", X, w[:, :d]) + w[:, d:]
    y = (rng.random(f.shape) < expit(f)).astype(int)
    ids = rng.integers(1 << 40, size=n_tasks)
    table = TaskTable(side, ids=ids)
    return TaskSet(X.reshape(-1, d), y.ravel(), n * np.arange(n_tasks + 1), ids, table)


def test_probabilities_are_not_too_extreme_with_twenty_tasks():
    """The slope of labels on log odds, of six inputs; with a flat prior of b it is .86."""
    labels, scores = [], []
    for seed in range(40):
        rng = np.random.default_rng([7, seed])
        W = 0.4 * rng.normal(size=(2, 7))
        model = ConditionalLogistic().fit(few_tasks(W, rng, 20, 12))
        new = few_tasks(W, rng, 60, 9)
        labels.append(new.y)
        scores.append(logit(model.predict_proba(new)[:, 1]))
    X = np.concatenate(scores)[:, None]
    slope = LogisticRegression(C=np.inf).fit(X, np.concatenate(labels)).coef_[0, 0]
    assert 0.9 < slope < 1.1
