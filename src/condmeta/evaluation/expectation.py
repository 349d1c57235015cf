"""Which errors a model expects on new points of its tasks, and how odd those found are.

Four grounds, the first that there is:

- "held-out tasks" (`Calibrated`, `AutoRegressor`): the log of a task's root mean squared score is
  compared with that of tasks left out of the fit, with as many points behind them.
- "the model" (`ConditionalRidge`): the joint distribution of a task's residuals, see
  `inner.surprise`; `ConditionalLogistic`: the log loss of labels drawn from its own posterior.
- "the probabilities" (other classifiers with logistic loss): labels drawn from these, the weights
  taken for certain.
- "the other tasks": the log of a task's error against the median of all tasks, in robust standard
  deviations. This finds tasks that stand out, not a change that all tasks share.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import stats as distributions
from sklearn.base import is_classifier

from condmeta.evaluation.calibrate import Calibrated
from condmeta.evaluation.conformal import predict_scaled
from condmeta.inner.log_errors import log_root_mean_square
from condmeta.inner.posterior import lower_root
from condmeta.inner.squared import SquaredState
from condmeta.inner.surprise import surprise
from condmeta.tasks import TaskSet

OTHERS = "the other tasks"  # the ground that knows no error to compare theirs with
DRAWS = 400  # of the labels of a task
TAIL = distributions.t(10)  # of logs of errors: a little heavier than normal
ENOUGH = 8  # draws that exceed what was found; with fewer a gamma distribution has the tail


class Judged(NamedTuple):
    """Errors of T tasks by name, which of them is judged, what was expected, p, and by what.

    `shared` is the variance of what is wrong with all z alike; a sum of them tells nothing if it is
    infinite.
    """

    errors: dict[str, np.ndarray]
    judged: str
    expected: np.ndarray
    p: np.ndarray
    ground: str
    shared: float = 0.0

    def excess(self, n: np.ndarray) -> float:
        """Return by which part the error of all rows is above what was expected, tasks with n."""
        power = 2 if self.judged == "rmse" else 1
        found, told = ((n * e**power).sum() for e in (self.errors[self.judged], self.expected))
        return float((found / max(told, 1e-300)) ** (1 / power) - 1)


def judge(model: Any, tasks: TaskSet, points: TaskSet | None = None) -> Judged:
    """Judge the errors of a model on tasks, all of which have rows, in their order.

    `points` condition new tasks, where the map reads points.
    """
    given = {} if points is None else {"side_info": points}
    learner = model.model if isinstance(model, Calibrated) else model
    if is_classifier(learner):
        return _judge_classes(learner, tasks, given)
    residual = tasks.y - learner.predict(tasks, **given)
    square = _mean(residual**2, tasks)
    errors = {"mae": _mean(np.abs(residual), tasks), "rmse": np.sqrt(square)}
    if isinstance(model, Calibrated):
        shared = 1 / max(model.n_tasks_calibrated_.values())
        return Judged(errors, "rmse", *_by_held_out(model, tasks, given), "held-out tasks", shared)
    if getattr(learner, "task_errors_", None) is not None:
        behind = learner.n_points(tasks)[tasks.offsets[:-1]]
        at = np.maximum(np.searchsorted(learner.shots_, behind, side="right") - 1, 0)
        mean, variance = learner.task_errors_[at].T
        p = _tail_of_logs(errors["rmse"], mean, variance, tasks)
        return Judged(errors, "rmse", np.exp(mean), p, "held-out tasks", 1 / learner.n_tasks_)
    if hasattr(learner, "_behind"):
        theta, before = learner._behind(tasks.ids)
        if before is not None:
            rows = learner._head.preparation.rows(tasks.X)
            new = SquaredState.of(rows, residual, tasks.offsets)
            p, expected = surprise(learner._inner, before, theta, new, _room(learner, before))
            return Judged(errors, "rmse", np.sqrt(expected), p, "the model")
    judged = _by_the_others(errors["rmse"], *log_root_mean_square(tasks.sizes))
    return Judged(errors, "rmse", *judged, OTHERS, np.inf)


def _mean(values: np.ndarray, tasks: TaskSet) -> np.ndarray:
    return np.add.reduceat(values, tasks.offsets[:-1]) / tasks.sizes


def _room(learner: Any, before: SquaredState) -> np.ndarray:
    """Return how much larger variances may be than those learned, for each task.

    By one and a half standard errors of s2, which rests on nu residuals; by k / T, as k rows of the
    map, learned from T tasks, make H look too small; and by as much again for a task without
    points, as its tau is uncertain.
    """
    store, (k, width) = learner._store, np.array(learner._weights.shape)
    T, nu = learner.n_tasks_, learner.n_tasks_
    if store is not None:
        nu = max(nu, float(np.maximum(store.sizes - width, 0).sum()))
    return 1 + 1.5 * np.sqrt(2 / nu) + min(k / T, 1.0) * np.where(before.count == 0, 2.0, 1.0)


def _by_held_out(model: Calibrated, tasks: TaskSet, given: dict) -> tuple[np.ndarray, np.ndarray]:
    """Return what is expected, and p."""
    predicted, scale = predict_scaled(model.model, model._with_std, tasks, **given)
    behind = model.model.n_points(tasks)[tasks.offsets[:-1]]
    mean, variance = model._calibration.of_tasks(behind)
    found = np.sqrt(_mean(((tasks.y - predicted) / scale) ** 2, tasks))
    expected = np.exp(mean) * np.sqrt(_mean(scale**2, tasks))
    return expected, _tail_of_logs(found, mean, variance, tasks)


def _tail_of_logs(error: np.ndarray, mean, variance, tasks: TaskSet) -> np.ndarray:
    """Return p of root mean square errors (T,) whose logs have mean and variance over tasks."""
    shift, noise = log_root_mean_square(tasks.sizes)
    found = np.log(error + 1e-150)
    return TAIL.sf((found - shift - mean) / np.sqrt(variance + noise))


def _by_the_others(error: np.ndarray, shift, noise) -> tuple[np.ndarray, np.ndarray]:
    """Return the median error, and p of each by the spread of all.

    `shift` and `noise` are what few rows add to mean and variance of the log of an error.
    """
    logs = np.log(error + 1e-300) - shift
    middle = np.median(logs)
    return np.full(len(error), np.exp(middle)), _tail_by_spread(logs - middle, noise)


def _tail_by_spread(off: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return p of what tasks are off the median, part of its variance being `noise`."""
    variance = (1.4826 * np.median(np.abs(off))) ** 2
    variance = np.maximum(variance - np.median(noise), 0.0) + noise
    return TAIL.sf(off / np.sqrt(np.maximum(variance, 1e-24)))


