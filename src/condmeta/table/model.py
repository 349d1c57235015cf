"""A learner with the schema of a table in front: from a table to answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from condmeta.errors import DataError
from condmeta.estimators import ConditionalLogistic, ConditionalRidge
from condmeta.estimators.held_out import FEWEST_TASKS
from condmeta.estimators.serving import atomic
from condmeta.estimators.tables import INTERCEPT, coefficient_names
from condmeta.evaluation import Calibrated, calibrate
from condmeta.table import storage
from condmeta.table.columns import assign_columns
from condmeta.table.schema import Schema
from condmeta.table.stream import fit_batches
from condmeta.tasks import TaskSet
from condmeta.tasks.frames import backend_of, eager, is_frame, make_frame
from condmeta.tasks.ids import id_columns
from condmeta.tasks.side_table import as_names


class TableModel:
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
    intervals : bool
        Whether `fit` calibrates prediction intervals on held-out tasks (see `calibrate`).

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
    ...     "store": ["a", "a", "b", "b", "c", "c"], "kind": ["new", "old"] * 3,
    ...     "price": [1.0, 2, 3, 1, 2, 3], "sold": [9.0, 7, 5, 9, 8, 4],
    ... })
    >>> model = cm.TableModel(cm.PooledRegressor(), task="store", target="sold").fit(sales)
    >>> model.predict(sales).round(1).shape, model.schema_.feature_names
    ((6,), ['kind=new', 'kind=old', 'price'])
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
        intervals: bool = False,
    ):
        self.learner, self.task, self.target, self.features = learner, task, target, features
        self.exclude, self.side, self.side_key = exclude, side, side_key
        self.missing, self.intervals = missing, intervals

    @atomic
    def fit(self, frame: Any, side_table: Any = None) -> TableModel:
        """Learn from a table of all tasks, and a table of one row a task if there is one.

        Tasks of the side table without rows are kept: they are predicted by their side row alone.
        """
        schema, tasks = self._learn_tasks(frame, side_table)
        if self.learner is not None:
            learner = clone(self.learner)
        else:
            learner = ConditionalRidge() if schema.classes is None else ConditionalLogistic()
        self.learner_ = _calibrated(learner, tasks) if self.intervals else learner.fit(tasks)
        self.schema_, self.n_rows_ = schema, len(tasks.X)
        return self

    @atomic
    def fit_batches(self, batches: Any, side_table: Any = None) -> TableModel:
        """Learn from parts of a table that does not fit into memory; for `ConditionalRidge`.

        The rows of a task must follow each other, as in a table sorted by task; a task may go on
        in the next part. Kinds of columns and levels of categories are those of the first part.

        Parameters
        ----------
        batches : iterable of tables
        side_table : table, optional
            Its tasks without rows are left out.
        """
        fit_batches(self, map(_table, batches), side_table)
        return self

    def read_tasks(self, frame: Any, side_table: Any = None) -> TaskSet:
        """Return the tasks of a table as `fit` reads them, for `compare`, `advantage` and others.

        Classes are coded 0 and 1; the model is not changed.
        """
        return self._learn_tasks(frame, side_table)[1]

    def _learn_tasks(self, frame: Any, side_table: Any) -> tuple[Schema, TaskSet]:
        frame = _table(frame)
        schema, X = self._learn_schema(frame, side_table, self.learner)
        side = schema.learn_side(frame, side_table, as_names(self.side))
        return schema, schema.tasks(frame, side, labelled=True, X=X)

    def _learn_schema(self, frame: Any, side_table: Any, learner: Any) -> tuple[Schema, np.ndarray]:
        """Return how tables are read, and the features of this one."""
        if self.missing not in ("error", "impute"):
            raise DataError(
                "The 'missing' parameter of TableModel must be 'error' or 'impute'. "
                f"Got {self.missing!r} instead."
            )
        own_side = self.side if side_table is None else None
        columns = assign_columns(
            frame, self.task, self.target, self.features, self.exclude, own_side
        )
        classifier = None if learner is None else is_classifier(learner)
        schema = Schema(columns, self.missing, self.side_key)
        rows = schema.rows(frame)
        schema.learn(frame, rows, classifier)
        return schema, np.ascontiguousarray(schema.encoder.transform(rows))

    def _read(self, frame: Any, side_table: Any, labelled: bool) -> TaskSet:
        if "schema_" not in self.__dict__:
            raise DataError("This TableModel is not fitted yet: call fit, or load a saved one.")
        frame = _table(frame)
        return self.schema_.tasks(frame, self.schema_.side(frame, side_table), labelled)

    def predict(self, frame: Any, side_table: Any = None, *, coverage: float | None = None) -> Any:
        """Predict the rows of a table: tasks known or new, by their points or side row.

        Parameters
        ----------
        frame : table
            Task and features; side columns, or `side_table`, where tasks are new.
        coverage : float in (0, 1), optional
            Return also the ends of intervals that hold a new label with this probability; the
            model must be fitted with `intervals=True`.

        Returns
        -------
        (N,) array of numbers or classes, or a tuple of predictions, lower and upper ends
        """
        tasks = self._read(frame, side_table, labelled=False)
        predicted = self._decoded(self.learner_.predict(tasks))
        return predicted if coverage is None else (predicted, *self._ends(tasks, coverage))

    def _decoded(self, predicted: np.ndarray) -> np.ndarray:
        classes = self.schema_.classes
        return predicted if classes is None else np.array(classes)[predicted.astype(int)]

    def _ends(self, tasks: TaskSet, coverage: float) -> tuple[np.ndarray, np.ndarray]:
        if not isinstance(self.learner_, Calibrated):
            raise DataError("The model has no intervals: fit it with intervals=True (--intervals).")
        return self.learner_.predict_interval(tasks, coverage=coverage)

    def predict_frame(
        self, frame: Any, side_table: Any = None, *, coverage: float | None = None
    ) -> Any:
        """Return predictions as a table of the kind of `frame`, a row for each of its rows.

        Columns: `prediction`; for classes `probability`, of the second of them, where the learner
        has any; with `coverage` also `lower` and `upper`; `points`, how many of its task the
        model knows; `kind`, "known" or "new".
        """
        tasks = self._read(frame, side_table, labelled=False)
        columns = {"prediction": self._decoded(self.learner_.predict(tasks))}
        if self.schema_.classes is not None and hasattr(self.learner_, "predict_proba"):
            columns["probability"] = self.learner_.predict_proba(tasks)[:, 1]
        if coverage is not None:
            columns["lower"], columns["upper"] = self._ends(tasks, coverage)
        columns["points"] = points = self.learner_.n_points(tasks)
        columns["kind"] = np.where(points > 0, "known", "new").astype(object)
        return make_frame(columns, backend_of(frame))

    def adapt(self, frame: Any, side_table: Any = None) -> Any:
        """Solve the tasks of a table from its rows alone; the model is not changed.

        Returns
        -------
        TaskModels, whose coefficients are those of `schema_.feature_names`
        """
        return self.learner_.adapt(self._read(frame, side_table, labelled=True))

    def adapt_frame(self, frame: Any, side_table: Any = None) -> Any:
        """Return what `adapt` finds as a table: task, n, intercept, one column a feature."""
        models, core = self.adapt(frame, side_table), self._with_coefficients()
        columns = id_columns(models.ids.tolist(), self.schema_.task_name) | {"n": models.n_}
        names = [name for name in coefficient_names(core) if name != INTERCEPT]
        columns[INTERCEPT] = np.broadcast_to(models.intercept_, len(models.ids))
        columns |= {name: models.coef_[:, j] for j, name in enumerate(names)}
        return make_frame(columns, backend_of(frame))

    @atomic
    def update(self, frame: Any, side_table: Any = None) -> TableModel:
        """Add the rows of a table to the tasks they belong to, and enrol new tasks.

        What was learned about all tasks stays. A model that was saved needs `save(resume=True)`.
        """
        tasks = self._read(frame, side_table, labelled=True)
        storage.require_resumable(self.learner_)
        self.learner_.update(tasks)
        self.n_rows_ += len(tasks.X)
        return self

    def n_points(self, frame: Any) -> np.ndarray:
        """Return for each row how many points of its task the model knows (N,); 0 is a new task."""
        return self.learner_.n_points(self._read(frame, None, labelled=False))

    def coef_frame(self, wide: bool = False) -> Any:
        """Return the coefficients of the tasks (see `ConditionalRidge.coef_frame`)."""
        return self._with_coefficients().coef_frame(wide)

    def _with_coefficients(self) -> Any:
        """Return the learner within, if its tasks have coefficients."""
        core = storage.core(self.learner_)
        if not hasattr(core, "coef_frame"):
            raise DataError(
                f"{type(core).__name__} mixes learners, so that a task has no coefficients: take "
                "one learner, such as ConditionalRidge (--learner ridge)."
            )
        return core

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


def _calibrated(learner: Any, tasks: TaskSet) -> Calibrated:
    """Fit with intervals; refuse where no useful one could come out."""
    count = int((tasks.sizes > 0).sum())
    if count < FEWEST_TASKS:
        raise DataError(
            f"Intervals are found out on held-out tasks, and take {FEWEST_TASKS} of them at least; "
            f"there are {count}."
        )
    return calibrate(learner, tasks)


def _table(frame: Any) -> Any:
    if not is_frame(frame):
        raise DataError(
            f"TableModel reads pandas, polars and PyArrow tables, got a {type(frame).__name__}."
        )
    return eager(frame)


storage.register(TableModel)
