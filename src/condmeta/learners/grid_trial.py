"""A learner judged on held-out tasks for many (lam, meta_step) at once: the arrays and the runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone

from condmeta.errors import DivergenceError
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.label_codes import encode
from condmeta.fitted.scales import Scales
from condmeta.fitted.tau import LinearTau
from condmeta.inner.algorithms import Batch, get_inner, solve_tasks
from condmeta.learners.inputs import read_training
from condmeta.learners.learn import begin, training
from condmeta.learners.parameters import check_learner
from condmeta.meta.grid import GridPoints, grid_curves, grid_score, grid_train
from condmeta.meta.sgd import SGDState, sgd_pass
from condmeta.tasks import TaskSet
from condmeta.typing import Values


class GridTrial(NamedTuple):
    """Prepared training tasks, and held-out tasks with the points that judge them.

    train : GridPoints and Phi (T, k); support, query : GridPoints of V tasks; Phi_held (V, k);
    group (V,) : which mean a held-out task belongs to (say 0 validation, 1 test);
    metric : function (y, predicted) -> errors of rows, or None for the learner's own loss.
    """

    train: GridPoints
    Phi: np.ndarray
    support: GridPoints
    query: GridPoints
    Phi_held: np.ndarray
    group: np.ndarray
    learner: Any
    inner: Any
    scales: Scales
    metric: Any = None

    @classmethod
    def of(
        cls, learner: Any, train: TaskSet, groups: Sequence[tuple[TaskSet, TaskSet]]
    ) -> GridTrial:
        """Prepare tasks as a fit of `learner` on `train` would, each group (support, query)."""
        learner = clone(learner)
        check_learner(learner)
        given = read_training(learner, train, None, None, None)
        start = begin(learner, given)
        data = training(start, given.tasks, given.points)
        mean = LinearTau(np.empty(0), data.Phi.mean(axis=0))
        start = start._replace(tau=mean)  # what fills the gaps of held-out tasks
        held = [start.prepare(_numbers(start, support), None) for support, _ in groups]
        judged = [_query(start, query) for _, query in groups]
        group = np.repeat(np.arange(len(groups)), [len(h.ids) for h in held])
        Phi, Phi_held = in_span(data.Phi, np.vstack([h.Phi for h in held]))
        inner = get_inner(learner.inner, learner.lam, learner.loss, learner.tol)
        support = _stack([GridPoints(h.X, h.y, h.offsets) for h in held])
        parts = GridPoints(*data.rows[:3]), Phi, support, _stack(judged), Phi_held, group
        return cls(*parts, learner, inner, start.scales)

    @property
    def n_groups(self) -> int:
        """The number of means."""
        return int(self.group.max()) + 1

    def group_means(self, errors: np.ndarray) -> np.ndarray:
        """Return the mean over the tasks of each group (groups, L) of errors (V, L)."""
        return np.stack([errors[self.group == c].mean(axis=0) for c in range(self.n_groups)])

    def at_fixed(self, theta: np.ndarray, lam: Any, n_jobs: int | None = None) -> np.ndarray:
        """Return the errors (groups, L) of tasks solved around one theta (width,)."""
        lam = np.asarray(lam, dtype=float)
        start = np.broadcast_to(theta[None, :, None], (len(self.Phi_held), len(theta), len(lam)))
        return self.group_means(self._score(np.ascontiguousarray(start), lam, n_jobs))

    def curves(self, lam: Any, meta_step: Any, n_jobs: int | None = None) -> np.ndarray:
        """Return the errors after every training task (groups, T, L) of L pairs."""
        learner, jobs = self.learner, effective_n_jobs(n_jobs)
        lam, meta_step = np.asarray(lam, dtype=float), np.asarray(meta_step, dtype=float)
        if isinstance(self.inner, Batch):
            maps = self._batch_maps(lam, meta_step, range(1, len(self.Phi) + 1), jobs)
            return np.stack([self._map_errors(W, lam, jobs) for W in maps], axis=1)
        T, d = len(self.Phi), self.train.X.shape[1]
        state = GridState.start(self.Phi.shape[1], d, len(lam))
        if learner.averaging == "last" or self.metric is not None:  # judged by the map itself
            steps = (slice(t, t + 1) for t in range(T))
            return np.stack([self.advance(state, s, lam, meta_step, jobs) for s in steps], axis=1)
        gradients = np.empty((T, d, len(lam)))
        self._train(state, slice(0, T), lam, meta_step, gradients, jobs)
        linear, at_average = learner.averaging == "linear", learner.gradient_at == "average"
        kk = self.Phi @ self.Phi_held.T + 1.0
        return grid_curves(
            gradients, kk, *self.support, *self.query, self.group, self.n_groups, lam, meta_step,
            self.inner.loss, linear, at_average, jobs,
        )  # fmt: skip

    def finals(self, lam: Any, meta_step: Any, n_jobs: int | None = None) -> np.ndarray:
        """Return the errors after the last training task (groups, L) of L pairs."""
        lam, meta_step = np.asarray(lam, dtype=float), np.asarray(meta_step, dtype=float)
        state = GridState.start(self.Phi.shape[1], self.train.X.shape[1], len(lam))
        return self.advance(state, slice(0, len(self.Phi)), lam, meta_step, n_jobs)

    def advance(
        self, state: GridState, tasks: slice, lam: Any, meta_step: Any, n_jobs: int | None = None
    ) -> np.ndarray:
        """Go on with the training tasks `tasks`, in place; return the errors then (groups, L)."""
        jobs = effective_n_jobs(n_jobs)
        if isinstance(self.inner, Batch):
            (W,) = self._batch_maps(lam, meta_step, [tasks.stop], jobs)
            return self._map_errors(W, lam, jobs)
        none = np.empty((0, self.train.X.shape[1], len(lam)))
        self._train(state, tasks, lam, meta_step, none, jobs)
        with np.errstate(invalid="ignore", over="ignore"):
            W = state.map(meta_step, self.learner.averaging, self.learner.gradient_at)
        return self._map_errors(W, lam, jobs)

    def _train(
        self, state: Any, tasks: slice, lam: Any, meta_step: Any, gradients: Any, jobs: Any
    ) -> None:
        offsets = self.train.offsets[tasks.start : tasks.stop + 1]
        rows = slice(offsets[0], offsets[-1])
        learner = self.learner
        grid_train(
            *state, self.train.X[rows], self.train.y[rows], offsets - offsets[0], self.Phi[tasks],
            lam, meta_step, self.inner.loss, learner.averaging == "linear",
            learner.gradient_at == "average", gradients, jobs,
        )  # fmt: skip

    def _map_errors(self, W: np.ndarray, lam: Any, jobs: Any) -> np.ndarray:
        """Return the errors (groups, L) of maps W (k+1, width, L)."""
        theta = np.tensordot(self.Phi_held, W[:-1], 1) + W[-1]
        return self.group_means(self._score(theta, lam, jobs))

    def _score(self, theta: np.ndarray, lam: Any, n_jobs: int | None) -> np.ndarray:
        """Return the mean query errors (V, L) from theta (V, width, L)."""
        inner, jobs = self.inner, effective_n_jobs(n_jobs)
        if not isinstance(inner, Batch) and self.metric is None:
            return grid_score(theta, *self.support, *self.query, lam, inner.loss, jobs)
        X, y, offsets = self.query
        task = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        errors = np.full((len(theta), len(lam)), np.inf)
        for lane, value in enumerate(lam):
            start = np.ascontiguousarray(theta[:, :, lane])
            w = self._solved(start, value, jobs) if np.isfinite(start).all() else None
            if w is not None:
                lost = self._errors(np.einsum("ij,ij->i", X, w[task]), y)
                errors[:, lane] = np.bincount(task, lost) / np.diff(offsets)
        return errors

    def _solved(self, theta: np.ndarray, lam: float, jobs: int) -> np.ndarray | None:
        """Return the weights (V, width) of the held-out tasks; None if a pass diverges."""
        inner = get_inner(self.learner.inner, lam, self.inner.loss, self.learner.tol)
        try:
            return solve_tasks(inner, theta, *self.support, n_jobs=jobs, keep_state=False).coef
        except DivergenceError:
            return None

    def _errors(self, z: np.ndarray, y: Values) -> np.ndarray:
        """Return the errors of rows: targets are given to a metric in the user's units."""
        if self.metric is None:
            return self.inner.loss.value(z, y)
        return self.metric(*(self.scales.answer(part.copy()) for part in (y, z)))

    def _batch_maps(self, lam: Any, meta_step: Any, at: np.ndarray, jobs: Any) -> list[np.ndarray]:
        """Return the maps (k+1, width, L) after each number of tasks in `at`, batch inner."""
        learner, inner = self.learner, self.inner
        linear, at_average = learner.averaging == "linear", learner.gradient_at == "average"
        X, y, offsets = self.train

        def run(value: Any, step: Any) -> list[np.ndarray]:
            state, maps, start = SGDState.start(self.Phi.shape[1], X.shape[1]), [], 0
            for stop in at:
                cut = offsets[start : stop + 1]
                rows = slice(cut[0], cut[-1])
                sgd_pass(
                    *state, X[rows], y[rows], cut - cut[0], self.Phi[start:stop], value, inner.loss,
                    step, linear, at_average, True, inner.tol,
                )  # fmt: skip
                maps.append(state.map(step, learner.averaging, learner.gradient_at))
                start = stop
            return maps

        lanes = Parallel(jobs, prefer="threads")(
            delayed(run)(float(a), float(b)) for a, b in zip(lam, meta_step, strict=True)
        )
        return [np.stack([lane[i] for lane in lanes], axis=-1) for i in range(len(lanes[0]))]


