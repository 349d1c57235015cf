"""Cross-validation over tasks: fit on some, adapt to the others, judge their remaining points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from condmeta.losses import get_loss
from condmeta.tasks import TaskSplit
from condmeta.tasks.frames import make_frame
from condmeta.tasks.held_out import as_tasks
from condmeta.tasks.ids import id_columns
from condmeta.tasks.task_split import as_split


def cross_validate_tasks(
    learner: Any,
    X: Any,
    y: Any = None,
    *,
    task: Any = None,
    side_info: Any = None,
    side_key: Any = None,
    split: Any = None,
    error: str | Callable = "absolute",
    n_jobs: int | None = None,
):
    """Judge a learner on held-out tasks, each adapted to on some of its points.

    Parameters
    ----------
    learner : estimator with `fit(TaskSet)` and `adapt(TaskSet)`
    X, y, task, side_info, side_key
        As for `fit`, or a `TaskSet` alone.
    split : TaskSplit or int, default TaskSplit(5, random_state=0)
        How tasks are held out, and their points cut into support and query.
    error : name of a loss, or callable of (prediction, y)
        What is averaged over the query points of a task.
    n_jobs : int, optional
        Folds to run at once.

    Returns
    -------
    table with a row for each held-out task: fold, task, n_support, n_query, error

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 2)), np.repeat(np.arange(10), 6)
    >>> table = cm.cross_validate_tasks(cm.PooledRegressor(lam=0.01), X, X @ [1.0, 2.0], task=task)
    >>> len(table), bool(np.mean(table["error"]) < 0.1)
    (10, True)
    """
    tasks = as_tasks(X, y, task, side_info, side_key)
    split = TaskSplit(random_state=0) if split is None else as_split(split)
    value = error if callable(error) else get_loss(error).value
    parts = Parallel(n_jobs)(
        delayed(judge_fold)(clone(learner), fold, value) for fold in split.split(tasks)
    )
    ids = [task_id for part in parts for task_id in part["task"]]
    columns = {"fold": np.repeat(np.arange(len(parts)), [len(part["task"]) for part in parts])}
    columns |= id_columns(ids, tasks.task_name)
    for name in ("n_support", "n_query", "error"):
        columns[name] = np.concatenate([part[name] for part in parts])
    return make_frame(columns, tasks.backend)


def judge_fold(learner, fold, value: Callable) -> dict[str, Any]:
    """Return the errors of the held-out tasks of one fold."""
    train, support, query = fold
    models = learner.fit(train).adapt(support)
    task = np.repeat(np.arange(len(query)), query.sizes)
    predicted = models.predict(query.X, task=query.ids[task])
    errors = np.bincount(task, value(predicted, query.y), len(query)) / query.sizes
    return {
        "task": query.ids.tolist(),
        "n_support": support.sizes,
        "n_query": query.sizes,
        "error": errors,
    }
