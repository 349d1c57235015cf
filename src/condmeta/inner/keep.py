"""The inner algorithm of a pooled model: a task's points change nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.inner.algorithms import Solved
from condmeta.tasks.weights import task_sums


class Counted(NamedTuple):
    """The state of a model that its points do not change: how many they are."""

    count: np.ndarray


class Keep:
    """The inner algorithm that learns nothing from a task: A(theta, Z) = theta."""

    resumable = True
    learns = False

    def __init__(self, loss):
        self.loss = loss

    def solve_tasks(
        self, theta, X, y, offsets, state=None, n_jobs=1, keep_state=True, weight=None
    ) -> Solved:
        """Return theta for every task."""
        count = np.diff(offsets) if weight is None else task_sums(weight, offsets)
        count = count + (0 if state is None else state.count)
        return Solved(theta.copy(), state=Counted(count))
