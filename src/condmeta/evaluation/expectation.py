"""Expected errors of a model on new points of its tasks, and p-values of the observed errors.

The expected errors come from one of four sources (`ground`), the first that is available:

- "held-out tasks" (`Calibrated`, `AutoRegressor`): the log of a task's root mean squared score is
  compared with that of tasks held out of the fit, with the same number of points.
- "the model": for `ConditionalRidge` the joint distribution of a task's residuals (see
  `inner.posterior_check`), for `ConditionalLogistic`, `ConditionalOrdinal` and
  `ConditionalCount` the loss of labels drawn from the model.
- "the probabilities" (other classifiers with logistic loss): labels are drawn from the predicted
  probabilities, without uncertainty of the weights.
- "the other tasks": the log of a task's error is compared with the median of all tasks, in robust
  standard deviations. This finds single tasks, not a change common to all tasks.
"""

import inspect
from typing import Any, NamedTuple

import numpy as np
from scipy import stats as distributions
from sklearn.base import is_classifier

from condmeta.evaluation.calibrate import Calibrated
from condmeta.evaluation.drawn_labels import (
    DRAWS,
    DrawnLosses,
    class_losses,
    count_losses,
    ordinal_losses,
    score_drawer,
)
from condmeta.fitted.at_times import clock_of, drift_of
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.known_statistics import statistics
from condmeta.inner.log_rms import log_rms_moments
from condmeta.inner.low_rank import LowRankGaussian
from condmeta.inner.posterior_check import check_posterior
from condmeta.inner.squared import SquaredState
from condmeta.learners.count import ConditionalCount
from condmeta.learners.inputs import read_rows
from condmeta.learners.logistic import ConditionalLogistic
from condmeta.learners.ordinal import ConditionalOrdinal
from condmeta.learners.ridge import ConditionalRidge
from condmeta.meta.conformal import predict_scaled
from condmeta.tasks import TaskSet

OTHERS = "the other tasks"  # the source without an error from outside the check
TAIL = distributions.t(10)  # distribution of logs of errors: slightly heavier tails than normal
ENOUGH = 8  # draws above the observed loss; with fewer, p comes from a fitted gamma distribution


class Judged(NamedTuple):
    """Errors of T tasks by name; the name of the judged one; its expected values; p; the source.

    `shared` is the variance of an error common to all z; if it is infinite, their sum is no test.
    """

    errors: dict[str, np.ndarray]
    judged: str
    expected: np.ndarray
    p: np.ndarray
    ground: str
    shared: float = 0.0

    def excess(self, n: np.ndarray) -> float:
        """Return the relative excess of the error over all rows, where tasks have n (T,) rows."""
        power = 2 if self.judged == "rmse" else 1
        found, expected = ((n * e**power).sum() for e in (self.errors[self.judged], self.expected))
        return float((found / max(expected, 1e-300)) ** (1 / power) - 1)


def judge(
    model: Any, tasks: TaskSet, points: TaskSet | None = None, less_offset: bool = False
) -> Judged:
    """Judge the errors of a model on tasks, all with rows.

    `points` are conditioning points of new tasks, for maps of points; `less_offset` says that an
    offset was taken off the labels.
    """
    given: dict[str, Any] = {} if points is None else {"side_info": points}
    learner = model.model if isinstance(model, Calibrated) else model
    if less_offset and "offset" in inspect.signature(learner.predict).parameters:
        given["offset"] = 0
    if isinstance(learner, ConditionalOrdinal):
        return _judge_drawn("log_loss", {}, ordinal_losses(learner, tasks, given), tasks)
    if is_classifier(learner) and len(learner.classes_) > 2 and hasattr(learner, "predict_proba"):
        drawn = class_losses(learner, tasks, given)
        return _judge_drawn("log_loss", {}, drawn, tasks, "the probabilities")
    if is_classifier(learner):
        return _judge_classes(learner, tasks, given)
    residual = tasks.y - learner.predict(tasks, **given)
    square = _mean(residual**2, tasks)
    errors = {"mae": _mean(np.abs(residual), tasks), "rmse": np.sqrt(square)}
    if isinstance(model, Calibrated):
        shared = 1 / max(model.n_tasks_calibrated_.values())
        return Judged(errors, "rmse", *_by_held_out(model, tasks, given), "held-out tasks", shared)
    if getattr(learner, "task_errors_", None) is not None:
        known = learner.n_points(tasks)[tasks.offsets[:-1]]
        at = np.maximum(np.searchsorted(learner.shots_, known, side="right") - 1, 0)
        mean, variance = learner.task_errors_[at].T
        p = _tail_of_logs(errors["rmse"], mean, variance, tasks)
        return Judged(errors, "rmse", np.exp(mean), p, "held-out tasks", 1 / learner.n_tasks_)
    if isinstance(learner, ConditionalCount):
        return _judge_drawn("deviance", errors, count_losses(learner, tasks, given), tasks)
    if isinstance(learner, ConditionalRidge):
        fitted = learner.fitted_
        theta, before = statistics(fitted, tasks.ids, tasks.side)
        if before is not None:
            inner, rows, unit = fitted.inner, fitted.scales.rows(tasks.X), fitted.scales.y_scale
            if drift_of(inner) is not None and tasks.time is not None:
                clock = _mean(clock_of(tasks.time, fitted.info.get("time")), tasks)
                before = inner.aged(before, theta, clock)
            if isinstance(inner, LowRankGaussian):
                inner, rows, theta = (
                    inner.reduced,
                    rows @ inner.factor,
                    np.zeros_like(before.moment),
                )
            slope = np.ones(len(rows))
            if fitted.target is not None:
                target, slope = fitted.target, fitted.target.slope(tasks.y - residual)
                side = given.get("side_info")
                scores = fitted.scores(read_rows(learner, fitted, tasks, None, side))
                residual = target.apply(tasks.y) - np.clip(scores, target.low, target.high)
            new = SquaredState.of(rows, residual / unit, tasks.offsets)
            p, expected = check_posterior(inner, before, theta, new, _room(fitted, before))
            expected = unit * np.sqrt(expected * _mean(slope**2, tasks))
            return Judged(errors, "rmse", expected, p, "the model")
    shift, noise = log_rms_moments(tasks.sizes)  # of the log of an error, due to few rows
    logs = np.log(errors["rmse"] + 1e-300) - shift
    middle = np.median(logs)
    expected, p = np.full(len(tasks), np.exp(middle)), _tail_by_spread(logs - middle, noise)
    return Judged(errors, "rmse", expected, p, OTHERS, np.inf)


