"""A learner that reads tables: from a table to predictions and coefficients."""

import copy
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import accuracy_score, d2_tweedie_score, r2_score

from condmeta import persistence
from condmeta.errors import DataError, ReadingNote
from condmeta.evaluation import Calibrated, CheckReport, Explanation, check, explain
from condmeta.evaluation.extrapolation import warn_extrapolating
from condmeta.fitted.at_times import drift_of
from condmeta.fitted.sql import Tables, score_query
from condmeta.fitted.summary import Summary
from condmeta.fitted.tables import INTERCEPT, coefficient_names
from condmeta.learners.count import ConditionalCount
from condmeta.learners.writing import writing
from condmeta.persistence.fields import ANY, instance, mapping, number
from condmeta.tables.additions import digest_of, refuse_again
from condmeta.tables.dates import PARTS
from condmeta.tables.learner import (
    fit_learner,
    kind_of_learner,
    known_ids,
    make_learner,
    require_drift,
    require_resumable,
    uncalibrated,
)
from condmeta.tables.roles import ColumnOptions
from condmeta.tables.schema import Schema, learn_schema
from condmeta.tables.stream import fit_parts
from condmeta.tasks import TaskSet
from condmeta.tasks.frames import backend_of, eager, is_frame, make_frame
from condmeta.tasks.ids import id_columns
from condmeta.tasks.messages import explain_mismatch
from condmeta.tasks.side_table import as_names

PARAMETERS = (
    "task", "target", "features", "exclude", "side", "side_key", "missing", "missing_side",
    "intervals", "order", "text", "dates", "holidays", "decimal", "time", "exposure", "trials",
)  # fmt: skip
FITTED = "learner_", "schema_", "n_rows_", "added_"
CHOSEN = "metric_", "noise_", "kappa_", "lam_", "meta_step_", "s2_", "alpha_"  # of learners


