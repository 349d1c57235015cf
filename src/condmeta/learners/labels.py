"""Labels of a call, as numbers (see `condmeta.fitted.label_codes`), and their classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.multiclass import check_classification_targets

from condmeta.errors import DataError
from condmeta.fitted.label_codes import SHARES, encode
from condmeta.tasks import TaskSet
from condmeta.tasks.checks import check_finite
from condmeta.tasks.ids import factorize
from condmeta.tasks.numbers import is_na
from condmeta.tasks.weights import Weighted
from condmeta.typing import Ids, Values


def kind_of(learner: Any) -> str:
    """Return the kind of labels that a learner reads: "number", "class" or "count"."""
    return getattr(learner, "_labels", "class" if is_classifier(learner) else "number")


def read_labels(learner: Any, y: Values, task: Ids, classes: Any = None, weight: Any = None):
    """Return labels (N,) as numbers, and the classes; None for a regressor.

    Without `classes` they are those of y. `weight` is what the call gave for the rows.
    """
    kind = kind_of(learner)
    task_of_row = None if task is None else RowTasks(task)
    if kind != "class":
        return encode(y, kind, None, weight, task_of_row), None
    check_missing(y, task)
    if isinstance(weight, Weighted) and weight.name == "trials":
        if classes is not None and classes.tolist() != SHARES.tolist():
            raise DataError(
                f"trials= is for a model that was fitted with trials. This one has the classes "
                f"{classes.tolist()}."
            )
        return encode(y, kind, None, weight, task_of_row), SHARES
    _check_one_kind(y)
    if classes is None:
        check_classification_targets(y)
        classes = learner._classes_of(y)
    return encode(y, kind, classes), classes


def sizes_of(learner: Any, tasks: TaskSet) -> Weighted | None:
    """Return the exposures or trials that a TaskSet holds for this learner."""
    name = {"count": "exposure", "class": "trials"}.get(kind_of(learner))
    if name is None or tasks.weight is None or tasks.weight.ndim == 1:
        return None
    return Weighted(None, tasks.weight[:, 1], name)


class RowTasks:
    """The task of a row, looked up when a message needs it."""

    def __init__(self, task: Ids):
        self.task = task

    def __call__(self, row: int):
        codes, ids = factorize(self.task)
        return ids[codes[row]]


def two_classes(labels: Any) -> np.ndarray:
    """Return the two classes of labels, sorted, or raise."""
    classes = np.unique(labels)
    if len(classes) > 2:
        raise DataError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"y holds {len(classes)} classes. Use ConditionalLogistic; if the classes have an "
            "order, ConditionalOrdinal."
        )
    return some_classes(classes)


def some_classes(labels: Any) -> np.ndarray:
    """Return the two or more classes of labels, sorted, or raise."""
    classes = np.unique(labels)
    if len(classes) < 2:
        raise DataError(
            f"y holds the single class {classes.tolist()}: a classifier can't be fitted with "
            "one class. In partial_fit give both by classes=."
        )
    return classes


def _check_one_kind(y: Values) -> None:
    """Raise if labels are of kinds that have no order, such as text and numbers."""
    if y.dtype.kind == "O":
        if any(isinstance(label, (list, dict, set)) for label in y):
            raise DataError("y holds lists as labels: labels are texts, numbers or booleans.")
        kinds = {isinstance(label, str): label for label in y}
        if len(kinds) > 1:
            raise DataError(
                f"y mixes text and numbers ({kinds[True]!r} and {kinds[False]!r}): write all "
                "classes as one of them."
            )


def check_missing(y: Values, task: Ids = None) -> None:
    """Raise for the first missing label, with its task."""
    if y.dtype.kind == "O":
        y = np.array([np.nan if is_na(label) else 0.0 for label in y])
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row_ids = None
        if task is not None:
            codes, ids = factorize(task)
            row_ids = ids[codes]
        check_finite(None, y, row_ids)
