"""The posterior of a task's weights, which change with time (`condmeta.inner.drift`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.inner.algorithms import Solved
from condmeta.inner.drift import Drift, Process
from condmeta.inner.posterior import Gaussian
from condmeta.inner.squared import SquaredState
from condmeta.persistence.fields import FLAG, counts, floats, instance, number
from condmeta.persistence.registry import construct, register, register_tuple
from condmeta.tasks.timed import Timed


@register_tuple(
    fields={
        "gram": floats("T d d"), "moment": floats("T d"), "square": floats("T", low=0),
        "count": counts("T"), "clock": floats("T", nan=True),
    }
)  # fmt: skip
class TimedState(NamedTuple):
    """Statistics of T tasks, as in `SquaredState`, as of a time of each task.

    clock (T,) is the time of a task's latest row; NaN for a task without rows.
    """

    gram: np.ndarray
    moment: np.ndarray
    square: np.ndarray
    count: np.ndarray
    clock: np.ndarray

    @classmethod
    def start(cls, n_tasks: int, d: int) -> TimedState:
        """Return the statistics of tasks without points."""
        return cls(*SquaredState.start(n_tasks, d), np.full(n_tasks, np.nan))

    @property
    def statistics(self) -> SquaredState:
        """The statistics without their times."""
        return SquaredState(*self[:4])

    def take(self, at) -> TimedState:
        """Return the statistics of the tasks at positions `at`."""
        return TimedState(*(array[at] for array in self))


@register(
    restore=construct,
    fields={
        "factor": floats("d d"), "s2": number(above=0), "own_noise": FLAG,
        "drift": instance("Drift"),
    },
)  # fmt: skip
class DriftingGaussian(Gaussian):
    """The inner algorithm of `Gaussian` for tasks that change with time.

    A state is a `TimedState`; the posterior is that of the weights at its clock.
    """

    state_type: type = TimedState

    def __init__(self, factor, s2: float, own_noise: bool, drift: Drift):
        super().__init__(factor, s2, own_noise)
        self.drift = drift

    @property
    def process(self) -> Process:
        """The drift with the prior that it moves in."""
        return Process(self.drift, self.factor, self.s2)

    def solve_tasks(
        self, theta, X, y, offsets, state=None, n_jobs=1, keep_state=True, weight=None, time=None
    ) -> Solved:
        """Return the posterior mean of every task at the time of its latest row.

        time (N,) of the rows; without it they are of one time, which is that of `state`.
        """
        before = TimedState.start(*theta.shape) if state is None else state
        if time is None:
            time = np.repeat(np.nan_to_num(before.clock), np.diff(offsets))
        rows, known = Timed(X, y, offsets, weight, time), (before.statistics, before.clock)
        stats, clock = self.process.absorb(*known, theta, rows, n_jobs)
        state = TimedState(*stats, clock)
        mean = self.posterior(state, theta, n_jobs).mean
        return Solved(mean, np.zeros(len(mean)), state if keep_state else None)

    def aged(self, state: TimedState, theta, time) -> TimedState:
        """Return what the rows say about the weights at a later time (T,); earlier ones: now."""
        wait = np.nan_to_num(np.maximum(time - state.clock, 0.0))
        later = self.process.aged(state.statistics, theta, wait)
        return TimedState(*later, np.maximum(state.clock, time))  # NaN stays NaN