class TableModel(BaseEstimator):
    """A learner that reads tables: task, target, features and side columns are given by name.

    It is a model of all tasks. A `TaskTable` holds data, one row of side information a task; a
    `TaskModel` is the model of one task.

    Numbers are features as they are, booleans 0 and 1, categories and text one-hot with rare
    levels pooled. Levels that `fit` did not see are all zero, with a warning. Dates become weekday,
    month and days; text such as 12%, EUR 5 or 1,904.66 becomes a number; a `ReadingNote` says so. A
    target with two values is read as two classes, a column of ordered categories as ordered
    classes, and whole numbers with zeros and a long tail as counts (a `ReadingNote` says so).

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
        What to do with missing features: raise an error that counts them by column, or use the
        mean and add a column that marks the gaps (in categories: a level of its own).
    missing_side : "error" or "mean"
        What to do with a task that has no row in the side table: raise an error, or start its
        model from the mean. The parameter is set in the learner.
    intervals : bool
        Whether `fit` calibrates prediction intervals on held-out tasks (see `calibrate`).
    order : "random" or "first"
        Which rows a held-out task shows in that calibration: a random sample, or its first rows
        in the table.
    text : list of str
        Columns that hold names, even where these look like numbers or dates.
    dates : list of str
        What becomes of a column of dates: some of "weekday" and "month", as categories, and "days"
        since the earliest date, as a number.
    holidays : str, optional
        A country, as "DE" or "US-NY": whether a date of the table is a public holiday there becomes
        a further feature. This needs the package holidays: `pip install "condmeta[dates]"`.
    decimal : "." or ",", optional
        The decimal sign of numbers that are written as text, such as 1,904: needed only where they
        can be read in two ways.
    time : str, optional
        The column with the time of each row, for tasks that change (see the `drift` of
        `ConditionalRidge`): numbers, or dates, which count in days. It is a feature only if
        `features` names it. Tables for `predict` may lack it: known tasks are then predicted as of
        their latest row.
    exposure : str, optional
        The column that counts are proportional to, such as days or visitors; the target is then
        read as counts. Tables to predict need it as well.
    trials : str, optional
        The column with the number of trials of which the target counts the successes. Predictions
        are then shares.

    Attributes
    ----------
    learner_ : learner or Calibrated
        The fitted learner.
    schema_ : Schema
        How tables are read.
    n_rows_ : int
        Number of rows seen by `fit` and `update`.
    added_ : dict of digest -> number of rows
        The tables whose rows the model holds: that of `fit`, and those of `update` with `again`.

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

    learner_: Any
    schema_: Schema
    n_rows_: int
    added_: dict[str, int]

    def __init__(
        self, learner: Any = None, *, task: Any, target: str, features: Any = None,
        exclude: Any = (), side: Any = None, side_key: Any = None, missing: str = "error",
        missing_side: str = "error", intervals: bool = False, order: str = "random",
        text: Any = (), dates: Any = PARTS, holidays: str | None = None, decimal: str | None = None,
        time: str | None = None, exposure: str | None = None, trials: str | None = None,
    ):  # fmt: skip
        self.learner, self.task, self.target, self.features = learner, task, target, features
        self.exclude, self.side, self.side_key = exclude, side, side_key
        self.missing, self.missing_side = missing, missing_side
        self.intervals, self.order, self.text = intervals, order, text
        self.dates, self.holidays, self.decimal, self.time = dates, holidays, decimal, time
        self.exposure, self.trials = exposure, trials

    # -- learn: attributes are set last, so a call that fails leaves the model as it was --------

    def fit(self, frame: Any, side_info: Any = None) -> Self:
        """Learn from a table of all tasks, and a side table with one row a task if there is one.

        Tasks of the side table without rows are kept: they are predicted by their side row alone.
        """
        schema, tasks = self._learn_tasks(frame, side_info)
        if schema.kind == "count" and self.learner is None and self.exposure is None:
            if self.time is None:
                warnings.warn(
                    f"The target {self.target!r} holds counts: ConditionalCount learns them. For "
                    "least squares take ConditionalRidge (--learner ridge).",
                    ReadingNote, stacklevel=2,
                )  # fmt: skip
            else:  # only numbers drift
                schema = replace(schema, kind="number")
        learner = make_learner(self.learner, schema.kind, self.missing_side)
        require_drift(learner, self.time)
        fitted = fit_learner(learner, tasks, self.intervals, self.order)
        self.learner_, self.schema_, self.n_rows_ = fitted, schema, len(tasks.X)
        self.added_ = {digest_of(tasks): self.n_rows_}
        return self

    def fit_batches(self, batches: Any, side_info: Any = None) -> Self:
        """Learn from parts of a table that does not fit into memory; for `ConditionalRidge`.

        The rows of a task must follow each other, as in a table sorted by task; a task may go on
        in the next part. Kinds of columns and levels of categories are those of the first part.

        Parameters
        ----------
        batches : iterable of tables
        side_info : table, optional
            Its tasks without rows are left out.
        """
        if self.intervals:
            raise DataError(
                "Intervals need all rows at once: fit the table whole, or without intervals."
            )
        self.learner_, self.schema_, self.n_rows_ = fit_parts(
            self.learner, map(_as_table, batches), side_info, self._columns(), self.missing
        )
        self.added_ = {}
        return self

    def fit_files(
        self, files: Any, side_info: Any = None, *, memory: str = "1GB", folder: Any = None,
        text: Any = (), csv: Any = None,
    ) -> Self:  # fmt: skip
        """Learn from rows in many files, which need not fit into memory; for `ConditionalRidge`.

        Rows come in any order. DuckDB orders them by task on disk, under the memory limit; they are
        then reduced to statistics, which do fit into memory: 4 (d + 1)(d + 2) bytes a task with d
        features. The model is that of `fit` on the same rows in memory, bit for bit. Kinds of
        columns and levels of categories are learned from all rows. The target is a number. It needs
        DuckDB and PyArrow: `pip install "condmeta[big]"`.

        Parameters
        ----------
        files : path, or list of paths
            Parquet, CSV or Feather files, patterns such as ``"sales/*.parquet"``, or folders with
            such files; a folder named country=DE is a column.
        side_info : table or path, optional
            One row of side information for each task.
        memory : str
            The most that DuckDB may use, such as "2GB".
        folder : path, optional
            Where to work. If the fit is stopped, the same call goes on there; the folder is left,
            with the ordered rows in it. By default a temporary folder, which is removed.
        text : list of str
            Columns that are read as text, such as ids that are numbers.
        csv : CsvOptions, optional
            Delimiter, decimal sign and encoding of CSV files.

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

        if self.intervals:
            raise DataError(
                "Intervals need all rows at once: fit the table whole, or without intervals."
            )
        if self.time is not None:
            raise DataError("Times need all rows at once: fit the table whole, or without time=.")
        how = {"memory": memory, "folder": folder, "text": as_names(text), "csv": csv}
        columns = self._columns()
        self.learner_, self.schema_, self.n_rows_ = fit_files(
            self.learner, files, side_info, columns, self.missing, self.missing_side, **how
        )
        self.added_ = {}
        return self

    def update(self, frame: Any, side_info: Any = None, *, again: bool | None = None) -> Self:
        """Add the rows of a table to the tasks they belong to, and enrol new tasks.

        What was learned about all tasks stays. A model that was saved needs `save(resume=True)`.

        Parameters
        ----------
        frame : table
        side_info : table, optional
        again : bool, optional
            False refuses a table whose rows the model holds already, True adds it all the same;
            both remember the table in `added_`. By default tables are not remembered: a stream
            of single rows may well repeat itself.
        """
        with writing(self):
            tasks = self._read(frame, side_info, labelled=True)
            require_resumable(self.learner_)
            n_rows, added = len(tasks.X), self.added_
            if again is not None:
                digest = digest_of(tasks)
                if not again:
                    refuse_again(digest, added)
                added = added | {digest: n_rows}
            self.learner_.update(tasks)
            self.n_rows_, self.added_ = self.n_rows_ + n_rows, added
        return self

    def read_tasks(self, frame: Any, side_info: Any = None) -> TaskSet:
        """Return the tasks of a table as `fit` reads them, for `compare`, `advantage` and others.

        Classes are coded 0 and 1; the model is not changed.
        """
        return self._learn_tasks(frame, side_info)[1]

    def _learn_tasks(self, frame: Any, side_info: Any) -> tuple[Schema, TaskSet]:
        frame, columns = _as_table(frame), self._columns()
        kind, order = kind_of_learner(self.learner), getattr(self.learner, "classes", None)
        schema, X, side = learn_schema(frame, side_info, columns, self.missing, kind, order)
        return schema, schema.tasks(frame, side, labelled=True, X=X)

    def _columns(self) -> ColumnOptions:
        return ColumnOptions(
            self.task, self.target, self.features, self.exclude, self.side, self.side_key,
            text=as_names(self.text), dates=as_names(self.dates), holidays=self.holidays,
            decimal=self.decimal, time=self.time, exposure=self.exposure, trials=self.trials,
        )  # fmt: skip

    # -- predict and adapt ----------------------------------------------------------------------

    def predict(self, frame: Any, side_info: Any = None, *, coverage: float | None = None) -> Any:
        """Predict the rows of a table; a new task is predicted by its side information.

        Parameters
        ----------
        frame : table
            The task and feature columns. New tasks also need their side information: the side
            columns in `frame`, or `side_info`.
        side_info : table, optional
        coverage : float in (0, 1), optional
            Return also the ends of intervals that contain a new label with this probability; the
            model must be fitted with `intervals=True`, unless the target holds counts.

        Returns
        -------
        (N,) array of numbers, classes, mean counts or shares, or a tuple of predictions, lower and
        upper ends
        """
        tasks, _ = self._read_new(frame, side_info)
        predicted = self._predict(tasks)
        return predicted if coverage is None else (predicted, *self._ends(tasks, coverage))

    def score(self, frame: Any, side_info: Any = None) -> float:
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
        tasks, _ = self._read_new(frame, side_info)
        labelled = self._read(frame, side_info, labelled=True)
        if self.schema_.roles.trials is not None:
            raise DataError("Shares of trials have no score: compare predict with the shares.")
        y, predicted = labelled.restore_order(labelled.y), self.learner_.predict(tasks)
        if self.schema_.kind == "count":
            return float(d2_tweedie_score(y, np.maximum(predicted, 1e-300), power=1))
        judge = r2_score if self.schema_.classes is None else accuracy_score
        return float(judge(y, predicted))

    def predict_frame(
        self, frame: Any, side_info: Any = None, *, coverage: float | None = None
    ) -> Any:
        """Return predictions as a table of the kind of `frame`, a row for each of its rows.

        The columns are `prediction`; `probability` of the second class, if there are classes and
        the learner has probabilities, or of more classes `probability of` each; `median` of counts;
        `lower` and `upper`, with `coverage`; `task_points`, the
        number of points of the task that the model knows; and `task_kind`: "known", "new", or
        "outside" for a new task with side information far outside the training range.
        """
        tasks, outside = self._read_new(frame, side_info)
        columns = {"prediction": self._predict(tasks)} | self._probabilities(tasks)
        if isinstance(self.learner_, ConditionalCount):
            columns["median"] = self.learner_.predict_distribution(tasks).median
        if coverage is not None:
            columns["lower"], columns["upper"] = self._ends(tasks, coverage)
        columns["task_points"] = points = self.learner_.n_points(tasks)
        kind = np.where(points > 0, "known", np.where(outside, "outside", "new"))
        columns["task_kind"] = kind.astype(object)
        return make_frame(columns, backend_of(frame))

    def adapt(self, frame: Any, side_info: Any = None) -> Any:
        """Solve the tasks of a table from its rows alone; the model is not changed.

        Returns
        -------
        TaskModels, with coefficients in the order of `schema_.feature_names`
        """
        tasks = self._read(frame, side_info, labelled=True)
        warn_extrapolating(uncalibrated(self.learner_), tasks.ids, tasks.side)
        return self.learner_.adapt(tasks)

    def adapt_frame(self, frame: Any, side_info: Any = None) -> Any:
        """Return the result of `adapt` as a table: task, n, intercept, one column a feature."""
        models, learner = self.adapt(frame, side_info), self._learner_with_coefficients()
        columns = id_columns(models.ids.tolist(), self.schema_.roles.task_name) | {"n": models.n_}
        names = [name for name in coefficient_names(learner.fitted_) if name != INTERCEPT]
        columns[INTERCEPT] = np.broadcast_to(models.intercept_, len(models.ids))
        columns |= {name: models.coef_[:, j] for j, name in enumerate(names)}
        return make_frame(columns, backend_of(frame))

    def n_points(self, frame: Any) -> np.ndarray:
        """Return for each row how many points of its task the model knows (N,); 0 is a new task."""
        return self.learner_.n_points(self._read(frame, None, labelled=False))

    def _read(self, frame: Any, side_info: Any, labelled: bool) -> TaskSet:
        self._require_fit()
        frame = _as_table(frame)
        tasks = self.schema_.tasks(frame, self.schema_.side(frame, side_info), labelled)
        self._warn_of_near_ids(tasks)
        return tasks

    def _warn_of_near_ids(self, tasks: TaskSet) -> None:
        """Warn if a new id differs from a known one only by its type or by leading zeros."""
        first = tasks.row_order[tasks.offsets[:-1][tasks.sizes > 0]]
        new = tasks.ids[tasks.sizes > 0][self.learner_.n_points(tasks)[first] == 0]
        near = explain_mismatch(known_ids(self.learner_), new.tolist()) if len(new) else ""
        if near:
            warnings.warn(near, stacklevel=4)

    def _read_new(self, frame: Any, side_info: Any) -> tuple[TaskSet, np.ndarray]:
        """Return rows to predict, and which rows (N,) extrapolate from the training range."""
        tasks = self._read(frame, side_info, labelled=False)
        outside = np.zeros(len(tasks), bool)
        if tasks.side is not None:
            first = tasks.row_order[tasks.offsets[:-1]]
            new = self.learner_.n_points(tasks)[first] == 0
            outside[new] = warn_extrapolating(
                uncalibrated(self.learner_), tasks.ids[new], tasks.side
            )
        return tasks, tasks.restore_order(np.repeat(outside, tasks.sizes))

    def _require_fit(self) -> None:
        if not hasattr(self, "schema_"):
            raise DataError("This TableModel is not fitted yet: call fit, or load a saved one.")

    def _predict(self, tasks: TaskSet) -> np.ndarray:
        """Return numbers, mean counts, shares, or the classes of the target."""
        if self.schema_.roles.trials is not None:
            return self.learner_.predict_proba(tasks)[:, 1]
        predicted, classes = self.learner_.predict(tasks), self.schema_.classes
        return predicted if classes is None else np.array(classes)[predicted.astype(int)]

    def _probabilities(self, tasks: TaskSet) -> dict[str, np.ndarray]:
        """Return the probability of the second class, or of each class if there are more."""
        classes = self.schema_.classes
        if classes is None or not hasattr(self.learner_, "predict_proba"):
            return {}
        found = self.learner_.predict_proba(tasks)
        if len(classes) == 2:
            return {"probability": found[:, -1]}
        codes = self.learner_.classes_.astype(int).tolist()
        return {f"probability of {classes[code]}": found[:, at] for at, code in enumerate(codes)}

    def _ends(self, tasks: TaskSet, coverage: float) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(self.learner_, ConditionalCount):
            ends = self.learner_.predict_distribution(tasks).interval(coverage)
            return ends[:, 0], ends[:, 1]
        if not isinstance(self.learner_, Calibrated):
            raise DataError("The model has no intervals: fit it with intervals=True.")
        return self.learner_.predict_interval(tasks, coverage=coverage)

    # -- inspect and save -----------------------------------------------------------------------

    def check(self, frame: Any, side_info: Any = None, *, false_alarm: float = 0.05) -> CheckReport:
        """Judge the model by new labelled rows: keep, update or refit (see `condmeta.check`)."""
        tasks = self._read(frame, side_info, labelled=True)
        return check(self.learner_, tasks, false_alarm=false_alarm)

    def explain(self, side_info: Any = None, *, task: Any = None) -> Explanation:
        """Explain where the models of tasks start, by side column (see `condmeta.explain`)."""
        self._require_fit()
        if side_info is not None:
            side_info = self.schema_.side_of_table(side_info)
        return explain(self.learner_, side_info, task=task)

    def coef_frame(self, wide: bool = False, std: bool = False) -> Any:
        """Return the coefficients of the tasks (see `ConditionalRidge.coef_frame`)."""
        return self._learner_with_coefficients().coef_frame(wide, std)

    def to_sql(
        self, dialect: str = "duckdb", *, rows: str = "rows",
        coefficients: str = "coefficients", side: str = "side",
    ) -> str:  # fmt: skip
        """Return a query that scores the rows of a table (see `ConditionalRidge.to_sql`).

        It computes the features from the columns of the table: levels and, with missing="impute",
        gaps as `predict` does.
        """
        schema, tables = self.schema_, Tables(rows, coefficients, side)
        fitted = self._learner_with_coefficients().fitted_
        if schema.readers or schema.side_readers:
            first = next(iter({**schema.readers, **schema.side_readers}))
            raise DataError(
                f"SQL cannot compute features of dates or of numbers written as text (column "
                f"{first!r}). Score the rows with predict."
            )
        features, impute = schema.encoder.columns_out(), schema.missing == "impute"
        return score_query(fitted, dialect, tables, features, impute)

    def summary(self, level: float = 0.95, robust: bool | None = None) -> Summary:
        """Return effects of side columns with intervals (see `ConditionalRidge.summary`)."""
        learner = self._learner_with_coefficients()
        if not hasattr(learner, "summary"):
            raise DataError(f"{type(learner).__name__} has no summary: fit ConditionalRidge.")
        return learner.summary(level, robust)

    def _learner_with_coefficients(self) -> Any:
        learner = uncalibrated(self.learner_)
        if not hasattr(learner, "coef_frame"):
            raise DataError(
                f"{type(learner).__name__} mixes learners, so a task has no coefficients: take "
                "one learner, such as ConditionalRidge."
            )
        return learner

    def card(self) -> dict[str, Any]:
        """Return what a reader of the model wants to know: columns, sizes, settings, choices."""
        learner, card = uncalibrated(self.learner_), self.learner_.card()
        drift = drift_of(learner.fitted_.inner) if hasattr(learner, "drift") else None
        chosen = {name: getattr(learner, name) for name in CHOSEN if hasattr(learner, name)}
        chosen = {n: v.item() if isinstance(v, np.generic) else v for n, v in chosen.items()}
        return {"class": "TableModel"} | card | {
            "learner": type(learner).__name__, "sizes": card["sizes"] | {"rows": self.n_rows_},
            "tables": [{"sha256": name[:12], "rows": n} for name, n in self.added_.items()],
            "schema": self.schema_.describe(), "encoded_features": self.schema_.feature_names,
            "side_features": list(getattr(learner, "side_features_", [])),
            "chosen": {name.rstrip("_"): value for name, value in chosen.items()},
            "drift": None if drift is None else str(drift),
        }  # fmt: skip

    def save(self, path: Any, *, tasks: bool = True, resume: bool = True) -> None:
        """Write the model to a file: arrays and JSON only, nothing in it can run.

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
        slim = copy.copy(self)
        slim.learner_ = self.learner_.slim(tasks, resume)
        slim.added_ = self.added_ if resume else {}
        card = slim.card()
        del card["class"]  # `write_model` adds it
        persistence.write_model(path, slim, card=card)

    def __repr__(self) -> str:
        learner = "" if self.learner is None else f"{self.learner!r}, "
        return f"TableModel({learner}task={self.task!r}, target={self.target!r})"


def _as_table(frame: Any) -> Any:
    """Return a table in memory; raise an error for anything else."""
    if not is_frame(frame):
        raise DataError(
            f"TableModel reads pandas, polars and PyArrow tables, got a {type(frame).__name__}."
        )
    return eager(frame)


def _export(model: TableModel) -> dict[str, Any]:
    params = {name: getattr(model, name) for name in PARAMETERS}
    return {"params": params} | {name: getattr(model, name) for name in FITTED}


def _restore(cls: type, state: dict[str, Any]) -> TableModel:
    learner = uncalibrated(state["learner_"])
    model = cls(clone(learner), **state["params"])
    model.learner_, model.schema_, model.n_rows_, model.added_ = (state[n] for n in FITTED)
    return model


WHOLE = number(low=0, whole=True)
persistence.register(
    TableModel, export=_export, restore=_restore,
    upgrade=lambda cls, state: {"added_": {}} | state,
    fields={
        "params": mapping(ANY), "learner_": instance(n="n"), "schema_": instance("Schema", n="n"),
        "n_rows_": WHOLE, "added_": mapping(WHOLE),
    },
)  # fmt: skip
