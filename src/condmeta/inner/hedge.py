r"""How far to trust forgetting: a share, learned from the errors of new rows.

That forgetting paid on the rows of a fit does not say that it always will. So a model that chose
its drift predicts with

    v m_drift + (1 - v) m_all,

where m_drift is the mean of a task's weights that change, and m_all that of weights that stay, from
all rows alike. New rows are predicted one step ahead, before they are added, with each share v of
0, 1/4, ..., 1. The sums of their absolute errors count .7 times after a typical time between two
rows; the share with the least sum is used. The share begins at 1: at first a share below it has
(1 - v) / 4 of the errors of such a time more. The rows of the fit do not count, as the drift was
chosen to suit them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.inner.algorithms import Solved
from condmeta.inner.drift import Drift, Process
from condmeta.inner.drifting import DriftingGaussian, TimedState
from condmeta.inner.posterior import Gaussian, Posterior
from condmeta.inner.squared import SquaredState
from condmeta.persistence.fields import FLAG, counts, floats, instance, number
from condmeta.persistence.registry import construct, register, register_tuple
from condmeta.tasks.timed import Timed
from condmeta.tasks.weights import masses

SHARES = np.linspace(0.0, 1.0, 5)
KEEPS = 0.7  # of what past errors count, after a typical time between two rows
TRUST = 0.25  # the first advantage of forgetting, in errors of such a time
MOST_ROWS = 500  # of one call that are judged


@register_tuple(
    fields={"losses": floats("5", low=0), "time": number(), "gap": number(above=0)}
)  # fmt: skip
class Hedge(NamedTuple):
    """The sum of the errors of each share (5,) as of a time, and the typical time between rows."""

    losses: np.ndarray
    time: float
    gap: float

    @classmethod
    def start(cls, loss: float, time: float, gap: float) -> Hedge:
        """Return the hedge of a fit: `loss` is the sum of errors in a time of `gap`."""
        return cls(TRUST * loss * (1.0 - SHARES), float(time), float(gap))

    @property
    def share(self) -> float:
        """v: the largest of the shares with the least loss."""
        least = self.losses.min() * (1 + 1e-12)
        return float(SHARES[np.flatnonzero(self.losses <= least)[-1]])

    def with_errors(self, drifts, stays, mass, time) -> Hedge:
        """Return it with the errors (N,) of rows by weights that drift and by weights that stay."""
        if not len(time):
            return self
        now = max(self.time, float(time.max()))
        count = mass * KEEPS ** ((now - time) / self.gap)
        errors = np.abs(np.outer(SHARES, drifts) + np.outer(1 - SHARES, stays)) @ count
        kept = KEEPS ** ((now - self.time) / self.gap)
        return self._replace(losses=kept * self.losses + errors, time=now)


@register_tuple(
    fields={
        "gram": floats("T d d"), "moment": floats("T d"), "square": floats("T", low=0),
        "count": counts("T"), "clock": floats("T", nan=True),
        "all_gram": floats("T d d"), "all_moment": floats("T d"),
        "all_square": floats("T", low=0), "all_count": counts("T"),
    }
)  # fmt: skip
class HedgedState(NamedTuple):
    """What is not forgotten of T tasks, as in `TimedState`, and the statistics of all rows."""

    gram: np.ndarray
    moment: np.ndarray
    square: np.ndarray
    count: np.ndarray
    clock: np.ndarray
    all_gram: np.ndarray
    all_moment: np.ndarray
    all_square: np.ndarray
    all_count: np.ndarray

    @classmethod
    def start(cls, n_tasks: int, d: int) -> HedgedState:
        """Return the statistics of tasks without points."""
        return cls(*TimedState.start(n_tasks, d), *SquaredState.start(n_tasks, d))

    @property
    def timed(self) -> TimedState:
        """What is not forgotten."""
        return TimedState(*self[:5])

    @property
    def all_rows(self) -> SquaredState:
        """The statistics of all rows."""
        return SquaredState(*self[5:])

    def take(self, at) -> HedgedState:
        """Return the statistics of the tasks at positions `at`."""
        return HedgedState(*(array[at] for array in self))


@register(
    restore=construct,
    fields={
        "factor": floats("d d"), "s2": number(above=0), "own_noise": FLAG,
        "drift": instance("Drift"), "hedge": instance("Hedge"),
    },
)  # fmt: skip
class HedgedGaussian(DriftingGaussian):
    """The inner algorithm of weights that drift, hedged by that of weights that stay.

    A state is a `HedgedState`. Variances are those of a mixture of the two with weights v and
    1 - v.
    """

    state_type = HedgedState

    def __init__(self, factor, s2: float, own_noise: bool, drift: Drift, hedge: Hedge):
        super().__init__(factor, s2, own_noise, drift)
        self.hedge = hedge

    @property
    def drifts(self) -> DriftingGaussian:
        """The inner algorithm of weights that drift alone."""
        return DriftingGaussian(self.factor, self.s2, self.own_noise, self.drift)

    @property
    def stays(self) -> Gaussian:
        """The inner algorithm of weights that stay."""
        return Gaussian(self.factor, self.s2 / self.drift.noise, self.own_noise)

    def after(self, state: HedgedState, theta, at, rows: Timed, n_jobs=1) -> HedgedGaussian:
        """Return it with the hedge after further rows of the tasks at positions `at`.

        `state` and theta are of all tasks, without these rows. Of many tasks every second, third,
        ... is judged, and counts for those between.
        """
        step = 1 + len(rows.y) // MOST_ROWS
        some = np.arange(0, len(at), step)
        state, theta, rows = state.take(at[some]), theta[at[some]], rows.take(some)
        rows = rows.where(rows.time > state.clock[rows.task_of_row]).sorted()
        stays = Process(Drift("decay", 1.0), self.factor, self.stays.s2)
        ahead = theta, rows, n_jobs
        drifts = self.process.one_step_ahead(state.timed.statistics, state.clock, *ahead)
        stays = stays.one_step_ahead(state.all_rows, state.clock, *ahead)
        mass = np.ones(len(rows.y)) if rows.weight is None else masses(rows.weight)
        mass = mass * step
        hedge = self.hedge.with_errors(drifts - rows.y, stays - rows.y, mass, rows.time)
        return HedgedGaussian(self.factor, self.s2, self.own_noise, self.drift, hedge)

    def solve_tasks(
        self, theta, X, y, offsets, state=None, n_jobs=1, keep_state=True, weight=None, time=None
    ) -> Solved:
        """Return the mean of every task's weights at the time of its latest row."""
        before = HedgedState.start(*theta.shape) if state is None else state
        points = X, y, offsets
        solved = self.drifts.solve_tasks(theta, *points, before.timed, n_jobs, True, weight, time)
        after = HedgedState(*solved.state, *before.all_rows.extend(*points, weight))
        coef = self._mixed(solved.coef, after, theta, n_jobs)
        return Solved(coef, solved.gap, after if keep_state else None)

    def aged(self, state: HedgedState, theta, time) -> HedgedState:
        """Return what the rows say about the weights at a later time (T,); earlier ones: now."""
        return HedgedState(*self.drifts.aged(state.timed, theta, time), *state.all_rows)

    def posterior(self, state: HedgedState, theta, n_jobs=1) -> Posterior:
        """Return the means of weights, and the noise of tasks."""
        mean = self.drifts.posterior(state.timed, theta, n_jobs).mean
        s2 = self._mixture(self.s2, self.stays.s2)
        return Posterior(self._mixed(mean, state, theta, n_jobs), np.full(len(theta), s2))

    def covariances(self, state: HedgedState, theta) -> np.ndarray:
        """Return the covariances P (T, d, d) of the weights of tasks."""
        P = self.drifts.covariances(state.timed, theta)
        if self.hedge.share == 1:
            return P
        apart = self._apart(state, theta)
        P = self._mixture(P, self.stays.covariances(state.all_rows, theta))
        return P + self._mixture(0.0, 0.0, 1.0) * apart[:, :, None] * apart[:, None, :]

    def label_covariances(self, state: HedgedState, theta) -> tuple[np.ndarray, np.ndarray]:
        """Return P (T, d, d) and s2 (T,): a new label has the variance x^T P x + s2."""
        return self.covariances(state, theta), self.posterior(state, theta).s2

    def spread(self, state: HedgedState, theta, rows, codes, precisions=1.0) -> np.ndarray:
        """Return the standard deviation of a new label at rows (N, d); see `Gaussian`."""
        of = theta, rows, codes, precisions
        drifts = self.drifts.spread(state.timed, *of)
        if self.hedge.share == 1:
            return drifts
        stays = self.stays.spread(state.all_rows, *of)
        apart = np.einsum("ni,ni->n", rows, self._apart(state, theta)[codes])
        return np.sqrt(self._mixture(drifts**2, stays**2, apart**2))

    def _mixture(self, drifts, stays, apart=0.0):
        """Return the variance of a mixture: of variances and the square between the means."""
        v = self.hedge.share
        return v * drifts + (1 - v) * stays + v * (1 - v) * apart

    def _mixed(self, drifts, state: HedgedState, theta, n_jobs) -> np.ndarray:
        """Return the means of weights (T, d), from those of weights that drift."""
        if self.hedge.share == 1:
            return drifts
        return self._mixture(drifts, self.stays.posterior(state.all_rows, theta, n_jobs).mean)

    def _apart(self, state: HedgedState, theta) -> np.ndarray:
        """Return the difference of the two means (T, d)."""
        drifts = self.drifts.posterior(state.timed, theta).mean
        return drifts - self.stays.posterior(state.all_rows, theta).mean
