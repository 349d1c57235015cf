"""The tasks that a prior is learned from, wherever their statistics are.

Learning needs the sample that settings are chosen on, and sums over blocks of tasks: raw ones, for
the scales of rows and features, then scaled ones, for the prior.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from condmeta.inner.scaled import ScaledTasks
from condmeta.inner.scatter import Scatter, moments
from condmeta.inner.squared import SquaredState
from condmeta.meta.blocks import Blocks, Leaves, Sums, with_one
from condmeta.meta.rotation import Rotation
from condmeta.meta.task_statistics import TaskStatistics, scaled_packed, scaled_statistics
from condmeta.tasks.numbers import tree_sum


class Sample(NamedTuple):
    """The m tasks that settings are chosen on (see `TaskStatistics`).

    Phi_support is None if features do not depend on points; fold (m,): see `fold_numbers`.
    """

    whole: Scatter
    support: Scatter
    query: Scatter
    few: tuple[Scatter, ...]
    Phi: np.ndarray
    Phi_support: np.ndarray | None
    fold: np.ndarray


class RawBlock(NamedTuple):
    """Some tasks: the statistics at positions `at`, and their features (m, k)."""

    scatter: Scatter
    at: np.ndarray
    Phi: np.ndarray


class Scaling(NamedTuple):
    """From raw statistics and features to those that a prior is learned from.

    overall : Scales of all rows; rotation : of the features
    reads_side : whether a map may read side information; it cannot if kappa is infinite
    """

    overall: Any
    rotation: Rotation
    reads_side: bool = True

    def statistics(self, part: Scatter, at=None) -> SquaredState:
        """Return the statistics of scaled rows, without constant columns."""
        return scaled_statistics(part, self.overall, at).columns(self.overall.kept)

    def packed(self, part: Scatter, at=None) -> ScaledTasks | SquaredState:
        """Return the same, still packed if there is no constant column."""
        return scaled_packed(part, self.overall, at).columns(self.overall.kept)

    def features(self, Phi) -> np.ndarray:
        """Return the coordinates of features."""
        return self.rotation.apply(Phi) * self.reads_side

    def features_of_blocks(self, Phi) -> np.ndarray:
        """Return the coordinates with a one at the end."""
        return with_one(self.features(Phi))


class TrainedTasks(Protocol):
    """Tasks that have points."""

    sample: Sample
    moments: tuple[np.ndarray, np.ndarray]
    has_history: bool

    def __len__(self) -> int: ...

    def map_sum(self, function: Callable[..., Sums], *params) -> Sums:
        """Return the sum of function(raw block, *params) over the tree of the leaves."""
        ...

    def rotation(self) -> Rotation:
        """Return the coordinates of features."""
        ...

    def blocks(self, scaling: Scaling, n_jobs: int = 1) -> Blocks:
        """Return the tasks with scaled statistics."""
        ...


class InMemory:
    """Tasks of statistics in memory; Phi (T, k) of all tasks, also of those without points."""

    def __init__(self, state: TaskStatistics, Phi: np.ndarray):
        self.state, self.Phi, self.order = state, Phi, state.order()
        self.leaves = state.leaves(self.order)
        self.has_history = state.history is not None

    def __len__(self) -> int:
        return len(self.order)

    @cached_property
    def sample(self) -> Sample:
        """The sample."""
        state = self.state
        Phi_support = None if state.Phi is None else state.Phi_support
        halves = state.support, state.query, state.few
        at = state.sample
        return Sample(state.whole.take(at), *halves, self.Phi[at], Phi_support, state.folds())

    @cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation (d+1,) of all rows."""
        return self.state.whole.overall(self.leaves)

    def map_sum(self, function: Callable[..., Sums], *params) -> Sums:
        """Return the sum of function(raw block, *params) over the tree of the leaves."""
        whole, Phi = self.state.whole, self.Phi
        return tree_sum(function(RawBlock(whole, at, Phi[at]), *params) for at in self.leaves)

    def rotation(self) -> Rotation:
        """Return the coordinates of features."""
        return rotation_of(self, lambda: self.Phi[self.order])

    def blocks(self, scaling: Scaling, n_jobs: int = 1) -> Leaves:
        """Return the tasks with scaled statistics."""
        Phi1 = np.concatenate([scaling.features_of_blocks(self.Phi[at]) for at in self.leaves])
        packed, kept = scaled_packed(self.state.whole, scaling.overall), scaling.overall.kept
        return Leaves(lambda at: packed.take(at).columns(kept), self.leaves, Phi1, n_jobs)


def rotation_of(tasks: TrainedTasks, every: Callable[[], np.ndarray]) -> Rotation:
    """Return the coordinates of features; `every()` returns those of all tasks."""
    return Rotation.of_sums(partial(tasks.map_sum, of_features), every)


def moments_of(tasks: TrainedTasks, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of all rows; `first` is the mean of one task."""
    return moments(partial(tasks.map_sum, of_scatter), first)


def of_features(block: RawBlock, function, *params) -> Sums:
    """Return a function of the features of a block."""
    return function(block.Phi, *params)


def of_scatter(block: RawBlock, function, *params) -> Sums:
    """Return a function of the statistics of a block."""
    return function(block.scatter, block.at, *params)


def count_points(block: RawBlock, d: int) -> Sums:
    """Return how many points there are, the sum of log precisions, and observed coefficients.

    A task observes as many coefficients as it has points, at most d.
    """
    count = block.scatter.count[block.at]
    log_precision = block.scatter.log_precisions[block.at]
    return count.sum(), log_precision.sum(), np.minimum(count, d).sum()
