"""What a learner's target is: a number, or one of two classes."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from condmeta.errors import DataError
from condmeta.estimators.head import encode_labels
from condmeta.estimators.inputs import METADATA
from condmeta.losses import get_loss
from condmeta.tasks.frames import as_vector
from condmeta.tasks.ids import factorize
from condmeta.tasks.numbers import is_na
from condmeta.tasks.taskset import check_finite


def _is_logistic(learner) -> bool:
    return getattr(get_loss(learner.loss), "name", "") == "logistic"


class RealTarget(RegressorMixin):
    """A regression target; scores are R^2."""

    def _read_labels(self, y, task=None) -> np.ndarray:
        return as_vector(y)

    def _check_loss(self) -> None:
        loss = get_loss(self.loss)
        if getattr(loss, "signed", False):
            raise DataError(
                f"The loss {loss.name!r} is for classes. Use the classifier of the same name, or a "
                "regression loss."
            )

    def _centre(self):
        """Return the location that `y_offset_` takes off y, the loss's own one."""
        return np.mean if getattr(get_loss(self.loss), "name", "") == "squared" else np.median

    def score(self, X, y=None, *, task=None, side_info=None, sample_weight=None) -> float:
        """Return R^2 of the predictions."""
        y = target_of(X, y)
        from sklearn.metrics import r2_score  # slow to import, and fit does not need it

        predicted = self.predict(X, task=task, side_info=side_info)
        return r2_score(y, predicted, sample_weight=sample_weight)


class TwoClasses(ClassifierMixin):
    """A target with two classes, coded -1 and +1; a task may hold only one of them."""

    __metadata_request__decision_function = METADATA
    __metadata_request__predict_proba = METADATA

    def _read_labels(self, y, task=None) -> np.ndarray:
        _check_labels(y, task)
        if "classes_" not in self.__dict__:
            check_classification_targets(y)
            self._set_classes(y)
        return encode_labels(y, self.classes_)

    def _set_classes(self, classes) -> None:
        classes = np.unique(classes)
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
        self.classes_ = classes

    def _check_loss(self) -> None:
        loss = get_loss(self.loss)
        if hasattr(loss, "native") and not loss.signed:
            raise DataError(f"The loss {loss.name!r} is for numbers. Use 'hinge' or 'logistic'.")

    def _centre(self):
        return None

    def decision_function(self, X, *, task=None, side_info=None) -> np.ndarray:
        """Return the scores of rows X (N,); a positive one is the second class."""
        return self._scores(X, task, side_info)

    @available_if(_is_logistic)
    def predict_proba(self, X, *, task=None, side_info=None) -> np.ndarray:
        """Return the probabilities of the two classes (N, 2), in the order of `classes_`."""
        call = self._call_rows(X, task, side_info)
        return call.restore(self._head.probabilities(*self._models_of(call)))

    def score(self, X, y=None, *, task=None, side_info=None, sample_weight=None) -> float:
        """Return the accuracy of the predictions."""
        y = target_of(X, y)
        from sklearn.metrics import accuracy_score  # slow to import, and fit does not need it

        predicted = self.predict(X, task=task, side_info=side_info)
        return accuracy_score(y, predicted, sample_weight=sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _check_labels(y, task) -> None:
    """Name the first task whose label is missing."""
    if y.dtype.kind == "O":
        y = np.array([np.nan if is_na(label) else 0.0 for label in y])
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row_ids = None
        if task is not None:
            codes, ids = factorize(task)
            row_ids = ids[codes]
        check_finite(None, y, row_ids)


def target_of(X, y):
    """Return y, or the target of a TaskSet in the order in which predict answers."""
    return X.restore_order(X.y) if y is None and hasattr(X, "restore_order") else y
