"""condmeta's own learners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from condmeta.tasks import TaskSet


class Learner:
    """A learner of condmeta with its default settings: `adapt` on the support, then `predict`."""

    def __init__(self, make: Callable[[], Any]):
        self.model = make()

    def fit(self, train: TaskSet) -> None:
        """Learn from the training tasks."""
        self.model.fit(train)

    def predict(self, support: TaskSet, query: TaskSet) -> np.ndarray:
        """Predict the query points, (N,)."""
        # Without points a new task is predicted from its side information.
        model = self.model.adapt(support) if len(support.X) else self.model
        out = np.empty(len(query.X))
        out[query.restore_order(np.arange(len(out)))] = model.predict(query)
        return out
