"""Learners that need the rows of all tasks: take in further tasks, learn at the first use."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.against_rest import AgainstRest
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.kept_rows import Gathered, KeptRows
from condmeta.fitted.prepared import transformed_rows, user_points
from condmeta.learners.inputs import is_nameless, n_rows, read_tasks, read_training
from condmeta.learners.learn import begin
from condmeta.learners.parameters import check_learner
from condmeta.meta.task_statistics import refuse_known
from condmeta.tasks import TaskSet
from condmeta.typing import Ids, Matrix, SideInfo, Values


def gather_more(
    learner: Any, X: Matrix, y: Values, task: Ids, side_info: SideInfo, weight: Any,
    classes: Any = None,
) -> Fitted:  # fmt: skip
    """Return a value with the rows of further tasks; tau is None until it is needed."""
    refuse_base(learner)
    before = learner._model
    if before is None:
        check_learner(learner)
        given = read_training(learner, X, y, task, side_info, weight, classes)
        start = begin(learner, given, validate=True)
        _refuse_points(start)
        return start._replace(state=Gathered(given.tasks))
    before = unlearned(before)
    known = before.state.tasks.ids
    task = free_id(learner, known, X, task)
    tasks, _ = read_tasks(learner, before, X, y, task, side_info, weight)
    refuse_known(known, tasks.ids, "Use update to add points to tasks that are known.")
    transformed_rows(tasks, before.scales)  # a row that spoils the next fit is refused now
    return before._replace(state=before.state.join(tasks))


def free_id(learner: Any, known: np.ndarray, X: Matrix, task: Ids) -> Ids:
    """Return the ids of rows; one more task without an id has a number that is free."""
    if not is_nameless(learner, X, task):
        return task
    taken = set(known.tolist())
    return np.full(n_rows(X), next(i for i in count(len(taken)) if i not in taken))


def refuse_base(learner: Any) -> None:
    """Raise if a learner has a shared model below its tasks."""
    if getattr(learner, "base", None) is not None:
        raise DataError("A base needs the rows of all tasks at once: use fit, or base=None.")


def unlearned(fitted: Fitted | AgainstRest) -> Fitted:
    """Return a value with the rows of its tasks in the user's units, which has learned nothing.

    Rows of scale="rows" stay of length 1.
    """
    if isinstance(fitted.state, Gathered):
        return fitted
    first = fitted.first if isinstance(fitted, AgainstRest) else fitted
    _refuse_points(first)
    kept, store = first.state, first.tasks
    if not isinstance(kept, KeptRows) or store is None:
        raise DataError(
            "To learn from further tasks the rows of the known ones are needed, which this model "
            "does not keep: fit with keep_tasks=True, and save with tasks=True and resume=True."
        )
    if kept.table is None and first.reader.columns:
        raise DataError(
            "The file of this model was written by an earlier version and does not hold the side "
            "table, which is needed to learn again: fit with all tasks."
        )
    X, y, offsets, weight = user_points(kept.points, first.scales)
    if isinstance(fitted, AgainstRest):
        y = np.argmax([part.state.y for part in fitted.parts], axis=0).astype(float)
    columns = first.columns
    tasks = TaskSet.trusted(
        X, y, offsets, store.ids, kept.table, weight,
        feature_names=columns.names, task_name=columns.task_name, backend=columns.backend,
    )  # fmt: skip
    predictor = first.predictor._replace(inner=None, classes=fitted.predictor.classes)
    info = {name: first.info[name] for name in ("constant", "exposure") if name in first.info}
    return first._replace(
        predictor=predictor, tau=None, tasks=None, info=info, state=Gathered(tasks)
    )


def _refuse_points(fitted: Fitted) -> None:
    if fitted.reader.reads_points:
        raise DataError(
            "Maps of points read the scales of all rows, so that further tasks would change the "
            "features of the known ones: fit again with all rows."
        )
