"""What all learners share: `fit` makes one `Fitted`, and every other method asks it.

A learner is a docstring, a constructor and one hook: `_learn(data: Training) -> Learned`. The hook
of a learner that learns from further tasks has a second argument, the value so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, overload

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from condmeta import persistence
from condmeta.fitted import tables
from condmeta.fitted.columns import Columns
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.rows import Rows
from condmeta.fitted.sql import Tables, score_query
from condmeta.fitted.task_model import TaskModel, TaskModels
from condmeta.learners import model_file
from condmeta.learners.call_columns import n_rows
from condmeta.learners.checks import warn_constant, warn_far_values
from condmeta.learners.copies import with_fitted
from condmeta.learners.inputs import (
    METADATA,
    is_nameless,
    read_new_tasks,
    read_rows,
    read_tasks,
    read_training,
    warn_of_one_task,
)
from condmeta.learners.labels import some_classes, two_classes
from condmeta.learners.learn import conclude, learn
from condmeta.learners.parameters import check_learner, jobs_of
from condmeta.learners.side_inputs import read_sides
from condmeta.learners.training import Learned, Training
from condmeta.learners.writing import writing
from condmeta.tasks import TaskSet
from condmeta.typing import Frame, Ids, Matrix, Names, PathLike, Scale, SideInfo, Values

INSTEAD = {  # of methods that a learner does not have
    "partial_fit": "it learns from all tasks at once. Fit it again with all rows; update adds "
    "points and tasks and keeps the map.",
    "summary": "standard errors of effects are for learners with a learned prior, such as "
    "ConditionalRidge, ConditionalCount and ConditionalLogistic. M_frame() has the effects.",
}


@dataclass(eq=False, repr=False, kw_only=True)
class Learner(BaseEstimator):
    """Base of the learners. Its fields are the parameters that all of them have.

    A learner declares its own parameters as fields, and overrides defaults: the dataclass makes the
    constructor.
    """

    scale: Scale = "standard"
    fit_intercept: bool = True
    task_column: Names = None
    side_columns: Names = None
    side_key: Names = None
    keep_tasks: bool = True
    n_jobs: int | None = None

    __metadata_request__fit = METADATA
    __metadata_request__partial_fit = METADATA
    __metadata_request__predict = METADATA
    __metadata_request__score = METADATA

    _model = None  # the `Fitted` that a fit sets, and nothing else
    _rules = {}  # of parameters, beside those that all learners share
    _weighs = True  # rows may have weights
    _learns_across_tasks = True  # one task alone is probably a mistake
    _many_classes = False  # a classifier of more than two, one against the rest
    _streams = False  # `_learn` can go on from an earlier value
    _by_statistics = False  # `_learn` reads `Training.statistics`
    _unit_free = False  # maps of points read rows and targets in units of their size
    _heavy_tails = False  # `noise` may have Student's t distribution
    feature_map = None
    conditioning = "shared"
    loss = "squared"

    def __getattr__(self, name: str) -> Any:
        """Say what to use in place of a method that only some learners have."""
        if name in INSTEAD:
            raise AttributeError(f"{type(self).__name__} has no {name}: {INSTEAD[name]}")
        return object.__getattribute__(self, name)  # raises, with its own message

    def _keeps_sparse(self, n_columns: int) -> bool:
        """Whether the learner reads sparse X of so many columns as it is; else it is made dense."""
        return False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _learn(self, data: Training) -> Learned:
        """Learn the map from tasks, all of which have rows."""
        raise NotImplementedError

    def _classes_of(self, y: np.ndarray) -> np.ndarray:
        """Return the classes of labels, or raise; for classifiers."""
        return some_classes(y) if self._many_classes else two_classes(y)

    def _given_classes(self, y: Any) -> np.ndarray | None:
        """Return the classes that the user gave, in their order; None if they follow from y."""
        return None

    # Fit.

    def fit(
        self,
        X: Matrix,
        y: Values = None,
        *,
        task: Ids = None,
        side_info: SideInfo = None,
        sample_weight: Values = None,
    ) -> Self:
        """Learn the map from many tasks, then every task's model from the final map.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The points of all tasks, rows in any order.
        y : (N,) array
        task : (N,) ids, optional
            The task of each row: strings, integers, dates, tuples; the name of a column of X; None
            means one task.
        side_info : table keyed by task id, optional
            One raw row for each task (see `TaskTable`), or a `TaskSet` of conditioning points. Ids
            without rows in X are kept as tasks without points.
        sample_weight : (N,) array, optional
            How often each row counts: 2 counts as two equal rows, 0 as no row.

        Returns
        -------
        self
        """
        check_learner(self)
        classes = self._given_classes(y)
        given = read_training(self, X, y, task, side_info, sample_weight, classes)
        warn_of_one_task(self, X, task)
        with writing(self):
            self._model = learn(self, given)
        warn_constant(self.constant_features_, len(given.tasks.X))
        warn_far_values(self, given.tasks)
        return self

    # What a fit leaves.

    @property
    def fitted_(self) -> Fitted:
        """The fitted value. After `partial_fit` it may be learned only when first needed."""
        model = self._model
        if model is None or model.tau is None:
            check_is_fitted(self)
            with writing(self):
                if self._model.tau is None:
                    self._model = conclude(self, self._model)
                model = self._model
        return model

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None

    @property
    def n_features_in_(self) -> int:
        """Number of features of X."""
        return self._columns.n_features

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features, if `fit` was given a table."""
        return self._columns.feature_names

    @property
    def _columns(self) -> Columns:
        if self._model is None:
            check_is_fitted(self)
        return self._model.columns

    @property
    def n_tasks_(self) -> int:
        """Tasks with points that the map was learned from."""
        return self.fitted_.n_tasks

    @property
    def constant_features_(self) -> list[str]:
        """Names of the features that were constant in training: their coefficients are 0.

        Without an intercept, a constant feature replaces it, and only features that are all zero
        are listed. With scale='none', `ConditionalRidge` and `ConditionalLogistic` leave constant
        features out; other learners use them like any other feature.
        """
        fitted = self.fitted_
        names, constant = fitted.scales.names(fitted.columns.names), fitted.info.get("constant")
        return [] if constant is None else [names[j] for j in np.flatnonzero(constant)]

    @property
    def side_features_(self) -> list[str]:
        """Names of the features Phi."""
        return list(self.fitted_.reader.names)

    @property
    def y_offset_(self) -> float:
        """What is subtracted from y."""
        return self.fitted_.scales.y_offset

    @property
    def gap_(self) -> np.ndarray:
        """Duality gaps of the kept tasks (T,); inner='batch' only."""
        store = self.fitted_.tasks
        if store is None or store.gap is None:
            raise AttributeError("gap_ needs keep_tasks=True and inner='batch'.")
        return store.gap

    @property
    def M_(self) -> np.ndarray:  # noqa: N802 - the paper's name
        """M (width, k) in the learner's units."""
        return self.fitted_.tau.M

    @property
    def b_(self) -> np.ndarray:
        """b (width,) in the learner's units."""
        return self.fitted_.tau.b

    @property
    def theta_mean_(self) -> np.ndarray:
        """Tau at the mean training Phi, in the user's units (intercept last)."""
        return self.fitted_.scales.user_vector(self.fitted_.tau.theta_mean)

    # Ask it.

    @overload
    def adapt(
        self, X: TaskSet, *, side_info: SideInfo = None, sample_weight: Values = None
    ) -> TaskModels: ...
    @overload
    def adapt(
        self, X: Matrix | None = None, y: Values = None, *, task: None = None,
        side_info: SideInfo = None, sample_weight: Values = None,
    ) -> TaskModel: ...  # fmt: skip
    @overload
    def adapt(
        self, X: Matrix | None = None, y: Values = None, *, task: Ids, side_info: SideInfo = None,
        sample_weight: Values = None,
    ) -> TaskModels: ...  # fmt: skip
    def adapt(
        self,
        X: Matrix | None = None,
        y: Values = None,
        *,
        task: Ids = None,
        side_info: SideInfo = None,
        sample_weight: Values = None,
    ) -> TaskModel | TaskModels:
        """Return models of new tasks from a few points, or from none. The learner does not change.

        Parameters
        ----------
        X, y : (n, d) and (n,) arrays, optional
            The points. Without any, the model has the starting coefficients tau(s).
        task : (n,) ids, optional
            The task of each point. None means that all points belong to one task.
        side_info : row or table, optional
            For one task its row (a dict of columns, a Series, a sequence); with `task` a table
            keyed by task id, as in `fit`.
        sample_weight : (n,) array, optional
            How often each point counts: 2 is the point twice, 0 is no point. Online learners have
            no weights.

        Returns
        -------
        TaskModel, or TaskModels if `task` is given or X is a TaskSet
        """
        fitted, one = self.fitted_, task is None and (X is None or is_nameless(self, X, task))
        tasks, points = read_new_tasks(self, fitted, X, y, task, side_info, sample_weight)
        models = fitted.adapt(tasks, points, 1 if one else jobs_of(self), keep_state=one)
        return models.at(0) if one else models

    def update(
        self,
        X: Matrix,
        y: Values = None,
        *,
        task: Ids = None,
        side_info: SideInfo = None,
        sample_weight: Values = None,
    ) -> Self:
        """Add points to known tasks and enrol new ones, in place; the map tau stays as it is.

        Exact, equal to adapting on all points at once, with inner='online', with loss='squared',
        and for counts, shares and classes of a learned prior, which keep the rows of their tasks;
        an error elsewhere.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            Further points of known tasks, and points of new ones.
        y : (N,) array
            The target of each row.
        task : (N,) ids, optional
            The task of each row: strings, integers, dates, tuples; the name of a column of X; None
            means one task.
        side_info : table keyed by task id, optional
            One raw row for each new task, as in `fit`.
        sample_weight : (N,) array, optional
            How often each row counts: 2 counts as two equal rows, 0 as no row.

        Returns
        -------
        self
        """
        with writing(self):
            fitted = self.fitted_
            if is_nameless(self, X, task) and fitted.tasks is not None:
                if len(fitted.tasks) != 1:
                    raise fitted.which_task()
                task = np.repeat(fitted.tasks.ids, n_rows(X))
            tasks, points = read_tasks(self, fitted, X, y, task, side_info, sample_weight)
            self._model = fitted.update(tasks, points, jobs_of(self))
        return self

    def predict(self, X: Matrix, *, task: Ids = None, side_info: SideInfo = None) -> np.ndarray:
        """Predict rows, each by the model of its task.

        A known task has its own model. A new task, or a known task without points, is predicted
        from its side information, given here or to `fit`. Without side information this raises an
        error, or with missing_side='mean' predicts an average task. With `task=None` all rows
        belong to one task: with `side_info`, a new task; without, the only task of the fit. The
        rows of X are never used as conditioning points.

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

        Returns
        -------
        (N,) array, in the order of the rows of X
        """
        fitted, rows = self._read_rows(X, task, side_info)
        return fitted.predict(rows, jobs_of(self))

    def _read_rows(self, X: Matrix, task: Ids, side_info: SideInfo) -> tuple[Fitted, Rows]:
        """Return the fitted value and the rows of a call: one value, whatever writers do."""
        fitted = self.fitted_
        return fitted, read_rows(self, fitted, X, task, side_info)

    def n_points(self, X: Matrix, *, task: Ids = None, side_info: SideInfo = None) -> np.ndarray:
        """Return for each row (N,) how many points of its task the model has learned from.

        Points with weights count by their weights. The arguments are those of `predict`.

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
        return fitted.n_points(rows)

    def theta_for(self, side_info: SideInfo = None) -> np.ndarray:
        """Return tau(s) in the user's units, with the intercept last if there is one.

        A row gives (d,); a table, or a `TaskSet` of conditioning points, gives (T, d) in its order.

        Parameters
        ----------
        side_info : row or table, optional
            The row of one task, a table keyed by task id, or a `TaskSet` of conditioning points.
        """
        fitted = self.fitted_
        *sides, is_row = read_sides(self, fitted, side_info)
        theta = fitted.theta(*sides, jobs_of(self))
        return fitted.scales.user_vector(theta[0] if is_row else theta)

    def coef_frame(self, wide: bool = False, std: bool = False) -> Frame:
        """Return the coefficients of the kept tasks as a table, in the user's units.

        By default one row for each task and feature, with `prior` (tau), `own`, `adapted`, `shift`
        (adapted - prior) and `n`. `own` is the least-squares estimate from the task's points alone;
        it is NaN for a coefficient that these points do not determine, and for classifiers. Online
        learners, and learners with a loss other than the squared one, keep statistics only for
        `own`, and only if T tasks of d coefficients have T d^2 <= 2e6; otherwise `own` is NaN.
        `wide=True`: one row for each task, one column for each adapted coefficient. `std=True`
        (learned priors): adds `std`, the standard deviation of the coefficient given the task's
        points and side information; for `ConditionalRidge` it includes the uncertainty of the map.
        The table is of the same library (such as pandas) as the table that `fit` got.
        """
        return tables.coef_table(self.fitted_, wide, std)

    def M_frame(self, wide: bool = False, std: bool = False, robust: bool | None = None) -> Frame:  # noqa: N802
        """Return the map as a table, in the user's units: effect of each side feature.

        The last side feature, "(base)", is b: tau at Phi = 0. `std=True` (learned priors): adds
        `std_error`; it is NaN where the tasks do not determine an effect. `robust` standard errors
        are also valid if variances differ between tasks. None means robust with 50 tasks or more.
        """
        return tables.map_table(self.fitted_, wide, std, robust)

    def to_sql(
        self, dialect: str = "duckdb", *, rows: str = "rows",
        coefficients: str = "coefficients", side: str = "side", std: bool = False,
    ) -> str:  # fmt: skip
        """Return a query that scores rows in a database, as `predict` does.

        The query joins the rows with the table of coefficients that `condmeta.export` writes. A
        task that is not in that table is predicted from its row of the side table; without one the
        prediction is NULL (with missing_side="mean", that of an average task). A missing feature
        makes it NULL. For linear learners without `base` or a transformer of X; with
        `ConditionalLevels` a task that is not in the table has the prediction NULL.

        Parameters
        ----------
        dialect : "duckdb", "postgres", "sqlite", "snowflake", "bigquery" or "spark"
        rows, coefficients, side : str
            Names of the tables. Each has the task column, named as in `fit` ("task" for arrays).
        std : bool
            Add `prediction_std`, the standard deviation of a new label (`ConditionalRidge`), from
            the coefficients of ``export(..., std=True)``.

        Examples
        --------
        >>> import condmeta as cm
        >>> X, y = [[0.0], [2.0], [0.0], [2.0]], [1.0, 3.0, 2.0, 6.0]
        >>> model = cm.ConditionalRidge().fit(X, y, task=["a", "a", "b", "b"])
        >>> model.to_sql(rows="sales").splitlines()[-2:]
        ['FROM "sales" AS r', 'LEFT JOIN "coefficients" AS c ON "c"."task" = "r"."task"']
        """
        return score_query(self.fitted_, dialect, Tables(rows, coefficients, side), std=std)

    # Keep it.

    def save(self, path: PathLike, *, tasks: bool = True, resume: bool = True) -> None:
        """Write the model to a file of arrays and JSON, without any code.

        Parameters
        ----------
        path : str or path
            The file is written atomically: after a crash there is the old file or the new one.
        tasks : bool
            Whether to store the models of the tasks. With False the file holds only the map, so you
            can share it.
        resume : bool
            Whether to store what `update` and `partial_fit` need: statistics of each task, from
            which the rows of very small tasks could be reconstructed. For counts and classes with a
            learned prior, and with more than 64 columns, these are the rows themselves.

        Examples
        --------
        >>> import condmeta as cm, tempfile, pathlib
        >>> model = cm.PooledRegressor(lam=1.0).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(pathlib.Path(folder) / "pooled.condmeta")
        ...     again = cm.load(pathlib.Path(folder) / "pooled.condmeta")
        >>> bool((again.predict([[2.0]]) == model.predict([[2.0]])).all())
        True
        """
        slim = self.slim(tasks, resume)
        persistence.write_model(path, slim, card=slim.card())

    def slim(self, tasks: bool = True, resume: bool = True) -> Self:
        """Return a copy that holds what `save` would write."""
        return with_fitted(self, self.fitted_.slim(tasks, resume))

    def card(self) -> dict[str, Any]:
        """Return a description of the model: engine, sizes, columns, settings."""
        return model_file.card(self)
