"""The card of a task on the page: side information, coefficients, predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from condmeta.fitted.against_rest import AgainstRest
from condmeta.fitted.tables import coefficient_names
from condmeta.learners.held_out import HeldOutAnswers
from condmeta.meta.conformal import Scores
from condmeta.meta.criteria import LOG_LOSS
from condmeta.meta.error_scale import HeldOut

if TYPE_CHECKING:
    from condmeta.evaluation.comparison import Comparison

MOST_TASKS = 300  # on the page
MOST_POINTS = 60  # on the card of a task
COVERAGE = 0.9
DIGITS = 5


def task_cards(found: Comparison) -> dict[str, Any]:
    """Return the data of the page's script: tasks with their predictions at every shot.

    Predictions are those of the advised learner, fitted without the task. Intervals contain 9 of 10
    points of a new task.
    """
    advised = found.names.index(found.advised)
    classes = found.criterion is LOG_LOSS or found.criterion.density
    ids = found.tasks.ids[found.tasks.sizes > 0]
    evenly = np.linspace(0, len(ids) - 1, min(len(ids), MOST_TASKS)).astype(int)
    ids = ids[np.unique(evenly)].tolist()
    coef_learner = "conditional" if "conditional" in found.models else "unconditional"
    coefs = _coefficients(found.models.get(coef_learner), ids)
    cards = {task: _card(found, task, coef) for task, coef in zip(ids, coefs, strict=True)}
    for trial in found.trials:
        width = None if classes else _half_width(trial, advised)
        starts = np.searchsorted(trial.task, np.arange(len(trial.ids) + 1))
        losses = found.criterion.losses(trial.answers[:, [advised]], trial.y)[:, 0]
        for t, task in enumerate(trial.ids.tolist()):
            if task not in cards:
                continue
            rows = np.arange(starts[t], starts[t + 1])
            few = rows[:MOST_POINTS]
            predicted = list(map(_short, trial.answers[few, advised]))
            cards[task]["shots"][trial.shot] = {
                "error": _short(losses[rows].mean()), "row": trial.row[few].tolist(),
                "y": list(map(_short, trial.y[few])), "predicted": predicted, "width": width,
            }  # fmt: skip
    counts = [len(trial.ids) for trial in found.trials]
    # the largest shot with as many tasks as the first one
    first_shown = max(at for at, count in enumerate(counts) if count == counts[0])
    return {
        "learner": found.names[advised], "coef_learner": coef_learner,
        "classes": classes, "positive": found.positive,
        "criterion": found.criterion.title, "shots": found.shots, "first_shown": first_shown,
        "tasks": [card for card in cards.values() if card["shots"]],
    }  # fmt: skip


def _card(found: Comparison, task: Any, coef: list) -> dict[str, Any]:
    at, side = found.tasks.position(task), found.tasks.side
    row = side.row(task) if side is not None and side.has([task])[0] else {}
    side = {str(name): _text(value) for name, value in row.items()}
    n = int(found.tasks.sizes[at])
    return {"id": str(task), "n": n, "side": side, "coef": coef, "shots": {}}


def _coefficients(learner: Any, ids: list[Any]) -> list[list[Any]]:
    """Return for each task the name, prior and adapted value of its coefficients, if known."""
    if learner is None or learner.fitted_.tasks is None:
        return [[] for _ in ids]
    if isinstance(learner.fitted_, AgainstRest):  # a table for each class would be too much
        return [[] for _ in ids]
    fitted, store = learner.fitted_, learner.fitted_.tasks
    names, at = coefficient_names(fitted), store.positions(ids)
    prior, adapted = (fitted.scales.user_vector(part[at]) for part in (store.theta, store.coef))
    return [
        [[name, _short(a), _short(b)] for name, a, b in zip(names, one, other, strict=True)]
        for one, other in zip(prior, adapted, strict=True)
    ]


def _half_width(trial: HeldOutAnswers, advised: int) -> float | None:
    """Return the half width of the conformal interval at this number of points."""
    codes = np.unique(trial.task, return_inverse=True)[1]
    error, one = trial.y - trial.answers[:, advised], np.ones(len(codes))
    held = HeldOut(error, trial.y - error, one, 1 / np.bincount(codes)[codes], codes)
    scores = Scores.of(held, one)
    return _short(scores.quantile(COVERAGE)) if scores.reaches(COVERAGE) else None


def _short(value: Any) -> float:
    return float(f"{float(value):.{DIGITS}g}")


def _text(value: Any) -> str:
    if value is None or value != value:
        return "missing"
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)
