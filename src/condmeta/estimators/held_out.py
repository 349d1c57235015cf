"""What learners say of held-out tasks that show them a few points."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier

from condmeta.estimators.base_model import FOLDS, heads_see
from condmeta.tasks import TaskSet
from condmeta.tasks.held_out import folds_of_tasks

FEWEST_TASKS = 10  # to hold some out
CHOSEN = "metric", "noise", "kappa", "lam"  # settings that learners choose from the data


class Trial(NamedTuple):
    """What the candidates said of held-out tasks that showed `shot` points.

    ids (T,) and fold (T,) of the tasks; task (N,), by their number; row (N,), of the input;
    y (N,); answers (N, candidates), of classifiers the probability of the second class. Rows count
    weight (N,) times, or once.
    """

    shot: int
    ids: np.ndarray
    fold: np.ndarray
    task: np.ndarray
    row: np.ndarray
    y: np.ndarray
    answers: np.ndarray
    weight: np.ndarray | None = None


def silent(step: str) -> None:
    """Tell nobody."""


def hold_out(
    learners: dict, tasks: TaskSet, shared, shots, support: str, random_state, tell=silent
) -> list[Trial]:
    """Return the trials of learners at several numbers of points, each task held out once.

    `shared` is the base of the learners named "... on base": they see what it says of tasks that it
    had not seen. `tell` is called with what is done next.
    """
    tasks = tasks.subset(np.flatnonzero(tasks.sizes > 0))
    shots = [m for m in sorted(set(shots)) if (tasks.sizes > m).sum() >= FEWEST_TASKS]
    base = np.zeros(int(tasks.row_order.max()) + 1)  # by input row, which subsets remember
    if shared is not None:
        base[tasks.row_order] = shared.unseen
    adds = shared is not None and not shared.base.classes

    def with_and_without(part: TaskSet) -> dict[bool, TaskSet]:
        if shared is None:
            return {True: part, False: part}
        seen = heads_see(part.X, part.y, base[part.row_order], shared.base.classes)
        return {True: part.with_rows(*seen), False: part}

    found: dict[int, list] = {m: [] for m in shots}
    folds = folds_of_tasks(tasks, FOLDS, shots, support, random_state)
    for number, (train, parts) in enumerate(folds):
        tell(f"fold {number + 1} of {FOLDS}: tasks held out")
        rest = with_and_without(train)
        fitted = {name: clone(one).fit(rest[on_base(name)]) for name, one in learners.items()}
        for m, shown, asked in parts:
            few, query = with_and_without(shown), with_and_without(asked)
            answers = [
                answer(learner, learner.adapt(few[on_base(name)]), query[on_base(name)])
                + (base[asked.row_order] if on_base(name) and adds else 0.0)
                for name, learner in fitted.items()
            ]
            found[m].append((number, asked, np.column_stack(answers)))
    return [_trial(m, parts) for m, parts in found.items() if parts]


def answer(learner, models, query: TaskSet) -> np.ndarray:
    """Return what models of tasks say of their query rows (N,), in the order of `query.X`."""
    whose = query.ids[np.repeat(np.arange(len(query)), query.sizes)]
    if is_classifier(learner):
        return models.predict_proba(query.X, task=whose)[:, 1]
    return models.predict(query.X, task=whose)


def frozen(learner):
    """Return a learner like a fitted one, with the settings that it chose."""
    params = learner.get_params(deep=False)
    chosen = {
        name: getattr(learner, f"{name}_")
        for name in CHOSEN
        if name in params and hasattr(learner, f"{name}_")
    }
    return clone(learner).set_params(**chosen, keep_tasks=False)


def on_base(name: str) -> bool:
    """Tell whether a candidate of this name learns what the shared base leaves over."""
    return name.endswith("on base")


def _trial(m: int, parts: list) -> Trial:
    folds, queries, answers = zip(*parts, strict=True)
    sizes = np.concatenate([query.sizes for query in queries])
    return Trial(
        shot=m,
        ids=np.concatenate([query.ids for query in queries]),
        fold=np.repeat(folds, [len(query) for query in queries]),
        task=np.repeat(np.arange(len(sizes)), sizes),
        row=np.concatenate([query.row_order for query in queries]),
        y=np.concatenate([query.y for query in queries]),
        answers=np.concatenate(answers),
        weight=_joined([query.weight for query in queries]),
    )


def _joined(weights: list) -> np.ndarray | None:
    return None if any(weight is None for weight in weights) else np.concatenate(weights)
