"""The rows of a call that asks for predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from condmeta.tasks import TaskSet, TaskTable


class Rows(NamedTuple):
    """Rows to predict: X (N, d), and the task of each row by its position in `ids`.

    `codes` is None if all rows belong to one task without an id, which is then the only entry of
    `ids`. `side` and `points` are the side rows and conditioning points that came with the call.
    `restore` puts answers into the order of the call; `time` (N,) is when the rows are.
    """

    X: np.ndarray
    codes: np.ndarray | None
    ids: np.ndarray
    side: TaskTable | None = None
    points: TaskSet | None = None
    restore: Callable = np.asarray
    time: np.ndarray | None = None
