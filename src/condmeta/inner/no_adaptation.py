"""The inner algorithm of a pooled model: a task's points do not change its weights."""

from typing import NamedTuple

import numpy as np

from condmeta.inner.algorithms import Solved
from condmeta.losses import LOSS
from condmeta.persistence.fields import counts
from condmeta.persistence.registry import construct, register, register_tuple
from condmeta.tasks.weights import task_sums


@register_tuple(fields={"count": counts("T")})
class PointCount(NamedTuple):
    """The state of tasks that points do not change: count (T,), the number of their points."""

    count: np.ndarray


@register(restore=construct, fields={"loss": LOSS})
class NoAdaptation:
    """The inner algorithm that learns nothing from a task: A(theta, Z) = theta."""

    resumable = True

    def __init__(self, loss):
        self.loss = loss

    def solve_tasks(
        self, theta, X, y, offsets, state=None, n_jobs=1, keep_state=True, weight=None
    ) -> Solved:
        """Return theta for every task."""
        count = np.diff(offsets) if weight is None else task_sums(weight, offsets)
        count = count + (0 if state is None else state.count)
        return Solved(theta.copy(), state=PointCount(count))
