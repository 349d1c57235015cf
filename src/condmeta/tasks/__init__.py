"""Tasks and what is known about them: `TaskSet`, `Task` and `TaskTable`."""

from condmeta.tasks.side_table import TaskTable
from condmeta.tasks.taskset import Task, TaskSet

__all__ = ["Task", "TaskSet", "TaskTable"]
