"""What a fitted learner answers: adapt, update, predict, tables of what it knows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from condmeta.errors import DataError
from condmeta.estimators import storage, tables
from condmeta.estimators.conditioning import no_points
from condmeta.estimators.inputs import check_taskset, read_rows
from condmeta.estimators.lookup import Lookup
from condmeta.estimators.parameters import jobs_of
from condmeta.estimators.task_model import TaskModel, TaskModels, require_resumable, user_vector
from condmeta.estimators.task_store import solve_named
from condmeta.meta.points import WeightedPoints
from condmeta.tasks import TaskSet
from condmeta.tasks.ids import factorize
from condmeta.tasks.taskset import check_finite


def atomic(method):
    """Leave the learner as it was when a method fails."""

    @functools.wraps(method)
    def guarded(self, *args, **kwargs):
        before = self.__dict__.copy()
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return guarded


class CallRows(NamedTuple):
    """The rows of a call to a fitted learner: X (N, d), and the task of each by position in `ids`.

    Without ids `codes` is None. `restore` puts answers into the order of the call.
    """

    X: np.ndarray
    codes: np.ndarray | None
    ids: Any
    side_info: Any
    task_name: Any
    restore: Callable


class Serving(Lookup):
    """The methods of a fitted learner."""

    def adapt(self, X=None, y=None, *, task=None, side_info=None, sample_weight=None):
        """Solve new tasks from a few points, or from none; the learner is not changed.

        Parameters
        ----------
        X, y : (n, d) and (n,) arrays, optional
            The points; none is zero-shot, the model is then tau of the side information.
        task : (n,) ids, optional
            Several tasks at once; None means that all points belong to one.
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
        self._ready()
        if task is None and (X is None or self._is_nameless(X, task)):
            return self._adapt_one(X, y, side_info, sample_weight)
        if X is None:
            data, table = self._prepare_empty(task, side_info)
        else:
            tasks, points = self._read(X, y, task, side_info, sample_weight, reset=False)
            data, table = self._prepare(tasks, points), tasks.side
        theta = self._theta(data.Phi)
        rows = data.points
        solved = solve_named(self._inner, data.ids, theta, rows, jobs_of(self), keep_state=False)
        sides = self._base_sides(data.ids, table)
        return TaskModels(self._head, data.ids, theta, solved.coef, rows, solved.gap, sides)

    def _adapt_one(self, X, y, side_info, weight) -> TaskModel:
        head = self._head
        if X is None or len(X) == 0:
            X, y, _ = no_points(1, self.n_features_in_)
            weight = None
        else:
            rows = read_rows(self, X, None, reset=False)
            X, side_info = rows.X, rows.side_info(side_info)
            y = head.read_labels(y, len(X))
            check_finite(X, y, feature_names=head.feature_names)
            X, y, weight = head.counting(X, y, weight)
        ids, table, points = self._read_one(side_info)
        sides = self._base_sides(ids, table)
        if sides is not None:
            X, y = head.off_base(X, y, np.repeat(sides, len(X), axis=0))
        data = self._prepare_rows(ids, X, y, np.array([0, len(X)]), table, points, weight)
        theta = self._theta(data.Phi)
        solved = solve_named(self._inner, ids, theta, data.points)
        gap = None if solved.gap is None else float(solved.gap[0])
        state = solved.state if head.keeps_state else None
        sides = None if sides is None else sides[0]
        n = len(X) if weight is None else weight.sum()
        return TaskModel(head, theta[0], solved.coef[0], n, state, gap, sides)

    @atomic
    def update(self, X, y=None, *, task=None, side_info=None, sample_weight=None):
        """Add points to known tasks and enrol new ones; the map tau stays as it is.

        Exact (equal to adapting on all points at once) with inner='online' or loss='squared'; an
        error that says so elsewhere. `sample_weight` (n,) as for `adapt`.

        Returns
        -------
        self
        """
        self._ready()
        if self._store is None:
            raise DataError("update needs the task models of fit with keep_tasks=True.")
        require_resumable(self._head, self._store.state)
        store = self._store
        if self._is_nameless(X, task):
            if len(store.ids) != 1:
                raise self._which_task()
            task = np.repeat(store.ids, len(X))
        tasks, points = self._read(X, y, task, side_info, sample_weight, reset=False)
        found = store.positions(tasks.ids.tolist())
        known = np.flatnonzero(found >= 0)
        new = np.flatnonzero(found < 0)
        store.refuse_twins(tasks.ids[new].tolist())
        if len(known):
            part, prep = tasks.subset(known), self._head.preparation
            rows = WeightedPoints(prep.rows(part.X), prep.target(part.y), part.offsets, part.weight)
            store = store.extend(self._inner, found[known], rows, jobs_of(self))
        if len(new):
            part = self._solve(self._prepare(tasks.subset(new), points))
            part.sides = self._base_sides(part.ids, tasks.side)
            store = store.concat(part)
        self._store = store
        self._absorb(tasks, new, points)
        return self

    def _ready(self) -> None:
        """Say so if there was no fit; learners that put work off do it now."""
        check_is_fitted(self)

    def _absorb(self, tasks: TaskSet, new, points) -> None:
        """Take in what `update` gave to the store; `new` are positions among `tasks`."""

    def _call_rows(self, X, task, side_info) -> CallRows:
        """Read the rows of a call and whose they are."""
        self._ready()
        names = self._head.feature_names
        if isinstance(X, TaskSet):
            check_taskset(self, X, (task,), reset=False)
            codes = np.repeat(np.arange(len(X)), X.sizes)
            side_info = X.side if side_info is None else side_info
            return CallRows(X.X, codes, X.ids, side_info, X.task_name, X.restore_order)
        rows = read_rows(self, X, task, reset=False)
        if rows.task is None:
            check_finite(rows.X, None, feature_names=names)
            return CallRows(rows.X, None, None, side_info, None, np.asarray)
        codes, ids = factorize(rows.task)
        if len(codes) != len(rows.X):
            raise DataError(f"X has {len(rows.X)} rows and task has {len(codes)} ids.")
        check_finite(rows.X, None, lambda row: ids[codes[row]], feature_names=names)
        side_info = rows.side_info(side_info)
        return CallRows(rows.X, codes, ids, side_info, rows.task_name, np.asarray)

    def _whose(self, call: CallRows) -> tuple[np.ndarray, np.ndarray]:
        """Return ids, and each row's position among them; one task, or None, if none were given."""
        if call.codes is not None:
            return call.ids, call.codes
        known = call.side_info is None and self._store is not None
        ids = self._store.ids if known else np.array([None])
        return ids, np.zeros(len(call.X), np.int64)

    def n_points(self, X, *, task=None, side_info=None) -> np.ndarray:
        """Return how many points stand behind the prediction of each row (N,); 0 is tau alone.

        Points with weights count as often as these say.

        The arguments are those of `predict`.
        """
        call = self._call_rows(X, task, side_info)
        store = self._store
        if call.codes is None:
            own = call.side_info is None and store is not None
            return np.full(len(call.X), store.sizes[0] if own else 0)
        sizes = np.zeros(len(call.ids), np.int64 if store is None else store.sizes.dtype)
        if store is not None:
            at = store.positions(call.ids.tolist())
            sizes[at >= 0] = store.sizes[at[at >= 0]]
        return call.restore(sizes[call.codes])

    def _scores(self, X, task, side_info) -> np.ndarray:
        """Return <row, w> of rows X (N, d), each by the model of its task."""
        call = self._call_rows(X, task, side_info)
        return call.restore(self._head.scores(*self._models_of(call)))

    def _models_of(self, call: CallRows):
        """Return the arguments of `Head.scores` for the rows of a call."""
        if call.codes is None:
            weights = self._weights_of_one(call.side_info)
            return call.X, weights, None, 1, self._base_sides_of_one(call.side_info)
        given = call.ids, call.side_info, call.task_name
        weights, sides = self._weights_of(*given), self._base_sides_given(*given)
        return call.X, weights, call.codes, jobs_of(self), sides

    def predict(self, X, *, task=None, side_info=None) -> np.ndarray:
        """Predict rows, each by the model of its task.

        A known task has its own model. A new one, or a known one without points, starts and stays
        at tau of its side information, given here or to `fit`; without any it is an error, or with
        missing_side='mean' tau at the mean training Phi. `task=None` with a row of side information
        is one new task; without, it is the one task of the fit. The rows of X never condition.

        Returns
        -------
        (N,) array, in the order of the rows of X
        """
        scores = self._scores(X, task, side_info)
        return self._head.decide(scores)

    def theta_for(self, side_info=None) -> np.ndarray:
        """Return tau(s) in the user's units, the intercept last where there is one.

        A row gives (d,); a table, or a `TaskSet` of conditioning points, gives (T, d) in its order.
        """
        self._ready()
        sides, is_row = self._sides_for(side_info)
        theta = self._theta(sides)
        return user_vector(self._head.preparation, theta[0] if is_row else theta)

    def coef_frame(self, wide: bool = False):
        """Return the coefficients of the kept tasks as a table, in the user's units.

        Long: one row for each task and feature, with `prior` (tau), `own` (the same inner algorithm
        started from zero: the task's points alone), `adapted`, `shift` (adapted - prior) and `n`.
        `wide=True`: one row for each task, one column for each adapted coefficient.
        The table is of the kind of frame that `fit` was given.
        """
        self._ready()
        return tables.coef_table(self, wide)

    def save(self, path, *, tasks: bool = True, resume: bool = False) -> None:
        """Write the model to a file: arrays and JSON only, nothing in it can run.

        Parameters
        ----------
        path : str or path
            Written atomically: a crash leaves the old file or the new one.
        tasks : bool
            Whether the models of the tasks go with the map; False writes the map alone, to share.
        resume : bool
            Whether to add what `update` needs. These are statistics of each task, from which the
            rows of tiny tasks could be read off.

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
        storage.save_learner(self, path, tasks=tasks, resume=resume)

    def slim(self, tasks: bool = True, resume: bool = False):
        """Return a copy that holds what `save` would write."""
        self._ready()
        return storage.slimmed(self, tasks, resume)

    def card(self) -> dict[str, Any]:
        """Return what a reader of the model wants to know: engine, sizes, columns, settings."""
        self._ready()
        return storage.card(self)
