"""Are the probabilities of `ConditionalLogistic` right on new tasks, if there are few tasks?

Drawn tasks: two inputs, two side columns, ten labels of two classes each. 60 new tasks show 0, 2 or
5 points; 120 draws. `ours` is the calibration slope, that of a logistic regression of the labels on
the predicted log odds: below 1, probabilities are too near 0 and 1. `peer` is the slope with the
learned prior taken for the true one, `note` that of the true prior, which is 1 but for the noise of
the draws, and the log losses of ours and of the peer. Goal: .9 to 1.1.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

import condmeta as cm
from benchmarks.common import row
from condmeta.inner.averaged import averaged_logistic
from condmeta.inner.likelihoods import Binomial
from condmeta.inner.posterior import lower_root
from condmeta.inner.row_posterior import solve_rows
from condmeta.tasks.points import Points

TASKS = 20, 30, 100
POINTS = 0, 2, 5
DRAWS = 120
NEW, PER_TASK, QUERY = 60, 10, 9
ROOT = np.diag([0.7, 0.7, 1.0])  # of H
GOAL = 0.9, 1.1


def draw(n_tasks: int, n_points: int, W: np.ndarray, rng: np.random.Generator):
    """Draw tasks with weights N(W phi, H) of two inputs and the intercept; also their theta."""
    s = rng.normal(size=(n_tasks, 2))
    theta = s @ W[:-1] + W[-1]
    w = theta + rng.normal(size=(n_tasks, 3)) @ ROOT
    task, X = np.repeat(np.arange(n_tasks), n_points), rng.normal(size=(n_tasks * n_points, 2))
    f = np.einsum("ij,ij->i", with_ones(X), w[task])
    y = (rng.random(len(f)) < expit(f)).astype(float)
    ids = [f"{rng.integers(1 << 40)}-{t}" for t in range(n_tasks)]
    side = cm.TaskTable(s, ids=ids)
    tasks = cm.TaskSet(X, y, np.arange(n_tasks + 1) * n_points, ids, side)
    return tasks, theta


def with_ones(X: np.ndarray) -> np.ndarray:
    """Return rows with a one at their end."""
    return np.column_stack([X, np.ones(len(X))])


def true_chances(shown: cm.TaskSet, asked: cm.TaskSet, theta: np.ndarray) -> np.ndarray:
    """Return the probabilities under the prior that tasks were drawn from."""
    points = Points(with_ones(shown.X), 2 * shown.y - 1, shown.offsets)
    solved = solve_rows(Binomial(), points, theta, ROOT)
    codes, rows = np.repeat(np.arange(len(theta)), asked.sizes), with_ones(asked.X)
    mean = np.einsum("ij,ij->i", rows, solved.coef[codes])
    return averaged_logistic(mean, solved.state.of_rows(rows, codes))


def predicted(model: cm.ConditionalLogistic, shown: cm.TaskSet, asked: cm.TaskSet) -> np.ndarray:
    """Return the probabilities of new tasks that show some points, or none."""
    source = model.adapt(shown) if len(shown.X) else model
    return source.predict_proba(asked)[:, 1]


def chances(n_tasks: int, draws: int = DRAWS) -> tuple[np.ndarray, np.ndarray]:
    """Return labels (N,), and probabilities of ours, the peer and the truth (3, points, N)."""
    labels, found = [], []
    for number in range(draws):
        rng = np.random.default_rng([n_tasks, number])
        W = np.vstack([0.8 * rng.normal(size=(2, 3)), 0.5 * rng.normal(size=3)])
        model = cm.ConditionalLogistic().fit(draw(n_tasks, PER_TASK, W, rng)[0])
        new, theta = draw(NEW, max(POINTS) + QUERY, W, rng)
        rank = np.arange(len(new.y)) % (max(POINTS) + QUERY)
        asked = new.where(rank >= max(POINTS))
        shown = [new.where(rank < n) for n in POINTS]
        ours = [predicted(model, part, asked) for part in shown]
        inner = model.fitted_.inner
        inner.prior_covariance, inner.factor = None, lower_root(model.H_)
        peer = [predicted(model, part, asked) for part in shown]
        labels.append(asked.y)
        found.append([ours, peer, [true_chances(part, asked, theta) for part in shown]])
    return np.concatenate(labels), np.concatenate(found, axis=2)


def slope(y: np.ndarray, p: np.ndarray) -> float:
    """Return the slope of labels on predicted log odds."""
    scores = logit(np.clip(p, 1e-9, 1 - 1e-9))[:, None]
    return float(LogisticRegression(C=np.inf).fit(scores, y).coef_[0, 0])


def log_loss(y: np.ndarray, p: np.ndarray) -> float:
    """Return the mean log loss."""
    return float(-np.log(np.where(y > 0, p, 1 - p)).mean())


def main() -> list[dict]:
    """Measure the slopes at every number of tasks."""
    rows = []
    for n_tasks in TASKS:
        y, (ours, peer, truth) = chances(n_tasks)
        for n, p, q, t in zip(POINTS, ours, peer, truth, strict=True):
            found = slope(y, p)
            verdict = {"goal": "0.9 to 1.1", "met": bool(GOAL[0] <= found <= GOAL[1])}
            note = f"truth {slope(y, t):.3f}; log loss {log_loss(y, p):.4f}, {log_loss(y, q):.4f}"
            what = f"{n_tasks} tasks, new ones show {n} points"
            rows.append(row(what, f"{found:.3f}", f"{slope(y, q):.3f}", verdict, note))
    return rows
