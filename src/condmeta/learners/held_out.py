"""Predictions of learners for held-out tasks, from a few of their points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.base import clone, is_classifier

from condmeta.fitted.shared_model import OutOfTask, head_inputs
from condmeta.learners.checks import fits_to_folds
from condmeta.meta.conformal import times_for
from condmeta.meta.ridge_judge import BY_SIDE
from condmeta.tasks import TaskSet
from condmeta.tasks.splits import FOLDS, folds_of_tasks, tasks_by_content

FEWEST_TASKS = 10  # to judge a number of points by
NEARLY_INFINITE = 1e9  # kappa: the prior's map is its mean, but for rounding
CHOSEN = (  # from the data
    "metric", "noise", "kappa", "context", "cold_start", "lam",
    "x_transform", "y_transform", "base",
)  # fmt: skip


class HeldOutAnswers(NamedTuple):
    """Predictions of C candidates for held-out tasks that showed `shot` points.

    ids (T,) and fold (T,) of the tasks; task (N,), the position of each row's task; row (N,), its
    row in the input; y (N,); answers (N, C), for two classes the probability of the second. For
    more classes the answers are the probabilities of the true one, and all y are +1. Rows
    count weight (N,) times, or once. If tasks were held out in several rounds, rows of all rounds
    follow each other; `fold` is that of the first.
    """

    shot: int
    ids: np.ndarray
    fold: np.ndarray
    task: np.ndarray
    row: np.ndarray
    y: np.ndarray
    answers: np.ndarray
    weight: np.ndarray | None = None


def no_progress(step: str) -> None:
    """Report nothing."""


@fits_to_folds()
def hold_out(
    learners: dict[str, Any], tasks: TaskSet, shared: OutOfTask | None, shots: Any, order: str,
    random_state: Any,
    progress: Any = no_progress, density: bool = False,
) -> list[HeldOutAnswers]:  # fmt: skip
    """Return the predictions of learners at several numbers of points, each task held out once.

    Learners named "... on base" are fitted to the residuals, or log odds, of the shared model, from
    fits that did not see the task. `progress` is called with the next step. With `density` the
    answers are densities of the labels, and of whole numbers probabilities if they may be counts.
    A number of points is left out if fewer than 10 tasks have more; of fewer tasks all must.
    """
    filled = tasks.subset(np.flatnonzero(tasks.sizes > 0))
    tasks = filled.subset(tasks_by_content(filled))  # halves of tasks follow this order
    fewest = min(FEWEST_TASKS, len(tasks))
    shots = [m for m in sorted(set(shots)) if (tasks.sizes > m).sum() >= fewest]
    base = np.zeros(int(tasks.row_order.max()) + 1)  # by input row, which subsets remember
    if shared is not None:
        base[filled.row_order] = shared.unseen
    adds = shared is not None and not shared.model.classes
    target = None if shared is None else shared.target

    def with_and_without(part: TaskSet) -> dict[bool, TaskSet]:
        if shared is None:
            return {True: part, False: part}
        y = part.y if target is None else target.apply(part.y)
        seen = head_inputs(part.X, y, base[part.row_order], shared.model.classes)
        return {True: part.with_rows(*seen), False: part}

    def on_labels(scores: np.ndarray, asked: TaskSet) -> np.ndarray:
        """Return the predictions of a learner on the base from its scores."""
        scores = scores + base[asked.row_order] if adds else scores
        return scores if target is None else target.undo(scores)

    many = any(map(is_classifier, learners.values())) and len(np.unique(tasks.y)) > 2
    discrete = are_whole(tasks.y)
    answers: dict[int, list[Any]] = {m: [] for m in shots}
    folds = folds_of_tasks(tasks, FOLDS, shots, order, random_state)
    for number, (train, parts) in enumerate(folds):
        progress(f"fold {number + 1} of {FOLDS}: tasks held out")
        rest = with_and_without(train)
        fitted = {name: clone(one).fit(rest[on_base(name)]) for name, one in learners.items()}
        for m, shown, asked in parts:
            few, query = with_and_without(shown), with_and_without(asked)
            predicted = []
            for name, learner in fitted.items():
                models = learner.adapt(few[on_base(name)])
                rows = query[on_base(name)]
                if density:
                    found = densities(learner, models, rows, discrete)
                else:
                    found = answer(learner, models, rows, many)
                predicted.append(on_labels(found, asked) if on_base(name) else found)
            answers[m].append((number, asked, np.column_stack(predicted)))
    if many:
        for parts in answers.values():
            parts[:] = [(f, q.with_target(np.ones(len(q.y))), found) for f, q, found in parts]
    return [_joined(m, parts) for m, parts in answers.items() if parts]


def of_all_rounds(rounds: list[list[HeldOutAnswers]]) -> list[HeldOutAnswers]:
    """Return the predictions of several calls of `hold_out` together, at each number of points."""
    first, *more = rounds
    return [_together(at_shot) for at_shot in zip(first, *more, strict=True)] if more else first


def _together(rounds: tuple[HeldOutAnswers, ...]) -> HeldOutAnswers:
    first = rounds[0]
    place = {name: t for t, name in enumerate(first.ids)}
    task = [np.array([place[name] for name in each.ids])[each.task] for each in rounds]
    joined = {
        name: np.concatenate([getattr(each, name) for each in rounds])
        for name in ("row", "y", "answers", "weight")
        if getattr(first, name) is not None
    }
    return first._replace(task=np.concatenate(task), **joined)


def answer(learner: Any, models: Any, query: TaskSet, many: bool = False) -> np.ndarray:
    """Return the predictions of task models for query rows (N,), in the order of `query.X`.

    `many`: there are more than two classes, and labels are their numbers.
    """
    task = query.ids[np.repeat(np.arange(len(query)), query.sizes)]
    if not is_classifier(learner):
        return models.predict(query.X, task=task, **times_for(models, query))
    chances = models.predict_proba(query.X, task=task)
    if not many:
        return chances[:, 1]
    # The probability of the true class; a fold may not have seen it.
    true = query.y[:, None] == learner.classes_
    return np.where(true, chances, 0.0).sum(axis=1)


def are_whole(y: np.ndarray) -> bool:
    """Return whether numbers are whole and at least 0, so that each has a probability."""
    return bool((y >= 0).all() and (y == np.floor(y)).all())


def densities(learner: Any, models: Any, query: TaskSet, discrete: bool) -> np.ndarray:
    """Return the density of each query label (N,) by a learner that has a distribution.

    `discrete`: the probability of a whole number, of a normal law that of half a unit around it.
    """
    task, y = query.ids[np.repeat(np.arange(len(query)), query.sizes)], query.y
    if hasattr(learner, "predict_distribution"):
        return np.exp(models.predict_distribution(query.X, task=task).log_density(y))
    timed = times_for(models, query)
    mean, std = models.predict(query.X, task=task, return_std=True, **timed)
    law = norm(mean, std)
    if not discrete:
        return law.pdf(y)
    low = np.where(y == 0, -np.inf, y - 0.5)  # the least count has all below
    above = mean < y  # subtract in the tail that is not rounded to 1
    return np.where(above, law.sf(low) - law.sf(y + 0.5), law.cdf(y + 0.5) - law.cdf(low))


def frozen(learner: Any):
    """Return an unfitted learner with the settings that a fitted one chose.

    With more than two classes each has its own settings: they are chosen again.
    """
    params = learner.get_params(deep=False)
    chosen = {
        name: getattr(learner, f"{name}_")
        for name in CHOSEN
        if name in params and hasattr(learner, f"{name}_")
    }
    if len(getattr(learner, "classes_", ())) > 2:
        chosen = {}
    reads_side = chosen.get("cold_start") != "prior" or chosen.get("noise") == BY_SIDE
    if chosen.get("kappa") == np.inf != params["kappa"] and reads_side:
        # Given as infinite, it would keep side information from pooled map and noise as well.
        chosen["kappa"] = NEARLY_INFINITE
    return clone(learner).set_params(**chosen, keep_tasks=False)


def on_base(name: str) -> bool:
    """Return whether a candidate of this name is fitted to the residuals of the shared model."""
    return name.endswith("on base")


def _joined(m: int, parts: list[Any]) -> HeldOutAnswers:
    folds, queries, answers = zip(*parts, strict=True)
    sizes = np.concatenate([query.sizes for query in queries])
    weights = [query.weight for query in queries]
    return HeldOutAnswers(
        shot=m,
        ids=np.concatenate([query.ids for query in queries]),
        fold=np.repeat(folds, [len(query) for query in queries]),
        task=np.repeat(np.arange(len(sizes)), sizes),
        row=np.concatenate([query.row_order for query in queries]),
        y=np.concatenate([query.y for query in queries]),
        answers=np.concatenate(answers),
        weight=None if any(weight is None for weight in weights) else np.concatenate(weights),
    )
