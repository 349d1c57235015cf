"""Choose the form of a model on held-out tasks: transformations of x and y, and a base.

Half of the points of a held-out task are predicted from none, 1, 2, 5 and all points of its other
half, as in `meta.ridge_choice`. All forms have the same settings, and their errors are in the units
of y, so that they can be compared. The simplest form is taken that the best one does not clearly
beat. Two more rules keep the form without transformations unless others are really better:

- Another form must make the labels of held-out tasks clearly more likely. If tasks are linear and
  noise is normal, no other form does, whatever the errors of a few tasks say.
- It must be better at other settings too, as poor settings make a form look poor.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from condmeta.blas_threads import limit_threads
from condmeta.fitted.shared_model import OutOfTask
from condmeta.learners.count_form_trial import CountFormTrial
from condmeta.learners.form import Form
from condmeta.learners.form_trial import FormTrial, Trial
from condmeta.learners.inputs import Inputs
from condmeta.learners.labels import kind_of
from condmeta.learners.parameters import is_auto, jobs_of
from condmeta.learners.side_inputs import side_reader
from condmeta.meta.prior import SMALLEST
from condmeta.meta.ridge_choice import MIN_TASKS
from condmeta.meta.rotation import Rotation
from condmeta.meta.selection import select
from condmeta.meta.wide_tasks import WIDE
from condmeta.tasks import TaskSet
from condmeta.tasks.arrays import is_sparse
from condmeta.tasks.points import Points
from condmeta.tasks.splits import first_points, in_content_order, tasks_by_content

CLEAR = 1.0  # standard errors by which the error of a form must be smaller
GAIN = 0.01  # and the share of the error that it must save
LIKELIER = 5.0  # and by how much the log density of held-out labels must be larger
FEWEST_HELD_OUT = 40  # tasks after which forms that gain nothing are dropped
MOST_POINTS = 200  # of a task, to compare forms by


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


def choose_form(
    learner: Any, forms: list[Form], tasks: TaskSet, shared: OutOfTask | None
) -> tuple[Form, dict[Form, float]]:
    """Return the best of several forms, and the relative errors of those compared to the end.

    The tasks are held out in folds. `shared` is the base of the forms that have one.
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
        forms, rounds, decide, score=np.sum, drop=partial(drop_without_gain, density=density),
        initial=np.empty((trial.n_views, 0)), join=lambda *errors: np.hstack(errors),
    )  # fmt: skip
    return selection.chosen


def drop_without_gain(
    errors: dict[Form, np.ndarray], density: dict[Form, float]
) -> dict[Form, np.ndarray]:
    """Return the first form, and those with smaller errors that make labels likelier.

    Errors (views, T) and log densities of the forms on the tasks that were held out until now; if
    these are few, all forms stay.
    """
    first, found = next(iter(errors.items()))
    if found.shape[1] < FEWEST_HELD_OUT:
        return errors
    scores = _relative(errors)

    def gains(form: Form) -> bool:
        return scores[form].sum() < 1 and density[form] > density[first]

    return {form: each for form, each in errors.items() if form == first or gains(form)}


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