def _judge_classes(learner: Any, tasks: TaskSet, given: dict) -> Judged:
    labels = tasks.with_target(learner.classes_[(tasks.y > 0).astype(int)])
    if not hasattr(learner, "predict_proba"):
        wrong = _mean((learner.predict(labels, **given) != labels.y).astype(float), tasks)
        middle = np.median(wrong)
        noise = middle * (1 - middle) / tasks.sizes
        judged = np.full(len(tasks), middle), _tail_by_spread(wrong - middle, noise)
        return Judged({"error_rate": wrong}, "error_rate", *judged, OTHERS, np.inf)
    positive = np.clip(learner.predict_proba(labels, **given)[:, 1], 1e-12, 1 - 1e-12)
    losses = -np.log(np.where(tasks.y > 0, positive, 1 - positive))
    loss = _mean(losses, tasks)
    drawn, ground = None, "the probabilities"
    if hasattr(learner, "_covariances"):
        drawn, ground = _score_drawer(learner, tasks, given), "the model"
    p, expected = _by_drawing(tasks, positive, loss, drawn)
    return Judged({"log_loss": loss}, "log_loss", expected, p, ground)


def _score_drawer(learner: Any, tasks: TaskSet, given: dict):
    """Return what draws the scores (n, DRAWS) of the rows of task t, weights being uncertain."""
    covariance = learner._covariances(tasks.ids).covariance
    sides = learner._base_sides(tasks.ids, tasks.side)
    codes = np.repeat(np.arange(len(tasks)), tasks.sizes)
    rows = learner._head.rows(tasks.X, codes, sides)
    scores = learner.decision_function(tasks, **given)

    def draw(t: int, at: slice, rng) -> np.ndarray:
        noise = rng.standard_normal((rows.shape[1], DRAWS))
        return scores[at, None] + rows[at] @ (lower_root(covariance[t]) @ noise)

    return draw


def _by_drawing(tasks: TaskSet, positive, loss, draw_scores):
    """Return p and the mean of the log loss of labels that the model draws for each task."""
    rng = np.random.default_rng(0)
    p, expected = np.empty(len(tasks)), np.empty(len(tasks))
    for t in range(len(tasks)):
        at = slice(tasks.offsets[t], tasks.offsets[t + 1])
        told = chance = positive[at, None]
        if draw_scores is not None:
            chance = np.exp(-np.logaddexp(0.0, -draw_scores(t, at, rng)))
        ones = rng.random((len(told), DRAWS)) < chance
        losses = -np.log(np.where(ones, told, 1 - told)).mean(axis=0)
        expected[t] = losses.mean()
        p[t] = _tail(losses, loss[t])
    return p, expected


def _tail(drawn: np.ndarray, found: float) -> float:
    """Return the probability of `found` or more."""
    above = int((drawn >= found - 1e-12).sum())
    if above >= ENOUGH:
        return (above + 1) / (len(drawn) + 1)
    mean, variance = drawn.mean(), max(drawn.var(), 1e-300)
    tail = float(distributions.gamma.sf(found, mean**2 / variance, scale=variance / mean))
    return min(tail, (ENOUGH + 1) / (len(drawn) + 1))
