"""Learners that need the rows of all tasks: take in further tasks, learn at the first use."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.against_rest import AgainstRest
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.kept_rows import Gathered, KeptRows
from condmeta.fitted.prepared import transformed_rows, user_points
from condmeta.fitted.scales import FARTHEST, Scales
from condmeta.fitted.splines import Splines
from condmeta.learners.call_columns import n_rows
from condmeta.learners.checks import warn_far_values
from condmeta.learners.inputs import is_nameless, read_tasks, read_training
from condmeta.learners.learn import begin
from condmeta.learners.parameters import check_learner
from condmeta.meta.task_statistics import TaskStatistics, refuse_known
from condmeta.tasks import TaskSet
from condmeta.tasks.weights import masses
from condmeta.typing import Ids, Matrix, SideInfo, Values


def gather_more(
    learner: Any, before: Fitted | None, X: Matrix, y: Values, task: Ids, side_info: SideInfo,
    weight: Any, classes: Any = None,
) -> Fitted:  # fmt: skip
    """Return a value with the rows of further tasks; tau is None until it is needed."""
    refuse_base(learner)
    if before is None:
        check_learner(learner)
        given = read_training(learner, X, y, task, side_info, weight, classes)
        start = begin(learner, given, validate=True)
        _refuse_points(start)
        warn_far_values(learner, given.tasks)
        return start._replace(state=Gathered(given.tasks))
    before = unlearned(before)
    known = before.state.tasks.ids
    task = free_id(learner, known, X, task)
    tasks, _ = read_tasks(learner, before, X, y, task, side_info, weight)
    refuse_known(known, tasks.ids, "Use update to add points to tasks that are known.")
    refuse_far(before, tasks)
    return before._replace(state=before.state.join(tasks))


def free_id(learner: Any, known: np.ndarray, X: Matrix, task: Ids) -> Ids:
    """Return the ids of rows; one more task without an id has a number that is free."""
    if not is_nameless(learner, X, task):
        return task
    taken = set(known.tolist())
    return np.full(n_rows(X), next(i for i in count(len(taken)) if i not in taken))


def refuse_far(before: Fitted, tasks: TaskSet) -> None:
    """Raise if a further row is so far from all earlier ones that their digits would be lost."""
    transformed_rows(tasks, _scales_so_far(before), FARTHEST)


def _scales_so_far(before: Fitted) -> Scales:
    """Return the scales with the centre and the size of all rows so far."""
    state, scales = before.state, before.scales
    if before.tau is not None:  # of all rows
        return scales
    if isinstance(state, TaskStatistics):
        leaves = state.leaves(np.flatnonzero(state.whole.count > 0))
        overall = Scales.of_moments(*state.whole.overall(leaves), scales)
        return replace(scales.moved_to(overall), constant=overall.constant)
    if isinstance(state, Gathered):
        return scales.around(scales.transformed(state.tasks.X), masses(state.tasks.weight))
    rows = user_points(state.whole, scales)
    return scales.around(rows.X, masses(rows.weight))


def refuse_base(learner: Any) -> None:
    """Raise if a learner has a shared model below its tasks."""
    if getattr(learner, "base", None) is not None:
        raise DataError("base= needs the rows of all tasks at once: call fit, or use base=None.")


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
            "To learn from further tasks, a model needs the rows of its known tasks, and this "
            "model does not keep them: fit with keep_tasks=True, and save with tasks=True and "
            "resume=True."
        )
    if kept.table is None and first.reader.columns:
        raise DataError(
            "The file of this model was written by an earlier version and does not hold the side "
            "table, which is needed to learn again: fit with all tasks."
        )
    X, y, offsets, weight = user_points(kept.points, first.scales)
    X = _as_given(X, first.scales)
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


def _as_given(X: Matrix, scales: Scales) -> Matrix:
    """Return transformed rows as they were given: splines keep the columns of X and add others."""
    if scales.transformer is None:
        return X
    if isinstance(scales.transformer, Splines) and scales.scale != "rows":
        return np.ascontiguousarray(X[:, : len(scales.transformer.knots)])
    raise DataError(
        "The model keeps only the transformed rows (x_transform), so it cannot learn from "
        "further tasks: fit again with all tasks, or with x_transform=None."
    )


def _refuse_points(fitted: Fitted) -> None:
    if fitted.reader.reads_points:
        raise DataError(
            "Feature maps of points depend on the scales of all rows, so further tasks would "
            "change the features of the known tasks: fit again with all rows."
        )
