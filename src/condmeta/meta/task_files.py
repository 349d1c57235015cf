"""Statistics of tasks in files: pieces as they are summed up, then shards by rising key.

A piece has the tasks of one part of the rows, ordered by their keys. Shards are made from the
pieces: each has the tasks whose keys begin with the same bits, leaf after leaf, one section for
each array. A leaf is read by a few calls, into memory that the next leaf uses again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from condmeta.inner.scatter import Scatter
from condmeta.meta.blocks import leaf_bits, leaf_edges
from condmeta.meta.task_statistics import TaskStatistics

BUCKETS = 8  # bits of a key: there are at most 2^8 shards
PARTS = "count", "mean", "triangles", "mass", "log_precision"  # of `Scatter`


class Piece(NamedTuple):
    """Tasks in one file, ordered by key.

    ids : (m,) object array, as the tasks came
    edges : (2^8 + 1,) ints: where the tasks begin whose keys begin with 0, 1, 2, ...
    spare : ids of tasks of the same part that have no points; they are not in the file
    copied, varies : (d+1,) arrays: the first column of (x, y) that each is a copy of in this part,
        and whether it has several values
    """

    path: str
    ids: np.ndarray
    edges: np.ndarray
    spare: np.ndarray = np.empty(0, object)
    copied: np.ndarray = np.empty(0, np.int64)
    varies: np.ndarray = np.empty(0, bool)

    def has_keys_of(self, distinct: np.ndarray) -> bool:
        """Return whether the keys were made of these columns; constant ones do not matter."""
        here = self.copied == np.arange(len(self.copied))
        return not ((here != distinct) & self.varies).any()


def distinct_in_all(pieces: Sequence[Piece]) -> np.ndarray:
    """Return the mask of columns that are no copy of an earlier one in all pieces together."""
    copied = np.array([piece.copied for piece in pieces])
    _, first, group = np.unique(copied, axis=1, return_index=True, return_inverse=True)
    return first[group.ravel()] == np.arange(copied.shape[1])


class Shard(NamedTuple):
    """Tasks of successive leaves in one file.

    offsets : (L+1,) ints, where the leaves begin; from 0 to the number of tasks, unless the shard
        was cut
    size : tasks in the file
    """

    path: str
    offsets: np.ndarray
    size: int

    def cut(self, begin: int, end: int) -> Shard:
        """Return some of its leaves."""
        return self._replace(offsets=self.offsets[begin : end + 1])


class Layout(NamedTuple):
    """The arrays of a task, in the order of their sections: names, types and shapes.

    Attributes
    ----------
    fields : tuple of (name, dtype, shape of one task)
    k : int or None
        Features of a task, in a file of their own; None if there are none yet.
    """

    fields: tuple
    k: int | None = None

    @classmethod
    def of(cls, found: TaskStatistics) -> Layout:
        """Return the layout of statistics; `at` is the position of a task."""
        parts = {"key": found.keys, "at": np.zeros(0, np.int64), "size": found.sizes}
        parts |= {name: getattr(found.whole, name) for name in PARTS}
        given = {name: part for name, part in parts.items() if part is not None}
        return cls(tuple((n, part.dtype.str, part.shape[1:]) for n, part in given.items()))

    @property
    def record(self) -> np.dtype:
        """All arrays of a task, one after the other."""
        return np.dtype([(name, kind, shape) for name, kind, shape in self.fields])

    def sections(self, size: int) -> Iterator[tuple[str, np.dtype, tuple, int]]:
        """Yield name, type, shape of one task, and first byte of each section."""
        begin = 0
        for name, kind, shape in self.fields:
            dtype = np.dtype(kind)
            yield name, dtype, shape, begin
            begin += size * dtype.itemsize * int(np.prod(shape))


def write_piece(path: Path | str, found: TaskStatistics) -> Piece:
    """Write the statistics of whole tasks, all with points, to a file."""
    layout, order = Layout.of(found), np.argsort(found.keys, kind="stable")
    records = np.empty(len(order), layout.record)
    records["key"], records["at"], records["size"] = found.keys[order], order, found.sizes[order]
    for name in layout.record.names[3:]:
        records[name] = getattr(found.whole, name)[order]
    write(path, records)
    begins = np.searchsorted(records["key"], leaf_edges(BUCKETS))
    edges = np.concatenate([[0], begins, [len(records)]])
    return Piece(str(path), found.ids, edges)


def write(path: Path | str, *arrays: np.ndarray) -> None:
    """Write arrays to a file, which is complete or not there."""
    part = f"{path}.{os.getpid()}.part"
    with open(part, "wb") as file:
        for array in arrays:
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    os.replace(part, path)


def plan_shards(folder: Path, pieces: Sequence[Piece]) -> list[tuple]:
    """Return the arguments of `write_shard` for each shard."""
    sizes = [int(piece.edges[-1]) for piece in pieces]
    bits, begins = leaf_bits(sum(sizes)), np.cumsum([0, *sizes]).tolist()
    top = min(bits, BUCKETS)
    step = 1 << (BUCKETS - top)
    plans = []
    for number in range(1 << top):
        lo, hi = number * step, (number + 1) * step
        parts = [
            (piece.path, int(piece.edges[lo]), int(piece.edges[hi]), begin)
            for piece, begin in zip(pieces, begins, strict=False)
            if piece.edges[hi] > piece.edges[lo]
        ]
        keys = leaf_edges(bits)[(number << (bits - top)) : ((number + 1) << (bits - top)) - 1]
        plans.append((str(folder / f"shard-{number:03d}"), parts, keys))
    return plans


def write_shard(layout: Layout, path: str, parts: list[tuple], edges: np.ndarray) -> Shard:
    """Write a shard.

    parts : (path of a piece, first and last task, position of its task 0) of each piece
    edges : (L-1,) keys at which leaves begin, but for the first
    """
    dtype = layout.record
    records = np.empty(sum(end - begin for _, begin, end, _ in parts), dtype)
    filled = 0
    for piece, begin, end, first in parts:
        some = np.fromfile(piece, dtype, end - begin, offset=begin * dtype.itemsize)
        some["at"] += first
        records[filled : filled + len(some)] = some
        filled += len(some)
    order = np.argsort(records["key"], kind="stable")
    write(path, *(records[name][order] for name in dtype.names))
    begins = np.searchsorted(records["key"], edges, sorter=order)
    return Shard(path, np.concatenate([[0], begins, [len(order)]]), len(order))


class Reader:
    """Read the leaves of shards, each into the memory of the one before."""

    def __init__(self, layout: Layout, most: int):
        self.layout, self.most = layout, most
        self.memory = {n: np.empty((most, *shape), kind) for n, kind, shape in layout.fields}
        self.Phi = np.empty((most, layout.k or 0))

    @classmethod
    def of(cls, layout: Layout, shards: Sequence[Shard]) -> Reader:
        """Return a reader whose memory suffices for each leaf of some shards."""
        return cls(layout, max(int(np.diff(shard.offsets).max(initial=0)) for shard in shards))

    def leaves(
        self, shard: Shard, names: Sequence[str] = ("size", *PARTS)
    ) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
        """Yield some arrays of each leaf, and its features (m, k)."""
        wanted = [part for part in self.layout.sections(shard.size) if part[0] in names]
        with ExitStack() as stack:
            file = stack.enter_context(open(shard.path, "rb", buffering=0))
            features = None
            if self.layout.k:
                features = stack.enter_context(open(f"{shard.path}.phi", "rb", buffering=0))
            for lo, hi in zip(shard.offsets[:-1].tolist(), shard.offsets[1:].tolist(), strict=True):
                found, Phi = {}, self.Phi[: hi - lo]
                for name, dtype, shape, begin in wanted:
                    found[name] = self.memory[name][: hi - lo]
                    _read(file, begin + lo * dtype.itemsize * int(np.prod(shape)), found[name])
                if features is not None:
                    _read(features, lo * Phi.itemsize * self.layout.k, Phi)
                yield found, Phi


def _read(file, begin: int, array: np.ndarray) -> None:
    view = array.reshape(-1).view(np.uint8).data
    file.seek(begin)
    done = 0
    while done < len(view):
        got = file.readinto(view[done:])
        if not got:
            raise OSError(f"The file '{file.name}' ends too early: was the work folder changed?")
        done += got


def scatter_of(parts: dict[str, np.ndarray]) -> Scatter:
    """Return the statistics among the arrays of a leaf."""
    return Scatter(*(parts.get(name) for name in PARTS))
