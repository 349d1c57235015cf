"""Rows that come later, weighed by what is known of their tasks, if noise has heavy tails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from condmeta.fitted.known_statistics import statistics
from condmeta.inner.posterior import Gaussian
from condmeta.inner.student import StudentGaussian
from condmeta.tasks import TaskSet

if TYPE_CHECKING:
    from condmeta.fitted.fitted import Fitted

STUDENT = "student"
ROBUST = "robust"  # Student's noise where it pays on held-out tasks
TAILS = STUDENT, ROBUST


def with_inner(fitted: Fitted, inner: Gaussian) -> Fitted:
    """Return the value with another inner algorithm."""
    return fitted._replace(predictor=fitted.predictor._replace(inner=inner))


def with_tails(fitted: Fitted, nu: float) -> Fitted:
    """Return a value that was learned from weighed rows, with Student's noise.

    An infinite nu is normal noise, and rows have no weights.
    """
    fitted = fitted._replace(info=fitted.info | {"noise_": STUDENT, "nu_": nu})
    if nu == np.inf:
        return fitted
    return with_inner(fitted, StudentGaussian.around(fitted.inner, nu))


def weighed(fitted: Fitted, tasks: TaskSet, points: TaskSet | None, n_jobs: int = 1) -> TaskSet:
    """Return tasks with the weights that their rows have beside the known rows of the tasks."""
    inner = fitted.inner
    if not isinstance(inner, StudentGaussian):
        return tasks
    theta, stats = statistics(fitted, tasks.ids, tasks.side, points)
    if stats is None:
        return tasks  # nothing can be added to them
    data = fitted.prepare(fitted.past_shared_model(tasks), points)
    store = fitted.tasks
    new = np.ones(len(tasks), bool) if store is None else store.positions(tasks.ids.tolist()) < 0
    theta[new] = fitted.tau.theta(data.Phi[new])
    return tasks.with_weight(inner.weighed(theta, data.points, stats, n_jobs).weight)
