"""What learners by meta-steps share: divergence said in words, and learning task by task."""

from __future__ import annotations

import numpy as np

from condmeta.errors import DataError, DivergenceError
from condmeta.estimators.base import Prepared
from condmeta.estimators.serving import atomic
from condmeta.estimators.task_store import naming_task
from condmeta.inner.algorithms import Online, diverged
from condmeta.inner.online import HUGE, loss_is_unbounded
from condmeta.inner.scores import row_scores
from condmeta.tasks.ids import show_id


class MetaSteps:
    """Learning by `_advance(state, data)`: tasks in turn, from a state or, with None, from zero."""

    def _meta_step(self) -> float:
        return float(self.meta_step)

    def _learn(self, data: Prepared) -> None:
        self._advance(None, data)
        if not self.keep_tasks:
            self._seen = set(data.ids.tolist())

    def _refuse_divergence(self, bad: int, data: Prepared, before, after) -> None:
        """Say so when the pass failed at the task `bad` (-1: none), or the map left all scales.

        `before` and `after` give theta (T, width) of the tasks at the last iterate, on demand.
        """
        if bad >= 0 and isinstance(self._inner, Online):
            with naming_task(data.ids):
                raise diverged(bad, self._inner.lam)
        if bad >= 0 or self._is_huge(before, after, data):
            raise DivergenceError(
                f"The meta-steps diverge at meta_step={self._meta_step():g}. Use a smaller "
                "meta_step, a loss with bounded slopes, or scale='standard'."
            )

    def _is_huge(self, before, after, data: Prepared) -> bool:
        """Tell whether the map left the scale of the targets, which bounded slopes cannot do.

        The scale is also that of the map before: the tasks of one call may have targets of zero.
        """
        if not loss_is_unbounded(getattr(self._inner, "loss", None)):
            return False
        task = np.repeat(np.arange(len(data.ids)), np.diff(data.offsets))
        reach = []
        with np.errstate(over="ignore", invalid="ignore"):
            for theta in (before, after):
                z = row_scores(data.X, theta(), task, 1)
                reach.append(np.abs(z).max(initial=0.0))
        return not reach[1] <= HUGE * max(np.abs(data.y).max(initial=0.0), reach[0])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # One pass of online steps at a fixed lam learns little from one task, and says so.
        if tags.regressor_tags is not None:
            tags.regressor_tags.poor_score = True
        if tags.classifier_tags is not None:
            tags.classifier_tags.poor_score = True
        return tags


class Streamed(MetaSteps):
    """Meta-steps task by task."""

    @atomic
    def partial_fit(self, X, y=None, *, task=None, side_info=None, classes=None):
        """Go on learning the map with further tasks, each seen once and whole.

        The first call freezes scales and encodings. Only the map is learned: models of tasks that
        an earlier `fit` kept stay as they are, and the new tasks get none (see `update`).
        `task=None` is one more nameless task. Equal to one `fit` on all tasks, bit for bit in the
        map and `theta_for`, for scale "none" or "rows" and maps without fitted state.

        Parameters
        ----------
        X, y, task, side_info : as in `fit`
        classes : (2,) array, optional
            For classifiers, both classes, if the first call may not hold them.

        Returns
        -------
        self
        """
        first = not self.__sklearn_is_fitted__()
        if first:
            self._start()
            self._classes_given(classes)
        tasks, points = self._read(X, y, task, side_info, reset=first)
        named = [] if self._is_nameless(X, task) else tasks.ids[tasks.sizes > 0].tolist()
        seen = self._seen if "_seen" in self.__dict__ else self._seen_in_fit()
        again = [known for known in named if known in seen]
        if again:
            raise DataError(
                f"Task {show_id(again[0])} was seen before ({len(again)} such tasks in this call). "
                "partial_fit takes each task once and whole; to add points to a known task use "
                "update."
            )
        if first:
            self._freeze(tasks, points)
            self._store, self.n_tasks_ = None, 0
        tasks = tasks.subset(np.flatnonzero(tasks.sizes > 0))
        self._advance(None if first else self._past(), self._prepare(tasks, points))
        self.n_tasks_ += len(tasks)
        # Last, and in place: a copy for each call would make a stream quadratic.
        seen.update(named)
        self._seen = seen
        return self

    def _past(self):
        """Return the state that earlier calls left."""
        return self._state

    def _seen_in_fit(self) -> set:
        store = self.__dict__.get("_store")
        return set() if store is None else set(store.ids[store.sizes > 0].tolist())

    def _classes_given(self, classes) -> None:
        """Regressors have no classes."""
        if classes is not None:
            raise DataError(f"{type(self).__name__} has no classes: leave 'classes' out.")
