"""Tasks and their side information: `TaskSet`, `Task`, `TaskTable` and `TaskSplit`."""

from condmeta.tasks.splits import TaskSplit
from condmeta.tasks.task_table import TaskTable
from condmeta.tasks.taskset import Task, TaskSet

__all__ = ["Task", "TaskSet", "TaskSplit", "TaskTable"]
