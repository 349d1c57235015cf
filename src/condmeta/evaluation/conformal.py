r"""Prediction intervals that hold for a task nobody has seen: conformal over tasks.

Each task is left out of the fit in turn with its fold and adapted to on m of its points; those that
are left have the scores r = |y - prediction| / scale, where scale is the learner's own standard
deviation, or 1 if it has none. Tasks are exchangeable, points of one task are like each other: so
each of T tasks has the weight 1/(T+1), shared among its scores, and the new task has the last one
at infinity. The interval of coverage c at m points is

    prediction +- q scale,   q = inf {r : (1/T) sum_t F_t(r) >= c (1 + 1/T)},

F_t the distribution of the scores of task t. With a learner fitted on other tasks this covers a
point of a new task with probability at least c, whatever the data are (Lee, Barber, Willett,
"Distribution-free inference with hierarchical data", 2023). Here folds take turns, as a learner
needs all the tasks it can get, and the final one has seen more tasks than those of the folds.
"""

from __future__ import annotations

import inspect
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.inner.log_errors import of_many_rows
from condmeta.tasks import TaskSet

# Levels of the distribution of scores that are kept: a step of 0.001, and of 1.4 % in the tail.
LEVELS = np.union1d(np.arange(1, 1001) / 1000, 1 - np.geomspace(1e-6, 1e-2, 700))


class Scores(NamedTuple):
    """Scores of held-out tasks at one number of points, rising, and their weights (sum 1).

    Many scores are kept at `LEVELS` only, each for those up to the next smaller level: quantiles
    are then exact or slightly too large, and neither memory nor a file grows with the rows.
    `of_task` (T,) is the log of each task's root mean squared score, `size` (T,) how many it has.
    """

    r: np.ndarray
    weight: np.ndarray
    n_tasks: int
    of_task: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, parts: list[tuple[np.ndarray, np.ndarray]]) -> Scores:
        """Collect scores (N,), each with the size of its task's query."""
        r, size = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        order = np.argsort(r, kind="stable")
        weight = 1 / size[order]
        T = round(float(weight.sum()))
        task = np.floor(np.cumsum(1 / size) - 0.5 / size).astype(int)  # tasks stand in turn
        of_task = 0.5 * np.log(np.bincount(task, r**2 / size, T) + 1e-300)
        count = np.bincount(task, None, T)
        scores = cls(r[order], weight / weight.sum(), T, of_task, count)
        return scores if len(order) <= len(LEVELS) else scores.thinned()

    def thinned(self) -> Scores:
        """Return the scores at `LEVELS`, which stand for the smaller ones up to the level below."""
        total = np.cumsum(self.weight)
        ends = np.unique(np.append(np.searchsorted(total, LEVELS[:-1] - 1e-12), len(total) - 1))
        return self._replace(r=self.r[ends], weight=np.diff(total[ends], prepend=0.0))

    def reaches(self, coverage: float) -> bool:
        """Tell whether there are tasks enough for a finite interval."""
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
        """Return q of predictions with n points behind them: of the next smaller number."""
        coverage = check_coverage(coverage)
        shots = [m for m, scores in self.scores.items() if scores.reaches(coverage)]
        if not shots:
            raise DataError(too_few(max(s.n_tasks for s in self.scores.values()), coverage))
        if (n < shots[0]).any():
            raise DataError(
                f"No interval was calibrated for tasks with fewer than {shots[0]} points: let the "
                "shots of calibrate begin at 0."
            )
        q = np.array([self.scores[m].quantile(coverage) for m in shots])
        return q[np.searchsorted(shots, n, side="right") - 1]

    def of_tasks(self, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of log root mean squared scores of tasks with n points behind.

        Of the next smaller number that was calibrated, or the smallest one, for tasks with very
        many scores.
        """
        at = np.maximum(np.searchsorted(list(self.scores), n, side="right") - 1, 0)
        found = [of_many_rows(scores.of_task, scores.size) for scores in self.scores.values()]
        mean, variance = np.array(found)[at].T
        return mean, variance


def tasks_needed(coverage: float) -> int:
    """Return the fewest tasks T with c (1 + 1/T) <= 1."""
    return ceil(coverage / (1 - coverage) - 1e-9)


def too_few(n_tasks: int, coverage: float) -> str:
    """Say how many tasks a coverage takes."""
    return (
        f"A coverage of {coverage:g} takes at least {tasks_needed(coverage)} tasks to calibrate "
        f"on; there are {n_tasks}. Ask for less, or bring more tasks."
    )


def check_coverage(coverage: Any) -> float:
    """Return the coverage as a float in (0, 1), or raise."""
    usable = isinstance(coverage, float | np.floating) and 0 < coverage < 1
    if not usable:
        raise DataError(
            f"The 'coverage' parameter must be a float in (0, 1), as 0.9. Got {coverage!r} instead."
        )
    return float(coverage)


def gives_std(model: Any) -> bool:
    """Tell whether a learner or a model knows its own standard deviations."""
    return "return_std" in inspect.signature(model.predict).parameters


def predict_scaled(model: Any, with_std: bool, X: Any, **whose: Any):
    """Return predictions, and the scale of their errors: standard deviations, or ones."""
    if with_std:
        predicted, scale = model.predict(X, return_std=True, **whose)
        return predicted, np.maximum(scale, 1e-300)
    predicted = model.predict(X, **whose)
    return predicted, np.ones(len(predicted))


def task_scores(models: Any, with_std: bool, query: TaskSet) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of adapted tasks (N,), and how many scores their tasks have."""
    task = np.repeat(np.arange(len(query)), query.sizes)
    predicted, scale = predict_scaled(models, with_std, query.X, task=query.ids[task])
    return np.abs(query.y - predicted) / scale, query.sizes[task].astype(float)
