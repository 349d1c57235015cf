"""A learner with the schema of a table in front: from a table to answers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from condmeta.errors import DataError, FewTasksWarning
from condmeta.estimators import ConditionalLogistic, ConditionalRidge
from condmeta.estimators.held_out import FEWEST_TASKS
from condmeta.estimators.serving import atomic
from condmeta.evaluation import Calibrated, calibrate
from condmeta.table import storage
from condmeta.table.answers import Answering, as_table
from condmeta.table.columns import assign_columns
from condmeta.table.schema import Schema
from condmeta.table.stream import fit_batches
from condmeta.tasks import TaskSet
from condmeta.tasks.side_table import as_names
from condmeta.words import count


class TableModel(Answering):
    """A learner that reads tables as they are: task, target, features, side information by name.

    Numbers are features as they are, booleans 0 and 1, categories and text one-hot with rare
    levels pooled; levels that fit did not see are all zero and reported. A target of two values
    is two classes.

    Parameters
    ----------
    learner : learner, optional
        Any learner of condmeta; by default `ConditionalRidge`, or `ConditionalLogistic` if the
        target has two values. It is cloned.
    task : str or list of str
        The task column; several make tuple ids.
    target : str
        The column to predict.
    features : list of str, optional
        By default all columns that have no other role.
    exclude : list of str
        Columns that are no features.
    side : list of str, optional
        Side columns: of the table, where they are constant within a task, or of the side table
        that `fit` is given; by default all of that.
    side_key : str or list of str, optional
        The key of the side table; by default the column named like the task column.
    missing : "error" or "impute"
        What a missing feature is: an error with the count of each column, or the mean with a
        column that marks it; a level of its own in categories.
    missing_side : "error" or "mean"
        What a task without a row of side information is: an error, or one that starts from the
        mean. It is set in the learner.
    intervals : bool
        Whether `fit` calibrates prediction intervals on held-out tasks (see `calibrate`).
    order : "random" or "first"
        Which rows those tasks show: drawn, or their first ones in the table.

    Attributes
    ----------
    learner_ : learner or Calibrated
        What answers, fitted.
    schema_ : Schema
        How tables are read.
    n_rows_ : int
        Rows seen by `fit` and `update`.

    Examples
    --------
    >>> import pandas as pd, condmeta as cm
    >>> sales = pd.DataFrame({
    ...     "store": list("abcdefghijkl") * 2, "kind": ["new", "old", "old"] * 8,
    ...     "price": [1.0, 2, 3, 1, 2, 3] * 4, "sold": [9.0, 7, 5, 9, 8, 4] * 4,
    ... })
    >>> model = cm.TableModel(cm.PooledRegressor(), task="store", target="sold").fit(sales)
    >>> model.predict(sales).round(1).shape, model.schema_.feature_names
    ((24,), ['kind=new', 'kind=old', 'price'])
    """

    def __init__(
        self,
        learner: Any = None,
        *,
        task: Any,
        target: str,
        features: Any = None,
        exclude: Any = (),
        side: Any = None,
        side_key: Any = None,
        missing: str = "error",
        missing_side: str = "error",
        intervals: bool = False,
        order: str = "random",
    ):
        self.learner, self.task, self.target, self.features = learner, task, target, features
        self.exclude, self.side, self.side_key = exclude, side, side_key
        self.missing, self.missing_side = missing, missing_side
        self.intervals, self.order = intervals, order

    @atomic
    def fit(self, frame: Any, side_info: Any = None) -> TableModel:
        """Learn from a table of all tasks, and a table of one row a task if there is one.

        Tasks of the side table without rows are kept: they are predicted by their side row alone.
        """
        schema, tasks = self._learn_tasks(frame, side_info)
        learner = self._new_learner(schema.classes is not None)
        if self.intervals:
            self.learner_ = _calibrated(learner, tasks, self.order)
        else:
            _warn_of_few(tasks)
            self.learner_ = learner.fit(tasks)
        self.schema_, self.n_rows_ = schema, len(tasks.X)
        return self

    @atomic
    def fit_batches(self, batches: Any, side_info: Any = None) -> TableModel:
        """Learn from parts of a table that does not fit into memory; for `ConditionalRidge`.

        The rows of a task must follow each other, as in a table sorted by task; a task may go on
        in the next part. Kinds of columns and levels of categories are those of the first part.

        Parameters
        ----------
        batches : iterable of tables
        side_info : table, optional
            Its tasks without rows are left out.
        """
        fit_batches(self, map(as_table, batches), side_info)
        return self

    def _new_learner(self, classes: bool) -> Any:
        """Return the learner to fit."""
        if self.learner is not None:
            learner = clone(self.learner)
        else:
            learner = ConditionalLogistic() if classes else ConditionalRidge()
        if self.missing_side != "error" and "missing_side" in learner.get_params():
            learner.set_params(missing_side=self.missing_side)
        return learner

    def read_tasks(self, frame: Any, side_info: Any = None) -> TaskSet:
        """Return the tasks of a table as `fit` reads them, for `compare`, `advantage` and others.

        Classes are coded 0 and 1; the model is not changed.
        """
        return self._learn_tasks(frame, side_info)[1]

    def _learn_tasks(self, frame: Any, side_info: Any) -> tuple[Schema, TaskSet]:
        frame = as_table(frame)
        schema, X = self._learn_schema(frame, side_info, self.learner)
        side = schema.learn_side(frame, side_info, as_names(self.side))
        return schema, schema.tasks(frame, side, labelled=True, X=X)

    def _learn_schema(self, frame: Any, side_info: Any, learner: Any) -> tuple[Schema, np.ndarray]:
        """Return how tables are read, and the features of this one."""
        if self.missing not in ("error", "impute"):
            raise DataError(
                "The 'missing' parameter of TableModel must be 'error' or 'impute'. "
                f"Got {self.missing!r} instead."
            )
        own_side = self.side if side_info is None else None
        columns = assign_columns(
            frame, self.task, self.target, self.features, self.exclude, own_side
        )
        classifier = None if learner is None else is_classifier(learner)
        schema = Schema(columns, self.missing, self.side_key)
        rows = schema.rows(frame)
        schema.learn(frame, rows, classifier)
        return schema, np.ascontiguousarray(schema.encoder.transform(rows))

    def card(self) -> dict[str, Any]:
        """Return what a reader of the model wants to know: columns, sizes, settings, choices."""
        return {"class": "TableModel"} | storage.about(self)

    def save(self, path: Any, *, tasks: bool = True, resume: bool = True) -> None:
        """Write the model to a file: arrays and JSON only, nothing in it can run.

        Parameters
        ----------
        path : str or path
        tasks : bool
            Whether the models of the tasks go into it; False writes what is learned about all.
        resume : bool
            Whether to add what `update`, and intervals of known tasks, need. These are statistics
            of each task, from which the rows of tiny tasks could be read off.
        """
        storage.save(self, path, tasks, resume)

    def __repr__(self) -> str:
        learner = "" if self.learner is None else f"{self.learner!r}, "
        return f"TableModel({learner}task={self.task!r}, target={self.target!r})"


def _warn_of_few(tasks: TaskSet) -> None:
    n_tasks = int((tasks.sizes > 0).sum())
    if n_tasks < FEWEST_TASKS:
        warnings.warn(
            f"{count(n_tasks, 'task')} with rows: what tasks have in common is learned from "
            f"{FEWEST_TASKS} or more, better hundreds. One regression may do as well.",
            FewTasksWarning,
            stacklevel=4,
        )


def _calibrated(learner: Any, tasks: TaskSet, order: str) -> Calibrated:
    """Fit with intervals; refuse where no useful one could come out."""
    n_tasks = int((tasks.sizes > 0).sum())
    if n_tasks < FEWEST_TASKS:
        raise DataError(
            f"Intervals are found out on held-out tasks, and take {FEWEST_TASKS} of them at least; "
            f"there are {n_tasks}."
        )
    return calibrate(learner, tasks, order=order)


storage.register(TableModel)