def _mean(values: np.ndarray, tasks: TaskSet) -> np.ndarray:
    return np.add.reduceat(values, tasks.offsets[:-1]) / tasks.sizes


def _room(fitted: Fitted, before: SquaredState) -> np.ndarray:
    """Return the factor by which the variances of each task may exceed the learned ones.

    It allows for one and a half standard errors of s2, learned from nu residuals; for k / T, as a
    map of k rows learned from T tasks makes H too small; and for another k / T if a task has no
    points, as its tau is uncertain.
    """
    store, (k, width) = fitted.tasks, fitted.tau.weights.shape
    T, nu = fitted.n_tasks, fitted.n_tasks
    if store is not None:
        nu = max(nu, float(np.maximum(store.sizes - width, 0).sum()))
    return 1 + 1.5 * np.sqrt(2 / nu) + min(k / T, 1.0) * np.where(before.count == 0, 2.0, 1.0)


def _by_held_out(
    model: Calibrated, tasks: TaskSet, given: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the expected error, and p."""
    predicted, scale = predict_scaled(model.model, model.with_std, tasks, **given)
    mean, variance = model.calibration.of_tasks(model.model.n_points(tasks)[tasks.offsets[:-1]])
    found = np.sqrt(_mean(((tasks.y - predicted) / scale) ** 2, tasks))
    expected = np.exp(mean) * np.sqrt(_mean(scale**2, tasks))
    return expected, _tail_of_logs(found, mean, variance, tasks)


def _tail_of_logs(error: np.ndarray, mean: Any, variance: Any, tasks: TaskSet) -> np.ndarray:
    """Return p of root mean square errors (T,), given mean and variance of their logs."""
    shift, noise = log_rms_moments(tasks.sizes)
    found = np.log(error + 1e-150)
    return TAIL.sf((found - shift - mean) / np.sqrt(variance + noise))


def _tail_by_spread(off: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return p of differences to the median; `noise` is a known part of their variance."""
    variance = (1.4826 * np.median(np.abs(off))) ** 2
    variance = np.maximum(variance - np.median(noise), 0.0) + noise
    return TAIL.sf(off / np.sqrt(np.maximum(variance, 1e-24)))


def _judge_classes(learner: Any, tasks: TaskSet, given: dict[str, Any]) -> Judged:
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
    if isinstance(learner, ConditionalLogistic):
        drawn, ground = score_drawer(learner, tasks, given), "the model"
    p, expected = _by_drawing(tasks, positive, loss, drawn)
    return Judged({"log_loss": loss}, "log_loss", expected, p, ground)


def _judge_drawn(
    name: str,
    errors: dict[str, Any],
    losses: DrawnLosses,
    tasks: TaskSet,
    ground: str = "the model",
) -> Judged:
    """Judge the mean losses of tasks by those of labels drawn from the model."""
    rng, found = np.random.default_rng(0), _mean(losses.found, tasks)
    p, expected = np.empty(len(tasks)), np.empty(len(tasks))
    for t in range(len(tasks)):
        drawn = losses.draw(t, slice(tasks.offsets[t], tasks.offsets[t + 1]), rng)
        expected[t], p[t] = drawn.mean(), _tail(drawn, found[t])
    return Judged(errors | {name: found}, name, expected, p, ground)


def _by_drawing(tasks: TaskSet, positive: Any, loss: Any, draw_scores: Any):
    """Return p and the mean of the log loss of labels drawn from the model, for each task."""
    rng = np.random.default_rng(0)
    p, expected = np.empty(len(tasks)), np.empty(len(tasks))
    for t in range(len(tasks)):
        at = slice(tasks.offsets[t], tasks.offsets[t + 1])
        predicted = chance = positive[at, None]
        if draw_scores is not None:
            chance = np.exp(-np.logaddexp(0.0, -draw_scores(t, at, rng)))
        ones = rng.random((len(predicted), DRAWS)) < chance
        losses = -np.log(np.where(ones, predicted, 1 - predicted)).mean(axis=0)
        expected[t], p[t] = losses.mean(), _tail(losses, loss[t])
    return p, expected


def _tail(drawn: np.ndarray, found: float) -> float:
    """Return the probability of `found` or more."""
    above = int((drawn >= found - 1e-12).sum())
    if above >= ENOUGH:
        return (above + 1) / (len(drawn) + 1)
    mean, variance = drawn.mean(), max(drawn.var(), 1e-300)
    tail = float(distributions.gamma.sf(found, mean**2 / variance, scale=variance / mean))
    return min(tail, (ENOUGH + 1) / (len(drawn) + 1))
