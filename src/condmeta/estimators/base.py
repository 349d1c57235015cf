"""What all learners share: reading data, keeping task models, adapting, updating, predicting.

A learner adds one thing, how the map is learned: `_learn(data)`. What a map can be asked for stands
apart from it: `TaskLearner` has a `LinearMap`, set by `_learn` as `_weights` and `_phi_mean`; a
`Learner` with a map of another kind brings `_features`, `_theta`, `_export_tau`, `_restore_tau`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from condmeta import engine
from condmeta.errors import DataError
from condmeta.estimators import conditioning
from condmeta.estimators.head import Head
from condmeta.estimators.inputs import (
    METADATA,
    check_features,
    check_taskset,
    read_rows,
    read_target,
)
from condmeta.estimators.linear_map import LinearMap
from condmeta.estimators.parameters import check_parameters, jobs_of
from condmeta.estimators.preparation import Preparation
from condmeta.estimators.row_weights import drop_absent, no_weights, refuse, require_weight
from condmeta.estimators.serving import Serving, atomic
from condmeta.estimators.task_store import TaskStore
from condmeta.feature_maps import ComposedMap
from condmeta.inner.algorithms import get_inner
from condmeta.meta.points import WeightedPoints
from condmeta.tasks import TaskSet
from condmeta.tasks.read import require_rows

# What a fit leaves behind beside its public attributes, which end in an underscore.
FITTED = (
    "_backend", "_base", "_head", "_inner", "_kernel", "_map", "_phi_mean", "_seen", "_stale",
    "_state", "_store", "_support", "_task_name", "_theta_mean", "_weights",
)  # fmt: skip


class Prepared(NamedTuple):
    """Tasks as the meta-learner reads them: rows (N, width), offsets (T+1,), Phi (T, k).

    Rows count weight (N,) times, or once. For a kernel `Phi` is what it reads of T tasks:
    coordinates (T, p), or sets of points.
    """

    ids: np.ndarray
    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    Phi: Any
    weight: np.ndarray | None = None

    @property
    def points(self) -> WeightedPoints:
        """The rows of all tasks, with how often they count."""
        return WeightedPoints(self.X, self.y, self.offsets, self.weight)


class Learner(Serving, BaseEstimator):
    """Base of the learners: `fit` and what it needs; `Serving` has what comes after it."""

    __metadata_request__fit = METADATA
    __metadata_request__partial_fit = METADATA
    __metadata_request__predict = METADATA
    __metadata_request__score = METADATA

    _special_rules: dict = {}
    _weighs = False  # whether rows may have weights
    feature_map = None
    conditioning = "shared"
    loss = "squared"
    inner = "batch"

    @atomic
    def fit(self, X, y=None, *, task=None, side_info=None, **unknown):
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

        Returns
        -------
        self
        """
        refuse(f"{type(self).__name__}.fit", unknown)
        return self._fit(X, y, task, side_info)

    def _fit(self, X, y, task, side_info, weight=None):
        self._start()
        tasks, points = self._read(X, y, task, side_info, weight, reset=True)
        self._fit_tasks(tasks, points)
        return self

    def _fit_tasks(self, tasks: TaskSet, points: TaskSet | None) -> None:
        """Learn the map from the tasks that have rows, and the model of every task."""
        self._freeze(tasks, points)
        engine.warn_if_slow(tasks.X.size)
        has_rows = tasks.sizes > 0
        trained = tasks if has_rows.all() else tasks.subset(np.flatnonzero(has_rows))
        data = self._learn_from(trained, points)
        self.n_tasks_ = len(trained)
        self._store = None
        if self.keep_tasks:
            store = self._solve(data)
            if len(trained) < len(tasks):
                spare = tasks.subset(np.flatnonzero(~has_rows))
                store = store.concat(self._solve(self._prepare(spare, points)))
            self._store = store

    def _learn_from(self, tasks: TaskSet, points: TaskSet | None) -> Prepared:
        """Learn the map from tasks, all of which have rows; return them prepared."""
        data = self._prepare(tasks, points)
        self._learn(data)
        return data

    def _start(self) -> None:
        """Check the parameters and forget an earlier fit."""
        check_parameters(self, **self._special_rules)
        self._check_loss()
        for name in [name for name in vars(self) if name.endswith("_") or name in FITTED]:
            del self.__dict__[name]
        self._inner = self._make_inner()

    def _make_inner(self):
        return get_inner(self.inner, self.lam, self.loss, self.tol)

    def _read(
        self, X, y, task, side_info, weight=None, *, reset: bool
    ) -> tuple[TaskSet, TaskSet | None]:
        """Return the call's tasks with their side table, and separate conditioning points."""
        fmap = self._make_map() if reset else self._map
        if isinstance(X, TaskSet):
            check_taskset(self, X, (y, task, weight), reset)
            if X.y is None:
                raise DataError("The TaskSet has no y. Make it with a target.")
            table, points = self._read_side(side_info, fmap, X.task_name)
            tasks = X.with_target(self._read_labels(X.y))
            tasks = tasks if table is None else tasks.with_side(table)
            backend, task_name = X.backend, X.task_name
            if reset:
                require_rows(X.X)
        else:
            rows = read_rows(self, X, task, reset=reset)
            if reset and rows.task is None and side_info is not None:
                raise DataError(
                    "There is side_info about tasks, and nothing that says which task each row of "
                    "X belongs to: pass task=, ids or the name of a column of X."
                )
            target = read_target(y, len(rows.X), type(self).__name__)
            labels = self._read_labels(target, rows.task)
            backend, task_name = rows.backend, rows.task_name
            table, points = self._read_side(rows.side_info(side_info), fmap, task_name)
            tasks = TaskSet.from_arrays(
                rows.X, labels, rows.task, side_info=table, missing_side="mean", weight=weight,
                feature_names=getattr(self, "feature_names_in_", None),
            )  # fmt: skip
        self._check_weights(tasks)
        tasks = drop_absent(tasks)
        if reset:
            require_weight(tasks)
            self._backend, self._task_name = backend, task_name
        elif self._head.base is not None:
            by_row = np.repeat(np.arange(len(tasks)), tasks.sizes)
            sides = self._base_sides(tasks.ids, tasks.side)[by_row]
            tasks = tasks.with_rows(*self._head.off_base(tasks.X, tasks.y, sides))
        return tasks, points

    def _read_side(self, side_info, fmap, task_name):
        names = getattr(self, "feature_names_in_", None)
        if task_name is None:
            task_name = getattr(self, "_task_name", None)
        table, points = conditioning.read_side(side_info, fmap, task_name, self.side_key, names)
        if points is not None:
            check_features(self, points, "side_info")
            self._check_weights(points)
            points = drop_absent(points)
        return table, points

    def _freeze(self, tasks: TaskSet, points: TaskSet | None) -> None:
        """Learn scales and encodings from the tasks that have rows."""
        prep = self._learn_preparation(tasks)
        self.y_offset_ = prep.y_offset
        fmap = self._make_map()
        table = None
        if tasks.side is not None and fmap.reads_table:
            present = tasks.ids[tasks.sizes > 0]
            table = tasks.side.take(present[tasks.side.has(present)])
        rows, y = tasks.X, tasks.y
        if fmap.reads_points:
            rows, y = prep.for_maps(prep.scaled(tasks.X), prep.target(tasks.y))
        given = self.__dict__.get("feature_names_in_")
        names = None if given is None else prep.names(given)
        own = {"X": rows, "y": y, "offsets": tasks.offsets, "weight": tasks.weight}
        fmap.fit(table, SimpleNamespace(**own, feature_names=names))
        self._map = fmap
        self.side_features_ = list(fmap.names_out_)
        self._head = self._make_head(prep, None if given is None else tuple(given))

    def _make_map(self):
        """Return what reads side tables and points, not yet fitted."""
        return ComposedMap(self.feature_map)

    def _learn_preparation(self, tasks: TaskSet) -> Preparation:
        rule = self.scale, self.fit_intercept, self._centre()
        transform = getattr(self, "x_transform", None)
        columns = self.n_features_in_
        return Preparation.learn(tasks.X, tasks.y, *rule, transform, tasks.weight, columns)

    def _make_head(self, preparation: Preparation, feature_names) -> Head:
        inner = self._inner
        return Head(
            owner=type(self).__name__,
            preparation=preparation,
            inner=inner,
            feature_names=feature_names,
            classes=getattr(self, "classes_", None),
            probabilistic=getattr(getattr(inner, "loss", None), "name", "") == "logistic",
            resumable=getattr(inner, "resumable", False) and not self._map.reads_points,
            base=self.__dict__.get("_base"),
            weighs=self._weighs,
        )

    def _restore_inner(self):
        """Return the inner algorithm of a learner that was loaded."""
        return self._make_inner()

    def _prepare(self, tasks: TaskSet, points: TaskSet | None) -> Prepared:
        """Return rows and Phi of tasks; points that condition only are taken off the rows."""
        rows = tasks.X, tasks.y, tasks.offsets
        return self._prepare_rows(tasks.ids, *rows, tasks.side, points, tasks.weight)

    def _prepare_rows(self, ids, X, y, offsets, table, points, weight=None) -> Prepared:
        prep, fmap = self._head.preparation, self._map
        scaled, y = prep.scaled(X), prep.target(y)
        given = None
        if fmap.reads_points:
            if points is not None:
                given = conditioning.align_points(points, ids, self._head)
            elif self.conditioning == "split":
                mask, first, rest = conditioning.halves(offsets)
                given = *prep.for_maps(scaled[mask], y[mask]), first
                scaled, y, offsets = scaled[~mask], y[~mask], rest
                if weight is not None:
                    given, weight = (*given, weight[mask]), weight[~mask]
            else:
                given = *prep.for_maps(scaled, y), offsets
                given = given if weight is None else (*given, weight)
        Phi = self._features(ids, table, given)
        return Prepared(ids, prep.with_ones(scaled), y, offsets, Phi, weight)

    def _check_weights(self, tasks: TaskSet) -> None:
        """Say why weights are refused, where they are."""
        if tasks.weight is not None and not self._weighs:
            raise no_weights(type(self).__name__)

    def _solve(self, data: Prepared) -> TaskStore:
        theta, jobs = self._theta(data.Phi), jobs_of(self)
        return TaskStore.solve(self._inner, data.ids, theta, data.points, jobs, data.Phi)


class TaskLearner(LinearMap, Learner):
    """A learner whose map has explicit weights."""
