"""What learners say of held-out tasks that show them a few points."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from condmeta.estimators.base_model import FOLDS
from condmeta.tasks import TaskSet
from condmeta.tasks.splits import make_generator

FEWEST_TASKS = 10  # to hold some out


class Trial(NamedTuple):
    """What the candidates said of held-out tasks that showed `shot` points.

    answers (N, candidates); y (N,); task (N,), by number.
    """

    shot: int
    answers: np.ndarray
    y: np.ndarray
    task: np.ndarray


def hold_out(learners: dict, tasks: TaskSet, shared, shots, support: str, random_state):
    """Return the trials of learners at several numbers of points, each task held out once.

    `shared` is the base of the learners named "... on base": they see the residuals of tasks that
    it had not seen.
    """
    rng = make_generator(random_state)
    tasks = tasks.subset(np.flatnonzero(tasks.sizes > 0))
    fold = rng.permutation(len(tasks)) % FOLDS
    shots = [m for m in sorted(set(shots)) if (tasks.sizes > m).sum() >= FEWEST_TASKS]
    residuals = None if shared is None else tasks.with_target(tasks.y - shared.unseen)
    order = _shown_first(tasks, support, rng)
    found: dict[int, list] = {m: [] for m in shots}
    for f in range(FOLDS):
        train, held = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        fitted = {
            name: clone(learner).fit((residuals if on_base(name) else tasks).subset(train))
            for name, learner in learners.items()
        }
        for m in shots:
            at = held[tasks.sizes[held] > m]
            if not len(at):
                continue
            rows = [order[tasks.offsets[t] : tasks.offsets[t + 1]] for t in at]
            shown, asked = ([row[part] for row in rows] for part in (slice(m), slice(m, None)))
            query = np.concatenate(asked)
            answers = []
            for name, learner in fitted.items():
                source = residuals if on_base(name) else tasks
                rest = _part(source, at, asked)
                model = learner.adapt(_part(source, at, shown)) if m else learner
                answer = model.predict(rest)
                answers.append(answer + (shared.unseen[query] if on_base(name) else 0.0))
            task = np.repeat(at, [len(row) for row in asked])
            found[m].append((np.column_stack(answers), tasks.y[query], task))
    return [
        Trial(m, *map(np.concatenate, zip(*parts, strict=True)))
        for m, parts in found.items()
        if parts
    ]


def on_base(name: str) -> bool:
    return name.endswith("on base")


def _shown_first(tasks: TaskSet, support: str, rng) -> np.ndarray:
    """Return the rows of every task in the order in which they are shown."""
    if support == "first":
        return np.arange(len(tasks.y))
    task = np.repeat(np.arange(len(tasks)), tasks.sizes)
    return np.lexsort([rng.random(len(task)), task])


def _part(tasks: TaskSet, at, rows) -> TaskSet:
    """Return the tasks at some positions with some of their rows."""
    ids, chosen = tasks.ids[at], np.concatenate(rows)
    side = tasks.side
    if side is not None:
        side = side.take(ids[side.has(ids)])
    return TaskSet(
        tasks.X[chosen], tasks.y[chosen], np.cumsum([0, *map(len, rows)]), ids, side,
        feature_names=tasks.feature_names,
    )  # fmt: skip
