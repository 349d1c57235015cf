"""condmeta's own learners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from condmeta.meta.conformal import gives_std
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
        return _in_order(query, self._adapted(support).predict(query))

    def predict_std(self, support: TaskSet, query: TaskSet):
        """Return predictions (N,) and their standard deviations; None if the learner has none."""
        if not gives_std(self.model):
            return self.predict(support, query), None
        found = self._adapted(support).predict(query, return_std=True)
        return tuple(_in_order(query, values) for values in found)

    def _adapted(self, support: TaskSet):
        # Without points a new task is predicted from its side information.
        return self.model.adapt(support) if len(support.X) else self.model


class Classifier(Learner):
    """A classifier of condmeta; it predicts the probability of the class 1."""

    def predict(self, support: TaskSet, query: TaskSet) -> np.ndarray:
        """Return P(y = 1) of the query points, (N,)."""
        return _in_order(query, self._adapted(support).predict_proba(query)[:, 1])


def _in_order(query: TaskSet, values: np.ndarray) -> np.ndarray:
    """Return values in the order of the rows of `query`, not of the table that it came from."""
    out = np.empty(len(query.X))
    out[query.restore_order(np.arange(len(out)))] = values
    return out
