"""What `ConditionalRidge` is fitted to: transformations of x and y, and a base.

The learner names each of them, or says "auto": held-out tasks then decide (`form_choice.py`).
Transformations are learned from a sample of the tasks.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from condmeta.fitted.shared_model import OutOfTask
from condmeta.fitted.splines import SPLINES
from condmeta.fitted.target import TargetScale
from condmeta.fitted.x_transformer import fit_transformer
from condmeta.learners.form import Form
from condmeta.learners.form_choice import can_judge, choose_form
from condmeta.learners.inputs import Inputs
from condmeta.learners.parameters import is_auto
from condmeta.learners.shared_base import BOOSTING, FEWEST_ROWS, shared_model_of
from condmeta.learners.side_inputs import side_reader
from condmeta.learners.task_sample import keyed_tasks, sampled
from condmeta.tasks import TaskSet
from condmeta.tasks.weights import masses, repeats

POWER = "yeo-johnson"


def with_transforms(learner: Any, given: Inputs, choose: bool = True) -> Inputs:
    """Return the inputs with labels on their scale, the transformation of x, and the base.

    The learner names each of them. "auto" is chosen; without `choose` it is none. Labels that are
    on a scale already stay there. A sample of the tasks decides, unless a base may be chosen: a
    base is fitted to all tasks.
    """
    named = named_form(learner, given, choose)
    plain = named.x_transform is None and named.y_transform is None and not is_auto(named.base)
    if plain or not hasattr(learner, "x_transform"):
        return given._replace(form=named)
    tasks = given.tasks
    if any(map(is_auto, named)) and can_judge(learner, given):
        side_reader(learner).require_rows(tasks.ids[tasks.sizes > 0], tasks.side)
    sample, keys = given, None
    if not is_auto(named.base):
        keyed = keyed_tasks(tasks)
        sample, keys = given._replace(tasks=sampled(keyed, tasks)), keyed.keys
    chosen = choose_transforms(learner, named, sample, (tasks.y.min(), tasks.y.max()))
    unchanged = chosen.form == Form() and learner.scale != "rows"  # other rows have other keys
    return put_on_scale(chosen._replace(tasks=tasks, keys=keys if unchanged else None))


def named_form(learner: Any, given: Inputs, choose: bool = True) -> Form:
    """Return what a learner names; "auto" is none without `choose`."""
    named = Form(*(getattr(learner, name, None) for name in Form._fields))
    named = named if given.target is None else named._replace(y_transform=None)
    return named if choose else Form(*(None if is_auto(value) else value for value in named))


def choose_transforms(
    learner: Any, named: Form, given: Inputs, ends: tuple[float, float]
) -> Inputs:
    """Return the inputs with the form, the fitted transformations of x and y, and a chosen base.

    The tasks of `given` are the sample (see `task_sample`) by rising key, so that transformations
    have the same bits wherever the rows are. `ends` are the least and the largest label of all
    rows. Labels are not transformed yet: `put_on_scale` does that to all of them.
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
            form, errors = choose_form(learner, forms, tasks, shared)
    transformer = fit_transformer(form.x_transform, tasks.X, masses(tasks.weight))
    chosen = shared if form.base is not None else None
    given = given._replace(form=form, transformer=transformer, form_errors=errors, shared=chosen)
    if form.y_transform is None:
        return given
    target = _scale_of(form, tasks, ends)
    if learner.criterion == "squared":
        # Predictions are means over the noise; `learn.with_learned` puts in that of the prior.
        target = target._replace(spread=float(target.apply(tasks.y).std()))
    return given._replace(target=target)


def put_on_scale(given: Inputs) -> Inputs:
    """Return the inputs with labels on the scale that was learned for them."""
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