class GridState(NamedTuple):
    """The state of Algorithm 1 for L pairs; see `SGDState`, with a last axis of lanes."""

    grad_sum: np.ndarray
    weighted_sum: np.ndarray
    phi_sum: np.ndarray

    @classmethod
    def start(cls, k: int, d: int, lanes: int) -> GridState:
        """Return the state before the first task."""
        return cls(np.zeros((k + 1, d, lanes)), np.zeros((k + 1, d, lanes)), np.zeros(k + 1))

    def lanes(self, chosen: Any) -> GridState:
        """Return the state of some of the pairs."""
        grad_sum, weighted_sum = (np.ascontiguousarray(a[..., chosen]) for a in self[:2])
        return GridState(grad_sum, weighted_sum, self.phi_sum.copy())

    def map(self, meta_step: Any, averaging: Any, gradient_at: Any) -> np.ndarray:
        """Return the maps (k+1, d, L)."""
        return SGDState(*self).map(meta_step, averaging, gradient_at)


def in_span(Phi: np.ndarray, Phi_held: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates of both in the row space of the training Phi, if that is smaller.

    Algorithm 1 depends on Phi through inner products with training tasks alone, so that nothing
    changes but the cost.
    """
    if Phi.shape[1] <= len(Phi):
        return Phi, Phi_held
    basis = np.linalg.qr(Phi.T)[0]
    return Phi @ basis, Phi_held @ basis


def best_pair(errors: np.ndarray, lam: Any, meta_step: Any) -> int:
    """Return the position of the least error; of equals (1e-9) larger lam, then smaller step."""
    close = np.flatnonzero(errors <= np.min(errors) * (1 + 1e-9))
    return int(close[np.lexsort((meta_step[close], -lam[close]))[0]])


def _numbers(start: Fitted, tasks: TaskSet) -> TaskSet:
    """Return tasks with labels as numbers."""
    predictor = start.predictor
    return tasks.with_target(encode(tasks.y, predictor.label_kind, predictor.classes))


def _query(start: Fitted, tasks: TaskSet) -> GridPoints:
    tasks, scales = _numbers(start, tasks), start.scales
    return GridPoints(scales.rows(tasks.X), scales.target(tasks.y), tasks.offsets)


def _stack(parts: list[GridPoints]) -> GridPoints:
    starts = np.cumsum([0, *(part.offsets[-1] for part in parts)])
    offsets = [part.offsets[1:] + start for part, start in zip(parts, starts, strict=False)]
    return GridPoints(
        np.ascontiguousarray(np.vstack([part.X for part in parts])),
        np.concatenate([part.y for part in parts]),
        np.concatenate([[0], *offsets]),
    )
