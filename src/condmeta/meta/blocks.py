"""Where the tasks are that a prior is learned from, behind one method.

Learning reads tasks only through sums over them: `map_sum(function, *params)` applies
`function(block, *params)` to each block of tasks, and adds the tuples of arrays that it returns.

A task's leaf is given by the leading bits of its key, a hash of its points; there are 2^b leaves,
and b depends on the number of tasks alone. Sums run over the perfect binary tree of the leaves. So
the sum has the same bits for any order of rows and tasks, and for any number of threads.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from condmeta.inner.scaled import ScaledTasks
from condmeta.inner.squared import SquaredState
from condmeta.tasks.numbers import tree_sum

LEAF = 2048  # tasks in the smallest leaves; others have up to twice as many
GROWTH = 3  # bits by which the number of leaves of warm starts rises

Sums = tuple[np.ndarray, ...]


class Block(NamedTuple):
    """Some tasks: their statistics, phi (T, k+1) with a one at the end, and threads to use."""

    given: SquaredState | ScaledTasks
    Phi1: np.ndarray
    n_jobs: int = 1

    @property
    def stats(self) -> SquaredState:
        """The statistics as whole matrices."""
        return squares_of(self.given)


class Blocks(Protocol):
    """Tasks, wherever they are."""

    def map_sum(self, function: Callable[..., Sums], *params) -> Sums:
        """Return the sum of function(block, *params) over all blocks."""
        ...

    def changed(self, change: Callable[[SquaredState], SquaredState]) -> "Blocks":
        """Return the same tasks with changed statistics."""
        ...

    @property
    def only(self) -> Block | None:
        """The block, if there is one alone."""
        ...


class OneBlock(NamedTuple):
    """Tasks whose statistics are in memory, as one block."""

    only: Block

    @classmethod
    def of(cls, stats: SquaredState, Phi, n_jobs: int = 1) -> "OneBlock":
        """Return the block of tasks with features Phi (T, k)."""
        stats = stats._replace(count=stats.count.astype(float))
        return cls(Block(stats, with_one(Phi), n_jobs))

    def map_sum(self, function: Callable[..., Sums], *params) -> Sums:
        """Return function(block, *params)."""
        return function(self.only, *params)

    def changed(self, change: Callable[[SquaredState], SquaredState]) -> "OneBlock":
        """Return the same tasks with changed statistics."""
        return type(self)(self.only._replace(given=change(self.only.stats)))


class Leaves(NamedTuple):
    """Tasks in leaves; the statistics of a leaf are made when it is read, and dropped after it.

    read : callable
        `read(tasks)` returns the statistics of the tasks at positions (m,).
    leaves : list of int arrays
        Positions of the tasks of each leaf; their number is a power of two.
    Phi1 : (T, k+1) array
        phi of the tasks, leaf after leaf.
    """

    read: Callable[[np.ndarray], SquaredState | ScaledTasks]
    leaves: list[np.ndarray]
    Phi1: np.ndarray
    n_jobs: int = 1

    @property
    def only(self) -> Block | None:
        """The block, if there is one alone."""
        return self._block(self.leaves[0], 0, self.n_jobs) if len(self.leaves) == 1 else None

    def changed(self, change: Callable[[SquaredState], SquaredState]) -> "Leaves":
        """Return the same tasks with changed statistics."""
        return self._replace(read=lambda leaf: change(squares_of(self.read(leaf))))

    def head(self, n_leaves: int) -> "Leaves":
        """Return the first leaves alone: the tasks with the smallest keys."""
        return self._replace(leaves=self.leaves[:n_leaves])

    def heads(self) -> "Iterator[Leaves]":
        """Yield ever more leaves, less than all."""
        some = 1
        while some < len(self.leaves):
            yield self.head(some)
            some <<= GROWTH

    def map_sum(self, function: Callable[..., Sums], *params) -> Sums:
        """Return the sum of function(block, *params) over the tree of the leaves."""
        begins = np.cumsum([0, *map(len, self.leaves)])
        one = partial(self._apply, function, params)
        if self.n_jobs == 1 or len(self.leaves) == 1:
            return tree_sum(map(one, self.leaves, begins))
        with ThreadPoolExecutor(self.n_jobs) as pool:
            return tree_sum(pool.map(one, self.leaves, begins))

    def _apply(self, function, params, leaf, begin) -> Sums:
        return function(self._block(leaf, begin), *params)

    def _block(self, leaf, begin, n_jobs: int = 1) -> Block:
        stats = self.read(leaf)
        stats = stats._replace(count=stats.count.astype(float, copy=False))
        return Block(stats, self.Phi1[begin : begin + len(leaf)], n_jobs)


def squares_of(given: SquaredState | ScaledTasks) -> SquaredState:
    """Return statistics as whole matrices."""
    return given.squared if isinstance(given, ScaledTasks) else given


def with_one(Phi) -> np.ndarray:
    """Return phi = (Phi, 1) of tasks (T, k+1)."""
    return np.column_stack([Phi, np.ones(len(Phi))])


def by_leaf(keys: np.ndarray) -> list[np.ndarray]:
    """Return the positions of tasks in each leaf, by rising key.

    Examples
    --------
    >>> import numpy as np
    >>> from condmeta.meta.blocks import by_leaf
    >>> [leaf.tolist() for leaf in by_leaf(np.array([7, 5, 9], dtype=np.uint64))]
    [[1, 0, 2]]
    """
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.searchsorted(keys[order], leaf_edges(leaf_bits(len(keys)))))


def leaf_bits(n_tasks: int) -> int:
    """Return b of the 2^b leaves that so many tasks have."""
    return max((n_tasks // LEAF).bit_length() - 1, 0)


def leaf_edges(bits: int) -> np.ndarray:
    """Return the keys (2^b - 1,) at which leaves begin, but for the first."""
    return np.arange(1, 1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
