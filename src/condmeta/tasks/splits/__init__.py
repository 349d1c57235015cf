"""Every way to hold out tasks, or points of tasks: the one home of splits.

`tasks` divides sets of tasks, `points` divides the points within tasks into support (to adapt on)
and query (to judge by), and `folds` does both for a `TaskSet`. `by_content` has the orders of tasks
and rows that these divisions follow where ids and the order of the input must not matter.
"""

from condmeta.tasks.splits.by_content import (
    copied_columns,
    distinct_columns,
    folds_by_content,
    in_content_order,
    keys_by_content,
    rows_by_content,
    tasks_by_content,
)
from condmeta.tasks.splits.folds import TaskSplit, as_split, check_shots, folds_of_tasks
from condmeta.tasks.splits.points import (
    ORDERS,
    SupportQuery,
    across_tasks,
    fifths,
    first_halves,
    first_points,
    half_of,
    point_mask,
    within_tasks,
)
from condmeta.tasks.splits.tasks import (
    FOLDS,
    fold_numbers,
    make_generator,
    task_keys,
    task_parts,
    task_rows,
)

__all__ = ["FOLDS", "ORDERS", "SupportQuery", "TaskSplit", "across_tasks", "as_split"]
__all__ += ["check_shots", "fifths", "first_halves", "first_points", "fold_numbers"]
__all__ += [
    "copied_columns",
    "distinct_columns",
    "folds_by_content",
    "folds_of_tasks",
    "half_of",
    "in_content_order",
    "keys_by_content",
]
__all__ += [
    "make_generator",
    "point_mask",
    "rows_by_content",
    "task_parts",
    "task_rows",
]
__all__ += ["task_keys", "tasks_by_content", "within_tasks"]
