"""`"auto"` of `ConditionalRidge`: does x bend, has y another scale, do trees see more (`base`)?

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
from condmeta.fitted.shared_model import OutOfTask
from condmeta.fitted.splines import SPLINES
from condmeta.fitted.target import TargetScale
from condmeta.fitted.x_transformer import fit_transformer
from condmeta.learners.form import Form
from condmeta.learners.inputs import Inputs
from condmeta.learners.labels import kind_of
from condmeta.learners.parameters import is_auto, jobs_of
from condmeta.learners.row_form_trial import CountFormTrial
from condmeta.learners.shared_base import BOOSTING, FEWEST_ROWS, shared_model_of
from condmeta.learners.side_inputs import side_reader
from condmeta.learners.task_sample import find_tasks, sampled
from condmeta.learners.transform_trial import FormTrial, Trial
from condmeta.meta.prior import SMALLEST
from condmeta.meta.ridge_choice import MIN_TASKS
from condmeta.meta.rotation import Rotation
from condmeta.meta.selection import select
from condmeta.meta.wide_tasks import WIDE
from condmeta.tasks import TaskSet
from condmeta.tasks.frames import is_sparse
from condmeta.tasks.points import Points
from condmeta.tasks.splits import first_points, in_content_order, tasks_by_content
from condmeta.tasks.weights import masses, repeats

POWER = "yeo-johnson"
CLEAR = 1.0  # standard errors by which the error of a form must be smaller
GAIN = 0.01  # and the share of the error that it must save
LIKELIER = 5.0  # and by how much the log density of held-out labels must be larger
FEWEST_TASKS = 40  # held-out tasks after which forms that gain nothing are dropped
MOST_POINTS = 200  # of a task, to compare forms by


def with_transforms(learner: Any, given: Inputs, choose: bool = True) -> Inputs:
    """Return the inputs with labels on their scale, the transformation of x, and the base.

    They are those that the learner names; "auto" is chosen, or is none without `choose`. Labels
    that are on a scale already stay there. All is settled on a sample of the tasks, unless a base
    may be chosen: it is fitted to all tasks.
    """
    named = named_form(learner, given, choose)
    plain = named.x_transform is None and named.y_transform is None and not is_auto(named.base)
    if plain or not hasattr(learner, "x_transform"):
        return given._replace(form=named)
    tasks = given.tasks
    if any(map(is_auto, named)) and can_judge(learner, given):
        side_reader(learner).require_rows(tasks.ids[tasks.sizes > 0], tasks.side)
    ends, some, keys = (tasks.y.min(), tasks.y.max()), given, None
    if not is_auto(named.base):
        found = find_tasks(tasks)
        some, keys = given._replace(tasks=sampled(found, tasks)), found.keys
    settled = settle(learner, named, some, ends)._replace(tasks=tasks)
    as_given = settled.form == Form() and learner.scale != "rows"  # other rows have other keys
    return on_scale(settled._replace(keys=keys if as_given else None))


def named_form(learner: Any, given: Inputs, choose: bool = True) -> Form:
    """Return what a learner names; "auto" is none without `choose`."""
    named = Form(*(getattr(learner, name, None) for name in Form._fields))
    named = named if given.target is None else named._replace(y_transform=None)
    return named if choose else Form(*(None if is_auto(value) else value for value in named))


def settle(learner: Any, named: Form, given: Inputs, ends: tuple[float, float]) -> Inputs:
    """Return the inputs with the transformations of x and y, learned from their tasks, and a base.

    The tasks are the sample (see `task_sample`) by rising key, so that transformations have the
    same bits wherever the rows are. `ends` are the least and the largest label of all rows. Labels
    are not transformed yet.
    """
    tasks, form, errors, shared = given.tasks, named, {}, None
    if any(map(is_auto, named)):
        forms = _forms(named)
        form = forms[0]
        if can_judge(learner, given):
            if forms[-1].base is not None and len(tasks.y) >= FEWEST_ROWS:
                shared = _boosting(learner, forms[-1], tasks)
            else:
                forms = [each for each in forms if each.base is None]
            form, errors = _choose(learner, forms, tasks, shared)
    transformer = fit_transformer(form.x_transform, tasks.X, masses(tasks.weight))
    chosen = shared if form.base is not None else None
    given = given._replace(form=form, transformer=transformer, form_errors=errors, shared=chosen)
    if form.y_transform is None:
        return given
    target = _scale_of(form, tasks, ends)
    if learner.criterion == "squared":  # means; the fit knows the noise better (`learn.with_learned`)
        target = target._replace(spread=float(target.apply(tasks.y).std()))
    return given._replace(target=target)


def on_scale(given: Inputs) -> Inputs:
    """Return the inputs with labels on the scale that was settled for them."""
    if given.form.y_transform is None:
        return given
    return given._replace(tasks=given.tasks.with_target(given.target.apply(given.tasks.y)))


def _forms(named: Form) -> list[Form]:
    """Return the forms that "auto" stands for, the simplest first; trees are the least simple."""
    *transforms, base = named
    options = (
        (None, other) if is_auto(value) else (value,)
        for value, other in zip(transforms, (SPLINES, POWER), strict=True)
    )
    if not is_auto(base):
        return [Form(*pair, base) for pair in product(*options)]
    forms = [Form(*pair) for pair in product(*options)]
    return [*forms, forms[0]._replace(base=BOOSTING)]


def _scale_of(form: Form, tasks: TaskSet, ends: Any = None) -> TargetScale:
    repeated = None if tasks.weight is None else repeats(tasks.weight)
    return TargetScale.learn(str(form.y_transform), tasks.y, repeated, ends)


def _boosting(learner: Any, form: Form, tasks: TaskSet) -> OutOfTask:
    """Fit trees to the labels of tasks, on the scale of the form."""
    if form.y_transform is not None:
        tasks = tasks.with_target(_scale_of(form, tasks).apply(tasks.y))
    return shared_model_of(learner, BOOSTING, tasks, "squared")


def can_judge(learner: Any, given: Inputs) -> bool:
    """Return whether forms can be compared: models of rows alone, and enough tasks to hold out."""
    tasks, fmap, base = given.tasks, side_reader(learner).map, getattr(learner, "base", None)
    return (
        learner.fit_intercept and learner.scale != "rows" and learner.random in ("auto", "all")
        and (base is None or is_auto(base)) and not fmap.reads_points
        and tasks.time is None and not is_sparse(tasks.X) and tasks.X.shape[1] <= WIDE
        and int((tasks.sizes > 0).sum()) >= MIN_TASKS
        # A fit refuses other labels, with words.
        and np.abs(tasks.y).max(initial=0.0) <= _trial_of(learner).largest_label
    )  # fmt: skip


def _trial_of(learner: Any) -> type[Trial]:
    return CountFormTrial if kind_of(learner) == "count" else FormTrial


def _choose(
    learner: Any, forms: list[Form], tasks: TaskSet, shared: OutOfTask | None
) -> tuple[Form, dict[Form, float]]:
    """Return the chosen form, and the relative errors of those that were compared to the end.

    `shared` is the base of forms that have one.
    """
    below = None if shared is None else shared.unseen[:, None]
    filled = np.flatnonzero(tasks.sizes > 0)
    every = tasks.subset(filled)
    kind = _trial_of(learner)
    order = tasks_by_content(every)[: kind.sample]
    if below is not None:  # it goes with its row
        below = tasks.with_rows(below, tasks.y).subset(filled[order]).X
    tasks = every.subset(order)

    def judged(X: np.ndarray) -> Points:
        rows = Points(X, tasks.y, tasks.offsets, tasks.weight)
        return first_points(in_content_order(rows, tasks), MOST_POINTS)

    points, below = judged(tasks.X), None if below is None else judged(below).X[:, 0]
    table = None if tasks.side is None else tasks.side.take(tasks.ids[tasks.side.has(tasks.ids)])
    reader = side_reader(learner).refit(table)
    Phi = reader.features(tasks.ids, tasks.side, None)
    Z = Rotation.learn(Phi).apply(Phi)
    criterion = getattr(learner, "criterion", None)
    trial = kind(points, below, Z, jobs_of(learner), criterion)
    first, *others = (form for form in forms if form.base is None)
    with limit_threads(1):  # the matrices are small: threads of BLAS would only wait
        form, errors = _race(trial, [first, *filter(trial.is_other, others)])
        if below is None:
            return form, errors
        boosted, share = forms[-1], (errors or {form: 1.0})
        chosen, found = _race(trial, [form, boosted])
        compared = {boosted: share[form] * found[boosted]} if boosted in found else {}
        return chosen, share | compared


def _race(trial: Trial, forms: list[Form]) -> tuple[Form, dict[Form, float]]:
    """Return the best of several forms, and the relative errors of those compared to the end."""
    if len(forms) == 1:
        return forms[0], {}
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
        initial=np.empty((trial.n_views, 0)), join=lambda *errors: np.hstack(errors),
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
