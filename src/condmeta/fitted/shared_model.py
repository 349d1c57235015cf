"""A shared model of all tasks; each task's linear model is fitted to its residuals.

A shared model f(x, s) is any model of the row's features and its task's side columns. It captures
effects that the tasks share and that are not linear. For a numeric target the per-task models are
fitted to the residuals y - f. For two classes f is the log odds of the second class, and becomes
one more input of the per-task models. In training, f must come from fits that did not see the task:
in-sample residuals would leave the per-task models nothing to learn.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from condmeta.errors import DataError, ModelFileError
from condmeta.feature_maps import ComposedMap
from condmeta.fitted.boosted_trees import BoostedTrees
from condmeta.fitted.boosting import LARGEST_LOG_ODDS, BoostingRows, fit_boosting
from condmeta.fitted.target import TargetScale
from condmeta.persistence.fields import (
    FLAG,
    InvalidFieldError,
    floats,
    instance,
    maybe,
    number,
    optional,
)
from condmeta.persistence.registry import register_tuple
from condmeta.tasks import TaskSet
from condmeta.tasks.numbers import power_of_two
from condmeta.tasks.splits import FOLDS, folds_by_content, rows_by_content, tasks_by_content
from condmeta.tasks.weights import masses


def _fill_is_of_the_encoder(state: dict, sizes: dict[str, int]) -> None:
    if state["encoder"] is None and len(state["fill"]):
        raise InvalidFieldError("fill", "must be empty without an encoder")


@register_tuple(
    name="Base",
    rule=_fill_is_of_the_encoder,
    fields={
        "model": instance("BoostedTrees"), "encoder": maybe(instance("ComposedMap", k="s")),
        "fill": floats("s"), "classes": FLAG, "unit": optional(number(above=0)),
    },
)  # fmt: skip
class SharedModel(NamedTuple):
    """A fitted shared model: the model, the encoder of side rows (or None), the mean coordinates.

    `classes`: the model has two classes, and f is the log odds of the second. A model of numbers
    was fitted to y / unit, a power of two.
    """

    model: Any
    encoder: ComposedMap | None
    fill: np.ndarray
    classes: bool = False
    unit: float = 1.0

    def sides(self, ids, table) -> np.ndarray:
        """Return the side coordinates (T, k) of tasks; those without a side row have the mean."""
        if self.encoder is None:
            return np.empty((len(ids), 0))
        has = np.zeros(len(ids), bool) if table is None else table.has(ids)
        rows = np.flatnonzero(has)
        given = table.align(self.encoder.columns_).take(ids[rows]) if len(rows) else None
        return self.encoder.transform(len(ids), table=given, rows=rows, fill=self.fill)

    def predict(self, X, sides) -> np.ndarray:
        """Return f(x, s) of rows X (N, d) with the side coordinates of their tasks (N, k)."""
        return self.unit * _output(self.model, np.hstack([X, sides]), self.classes)

    def head_inputs(self, X, y, sides) -> tuple[np.ndarray, Any]:
        """Return inputs and labels of the per-task models; `sides` (N, k) by row."""
        return head_inputs(X, y, self.predict(X, sides), self.classes)


class OutOfTask(NamedTuple):
    """A fitted shared model, and out-of-task predictions (N,) for the training rows.

    `target` is the scale of the labels that it was fitted to; None for labels as they are.
    """

    model: SharedModel
    unseen: np.ndarray
    target: TargetScale | None = None

    def head_inputs(self, tasks: TaskSet) -> TaskSet:
        """Return the training tasks as the per-task models see them."""
        return tasks.with_rows(*head_inputs(tasks.X, tasks.y, self.unseen, self.model.classes))


def require_storable(shared: SharedModel | None) -> None:
    """Raise if a model file cannot hold the shared model."""
    if shared is not None and not isinstance(shared.model, BoostedTrees):
        raise ModelFileError(
            f"A model file cannot hold the base {type(shared.model).__name__}. Use "
            "base='boosting'. Or run the base yourself and pass its predictions as offset= (for "
            "two classes: its log odds as a column of X). Or pickle the learner, and open only "
            "pickles that you trust."
        )


def head_inputs(X, y, base_output, classes: bool) -> tuple[np.ndarray, Any]:
    """Return inputs and labels of the per-task models, from the output (N,) of the shared model."""
    if not classes:
        return X, y - base_output
    # An input, not an offset of fixed weight 1: trees are overconfident on unseen tasks, and the
    # learned prior of this weight corrects that.
    return np.column_stack([X, np.clip(base_output, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)]), y


def fit_shared_model(base, tasks: TaskSet, classes: bool, criterion: str) -> OutOfTask:
    """Fit a shared model to all tasks, and for each fold of tasks to the others.

    `base` is "boosting" or a scikit-learn model; `classes`: the labels are -1 and +1, not numbers.
    `criterion` is the loss that settings of boosting are chosen by. There are 5 folds of tasks;
    with fewer tasks each is a fold.
    """
    model = None if isinstance(base, str) and base == "boosting" else _make(base, classes)
    encoder, fill, Phi = None, np.zeros(0), np.empty((len(tasks), 0))
    if tasks.side is not None:
        present = tasks.side.has(tasks.ids) & (tasks.sizes > 0)
        if present.any():
            encoder = ComposedMap("auto").fit(tasks.side.take(tasks.ids[present]))
            unfilled = SharedModel(None, encoder, np.zeros(encoder.n_features_out))
            fill = unfilled.sides(tasks.ids[present], tasks.side).mean(axis=0)
            Phi = SharedModel(None, encoder, fill).sides(tasks.ids, tasks.side)
    task = np.repeat(np.arange(len(tasks)), tasks.sizes)
    filled = int((tasks.sizes > 0).sum())
    if filled < 2:
        raise DataError(
            "base= needs at least two tasks with points, because it is also fitted with some "
            "tasks left out."
        )
    fold = folds_by_content(tasks, min(FOLDS, filled))[task]
    unit = 1.0 if classes else float(power_of_two(np.abs(tasks.y).max()))  # trees use float32
    tasks = tasks if unit == 1.0 else tasks.with_target(tasks.y / unit)
    Z = np.hstack([tasks.X, Phi[task]])
    if model is None:
        number, order = _by_content(tasks, task)
        rows = BoostingRows(Z, tasks.y, masses(tasks.weight), number, fold).where(order)
        unseen = np.empty(len(Z))
        fitted, unseen[order] = fit_boosting(rows, criterion)
        return OutOfTask(SharedModel(fitted, encoder, fill, classes, unit), unit * unseen)
    unseen = np.empty(len(Z))
    for f in np.unique(fold):
        left_out = fold == f
        plus, minus = ((label * tasks.y[~left_out] > 0).sum() for label in (1, -1))
        if classes and min(plus, minus) < 2:  # too few for most classifiers
            unseen[left_out] = np.inf if plus > minus else -np.inf
        else:
            fitted = _fitted(model, Z, tasks, task, ~left_out)
            unseen[left_out] = _output(fitted, Z[left_out], classes)
    fitted = _fitted(model, Z, tasks, task, slice(None))
    return OutOfTask(SharedModel(fitted, encoder, fill, classes, unit), unit * unseen)


def _by_content(tasks: TaskSet, task: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of the rows' tasks (N,), and an order of rows (N,), both by content alone.

    Trees of rows in another order differ by rounding, and a choice between equals with them.
    """
    number = np.empty(len(tasks), np.int64)
    number[tasks_by_content(tasks)] = np.arange(len(tasks))
    order = rows_by_content(tasks)
    return number[task], order[np.argsort(number[task[order]], kind="stable")]


