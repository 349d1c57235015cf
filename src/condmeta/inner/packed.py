"""Symmetric matrices as packed triangles: the lower triangle by rows."""

from functools import cache

import numpy as np

BLOCK = 1 << 17  # numbers in a temporary


@cache
def triangle(p: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and the columns of a packed triangle, entry (i, j) at i (i + 1) / 2 + j."""
    return np.tril_indices(p)


@cache
def square_of(p: int) -> np.ndarray:
    """Return where each entry of a symmetric matrix (p, p) is in its packed triangle."""
    at = np.empty((p, p), np.int64)
    rows, columns = triangle(p)
    at[rows, columns] = at[columns, rows] = np.arange(len(rows))
    return at


@cache
def _flat(p: int) -> np.ndarray:
    rows, columns = triangle(p)
    return rows * p + columns


def packed(squares: np.ndarray) -> np.ndarray:
    """Return the triangles (T, p (p + 1) / 2) of symmetric matrices (T, p, p)."""
    p = squares.shape[1]
    return np.take(squares.reshape(-1, p * p), _flat(p), axis=1)


def cut(tasks: np.ndarray, size: int):
    """Cut tasks into blocks whose temporaries, `size` numbers a task, stay in the cache."""
    step = max(BLOCK // size, 1)
    return (tasks[lo : lo + step] for lo in range(0, len(tasks), step))
