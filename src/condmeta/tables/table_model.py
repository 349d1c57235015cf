"""A learner that reads tables: from a table to predictions and coefficients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np
from sklearn.base import BaseEstimator, clone

from condmeta import persistence
from condmeta.errors import DataError
from condmeta.evaluation import CheckReport, Explanation, check, explain
from condmeta.evaluation.extrapolation import warn_extrapolating
from condmeta.fitted.against_rest import with_classes
from condmeta.fitted.sql import Tables
from condmeta.fitted.summary import Summary
from condmeta.fitted.task_model import TaskModels
from condmeta.learners.blend import BlendedModels
from condmeta.learners.copies import with_fitted
from condmeta.learners.writing import writing
from condmeta.persistence.fields import ANY, InvalidFieldError, instance, mapping, number
from condmeta.tables import predictions
from condmeta.tables.additions import digest_of, with_table
from condmeta.tables.cluster.predict import predict_lazily
from condmeta.tables.fit_table import fit_table, note_transforms, read_training
from condmeta.tables.fitted_table import FittedTable, as_table
from condmeta.tables.learner import require_resumable, uncalibrated
from condmeta.tables.roles import ColumnOptions
from condmeta.tables.schema import Schema
from condmeta.tables.sql import table_query
from condmeta.tables.stream import fit_parts
from condmeta.tasks import TaskSet
from condmeta.tasks.frames import backend_of, is_dask, make_frame
from condmeta.tasks.side_table import as_names
from condmeta.typing import (
    DatePart,
    Frame,
    Ids,
    LearnerLike,
    Missing,
    MissingSide,
    Names,
    Order,
    PathLike,
    SideInfo,
    Table,
)
from condmeta.warn import warn

if TYPE_CHECKING:
    from condmeta.tables.files.dialect import CsvOptions


FITTED = "learner_", "schema_", "n_rows_", "added_"


@dataclass(eq=False, repr=False)
class TableModel(BaseEstimator):
    """A learner that reads tables: task, target, features and side columns are given by name.

    A `TableModel` is a model of all tasks. A `TaskTable` holds one row of side information for each
    task. A `TaskModel` is the model of one task.

    Numbers are used as they are. Booleans become 0 and 1. Categories and text become one-hot
    columns, in which rare levels share one column; levels that `fit` did not see are all zero, with
    a warning. Dates become weekday and days, and month if all twelve occur; text such as 12%, EUR 5
    or 1,904.66 becomes a number; a `ReadingNote` says so. A target with two values is read as two
    classes, a column of ordered categories as ordered classes, and whole numbers with zeros and a
    long tail as counts (a `ReadingNote` says so).

    Parameters
    ----------
    learner : learner, optional
        Any learner of condmeta; by default `ConditionalRidge`, or `ConditionalLogistic` if the
        target has two values, `ConditionalOrdinal` if it has ordered categories,
        `ConditionalCount` if it holds counts. It is cloned.
    task : str or list of str
        The task column; several columns make tuple ids.
    target : str
        The column to predict.
    features : list of str, optional
        By default all columns that have no other role.
    exclude : list of str
        Columns of the table or of the side table that the model must not read.
    side : list of str, optional
        Side columns. If `fit` gets a side table, these are columns of it, by default all of
        them. Otherwise they are columns of the table that are constant within a task.
    side_key : str or list of str, optional
        The key of the side table; by default the column named like the task column.
    missing : "error" or "impute"
        What to do with missing features: raise an error that counts them by column, or use the mean
        and add a column that marks them (in categories, missing is a level of its own). Boosted
        trees treat marked values as missing.
    missing_side : "error" or "mean"
        What to do with a task that has no row in the side table: raise an error, or treat it as an
        average task. The parameter is set in the learner.
    intervals : bool
        Whether `fit` calibrates prediction intervals on held-out tasks (see `calibrate`).
    order : "random" or "first"
        Which rows of a held-out task the calibration adapts to: a random sample, or its first rows
        in the table.
    text : list of str
        Columns to read as text, even if they look like numbers or dates.
    dates : list of str, optional
        Features to make from a column of dates: any of "weekday" and "month" (categories) and
        "days" since the earliest date (a number). By default, dates of rows become weekday and
        days, and also month if all twelve occur; dates of the side table become days.
    holidays : str, optional
        A country, such as "DE" or "US-NY". A further feature then says whether a date of the table
        is a public holiday there. This needs the package holidays: `pip install "condmeta[dates]"`.
    decimal : "." or ",", optional
        The decimal sign of numbers that are written as text, such as 1,904: needed only where they
        can be read in two ways.
    side_decimal : "." or ",", optional
        The same for the side table; by default `decimal`.
    time : str, optional
        The column with the time of each row, for tasks that change (see the `drift` of
        `ConditionalRidge`): numbers, or dates, which count in days. It is a feature only if
        `features` names it. Tables for `predict` may lack it: known tasks are then predicted as of
        their latest row.
    exposure : str, optional
        The column to which expected counts are proportional, such as days or visitors. The target
        is then read as counts. Tables for `predict` need it too.
    trials : str, optional
        The column with the number of trials, if the target is the number of successes. Predictions
        are then shares.
    weight : str, optional
        The column that says how often a row counts (see `sample_weight` of the learner). It is not
        a feature, and tables for `predict` may lack it.

    Attributes
    ----------
    learner_ : learner or Calibrated
        The fitted learner.
    schema_ : Schema
        How tables are read.
    n_rows_ : int
        Number of rows seen by `fit` and `update`.
    added_ : dict of digest -> number of rows
        The tables whose rows the model holds: that of `fit`, and those of `update` with more than
        one row.

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

    learner: LearnerLike | None = None
    _: KW_ONLY
    task: Names
    target: str
    features: Names = None
    exclude: Names = ()
    side: Names = None
    side_key: Names = None
    missing: Missing = "error"
    missing_side: MissingSide = "error"
    intervals: bool = False
    order: Order = "random"
    text: Names = ()
    dates: DatePart | Sequence[DatePart] | None = None
    holidays: str | None = None
    decimal: Literal[".", ","] | None = None
    time: str | None = None
    exposure: str | None = None
    trials: str | None = None
    weight: str | None = None
    side_decimal: Literal[".", ","] | None = None

    @property
    def learner_(self) -> Any:
        """The fitted learner."""
        return self._model.learner

    @property
    def schema_(self) -> Schema:
        """How tables are read."""
        return self._model.schema

    @property
    def n_rows_(self) -> int:
        """Number of rows seen by `fit` and `update`."""
        return self._model.n_rows

    @property
    def added_(self) -> dict[str, int]:
        """The tables whose rows the model holds."""
        return self._model.added

    @property
    def _fitted(self) -> FittedTable:
        if not self.__sklearn_is_fitted__():
            raise DataError("This TableModel is not fitted yet: call fit, or load a saved one.")
        return self._model

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    # -- learn: the value is set last, so a call that fails leaves the model as it was ----------

    def fit(self, frame: Table, side_info: SideInfo = None) -> Self:
        """Learn from a table of all tasks, and a side table with one row a task if there is one.

        Tasks of the side table without rows are kept: they are predicted by their side row alone. A
        Dask DataFrame is fitted by `fit_dask`.
        """
        if is_dask(frame):
            return self.fit_dask(frame, side_info)
        self._model = fit_table(
            self.learner, frame, side_info, self._columns(), self.missing, self.missing_side,
            self.intervals, self.order,
        )  # fmt: skip
        return self

    def fit_batches(self, batches: Iterable[Table], side_info: SideInfo = None) -> Self:
        """Learn from parts of a table that does not fit into memory; for `ConditionalRidge`.

        The rows of a task must follow each other, as in a table sorted by task; a task may go on
        in the next part. Kinds of columns and levels of categories are those of the first part.

        Parameters
        ----------
        batches : iterable of tables
        side_info : table, optional
            Its tasks without rows are left out.
        """
        self._refuse_intervals()
        parts = map(as_table, batches)
        self._model = FittedTable(
            *fit_parts(self.learner, parts, side_info, self._columns(), self.missing)
        )
        return self

    def fit_files(
        self, files: PathLike | Sequence[PathLike], side_info: SideInfo = None, *,
        memory: str = "1GB", folder: PathLike | None = None, text: Names = (),
        csv: CsvOptions | None = None, prior_tasks: int | None = None,
    ) -> Self:  # fmt: skip
        """Learn from rows in many files, which need not fit into memory.

        Rows come in any order. DuckDB orders them by task on disk; they are then reduced to
        statistics in files, from which the prior is learned. Memory has to hold the models of the
        tasks and the side table: about 8 (2 d + 3 k + 20) bytes a task with d features and k side
        columns. The model is that of `fit` on the same rows in memory, bit for bit; statistics of
        more than a quarter of the memory are not kept in it, and then it takes no `update`. Kinds
        of columns and levels of categories are learned from all rows. It needs DuckDB and PyArrow:
        `pip install "condmeta[big]"`.

        `ConditionalLogistic`, `ConditionalCount`, `ConditionalOrdinal`, and `ConditionalRidge` with
        a base, need rows: they learn their prior from a sample of whole tasks,
        then solve all tasks by it. The model is that of `fit` to the sample and `update` with the
        rest, and takes no further update. Without a learner, a target of two values or of text is
        read as classes, other targets as numbers.

        Parameters
        ----------
        files : path, or list of paths
            Parquet, CSV or Feather files, patterns such as ``"sales/*.parquet"``, or folders with
            such files; a folder named country=DE is a column.
        side_info : table or path, optional
            One row of side information for each task.
        memory : str
            The most that the fit may use, such as "2GB".
        folder : path, optional
            Where to work. If the fit is stopped, the same call goes on there; the folder is left,
            with the ordered rows in it. By default a temporary folder, which is removed.
        text : list of str
            Columns that are read as text, such as ids that are numbers.
        csv : CsvOptions, optional
            Delimiter, decimal sign and encoding of CSV files.
        prior_tasks : int, optional
            How many tasks a learner that needs rows learns its prior from: those with the smallest
            hashes of their rows. By default at most 10,000 tasks with 2,000,000 rows; a
            `ReadingNote` says how many.

        Examples
        --------
        >>> import tempfile, pathlib, pandas as pd, condmeta as cm
        >>> sales = pd.DataFrame({
        ...     "store": list("abcdefghijkl") * 2, "price": [1.0, 2, 3, 1, 2, 3] * 4,
        ...     "sold": [9.0, 7, 5, 9, 8, 4] * 4,
        ... })
        >>> model = cm.TableModel(task="store", target="sold")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for day in range(3):
        ...         path = pathlib.Path(folder, f"{day}.parquet")
        ...         sales[sales.index % 3 == day].to_parquet(path)
        ...     model = model.fit_files(f"{folder}/*.parquet", memory="100MB")
        >>> model.n_rows_, model.predict(sales).shape
        (24, (24,))
        """
        from condmeta.tables.big.fit import fit_files

        self._require_statistics()
        how = {"memory": memory, "folder": folder, "text": as_names(text), "csv": csv}
        how["prior_tasks"] = prior_tasks
        columns = self._columns()
        self._model = FittedTable(
            *fit_files(
                self.learner, files, side_info, columns, self.missing, self.missing_side, **how
            )
        )
        note_transforms(self.learner_, self.target)
        return self

    def fit_dask(
        self, rows: Any, side_info: SideInfo = None, *, client: Any = None,
        folder: PathLike | None = None, text: Names = (), prior_tasks: int | None = None,
    ) -> Self:  # fmt: skip
        """Learn from rows on a Dask cluster.

        Workers split the rows by task, and reduce each task to statistics. The prior is learned
        here from sums that workers send: for any number of workers and any partitions it is the
        model of `fit` on the same rows in memory, bit for bit. A worker that dies changes nothing.
        Learners that need rows learn their prior here from a sample of whole tasks, and workers
        solve the others (see `fit_files`). Learners with `partial_fit` go through the partitions in
        their order, a worker after another; each task must be in one partition. It needs Dask:
        `pip install "condmeta[dask]"`.

        Parameters
        ----------
        rows : Dask DataFrame, or list of Parquet files
        side_info : table or path, optional
            One row of side information for each task; it is held in memory here.
        client : distributed.Client, optional
            By default the client of this process.
        folder : path, optional
            An empty folder, or a new one, on a disk that this process and all workers reach: rows
            and statistics are written there, and removed at the end. By default a temporary folder
            of this machine.
        text : list of str
            Columns that are read as text, such as ids that are numbers.
        prior_tasks : int, optional
            How many tasks a learner that needs rows learns its prior from (see `fit_files`).
        """
        from condmeta.tables.cluster.fit import fit_on_workers
        from condmeta.tables.cluster.workers import current_client

        self._require_statistics()
        client = current_client() if client is None else client
        self._model = FittedTable(
            *fit_on_workers(
                self.learner, rows, side_info, self._columns(), self.missing, self.missing_side,
                client, folder, as_names(text), prior_tasks,
            )
        )  # fmt: skip
        note_transforms(self.learner_, self.target)
        return self

    def _require_statistics(self) -> None:
        """Refuse intervals and times, for which the statistics of tasks do not suffice."""
        self._refuse_intervals()
        if self.time is not None:
            raise DataError("Times need all rows at once: fit the table whole, or without time=.")

    def _refuse_intervals(self) -> None:
        if self.intervals:
            raise DataError(
                "Intervals need all rows at once: fit the table whole, or without intervals."
            )

    def update(self, frame: Table, side_info: SideInfo = None, *, again: bool = False) -> Self:
        """Add the rows of a table to the tasks they belong to, and enrol new tasks, in place.

        What was learned about all tasks stays. A model that was saved needs `save(resume=True)`.
        A table whose rows the model holds already, in any order, is refused: its rows would count
        twice. A table of one row is never refused, as sensors often report the same values.

        Parameters
        ----------
        frame : table
        side_info : table, optional
        again : bool
            Whether to add the table even if the model holds its rows already.
        """
        with writing(self):
            model = self._fitted
            tasks = model.read(frame, side_info, labelled=True)
            require_resumable(model.learner)
            added = with_table(model.added, tasks, again)
            model.learner.update(tasks)
            n_rows, schema = model.n_rows + len(tasks.X), model.schema.widened(tasks.X)
            self._model = replace(model, schema=schema, n_rows=n_rows, added=added)
        return self

    def read_tasks(self, frame: Table, side_info: SideInfo = None) -> TaskSet:
        """Return the tasks of a table as `fit` reads them, for `compare`, `advantage` and others.

        Classes are coded 0 and 1; the model is not changed.
        """
        columns = self._columns()
        return read_training(self.learner, frame, side_info, columns, self.missing)[1]

    def _columns(self) -> ColumnOptions:
        return ColumnOptions(
            self.task, self.target, self.features, self.exclude, self.side, self.side_key,
            text=as_names(self.text), holidays=self.holidays,
            dates=None if self.dates is None else as_names(self.dates),
            decimal=self.decimal, time=self.time, exposure=self.exposure, trials=self.trials,
            weight=self.weight, side_decimal=self.side_decimal,
        )  # fmt: skip

    # -- predict and adapt ----------------------------------------------------------------------

    @overload
    def predict(
        self, frame: Table, side_info: SideInfo = None, *, coverage: None = None
    ) -> np.ndarray: ...
    @overload
    def predict(
        self, frame: Table, side_info: SideInfo = None, *, coverage: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
    def predict(
        self, frame: Table, side_info: SideInfo = None, *, coverage: float | None = None
    ) -> np.ndarray | tuple[np.ndarray, ...]:
        """Predict the rows of a table; a new task is predicted by its side information.

        Parameters
        ----------
        frame : table, or Dask DataFrame
            The task and feature columns. New tasks also need their side information: the side
            columns in `frame`, or `side_info`.
        side_info : table, optional
        coverage : float in (0, 1), optional
            Return also the ends of intervals that contain a new label with this probability; the
            model must be fitted with `intervals=True`, unless the target holds counts.

        Returns
        -------
        (N,) array of numbers, classes, mean counts or shares, or a tuple of predictions, lower and
        upper ends; of a Dask DataFrame a lazy Dask series, for which each worker loads the model
        once from a temporary folder of this machine
        """
        model = self._fitted
        if is_dask(frame):
            if coverage is not None:
                raise DataError(
                    "Intervals are for tables in memory: predict partition by partition."
                )
            return predict_lazily(self, frame, side_info)
        tasks, _ = model.read_new(frame, side_info)
        predicted = predictions.predict(model, tasks)
        if coverage is None:
            return predicted
        return predicted, *predictions.interval(model, tasks, coverage)

    def score(self, frame: Table, side_info: SideInfo = None) -> float:
        """Return R^2 of the predictions of labelled rows, or for classes the share that is right.

        For counts it is the share of the Poisson deviance that predictions explain; shares of
        trials have no score.

        scikit-learn's searches call it: `GridSearchCV(model, {"learner__kappa": [0.1, 1.0]},
        cv=cm.TaskSplit(5)).fit(table, groups=table["store"], side_info=stores)`. The key of a
        parameter of the learner begins with `learner__`, so a learner must be given. The side table
        goes to `fit`, which keeps the rows of all tasks.

        Examples
        --------
        >>> import pandas as pd, condmeta as cm
        >>> table = pd.DataFrame({"t": list("abcdefghijkl") * 2, "x": [0.0] * 12 + [1.0] * 12})
        >>> table["y"] = table["x"] * (1 + table.index % 12)
        >>> model = cm.TableModel(cm.IndependentRegressor(lam=0.01), task="t", target="y")
        >>> model.fit(table).score(table) > 0.9
        True
        """
        model = self._fitted
        tasks, _ = model.read_new(frame, side_info)
        return predictions.score(model, tasks, model.read(frame, side_info, labelled=True))

    def predict_frame(
        self, frame: Table, side_info: SideInfo = None, *, coverage: float | None = None
    ) -> Frame:
        """Return predictions as a table of the kind of `frame`, a row for each of its rows.

        Of a pandas table it has the index, so that `frame.join(answer)` puts them side by side.
        The columns are `prediction`; `probability` of the second class, if there are classes and
        the learner has probabilities, or of more classes `probability of` each; `median` of counts;
        `lower` and `upper`, with `coverage`; `task_points`, the
        number of points of the task that the model knows; and `task_kind`: "known", "new", or
        "outside" for a new task with side information far outside the training range.
        """
        tasks, outside = self._fitted.read_new(frame, side_info)
        columns = predictions.columns(self._fitted, tasks, outside, coverage)
        answer = make_frame(columns, backend_of(frame))
        if backend_of(frame) == "pandas":
            answer.index = frame.index
        return answer

    def adapt(self, frame: Table, side_info: SideInfo = None) -> TaskModels | BlendedModels:
        """Solve the tasks of a table from its rows alone; the model is not changed.

        To predict tables by such models, `update` a copy: `copy.deepcopy(model).update(rows)`.

        Returns
        -------
        TaskModels, with coefficients in the order of `schema_.feature_names`

        Examples
        --------
        >>> import copy, numpy as np, pandas as pd, condmeta as cm
        >>> store = np.repeat(np.arange(12), 4)
        >>> sales = pd.DataFrame({"store": store, "price": [1.0, 2, 3, 4] * 12})
        >>> sales["sold"] = (sales["store"] % 3) * sales["price"]
        >>> model = cm.TableModel(cm.ConditionalRidge(), task="store", target="sold").fit(sales)
        >>> week = sales[:4].assign(store="new", sold=[2.0, 4.0, 6.0, 8.0])
        >>> model.adapt(week).ids.tolist()
        ['new']
        >>> copy.deepcopy(model).update(week).predict(week).round()
        array([2., 4., 6., 8.])
        """
        tasks = self._fitted.read(frame, side_info, labelled=True)
        warn_extrapolating(uncalibrated(self.learner_), tasks.ids, tasks.side)
        return self.learner_.adapt(tasks)

    def adapt_frame(self, frame: Table, side_info: SideInfo = None) -> Frame:
        """Return the result of `adapt` as a table: task, n, intercept, one column a feature.

        With more than two classes it has a row for each task and class.
        """
        columns = predictions.adapted_columns(self._fitted, self.adapt(frame, side_info))
        return make_frame(columns, backend_of(frame))

    def n_points(self, frame: Table) -> np.ndarray:
        """Return for each row how many points of its task the model knows (N,); 0 is a new task."""
        return self.learner_.n_points(self._fitted.read(frame, None, labelled=False))

    # -- inspect and save -----------------------------------------------------------------------

    def check(
        self, frame: Table, side_info: SideInfo = None, *, false_alarm: float = 0.05
    ) -> CheckReport:
        """Judge the model by new labelled rows: keep, update or refit (see `condmeta.check`).

        A warning says if the model has learned from these rows.
        """
        tasks = self._fitted.read(frame, side_info, labelled=True)
        if digest_of(tasks) in self.added_:
            warn(
                "The model has learned from these rows and cannot be judged by them: give new "
                "ones, and call check before update.",
                UserWarning,
            )  # fmt: skip
        return check(self.learner_, tasks, false_alarm=false_alarm)

    def explain(self, side_info: SideInfo = None, *, task: Ids = None) -> Explanation:
        """Explain where the models of tasks start, by side column (see `condmeta.explain`).

        `side_info` is a table, a dict of id -> row, or the row of one new task as a dict.
        """
        model = self._fitted
        if isinstance(side_info, Mapping) and _is_row(side_info):
            side_info = model.schema.side_of_row(side_info)
        elif side_info is not None:
            side_info = model.schema.side_of_table(side_info)
        return explain(model.learner, side_info, task=task)

    def coef_frame(self, wide: bool = False, std: bool = False) -> Frame:
        """Return the coefficients of the tasks (see `ConditionalRidge.coef_frame`)."""
        return self._fitted.linear.coef_frame(wide, std)

    def to_sql(
        self, dialect: str = "duckdb", *, rows: str = "rows",
        coefficients: str = "coefficients", side: str = "side", std: bool = False,
    ) -> str:  # fmt: skip
        """Return a query that scores the rows of a table (see `ConditionalRidge.to_sql`).

        It computes the features from the columns of the table: levels and, with missing="impute",
        gaps as `predict` does.
        """
        return table_query(self._fitted, dialect, Tables(rows, coefficients, side), std)

    def summary(self, level: float = 0.95, robust: bool | None = None) -> Summary:
        """Return effects of side columns with intervals (see `ConditionalRidge.summary`)."""
        learner = self._fitted.linear
        if not hasattr(learner, "summary"):
            raise DataError(f"{type(learner).__name__} has no summary: fit ConditionalRidge.")
        fitted = with_classes(learner.fitted_, self._fitted.schema.classes)
        return Summary.of(fitted, level, robust, type(learner).__name__)

    def card(self) -> dict[str, Any]:
        """Return what a reader of the model wants to know: columns, sizes, settings, choices."""
        return self._fitted.card()

    def save(self, path: PathLike, *, tasks: bool = True, resume: bool = True) -> None:
        """Write the model to a file of arrays and JSON, without any code.

        Parameters
        ----------
        path : str or path
        tasks : bool
            Whether to write the models of the tasks. False writes only what was learned about
            all tasks together.
        resume : bool
            Whether to write what `update` and the intervals of known tasks need: statistics of
            each task. The rows of tiny tasks could be reconstructed from them.
        """
        slim = with_fitted(self, self._fitted.slim(tasks, resume))
        card = slim.card()
        del card["class"]  # `write_model` adds it
        persistence.write_model(path, slim, card=card)

    def __repr__(self) -> str:
        given = [(each.name, repr(getattr(self, each.name)), each) for each in fields(self)[1:]]
        shown = [f"{name}={value}" for name, value, each in given if value != repr(each.default)]
        learner = [] if self.learner is None else [repr(self.learner)]
        return f"TableModel({', '.join([*learner, *shown])})"


def _is_row(given: Mapping[Any, Any]) -> bool:
    """Return whether a dict is the row of one task, and not id -> row."""
    return bool(given) and not any(isinstance(v, Mapping) or np.ndim(v) for v in given.values())


def _export(model: TableModel) -> dict[str, Any]:
    names = [field.name for field in fields(model) if field.name != "learner"]
    params = {name: getattr(model, name) for name in names}
    return {"params": params} | {name: getattr(model, name) for name in FITTED}


def _restore(cls: type, state: dict[str, Any]) -> TableModel:
    learner = uncalibrated(state["learner_"])
    fitted = FittedTable(*(state[name] for name in FITTED))
    return with_fitted(cls(clone(learner), **state["params"]), fitted)


def _learner_agrees(state: dict[str, Any], sizes: dict[str, int]) -> None:
    """Raise if the learner of a file does not predict what its schema says."""
    learner, schema = uncalibrated(state["learner_"]), state["schema_"]
    classes = getattr(learner, "classes_", ())
    if schema.classes is not None:
        if len(schema.classes) != len(classes):
            raise InvalidFieldError("schema_.classes", f"must be the {len(classes)} of the learner")
        if list(classes) != list(range(len(classes))):  # they are positions in schema_.classes
            raise InvalidFieldError("learner_.classes", f"must be 0 to {len(classes) - 1}")
    if schema.roles.trials is not None and not hasattr(learner, "predict_proba"):
        raise InvalidFieldError("schema_.roles.trials", "must be None with this learner")


WHOLE = number(low=0, whole=True)
persistence.register(
    TableModel, export=_export, restore=_restore, rule=_learner_agrees,
    upgrade=lambda cls, state: {"added_": {}} | state,
    fields={
        "params": mapping(ANY), "learner_": instance(n="n"), "schema_": instance("Schema", n="n"),
        "n_rows_": WHOLE, "added_": mapping(WHOLE),
    },
)  # fmt: skip
