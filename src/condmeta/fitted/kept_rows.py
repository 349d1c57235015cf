"""The rows of known tasks, of a learner whose posteriors are no sums over points.

Counts, shares and classes have no statistics from which the model of a task follows. To add points
to a task exactly, its rows are kept, and the task is solved again.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from condmeta.persistence.fields import either, floats, integers, maybe
from condmeta.persistence.registry import register_tuple
from condmeta.tasks.points import Points
from condmeta.tasks.timed import offsets_rise


@register_tuple(
    fields={
        "X": floats("N d"), "y": floats("N"), "offsets": integers("T+1", low=0),
        "weight": maybe(either(floats("N", low=0), floats("N 2", low=0))),
    },
    rule=offsets_rise,
)  # fmt: skip
class KeptRows(NamedTuple):
    """Rows of T tasks in the learner's units, as in `Points`, in the order of the task models."""

    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    weight: np.ndarray | None

    @property
    def points(self) -> Points:
        """The rows as points."""
        return Points(*self)

    def extend(self, at: np.ndarray, more: Points) -> Self:
        """Return it with further rows of the tasks at positions `at`."""
        return type(self)(*self.points.extend(at, more))

    def join(self, more: Points) -> Self:
        """Return it with the rows of further tasks."""
        return type(self)(*self.points.join(more))
