"""Tasks and what is known about them: `TaskSet`, `Task`, `TaskTable` and `TaskSplit`."""

from condmeta.tasks.side_table import TaskTable
from condmeta.tasks.task_split import TaskSplit
from condmeta.tasks.taskset import Task, TaskSet

__all__ = ["Task", "TaskSet", "TaskSplit", "TaskTable"]
