"""`ConditionalRidge(x_transform="auto", y_transform="auto")`: does x bend, has y another scale?

The forms of the model are compared on held-out tasks as settings are (`meta.ridge_choice`): half of
the points of such a task are predicted from none, 1, 2, 5 and all points of its other half. All
forms are judged with the same settings and by the errors of labels in the units of y, so that they
can be compared. The simplest form is taken that the best one does not clearly beat. A form with a
transformation must also make the labels of held-out tasks clearly more likely: if tasks are linear
and noise is normal, no other form does, whatever the errors of a few tasks say. And it must be
better than the form without it at other settings too, as poor settings make a form look poor.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from condmeta.blas_threads import limit_threads
from condmeta.fitted.scales import ALMOST_INFINITE
from condmeta.fitted.splines import SPLINES
from condmeta.fitted.target import TargetScale
from condmeta.learners.inputs import Form, Inputs
from condmeta.learners.parameters import is_auto, jobs_of
from condmeta.learners.side_inputs import side_reader
from condmeta.learners.transform_trial import FormTrial
from condmeta.meta.prior import SMALLEST
from condmeta.meta.ridge_choice import MIN_TASKS
from condmeta.meta.rotation import Rotation
from condmeta.meta.selection import select
from condmeta.meta.task_statistics import FEW, SAMPLE
from condmeta.meta.wide_tasks import WIDE
from condmeta.tasks import TaskSet
from condmeta.tasks.frames import is_sparse
from condmeta.tasks.points import Points
from condmeta.tasks.splits import first_points, in_content_order, tasks_by_content
from condmeta.tasks.weights import repeats

POWER = "yeo-johnson"
CLEAR = 1.0  # standard errors by which the error of a form must be smaller
GAIN = 0.01  # and the share of the error that it must save
LIKELIER = 5.0  # and by how much the log density of held-out labels must be larger
FEWEST_TASKS = 40  # held-out tasks after which forms that gain nothing are dropped
MOST_POINTS = 200  # of a task, to compare forms by


def with_transforms(learner: Any, given: Inputs, choose: bool = True) -> Inputs:
    """Return the inputs with labels on their scale, and with the transformation of x.

    The transformations are those that the learner names; "auto" is chosen, or is none without
    `choose`. Labels that are on a scale already stay there.
    """
    x_transform, y_transform = (getattr(learner, name, None) for name in Form._fields)
    form, errors = Form(x_transform, None if given.target is not None else y_transform), {}
    if any(map(is_auto, form)):
        forms = _forms(form)
        form = forms[0]
        if choose and _can_judge(learner, given):
            form, errors = _choose(learner, forms, given.tasks)
    given = given._replace(form=form, form_errors=errors)
    if form.y_transform is None:
        return given
    weight = given.tasks.weight
    repeated = None if weight is None else repeats(weight)
    target = TargetScale.learn(form.y_transform, given.tasks.y, repeated)
    return given._replace(tasks=given.tasks.with_target(target.apply(given.tasks.y)), target=target)


def _forms(named: Form) -> list[Form]:
    """Return the forms that "auto" stands for, the simplest first."""
    options = (
        (None, other) if is_auto(value) else (value,)
        for value, other in zip(named, (SPLINES, POWER), strict=True)
    )
    return [Form(*pair) for pair in product(*options)]


def _can_judge(learner: Any, given: Inputs) -> bool:
    """Return whether forms can be compared: models of rows alone, and enough tasks to hold out."""
    tasks, fmap = given.tasks, side_reader(learner).map
    return (
        learner.fit_intercept and learner.scale != "rows" and learner.base is None
        and learner.random in ("auto", "all") and not fmap.reads_points
        and tasks.time is None and not is_sparse(tasks.X) and tasks.X.shape[1] <= WIDE
        and int((tasks.sizes > 0).sum()) >= MIN_TASKS
        and np.abs(tasks.y).max(initial=0.0) <= ALMOST_INFINITE  # a fit refuses others, with words
    )  # fmt: skip


def _choose(learner: Any, forms: list[Form], tasks: TaskSet) -> tuple[Form, dict[Form, float]]:
    """Return the chosen form, and the relative errors of those that were compared to the end."""
    every = tasks.subset(np.flatnonzero(tasks.sizes > 0))
    tasks = every.subset(tasks_by_content(every)[:SAMPLE])
    points = in_content_order(Points(tasks.X, tasks.y, tasks.offsets, tasks.weight))
    table = None if tasks.side is None else tasks.side.take(tasks.ids[tasks.side.has(tasks.ids)])
    reader = side_reader(learner).refit(table)
    reader.find_rows(every.ids, every.side)  # an error names tasks as they came
    Phi = reader.features(tasks.ids, tasks.side, None)
    Z = Rotation.learn(Phi).apply(Phi)
    trial = FormTrial(first_points(points, MOST_POINTS), Z, learner.criterion, jobs_of(learner))
    first, *others = forms
    forms = [first, *filter(trial.is_other, others)]
    if len(forms) == 1:
        return first, {}
    with limit_threads(1):  # the matrices are small: threads of BLAS would only wait
        return _race(trial, forms)


def _race(trial: FormTrial, forms: list[Form]) -> tuple[Form, dict[Form, float]]:
    """Return the best of several forms, and the relative errors of those compared to the end."""
    first, folds, density = forms[0], trial.folds(forms[0]), dict.fromkeys(forms, 0.0)

    def compare(number: int, left: list[Form]) -> Iterator[tuple[Form, np.ndarray]]:
        for form in left if len(left) > 1 else ():
            density[form] += trial.density(form, number)
            yield form, trial.errors(form, number)

    def decide(errors: dict[Form, np.ndarray], _: Any) -> tuple[Form, dict[Form, float]]:
        form, scores = simplest(errors, density)
        for setting in trial.settings(first) if form != first else ():
            found = np.hstack([trial.errors(first, number, setting) for number in folds])
            likely = sum(trial.density(first, number, setting) for number in folds)
            pair = {first: found, form: errors[form]}, {first: likely, form: density[form]}
            form, _ = simplest(*pair)
            if form == first:
                break
        return form, scores

    rounds = [partial(compare, number) for number in folds]
    selection = select(
        forms, rounds, decide, score=np.sum, drop=drop_without_gain,
        initial=np.empty((len(FEW) + 2, 0)), join=lambda *errors: np.hstack(errors),
    )  # fmt: skip
    return selection.chosen


def drop_without_gain(errors: dict[Form, np.ndarray]) -> dict[Form, np.ndarray]:
    """Return the forms that gain something, and the first; with few tasks all of them.

    Errors (views, T) of the forms on the tasks that were held out until now.
    """
    first, found = next(iter(errors.items()))
    if found.shape[1] < FEWEST_TASKS:
        return errors
    scores = _relative(errors)
    return {form: each for form, each in errors.items() if form == first or scores[form].sum() < 1}


def simplest(
    errors: dict[Form, np.ndarray], density: dict[Form, float]
) -> tuple[Form, dict[Form, float]]:
    """Return the first form that the best one does not clearly beat, and all relative errors.

    Errors (views, T) and log densities of the forms, the simplest first. A relative error is that
    of all tasks as a share of the first form's, averaged over views; a difference is clear if it is
    larger than `GAIN` and than `CLEAR` standard errors over tasks. Forms that do not make labels
    likelier by `LIKELIER` than the first one are not taken.
    """
    shares, first = _relative(errors), next(iter(errors))
    scores = {form: float(share.sum()) for form, share in shares.items()}
    likely = [f for f in errors if f == first or density[f] > density[first] + LIKELIER]
    best = min(likely, key=scores.__getitem__)

    def is_beaten(form: Form) -> bool:
        behind = shares[form] - shares[best]
        return behind.sum() > max(GAIN, CLEAR * np.sqrt(len(behind)) * behind.std())

    return next(form for form in likely if form == best or not is_beaten(form)), scores


def _relative(errors: dict[Form, np.ndarray]) -> dict[Form, np.ndarray]:
    """Return the errors (T,) of tasks, as shares of the first form's error of all tasks."""
    total = np.maximum(next(iter(errors.values())).sum(axis=1, keepdims=True), SMALLEST)
    return {form: (found / total).mean(axis=0) for form, found in errors.items()}
