"""Tasks whose statistics are in files: one process reads them leaf after leaf, or several do.

The sums run over the same tree of leaves as in memory, so they have the same bits. A runner says
where subtrees are summed up: here, in threads, or on the workers of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from condmeta.blas_threads import limit_threads
from condmeta.inner.squared import SquaredState
from condmeta.meta.blocks import GROWTH, Block, Sums, squares_of
from condmeta.meta.rotation import Rotation
from condmeta.meta.task_files import (
    Layout,
    Piece,
    Reader,
    Shard,
    plan_shards,
    scatter_of,
    write_shard,
)
from condmeta.meta.task_statistics import TaskStatistics
from condmeta.meta.trained_tasks import RawBlock, Sample, Scaling, moments_of, rotation_of
from condmeta.tasks.numbers import tree_sum

Change = Callable[[SquaredState], SquaredState]


class Runner(Protocol):
    """Where work on shards is done."""

    bits: int  # the leaves are summed up in at most 2^bits jobs
    least: int  # a job has at least so many leaves; fewer are summed up by the caller

    def map(self, function: Callable[..., Any], jobs: Iterable[tuple]) -> Iterable[Any]:
        """Return function(*job) of each job, in their order; function and jobs can be pickled."""
        ...

    def arrays(self, function: Callable[..., tuple], jobs: Iterable[tuple]) -> Iterator[tuple]:
        """Yield function(*job) of each job, tuples of large arrays."""
        ...


class Here:
    """Work in this process, in threads if there are several."""

    least = 1

    def __init__(self, n_jobs: int = 1):
        self.n_jobs, self.bits = n_jobs, (n_jobs - 1).bit_length()

    def map(self, function: Callable[..., Any], jobs: Iterable[tuple]) -> Iterable[Any]:
        """Return function(*job) of each job, in their order."""
        if self.n_jobs == 1:
            return [function(*job) for job in jobs]
        with ThreadPoolExecutor(self.n_jobs) as pool:
            return list(pool.map(lambda job: function(*job), jobs))

    def arrays(self, function: Callable[..., tuple], jobs: Iterable[tuple]) -> Iterator[tuple]:
        """Yield function(*job) of each job, one after the other."""
        return (function(*job) for job in jobs)


class Scaled(NamedTuple):
    """From raw blocks to those of a prior: `changes` follow the scaling of statistics."""

    scaling: Scaling
    changes: tuple[Change, ...] = ()

    def __call__(self, raw: RawBlock, n_jobs: int = 1) -> Block:
        given = self.scaling.packed(raw.scatter, raw.at)
        for change in self.changes:
            given = change(squares_of(given))
        given = given._replace(count=given.count.astype(float))
        return Block(given, self.scaling.features_of_blocks(raw.Phi), n_jobs)


def raw_blocks(layout: Layout, shards: Sequence[Shard]) -> Iterator[RawBlock]:
    """Yield the leaves of shards; a leaf is valid until the next one."""
    reader = Reader.of(layout, shards)
    for shard in shards:
        for parts, Phi in reader.leaves(shard):
            yield RawBlock(scatter_of(parts), np.arange(len(Phi)), Phi)


def sum_leaves(layout: Layout, view, function, params, shards: Sequence[Shard]) -> Sums:
    """Return the sum of function(block, *params) over the 2^b leaves of some shards."""
    with limit_threads(1):
        blocks = raw_blocks(layout, shards)
        return tree_sum(function(raw if view is None else view(raw), *params) for raw in blocks)


class StoredLeaves(NamedTuple):
    """Leaves in files, as raw blocks or through a view, and the runner that sums them up."""

    layout: Layout
    shards: tuple[Shard, ...]
    runner: Runner
    view: Scaled | None = None

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return sum(len(shard.offsets) - 1 for shard in self.shards)

    def map_sum(self, function: Callable[..., Sums], *params) -> Sums:
        """Return the sum of function(block, *params) over the tree of the leaves."""
        total = self.n_leaves
        work = partial(sum_leaves, self.layout, self.view, function, params)
        jobs = min(1 << self.runner.bits, total // self.runner.least)
        if jobs < 2:
            return work(self.shards)
        cuts = [self.head(total // jobs, number * (total // jobs)) for number in range(jobs)]
        return tree_sum(self.runner.map(work, [(cut.shards,) for cut in cuts]))

    def changed(self, change: Change) -> StoredLeaves:
        """Return the same tasks with changed statistics."""
        view = self.view
        return self._replace(view=view._replace(changes=(*view.changes, change)))

    def head(self, n_leaves: int, begin: int = 0) -> StoredLeaves:
        """Return some leaves alone; the first have the tasks with the smallest keys."""
        chosen, end, at = [], begin + n_leaves, 0
        for shard in self.shards:
            n = len(shard.offsets) - 1
            lo, hi = max(begin - at, 0), min(end - at, n)
            if lo < hi:
                chosen.append(shard.cut(lo, hi))
            at += n
        return self._replace(shards=tuple(chosen))

    def heads(self) -> Iterator[StoredLeaves]:
        """Yield ever more leaves, less than all."""
        some = 1
        while some < self.n_leaves:
            yield self.head(some)
            some <<= GROWTH

    @property
    def only(self) -> Block | None:
        """The block, if there is one alone."""
        if self.n_leaves > 1:
            return None
        return self.view(next(raw_blocks(self.layout, self.shards)))


class StoredTasks:
    """Tasks with points, their statistics in shards (see `TrainedTasks`).

    Attributes
    ----------
    ids : (T,) object array
    spare : object array
        Ids of tasks without points.
    sampled : TaskStatistics of the sample
    at : (T,) ints
        Positions of the tasks among `ids`, by rising key.
    leaves : StoredLeaves
    """

    has_history = False

    def __init__(self, ids, spare, sampled: TaskStatistics, leaves: StoredLeaves, at: np.ndarray):
        self.ids, self.spare, self.sampled, self.leaves, self.at = ids, spare, sampled, leaves, at

    @classmethod
    def merge(
        cls, folder: Path, sampled: TaskStatistics, pieces: list[Piece], runner: Runner
    ) -> StoredTasks:
        """Return the tasks of all pieces, which differ in their ids; the pieces are removed.

        `sampled` are those with the smallest keys.
        """
        ids = np.concatenate([piece.ids for piece in pieces])
        spare = np.concatenate([piece.spare for piece in pieces])
        layout = Layout.of(sampled)
        plans = [(layout, *plan) for plan in plan_shards(folder, pieces)]
        shards = tuple(runner.map(write_shard, plans))
        for piece in pieces:
            Path(piece.path).unlink(missing_ok=True)
        at = np.concatenate([_positions(layout, shard) for shard in shards])
        return cls(ids, spare, sampled, StoredLeaves(layout, shards, runner), at)

    def __len__(self) -> int:
        return len(self.at)

    def with_features(self, Phi: np.ndarray) -> StoredTasks:
        """Return the tasks with features (T, k), by rising key: they are written to files."""
        begin = 0
        for shard in self.leaves.shards:
            Phi[begin : begin + shard.size].tofile(f"{shard.path}.phi")
            begin += shard.size
        # The sample has the smallest keys.
        sampled = self.sampled._replace(Phi=Phi[: len(self.sampled.ids)].copy())
        layout = self.leaves.layout._replace(k=Phi.shape[1])
        leaves = self.leaves._replace(layout=layout)
        return type(self)(self.ids, self.spare, sampled, leaves, self.at)

    @cached_property
    def sample(self) -> Sample:
        """The sample."""
        found = self.sampled
        halves = found.support, found.query, found.few
        return Sample(found.whole, *halves, found.Phi, None, found.folds())

    @cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation (d+1,) of all rows."""
        return moments_of(self, self.sampled.whole.mean[0])

    def map_sum(self, function: Callable[..., Sums], *params) -> Sums:
        """Return the sum of function(raw block, *params) over the tree of the leaves."""
        return self.leaves.map_sum(function, *params)

    def rotation(self) -> Rotation:
        """Return the coordinates of features."""
        blocks = raw_blocks(self.leaves.layout, self.leaves.shards)
        return rotation_of(self, lambda: np.concatenate([raw.Phi.copy() for raw in blocks]))

    def blocks(self, scaling: Scaling, n_jobs: int = 1) -> StoredLeaves:
        """Return the tasks with scaled statistics."""
        return self.leaves._replace(view=Scaled(scaling))

    def map_blocks(self, function: Callable[..., tuple], *params) -> Iterator[tuple]:
        """Yield positions (m,) of tasks, and the arrays of function(raw block, *params)."""
        jobs = [(self.leaves.layout, shard, function, params) for shard in self.leaves.shards]
        begin = 0
        for shard, found in zip(
            self.leaves.shards, self.leaves.runner.arrays(map_leaves, jobs), strict=True
        ):
            yield self.at[begin : begin + shard.size], *found
            begin += shard.size

    @property
    def nbytes(self) -> int:
        """The size of the statistics in memory."""
        return self.leaves.layout.record.itemsize * len(self)

    def load(self, table=None) -> TaskStatistics:
        """Return the statistics in memory, the tasks in the order of `ids`."""
        layout, place = self.leaves.layout, np.argsort(self.at)
        names = layout.record.names
        found: dict[str, list[np.ndarray]] = {name: [] for name in names}
        for shard in self.leaves.shards:
            reader = Reader.of(layout._replace(k=None), [shard])
            for parts, _ in reader.leaves(shard, names):
                for name, part in parts.items():
                    found[name].append(part.copy())
        arrays = {name: np.concatenate(found.pop(name))[place] for name in names}
        small = self.sampled
        halves = small.support, small.query, None
        sample = self.at[: len(small.ids)]
        rest = None, arrays["size"], arrays["key"], sample, *halves
        return TaskStatistics(self.ids, scatter_of(arrays), table, *rest, few=small.few)


def map_leaves(layout: Layout, shard: Shard, function, params) -> tuple[np.ndarray, ...]:
    """Return the arrays of function(raw block, *params), for all leaves of a shard."""
    with limit_threads(1):
        found = [function(raw, *params) for raw in raw_blocks(layout, [shard])]
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


def _positions(layout: Layout, shard: Shard) -> np.ndarray:
    """Return the positions of the tasks of a shard, by rising key."""
    begin = next(begin for name, _, _, begin in layout.sections(shard.size) if name == "at")
    return np.fromfile(shard.path, np.int64, shard.size, offset=begin)
