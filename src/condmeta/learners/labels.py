"""Labels of a call: numbers, or two classes as -1 and +1."""

from __future__ import annotations

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from condmeta.errors import DataError
from condmeta.fitted.predictor import encode_labels
from condmeta.tasks.checks import check_finite
from condmeta.tasks.frames import as_vector
from condmeta.tasks.ids import factorize
from condmeta.tasks.numbers import is_na


def read_labels(y, task, is_classifier: bool, classes=None):
    """Return labels (N,) as numbers, and the two classes; None for a regressor.

    Without `classes` they are those of y.
    """
    if not is_classifier:
        return as_vector(y), None
    _check_missing(y, task)
    _check_one_kind(y)
    if classes is None:
        check_classification_targets(y)
        classes = two_classes(y)
    return encode_labels(y, classes), classes


def two_classes(labels) -> np.ndarray:
    """Return the two classes of labels, sorted, or raise."""
    classes = np.unique(labels)
    if len(classes) > 2:
        raise DataError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"y holds {len(classes)} classes. Wrap the learner with task_column set in "
            "sklearn.multiclass.OneVsRestClassifier."
        )
    if len(classes) < 2:
        raise DataError(
            f"y holds the single class {classes.tolist()}: a classifier can't be fitted with "
            "one class. In partial_fit give both by classes=."
        )
    return classes


def _check_one_kind(y) -> None:
    """Raise if labels are of kinds that have no order, such as text and numbers."""
    if y.dtype.kind == "O":
        kinds = {isinstance(label, str): label for label in y}
        if len(kinds) > 1:
            raise DataError(
                f"y mixes text and numbers ({kinds[True]!r} and {kinds[False]!r}): write all "
                "classes as one of them."
            )


def _check_missing(y, task) -> None:
    """Raise for the first missing label, with its task."""
    if y.dtype.kind == "O":
        y = np.array([np.nan if is_na(label) else 0.0 for label in y])
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row_ids = None
        if task is not None:
            codes, ids = factorize(task)
            row_ids = ids[codes]
        check_finite(None, y, row_ids)
