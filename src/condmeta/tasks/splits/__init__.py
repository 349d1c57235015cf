"""Every way to hold out tasks, or points of tasks: the one home of splits.

`tasks` divides sets of tasks, `points` divides the points within tasks into support (to adapt on)
and query (to judge by), and `folds` does both for a `TaskSet`.
"""

from condmeta.tasks.splits.folds import TaskSplit, as_split, check_shots, folds_of_tasks
from condmeta.tasks.splits.points import (
    ORDERS,
    SupportQuery,
    across_tasks,
    fifths,
    first_halves,
    half_of,
    point_mask,
    within_tasks,
)
from condmeta.tasks.splits.tasks import (
    FOLDS,
    fold_numbers,
    make_generator,
    sample_tasks,
    task_keys,
    task_parts,
    task_rows,
)

__all__ = ["FOLDS", "ORDERS", "SupportQuery", "TaskSplit", "across_tasks", "as_split"]
__all__ += ["check_shots", "fifths", "first_halves", "fold_numbers", "folds_of_tasks", "half_of"]
__all__ += ["make_generator", "point_mask", "sample_tasks", "task_keys", "task_parts", "task_rows"]
__all__ += ["within_tasks"]
