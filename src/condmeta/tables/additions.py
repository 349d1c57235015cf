"""Digests of the tables that a model has learned from: it notices rows that it has already."""

import hashlib

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks import TaskSet
from condmeta.tasks.times import as_clock
from condmeta.tasks.weights import repeats

MIXING = np.uint64(0x9E3779B97F4A7C15)  # odd, with bits in no order


def digest_of(tasks: TaskSet) -> str:
    """Return the SHA-256 of the rows of tasks: ids, features, targets, times and weights.

    The order of the rows and the format of the file that they came from do not count, nor do tasks
    without rows.
    """
    times = () if tasks.time is None else (as_clock(tasks.time),)
    weights = () if tasks.weight is None else (repeats(tasks.weight),)
    weights = [weight for weight in weights if (weight != 1).any()]
    rows = np.column_stack([tasks.X, tasks.y, *times, *weights]).astype(np.float64) + 0.0  # no -0
    names = sorted(map(repr, tasks.ids[tasks.sizes > 0].tolist()))
    rank = {name: number for number, name in enumerate(names)}
    place = np.array([rank.get(repr(task), 0) for task in tasks.ids.tolist()], np.int64)
    of_row = np.repeat(place, tasks.sizes)
    order = np.lexsort((_mixed(rows), of_row))
    found = hashlib.sha256(repr((names, np.bincount(of_row).tolist())).encode())
    found.update(np.ascontiguousarray(rows[order]).data)
    return found.hexdigest()


def _mixed(rows: np.ndarray) -> np.ndarray:
    """Return a number (N,) for each row, by which equal rows come together in any order."""
    found = np.zeros(len(rows), np.uint64)
    for column in np.ascontiguousarray(rows.T).view(np.uint64):
        found = (found ^ column) * MIXING
        found ^= found >> np.uint64(29)
    return found


def with_table(added: dict[str, int], tasks: TaskSet, again: bool) -> dict[str, int]:
    """Return the digests with that of one more table; refuse a table that is among them.

    A table of one row is not remembered: a stream of single rows may well repeat itself.
    """
    n_rows = len(tasks.X)
    if n_rows < 2:
        return added
    digest = digest_of(tasks)
    if digest in added and not again:
        raise DataError(
            f"The model already holds these {n_rows} rows, so each would count twice. Give new "
            "rows, or set again=True if these are further observations with the same values."
        )
    return added | {digest: n_rows}