def _fitted(model, Z, tasks: TaskSet, task, rows):
    """Fit a model of the user's to some rows, with their weights and tasks if it takes them."""
    given = {"groups": task[rows]} if _takes_groups(model) else {}
    if tasks.weight is not None:
        if not has_fit_parameter(model, "sample_weight"):
            raise DataError(
                f"The base {type(model).__name__} takes no sample_weight: use base='boosting' or "
                "another model that does, or leave sample_weight out."
            )
        given["sample_weight"] = masses(tasks.weight)[rows]
    return clone(model).fit(Z[rows], tasks.y[rows], **given)


def _takes_groups(model) -> bool:
    """Return whether `fit` takes groups of rows: by name, or a search for its group splitter."""
    splitter = getattr(model, "cv", None)
    by_group = hasattr(splitter, "set_split_request") and "Group" in type(splitter).__name__
    return has_fit_parameter(model, "groups") or by_group


def _output(model, Z, classes: bool) -> np.ndarray:
    """Return the predictions of a model for rows Z (N, p): numbers, or log odds."""
    if not len(Z):  # models of scikit-learn refuse an empty array
        return np.empty(0)
    if classes and not isinstance(model, BoostedTrees):  # BoostedTrees predict log odds
        return logit(model.predict_proba(Z)[:, 1])
    return model.predict(Z)


def _make(base, classes: bool):
    answers = "predict_proba" if classes else "predict"
    if hasattr(base, "fit") and hasattr(base, answers) and not isinstance(base, type):
        return copy.deepcopy(base)
    kind = "classifier with predict_proba" if classes else "regressor"
    raise DataError(
        f"The 'base' parameter must be None, 'boosting' or a scikit-learn {kind}. "
        f"Got {base!r} instead."
    )
