"""What side information gains on tasks that the learner has not seen, by their number of points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from condmeta.tasks import TaskSet
from condmeta.tasks.held_out import folds_of_tasks
from condmeta.words import count


class Gain(NamedTuple):
    """Mean absolute errors of held-out tasks at one number of points.

    Attributes
    ----------
    n_support, n_tasks : int
    without, with_side : float
        Errors of the two learners, each row weighing the same.
    gain, gain_error : float
        1 - with_side / without, and its standard error over the tasks, which are paired.
    """

    n_support: int
    n_tasks: int
    without: float
    with_side: float
    gain: float
    gain_error: float

    @property
    def is_clear(self) -> bool:
        """Whether the gain is more than two standard errors above 0."""
        return self.gain > 2 * self.gain_error

    @property
    def is_loss(self) -> bool:
        """Whether the gain is more than two standard errors below 0."""
        return self.gain < -2 * self.gain_error


def gains_in_words(gains: list[Gain]) -> str:
    """Say by how much the error falls at each number of points; nothing where none is known."""
    clear = [one for one in gains if one.is_clear]
    losses = [one for one in gains if one.is_loss]
    unclear = [one for one in gains if not (one.is_clear or one.is_loss)]
    parts = [f"cuts the error by {_by_points(clear)}"] if clear else []
    parts += [f"raises the error by {_by_points(losses, -1)}"] if losses else []
    parts += [f"makes no clear difference ({_by_points(unclear)})"] if unclear else []
    return f"on new tasks it {', and '.join(parts)}" if parts else ""


def _by_points(gains: list[Gain], sign: int = 1) -> str:
    return ", ".join(
        f"{round(100 * sign * one.gain)} % +- {100 * one.gain_error:.0f} at "
        f"{count(one.n_support, 'point')}"
        for one in gains
    )


def gains(
    learners: tuple[Any, Any], tasks: TaskSet, shots, n_splits: int, order: str, random_state: Any
) -> list[Gain]:
    """Judge a learner without and one with side information on the same held-out points."""
    errors: dict[int, list[np.ndarray]] = {m: [] for m in shots}
    for train, parts in folds_of_tasks(tasks, n_splits, shots, order, random_state):
        fitted = [clone(learner).fit(train) for learner in learners]
        for m, support, query in parts:
            lost = [_errors(one, support, query) for one in fitted]
            errors[m].append(np.array([*lost, query.sizes]))
    return [gain_of(m, *np.hstack(parts)) for m, parts in errors.items() if parts]


def _errors(learner, support: TaskSet, query: TaskSet) -> np.ndarray:
    task = np.repeat(np.arange(len(query)), query.sizes)
    predicted = learner.adapt(support).predict(query.X, task=query.ids[task])
    return np.bincount(task, np.abs(predicted - query.y), len(query))


def gain_of(m: int, without: np.ndarray, with_side: np.ndarray, rows: np.ndarray) -> Gain:
    """Return the gain at m points from the summed errors of tasks, and their rows, all (T,)."""
    T, total = len(rows), max(without.sum(), 1e-300)
    ratio = with_side.sum() / total
    # of a ratio of means, to first order
    spread = (with_side - ratio * without).std(ddof=1) if T > 1 else np.inf
    means = without.sum() / rows.sum(), with_side.sum() / rows.sum()
    return Gain(m, T, *map(float, (*means, 1 - ratio, spread * np.sqrt(T) / total)))
