r"""Prediction intervals that hold for a task nobody has seen: conformal over tasks.

Each task is held out of the fit once, with its fold, and adapted on m of its points. Its other
points have the scores r = |y - prediction| / scale, where scale is the learner's own standard
deviation, or 1 if it has none. Tasks are exchangeable, but points of one task are alike. So each of
T tasks has the weight 1/(T+1), divided among its scores, and the new task has the remaining weight
at infinity. The interval of coverage c at m points is

    prediction +- q scale,   q = inf {r : (1/T) sum_t F_t(r) >= c (1 + 1/T)},

with F_t the distribution of the scores of task t. With a learner fitted on other tasks this covers
a point of a new task with probability at least c, whatever the data are (Lee, Barber, Willett,
"Distribution-free inference with hierarchical data", 2023). Here every fold is held out in turn,
because a learner needs many tasks; the final learner has seen more tasks than those of the folds.
"""

import inspect
from math import ceil
from typing import Any, NamedTuple, Self

import numpy as np

from condmeta.errors import DataError
from condmeta.inner.log_rms import denoised_moments
from condmeta.tasks import TaskSet

# Stored levels of the distribution of scores: in steps of 0.001, and of 1.4 % in the tail.
LEVELS = np.union1d(np.arange(1, 1001) / 1000, 1 - np.geomspace(1e-6, 1e-2, 700))


class Scores(NamedTuple):
    """Scores of held-out tasks at one number of points, rising, and their weights (sum 1).

    Of many scores only those at `LEVELS` are stored, each for all scores down to the next smaller
    level: quantiles are then exact or slightly too large, and neither memory nor files grow with
    the rows. `of_task` (T,) is the log of each task's root mean squared score, `size` (T,) the
    number of its scores.
    """

    r: np.ndarray
    weight: np.ndarray
    n_tasks: int
    of_task: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, parts: list[tuple[np.ndarray, np.ndarray]]) -> Self:
        """Collect scores (N,), each with the size of its task's query."""
        r, size = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        order = np.argsort(r, kind="stable")
        weight = 1 / size[order]
        T = round(float(weight.sum()))
        task = np.floor(np.cumsum(1 / size) - 0.5 / size).astype(int)  # rows of a task are adjacent
        of_task = 0.5 * np.log(np.bincount(task, r**2 / size, T) + 1e-300)
        count = np.bincount(task, None, T)
        r, weight = r[order], weight / weight.sum()
        if len(order) > len(LEVELS):
            total = np.cumsum(weight)
            ends = np.unique(np.append(np.searchsorted(total, LEVELS[:-1] - 1e-12), len(total) - 1))
            r, weight = r[ends], np.diff(total[ends], prepend=0.0)
        return cls(r, weight, T, of_task, count)

    def reaches(self, coverage: float) -> bool:
        """Return whether there are enough tasks for a finite interval."""
        return self.n_tasks >= tasks_needed(coverage)

    def quantile(self, coverage: float) -> float:
        """Return q."""
        level = coverage * (1 + 1 / self.n_tasks)
        at = np.searchsorted(np.cumsum(self.weight), level - 1e-12)
        return float(self.r[min(at, len(self.r) - 1)])


class Calibration:
    """Scores for each calibrated number of points."""

    def __init__(self, scores: dict[int, Scores]):
        self.scores = scores

    def widths(self, n: np.ndarray, coverage: float) -> np.ndarray:
        """Return q for tasks with n points: that of the largest calibrated number <= n."""
        coverage = check_coverage(coverage)
        shots = [m for m, scores in self.scores.items() if scores.reaches(coverage)]
        if not shots:
            most = max(scores.n_tasks for scores in self.scores.values())
            raise DataError(
                f"A coverage of {coverage:g} needs at least {tasks_needed(coverage)} tasks to "
                f"calibrate on; there are {most}. Use a smaller coverage, or more tasks."
            )
        if (n < shots[0]).any():
            raise DataError(
                f"No interval was calibrated for tasks with fewer than {shots[0]} points. Include "
                "0 in the 'shots' parameter of calibrate."
            )
        q = np.array([self.scores[m].quantile(coverage) for m in shots])
        return q[np.searchsorted(shots, n, side="right") - 1]

    def of_tasks(self, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of the log root mean squared scores of tasks with n points.

        They are those at the largest calibrated number <= n, or at the smallest one, without the
        sampling noise of few scores.
        """
        at = np.maximum(np.searchsorted(list(self.scores), n, side="right") - 1, 0)
        found = [denoised_moments(scores.of_task, scores.size) for scores in self.scores.values()]
        return tuple(np.array(found)[at].T)


def tasks_needed(coverage: float) -> int:
    """Return the fewest tasks T with c (1 + 1/T) <= 1."""
    return ceil(coverage / (1 - coverage) - 1e-9)


def check_coverage(coverage: Any) -> float:
    """Return the coverage as a float in (0, 1), or raise."""
    if isinstance(coverage, float | np.floating) and 0 < coverage < 1:
        return float(coverage)
    raise DataError(
        f"The 'coverage' parameter must be a float in (0, 1), like 0.9. Got {coverage!r} instead."
    )


def gives_std(model: Any) -> bool:
    """Return whether a learner or a model can predict standard deviations."""
    return "return_std" in inspect.signature(model.predict).parameters


def predict_scaled(model: Any, with_std: bool, X: Any, **whose: Any):
    """Return predictions, and the scale of their errors: standard deviations, or ones."""
    if with_std:
        predicted, scale = model.predict(X, return_std=True, **whose)
        return predicted, np.maximum(scale, 1e-300)
    predicted = model.predict(X, **whose)
    return predicted, np.ones(len(predicted))


def task_scores(models: Any, with_std: bool, query: TaskSet) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of adapted tasks (N,), and the number of scores of each one's task."""
    task = np.repeat(np.arange(len(query)), query.sizes)
    predicted, scale = predict_scaled(models, with_std, query.X, task=query.ids[task])
    return np.abs(query.y - predicted) / scale, query.sizes[task].astype(float)
