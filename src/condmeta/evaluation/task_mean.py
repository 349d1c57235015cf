"""The plain way to make boosting know a task: add the shrunken mean of the task's residuals."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from condmeta.tasks import TaskSet
from condmeta.tasks.ids import factorize, positions


class TaskMean(RegressorMixin, BaseEstimator):
    """Predict the mean of a task's targets, shrunk towards that of all tasks.

    With m points of mean r the prediction is mu + m (r - mu) / (m + sigma^2 / eta^2), where sigma^2
    is the variance within tasks and eta^2 that between them, by moments.
    """

    def fit(self, tasks: TaskSet) -> TaskMean:
        """Learn the mean and the two variances."""
        tasks = tasks.subset(np.flatnonzero(tasks.sizes > 0))
        sizes, means = tasks.sizes, _means(tasks)
        left = tasks.y - np.repeat(means, sizes)
        within = left @ left / max(len(left) - len(sizes), 1)
        self.mean_ = float(means.mean())
        between = means.var(ddof=1) - within * (1 / sizes).mean() if len(means) > 1 else 0.0
        self.ratio_ = within / between if between > 0 else np.inf
        return self

    def adapt(self, support: TaskSet) -> TaskMeans:
        """Return the shrunken means of tasks."""
        sizes = support.sizes
        shrunk = sizes / (sizes + self.ratio_) * (_means(support) - self.mean_)
        return TaskMeans(support.ids, self.mean_ + shrunk)


class TaskMeans:
    """One number a task."""

    def __init__(self, ids: np.ndarray, means: np.ndarray):
        self.ids, self.means = ids, means

    def predict(self, X, *, task) -> np.ndarray:
        """Return the number of each row's task (N,)."""
        codes, ids = factorize(task)
        return self.means[positions(self.ids, ids)][codes]


def _means(tasks: TaskSet) -> np.ndarray:
    task = np.repeat(np.arange(len(tasks)), tasks.sizes)
    return np.bincount(task, tasks.y, len(tasks)) / np.maximum(tasks.sizes, 1)
