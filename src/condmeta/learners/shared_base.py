"""Fit the shared model of all tasks that a learner stands on."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier

from condmeta.blas_threads import limit_threads
from condmeta.fitted.shared_model import OutOfTask, fit_shared_model
from condmeta.learners.parameters import jobs_of
from condmeta.tasks import TaskSet

BOOSTING = "boosting"
FEWEST_ROWS = 200  # to see whether trees pay
ROWS_FOR_THREADS = 50_000


def is_base(value: Any) -> bool:
    """Return whether a value can be the base of a learner of numbers that may choose it."""
    if value is None or isinstance(value, str):
        return value in (None, "auto", BOOSTING)
    return hasattr(value, "fit") and hasattr(value, "predict") and not isinstance(value, type)


def shared_model_of(learner: Any, base: Any, tasks: TaskSet, criterion: str) -> OutOfTask:
    """Fit a shared model to tasks, of numbers by this criterion; `base` is a word or a model.

    Trees of few rows grow faster in one thread: threads that wait for each other took 60 s of
    processor time for 2,600 rows, one thread takes 1 s. The trees are the same.
    """
    jobs = jobs_of(learner) if len(tasks.X) >= ROWS_FOR_THREADS else 1
    with limit_threads(jobs):
        classes = is_classifier(learner)
        criterion = "log loss" if classes else criterion
        return fit_shared_model(base, tasks, classes, criterion)
