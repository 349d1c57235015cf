"""Learners whose heads may stand on a base model."""

from __future__ import annotations

from sklearn.base import is_classifier
from threadpoolctl import threadpool_limits

from condmeta.estimators.base_model import SharedBase, fit_base, heads_see
from condmeta.estimators.parameters import jobs_of
from condmeta.tasks import TaskSet


class OnBase:
    """A learner with a parameter `base`, for the heads to stand on."""

    def _fit_tasks(self, tasks: TaskSet, points: TaskSet | None) -> None:
        shared = self.__dict__.pop("_shared_base", None)  # several learners on one base
        if self.base is not None and shared is None:
            shared = base_for(self, tasks)
        if shared is None:
            return super()._fit_tasks(tasks, points)
        self._base = shared.base
        seen = heads_see(tasks.X, tasks.y, shared.unseen, shared.base.classes)
        super()._fit_tasks(tasks.with_rows(*seen), points)
        if self._store is not None:
            self._store.sides = self._base.sides(self._store.ids, tasks.side)


def base_for(learner, tasks: TaskSet) -> SharedBase:
    """Fit the base that a learner names."""
    with threadpool_limits(jobs_of(learner)):
        return fit_base(learner.base, tasks, is_classifier(learner))
