"""Cross-validation over tasks: fit to some, adapt to the others, judge their remaining points."""

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier

from condmeta.losses import get_loss
from condmeta.tasks import TaskSet, TaskSplit
from condmeta.tasks.call_input import as_tasks, require_data
from condmeta.tasks.frames import make_frame
from condmeta.tasks.ids import id_columns
from condmeta.tasks.splits import as_split
from condmeta.typing import Frame, Ids, LearnerLike, Matrix, Names, SideInfo, Splitter, Values


def cross_validate_tasks(
    learner: LearnerLike, X: Matrix, y: Values = None, *, task: Ids = None,
    side_info: SideInfo = None, side_key: Names = None, split: Splitter | int | None = None,
    error: str | Callable[..., Any] | None = None, n_jobs: int | None = None,
) -> Frame:  # fmt: skip
    """Judge a learner on held-out tasks, after it has adapted to some points of each.

    Parameters
    ----------
    learner : estimator with `fit(TaskSet)` and `adapt(TaskSet)`
    X, y, task, side_info, side_key
        As for `fit`, or a `TaskSet` alone.
    split : TaskSplit or int, default TaskSplit(5, random_state=0)
        How tasks are held out, and their points cut into support and query.
    error : name of a loss, or callable of (prediction, y), optional
        The error, averaged over the query points of a task. By default the absolute error, or of a
        classifier the share of labels that it gets wrong.
    n_jobs : int, optional
        Number of folds to run at once.

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
    require_data(X, y, "cross_validate_tasks")
    tasks = as_tasks(X, y, task, side_info, side_key)
    split = TaskSplit(random_state=0) if split is None else as_split(split)
    if error is None:
        error = np.not_equal if is_classifier(learner) else "absolute"
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


def judge_fold(learner: Any, fold: Any, value: Callable[..., Any]) -> dict[str, Any]:
    """Return the errors of the held-out tasks of one fold."""
    train, support, query = fold
    total = summed_errors(learner.fit(train).adapt(support), query, value)
    sizes = {"n_support": support.sizes, "n_query": query.sizes}
    return {"task": query.ids.tolist(), **sizes, "error": total / query.sizes}


def summed_errors(models: Any, query: TaskSet, value: Callable[..., Any]) -> np.ndarray:
    """Return the sum over the query points of each task (T,) of value(prediction, y)."""
    task = np.repeat(np.arange(len(query)), query.sizes)
    predicted = models.predict(query.X, task=query.ids[task])
    return np.bincount(task, value(predicted, query.y), len(query))
