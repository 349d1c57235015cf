"""What a learner predicts: a number, or a class."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from condmeta.learners.inputs import METADATA
from condmeta.learners.parameters import jobs_of
from condmeta.losses import get_loss
from condmeta.typing import Ids, Matrix, SideInfo, Values


class Regressor(RegressorMixin):
    """A learner that predicts numbers; `score` is R^2."""

    def score(
        self,
        X: Matrix,
        y: Values = None,
        *,
        task: Ids = None,
        side_info: SideInfo = None,
        sample_weight: Values = None,
    ) -> float:
        """Return R^2 of the predictions.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The rows to predict.
        y : (N,) array, optional
            The true targets; a TaskSet carries its own.
        task : (N,) ids, optional
            The task of each row, or the name of a column of X. If None, all rows belong to one
            task: with `side_info`, a new task; without, the only task of the fit.
        side_info : row or table, optional
            Side information of new tasks: a row for one task, a table keyed by task id for several.
            Known tasks do not need it.
        sample_weight : (N,) array, optional
            Weights of the rows in the mean.
        """
        from sklearn.metrics import r2_score  # slow to import, and fit does not need it

        predicted = self.predict(X, task=task, side_info=side_info)
        return r2_score(target_of(X, y), predicted, sample_weight=sample_weight)


class Classifier(ClassifierMixin):
    """A learner of classes; a task may hold only some of them."""

    __metadata_request__decision_function = METADATA
    __metadata_request__predict_proba = METADATA

    @property
    def classes_(self) -> np.ndarray:
        """The classes (K,)."""
        return self.fitted_.predictor.classes

    def decision_function(
        self, X: Matrix, *, task: Ids = None, side_info: SideInfo = None
    ) -> np.ndarray:
        """Return the scores of rows X (N,); a positive one is the second class.

        With more than two classes (N, K): log probabilities, the largest is predicted.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The rows to predict.
        task : (N,) ids, optional
            The task of each row, or the name of a column of X. If None, all rows belong to one
            task: with `side_info`, a new task; without, the only task of the fit.
        side_info : row or table, optional
            Side information of new tasks: a row for one task, a table keyed by task id for several.
            Known tasks do not need it.
        """
        fitted, rows = self._read_rows(X, task, side_info)
        return fitted.scores(rows, jobs_of(self))

    @available_if(lambda learner: getattr(get_loss(learner.loss), "name", "") == "logistic")
    def predict_proba(
        self, X: Matrix, *, task: Ids = None, side_info: SideInfo = None
    ) -> np.ndarray:
        """Return the probabilities of the classes (N, K), in the order of `classes_`.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The rows to predict.
        task : (N,) ids, optional
            The task of each row, or the name of a column of X. If None, all rows belong to one
            task: with `side_info`, a new task; without, the only task of the fit.
        side_info : row or table, optional
            Side information of new tasks: a row for one task, a table keyed by task id for several.
            Known tasks do not need it.
        """
        fitted, rows = self._read_rows(X, task, side_info)
        return fitted.predict_proba(rows, jobs_of(self))

    def score(
        self,
        X: Matrix,
        y: Values = None,
        *,
        task: Ids = None,
        side_info: SideInfo = None,
        sample_weight: Values = None,
    ) -> float:
        """Return the accuracy of the predictions.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The rows to predict.
        y : (N,) array, optional
            The true targets; a TaskSet carries its own.
        task : (N,) ids, optional
            The task of each row, or the name of a column of X. If None, all rows belong to one
            task: with `side_info`, a new task; without, the only task of the fit.
        side_info : row or table, optional
            Side information of new tasks: a row for one task, a table keyed by task id for several.
            Known tasks do not need it.
        sample_weight : (N,) array, optional
            Weights of the rows in the mean.
        """
        from sklearn.metrics import accuracy_score  # slow to import, and fit does not need it

        predicted = self.predict(X, task=task, side_info=side_info)
        return accuracy_score(target_of(X, y), predicted, sample_weight=sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._many_classes
        return tags


def target_of(X: Matrix, y: Values):
    """Return y, or the target of a TaskSet in the order in which predict answers."""
    return X.restore_order(X.y) if y is None and hasattr(X, "restore_order") else y
