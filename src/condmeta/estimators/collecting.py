"""Learning from statistics: chunks of tasks add up, and the prior is learned when it is needed."""

from __future__ import annotations

import numpy as np

from condmeta import engine
from condmeta.estimators.base import TaskLearner
from condmeta.estimators.collected import Collected
from condmeta.estimators.conditioning import halves
from condmeta.estimators.preparation import Preparation
from condmeta.estimators.serving import atomic
from condmeta.estimators.weighted import Weighted
from condmeta.feature_maps import ComposedMap
from condmeta.inner.squared import SquaredState
from condmeta.meta.points import WeightedPoints
from condmeta.tasks import TaskSet


class Collecting(Weighted, TaskLearner):
    """A learner whose `_conclude()` learns from `_state`, the statistics of all its tasks."""

    def _fit_tasks(self, tasks: TaskSet, points: TaskSet | None) -> None:
        engine.warn_if_slow(tasks.X.size)
        self._freeze(tasks, points)
        self._state = self._collect(tasks, points)
        self._learn_again()

    @atomic
    def partial_fit(self, X, y=None, *, task=None, side_info=None, sample_weight=None):
        """Take in further tasks, each seen once and whole; the prior is learned at its first use.

        Chunks only add statistics, so that any chunks give what one `fit` gives, to rounding; maps
        of points read the scale of the first call. A task that is known already is an error that
        names `update`. `sample_weight` (N,) as in `fit`.

        Returns
        -------
        self
        """
        first = self.__dict__.get("_state") is None
        if first:
            self._start()
        elif self._is_nameless(X, task):
            task = np.full(len(X), self._free_number())
        tasks, points = self._read(X, y, task, side_info, sample_weight, reset=first)
        if first:
            self._freeze(tasks, points)
        else:
            self._state.refuse(tasks.ids, "Use update to add points to tasks that are known.")
        collected = self._collect(tasks, points)
        self._state = collected if first else self._state.join(collected)
        self._stale = True
        return self

    def _free_number(self) -> int:
        """Return an id for one more nameless task."""
        taken = set(self._state.ids.tolist())
        return next(i for i in range(len(taken), 2 * len(taken) + 1) if i not in taken)

    def _collect(self, tasks: TaskSet, points: TaskSet | None) -> Collected:
        """Return the statistics of tasks, and their side rows or features."""
        if not self._map.reads_points:
            table = tasks.side
            if table is not None:
                table = table.take(tasks.ids[table.has(tasks.ids)])
            return Collected.of(tasks.ids, self._raw(tasks), table)
        Phi, features, prep = self._prepare(tasks, points).Phi, None, self._head.preparation
        if points is None and self.conditioning == "shared":

            def features(at, shown: WeightedPoints):
                own = shown._replace(X=prep.rescaled(shown.X), y=prep.target(shown.y))
                return self._features(tasks.ids[at], tasks.side, tuple(own))

        elif points is None:  # the first half of a task's points only conditions
            mask, *_ = halves(tasks.offsets)
            return Collected.of(tasks.ids, self._raw(tasks).where(~mask), None, Phi)
        return Collected.of(tasks.ids, self._raw(tasks), None, Phi, features)

    def _raw(self, tasks: TaskSet) -> WeightedPoints:
        """Return points in units that no other task has a say in."""
        prep = self._head.preparation
        X = prep.scaled(tasks.X) if self.scale == "rows" else prep.transformed(tasks.X)
        return WeightedPoints(X, tasks.y, tasks.offsets, tasks.weight)

    def _overall(self, order) -> Preparation:
        """Return the scales of all rows, whatever the first call froze."""
        mean, spread = self._state.whole.overall(order)
        d = len(self._head.preparation.x_mean)
        x_mean, x_scale = np.zeros(d), np.ones(d)
        if self.scale == "standard":
            reach = np.abs(mean[:d]) + spread[:d]
            varies = spread[:d] > 1e-12 * reach
            x_scale[varies] = spread[:d][varies]
            x_mean[varies] = mean[:d][varies] * self.fit_intercept
        y_offset = float(mean[d]) if self.fit_intercept else 0.0
        return Preparation(self.scale, self.fit_intercept, x_mean, x_scale, y_offset)

    def _ready(self) -> None:
        super()._ready()
        if self.__dict__.get("_stale"):
            self._learn_again()
            self._stale = False

    def _learn_again(self) -> None:
        """Learn from all that was collected."""
        if not self._map.reads_points:
            self._refit_map()
        self._conclude()

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in self.__dict__ or super().__sklearn_is_fitted__()

    def _refit_map(self) -> None:
        """Fit the map of side tables to all tasks that have rows."""
        state, fmap = self._state, ComposedMap(self.feature_map)
        table = state.table
        if table is not None and fmap.reads_table:
            present = state.ids[state.order()]
            table = table.take(present[table.has(present)])
        self._map = fmap.fit(table if fmap.reads_table else None)
        self.side_features_ = list(fmap.names_out_)

    def _collected_features(self) -> np.ndarray:
        """Return Phi of the collected tasks; those without rows do not count for the mean."""
        state = self._state
        if state.Phi is not None:
            return state.Phi
        trained, self._phi_mean = state.whole.count > 0, None
        Phi = np.empty((len(state.ids), self._map.n_features_out))
        Phi[trained] = self._features(state.ids[trained], state.table, None)
        self._phi_mean = Phi[state.order()].mean(axis=0)
        if not trained.all():
            Phi[~trained] = self._features(state.ids[~trained], state.table, None)
        return Phi

    def _absorb(self, tasks: TaskSet, new, points) -> None:
        """Keep what `update` was given, so that learning again knows of it."""
        if self.__dict__.get("_state") is None:
            return
        known = np.setdiff1d(np.arange(len(tasks)), new)
        state = self._state
        if len(known):
            part = tasks.subset(known)
            at = self._store.positions(part.ids.tolist())
            state = state.extend(at, self._raw(part))
        if len(new):
            state = state.join(self._collect(tasks.subset(new), points))
        self._state = state

    def _behind(self, ids) -> tuple[np.ndarray, SquaredState | None]:
        """Return start (T, width) and statistics of tasks: zero for unknown, None if not kept."""
        store, width = self._store, self._weights.shape[1]
        stats, theta = SquaredState.start(len(ids), width), np.zeros((len(ids), width))
        at = np.full(len(ids), -1) if store is None else store.positions(ids.tolist())
        if not (at >= 0).any():
            return theta, stats
        if store.state is None:
            return theta, None
        stats = stats._replace(
            count=stats.count.astype(float)
        )  # sums of weights need be no integers
        for mine, theirs in zip((*stats, theta), (*store.state, store.theta), strict=True):
            mine[at >= 0] = theirs[at[at >= 0]]
        return theta, stats
