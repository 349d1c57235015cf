"""Learners that go through tasks one after another, and may go on with further ones."""

from __future__ import annotations

from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import is_classifier

from condmeta.errors import DataError
from condmeta.feature_maps import ComposedMap
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.seen_ids import SeenIds
from condmeta.fitted.user_rows import no_weights
from condmeta.learners.checks import warn_far_values
from condmeta.learners.inputs import is_nameless, read_tasks, read_training
from condmeta.learners.labels import two_classes
from condmeta.learners.learn import begin, training, with_learned
from condmeta.learners.learner import Learner
from condmeta.learners.parameters import check_learner
from condmeta.learners.training import Training
from condmeta.learners.writing import writing
from condmeta.tasks.messages import show_id
from condmeta.typing import Ids, Labels, Matrix, SideInfo, Values


class StreamLearner(Learner):
    """A learner without weights of rows; `_learn(data, before)` can go on from an earlier value.

    `before` is that value, or None; it is not changed.
    """

    _weighs = False
    _streams = True

    def fit(
        self,
        X: Matrix,
        y: Values = None,
        *,
        task: Ids = None,
        side_info: SideInfo = None,
        **unknown: Any,
    ) -> Self:
        """Learn the map from many tasks, then every task's model from the final map.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The points of all tasks, rows in any order; tasks in the order of their first row.
        y : (N,) array
        task : (N,) ids, optional
            The task of each row: strings, integers, dates, tuples; the name of a column of X; None
            means one task.
        side_info : table keyed by task id, optional
            One raw row for each task (see `TaskTable`), or a `TaskSet` of conditioning points. Ids
            without rows in X are kept as tasks without points.

        Returns
        -------
        self
        """
        refuse_unknown(f"{type(self).__name__}.fit", unknown)
        return super().fit(X, y, task=task, side_info=side_info)


Stream = TypeVar("Stream", bound=StreamLearner)


def partial_fit(
    self: Stream,
    X: Matrix,
    y: Values = None,
    *,
    task: Ids = None,
    side_info: SideInfo = None,
    classes: Labels = None,
    **unknown: Any,
) -> Stream:
    """Go on learning the map with further tasks, each seen once and whole.

    The first call freezes scales and encodings. Only the map is learned: models of tasks that
    an earlier `fit` kept stay as they are, and the new tasks get none (see `update`).
    `task=None` is one more task without an id. Equal to one `fit` on all tasks, bit for bit in the
    map and `theta_for`, where the first call has nothing to freeze: scale "none" or "rows",
    maps without fitted state, and steps that do not come from the data.

    Parameters
    ----------
    X : (N, d) array, DataFrame or TaskSet
        The points of all tasks, with rows in any order. A TaskSet is passed alone, because it holds
        y and the task ids.
    y : (N,) array
        The target of each row.
    task : (N,) ids, optional
        The task of each row: strings, integers, dates, tuples; the name of a column of X; None
        means one task.
    side_info : table keyed by task id, optional
        One raw row for each task (see `TaskTable`), or a `TaskSet` of conditioning points. Ids
        without rows in X are kept as tasks without points.
    classes : (2,) array, optional
        For classifiers, both classes, if the first call may not hold them.

    Returns
    -------
    self
    """
    refuse_unknown(f"{type(self).__name__}.partial_fit", unknown)
    with writing(self):
        self._model = go_on(self, self._model, X, y, task, side_info, classes)
    return self


def refuse_unknown(method: str, unknown: dict[str, Any]) -> None:
    """Raise for an unknown argument, or for weights given to a learner without any."""
    others = [name for name in unknown if name != "sample_weight"]
    if others:
        raise TypeError(f"{method} got an unexpected keyword argument {others[0]!r}.")
    if unknown.get("sample_weight") is not None:
        raise no_weights(method.partition(".")[0])


def go_on(
    learner: StreamLearner, before: Fitted | None, X: Matrix, y: Values, task: Ids,
    side_info: SideInfo, classes: Any,
) -> Fitted:  # fmt: skip
    """Return the value of a stream after further tasks."""
    if before is None:
        check_learner(learner)
        if classes is not None and not is_classifier(learner):
            raise DataError(f"{type(learner).__name__} has no classes: leave 'classes' out.")
        classes = None if classes is None else two_classes(np.asarray(classes))
        given = read_training(learner, X, y, task, side_info, classes=classes)
        start, tasks, points = begin(learner, given), given.tasks, given.points
        warn_far_values(learner, tasks)
    else:
        tasks, points = read_tasks(learner, before, X, y, task, side_info)
        start = before
    filled = tasks.sizes > 0
    named = [] if is_nameless(learner, X, task) else tasks.ids[filled].tolist()
    seen = _seen(before)
    again = [known for known in named if known in seen]
    if again:
        raise DataError(
            f"Task {show_id(again[0])} was seen before ({len(again)} such tasks in this call). "
            "partial_fit takes each task once and whole; to add points to a known task use update."
        )
    tasks = tasks.subset(np.flatnonzero(filled))
    if before is None:
        data = training(start, tasks, points)
    else:
        data = further(before, tasks, points)
        if isinstance(before.reader.map, ComposedMap):
            fmap = before.reader.map.with_ranges_of(tasks.side)
            start = before._replace(reader=before.reader._replace(map=fmap))
    fitted = with_learned(start, learner._learn(data, before))
    return fitted._replace(n_tasks=start.n_tasks + len(tasks), seen=seen.add(named))


def further(before: Fitted, tasks: Any, points: Any):
    """Return further tasks as a stream learns from them: gaps take the mean Phi so far."""
    data = before.prepare(tasks, points)
    return Training(tasks, points, data.ids, data.points, data.Phi, before.scales)


def _seen(before: Fitted | None) -> SeenIds:
    """Return the ids of the tasks that the map was learned from."""
    if before is None:
        return SeenIds()
    if before.seen is not None:
        return before.seen
    store = before.tasks
    return SeenIds(() if store is None else store.ids[store.sizes > 0].tolist())
