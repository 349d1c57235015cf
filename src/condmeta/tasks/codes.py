"""Code the distinct values of long arrays as 0, 1, 2, ... in the order of first appearance.

There is no Python loop over rows: a million tasks in ten million rows take about as long as a sort.
"""

from typing import Any

import numpy as np

from condmeta.errors import DataError

_MANY = 200_000  # rows; from here on hashing whole columns is faster than a dictionary
_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)
_SEED_STEP = 0x9E3779B97F4A7C15


def int_codes(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return codes of integers by first appearance, and the first row of each code."""
    n = values.size
    if n == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low >= 4 * n + 1024 or high >= 2**63:
        keys = values.view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64)
        leader = _leaders(keys)
        is_first = leader == np.arange(n)
        code_of = np.cumsum(is_first) - 1
        return code_of[leader], np.flatnonzero(is_first)
    # a narrow range: a table of all values, instead of hashing
    shifted = values.astype(np.int64) - low
    first = np.full(high - low + 1, -1, np.int64)
    first[shifted[::-1]] = np.arange(n - 1, -1, -1)  # the last write is the first row
    present = np.flatnonzero(first >= 0)
    present = present[np.argsort(first[present])]
    code_of = np.empty(first.size, np.int64)
    code_of[present] = np.arange(present.size)
    return code_of[shifted], first[present]


def _leaders(keys: np.ndarray) -> np.ndarray:
    """Return for each row the first row with the same key.

    Each round hashes the remaining keys into a table of slots. A slot belongs to its first row;
    keys that collide with another key go to the next round, with another hash.
    """
    leader = np.empty(keys.size, np.int64)
    rows, rest, seed = np.arange(keys.size), keys, 0
    while rows.size:
        bits = int(rows.size).bit_length()
        slot = (_mix(rest, seed) >> np.uint64(64 - bits)).view(np.int64)
        table = np.empty(1 << bits, np.int64)
        table[slot[::-1]] = rows[::-1]  # the last write is the first row
        found = table[slot]
        hit = keys[found] == rest
        leader[rows[hit]] = found[hit]
        rows, rest, seed = rows[~hit], rest[~hit], seed + 1
    return leader


def _mix(keys: np.ndarray, seed: int) -> np.ndarray:
    """Hash 64-bit keys: the high bits of the result depend on all bits of a key."""
    mixed = keys.view(np.uint64) + np.uint64(seed * _SEED_STEP % 2**64)
    for _ in range(2):
        mixed ^= mixed >> np.uint64(32)
        mixed *= _MULTIPLIER
    return mixed


def text_codes(values: np.ndarray) -> tuple[np.ndarray, list]:
    """Code a fixed-width text array."""
    if values.size < _MANY or values.itemsize > 512:
        return object_codes(values.tolist())
    letters = np.ascontiguousarray(values).view(np.uint32).reshape(values.size, -1)
    keys = np.zeros(values.size, np.uint64)
    for j in range(letters.shape[1]):
        keys = (keys ^ letters[:, j]) * _MULTIPLIER
        keys ^= keys >> np.uint64(29)
    codes, first = int_codes(keys.view(np.int64))
    if (values[first][codes] != values).any():  # two texts have the same key
        return object_codes(values.tolist())
    return codes, values[first].tolist()


def object_codes(values: list | np.ndarray) -> tuple[np.ndarray, list]:
    """Code hashable objects; lists become tuples."""
    try:
        if len(values) >= _MANY:
            hashed = _hashed_codes(values)
            if hashed is not None:
                return hashed
        values = values.tolist() if isinstance(values, np.ndarray) else values
        ids = list(dict.fromkeys(values))
    except TypeError as error:
        if not set(map(type, values)) <= {list, tuple, np.ndarray}:
            raise DataError(f"An id must be hashable: {error}.") from error
        values = list(map(tuple, values))
        ids = list(dict.fromkeys(values))
    index = dict(zip(ids, range(len(ids)), strict=True))
    return np.fromiter(map(index.__getitem__, values), np.int64, len(values)), ids


def _hashed_codes(values: list | np.ndarray) -> tuple[np.ndarray, list[Any]] | None:
    """Code objects by their hashes; return None if two different objects have the same hash."""
    codes, first = int_codes(np.fromiter(map(hash, values), np.int64, len(values)))
    column = values if isinstance(values, np.ndarray) else np.fromiter(values, object, len(values))
    ids = column[first]
    same = ids[codes] == column
    return (codes, ids.tolist()) if same.dtype == bool and same.all() else None
