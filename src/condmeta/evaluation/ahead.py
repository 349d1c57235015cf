"""Predictions of known tasks one step ahead: each later time from the rows before it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier

from condmeta.learners.held_out import HeldOutAnswers, answer, are_whole, densities
from condmeta.tasks import TaskSet
from condmeta.tasks.splits.in_time import known_tasks_ahead

AHEAD = -1  # in place of a number of points


class AsModels(NamedTuple):
    """A learner in the place of models of tasks, for these rows alone: they name their columns."""

    learner: Any
    rows: TaskSet

    def predict(self, X: Any, *, task: Any, return_std: bool = False) -> Any:
        """Return the predictions for the rows, in the order of their `X`."""
        more = {"return_std": True} if return_std else {}
        found = self.learner.predict(self.rows, **more)
        order = np.argsort(np.argsort(self.rows.row_order))
        return tuple(part[order] for part in found) if return_std else found[order]


def answers_ahead(
    learners: Mapping[str, Any], tasks: TaskSet, density: bool, progress: Callable[[str], None]
) -> HeldOutAnswers | None:
    """Return the predictions of learners for later rows; None if all rows are of one time.

    Learners are fitted to the first 70 % of the times. A learner whose `update` reads times takes
    in each later time after it was predicted; others are adapted to all earlier rows of a task.
    """
    steps = list(known_tasks_ahead(tasks))
    if not steps:
        return None
    many = any(map(is_classifier, learners.values())) and len(np.unique(tasks.y)) > 2
    discrete, answers = are_whole(tasks.y), []
    for name, learner in learners.items():
        progress(f"known tasks, one step ahead: {name}")
        fitted, found = clone(learner).fit(steps[0].before), []
        updates = "time" in inspect.signature(getattr(fitted, "update", answer)).parameters
        for before, then in steps:
            models = AsModels(fitted, then) if updates else fitted.adapt(before)
            said = (
                densities(fitted, models, then, discrete)
                if density
                else answer(fitted, models, then, many)
            )
            found.append(said)
            if updates:
                fitted.update(then)
        answers.append(np.concatenate(found))
    return _joined(steps, np.column_stack(answers), many)


def _joined(steps: list[Any], answers: np.ndarray, many: bool) -> HeldOutAnswers:
    later = [then for _, then in steps]
    ids = steps[0].before.ids
    position = {task: t for t, task in enumerate(ids.tolist())}
    by_row = [np.repeat([position[i] for i in q.ids.tolist()], q.sizes) for q in later]
    used, task = np.unique(np.concatenate(by_row), return_inverse=True)
    y = np.concatenate([query.y for query in later])
    weights = [query.weight for query in later]
    return HeldOutAnswers(
        shot=AHEAD,
        ids=ids[used],
        fold=np.zeros(len(used), np.int64),
        task=task,
        row=np.concatenate([query.row_order for query in later]),
        y=np.ones(len(y)) if many else y,
        answers=answers,
        weight=None if any(weight is None for weight in weights) else np.concatenate(weights),
    )
