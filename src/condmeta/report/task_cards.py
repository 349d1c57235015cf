"""What the page shows of single tasks: side information, coefficients, predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from condmeta.estimators.held_out import Trial
from condmeta.estimators.tables import coefficient_names
from condmeta.estimators.task_model import user_vector
from condmeta.evaluation.comparison import Comparison
from condmeta.evaluation.conformal import Scores
from condmeta.meta.stacking import LOG_LOSS

MOST_TASKS = 300  # on the page
MOST_POINTS = 60  # of a task
COVERAGE = 0.9
DIGITS = 5


def task_cards(found: Comparison) -> dict[str, Any]:
    """Return what the page's script reads: tasks with their predictions at every shot.

    Predictions are those of the learner that is advised, made without the task; intervals hold 9
    of 10 points of a new task.
    """
    told = found.names.index(found.advised)
    classes = found.criterion is LOG_LOSS
    ids = _spread(found)
    coefs = _coefficients(found, ids)
    cards = {task: _card(found, task, coef) for task, coef in zip(ids, coefs, strict=True)}
    for trial in found.trials:
        width = None if classes else _width(trial, told)
        starts = np.searchsorted(trial.task, np.arange(len(trial.ids) + 1))
        losses = found.criterion.losses(trial.answers[:, [told]], trial.y)[:, 0]
        for t, task in enumerate(trial.ids.tolist()):
            if task not in cards:
                continue
            rows = slice(starts[t], starts[t + 1])
            few = slice(starts[t], min(starts[t + 1], starts[t] + MOST_POINTS))
            cards[task]["shots"][trial.shot] = {
                "error": _short(losses[rows].mean()),
                "row": trial.row[few].tolist(),
                "y": _shorts(trial.y[few]),
                "said": _shorts(trial.answers[few, told]),
                "width": width,
            }
    return {
        "learner": found.names[told],
        "classes": classes,
        "positive": found.positive,
        "criterion": found.criterion.title,
        "shots": found.shots,
        "opens": _opening(found),
        "tasks": [card for card in cards.values() if card["shots"]],
    }


def _opening(found: Comparison) -> int:
    """Return the place of the largest shot at which there are as many tasks as at the first."""
    counts = [len(trial.ids) for trial in found.trials]
    return max(at for at, count in enumerate(counts) if count == counts[0])


def _spread(found: Comparison) -> list[Any]:
    """Return the ids of the tasks to show, spread evenly if they are many."""
    ids = found.tasks.ids[found.tasks.sizes > 0]
    at = np.unique(np.linspace(0, len(ids) - 1, min(len(ids), MOST_TASKS)).astype(int))
    return ids[at].tolist()


def _card(found: Comparison, task: Any, coef: list) -> dict[str, Any]:
    at = found.tasks.position(task)
    side = found.tasks.side
    row = side.row(task) if side is not None and side.has([task])[0] else {}
    return {
        "id": str(task),
        "n": int(found.tasks.sizes[at]),
        "side": {str(name): _text(value) for name, value in row.items()},
        "coef": coef,
        "shots": {},
    }


def _coefficients(found: Comparison, ids: list[Any]) -> list[list[Any]]:
    """Return for each task the name, prior and adapted value of its coefficients, if there are."""
    name = "conditional" if "conditional" in found.models else "unconditional"
    learner = found.models.get(name)
    if learner is None or learner._store is None:
        return [[] for _ in ids]
    store, names = learner._store, coefficient_names(learner)
    at = store.positions(ids)
    prior, adapted = (
        user_vector(learner._head.preparation, part[at]) for part in (store.theta, store.coef)
    )
    return [
        [[name, _short(a), _short(b)] for name, a, b in zip(names, one, other, strict=True)]
        for one, other in zip(prior, adapted, strict=True)
    ]


def _width(trial: Trial, told: int) -> float | None:
    """Return the half width of the conformal interval at this number of points."""
    sizes = np.bincount(trial.task)[trial.task].astype(float)
    scores = Scores.of([(np.abs(trial.y - trial.answers[:, told]), sizes)])
    return _short(scores.quantile(COVERAGE)) if scores.reaches(COVERAGE) else None


def _short(value: Any) -> float:
    return float(f"{float(value):.{DIGITS}g}")


def _shorts(values: np.ndarray) -> list[float]:
    return [_short(value) for value in values]


def _text(value: Any) -> str:
    if value is None or value != value:
        return "missing"
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)
