"""Long sequences of task ids as arrays: one array for each kind of value.

A column is a list of None, bool, int, float, str, date, datetime and tuples of these. It becomes
    {"codes": index or None, "parts": [[kind, payload], ...]}
where `codes` (uint8) is the part that each value comes from; a column of one kind has no codes.
    bool, int, float    payload: index of an array of bool, int64, float64
    str                 payload: [lengths int64, UTF-8 bytes uint8]: no padding, NUL characters safe
    bigint, date, datetime      payload: as str, of hexadecimal or ISO 8601 texts
    tuple               payload: [lengths int64, column of the items of all tuples]
    none                payload: null
Each value takes at least one byte of an array, so a small file cannot declare a long column.
"""

from collections.abc import Callable, Iterator
from datetime import date, datetime
from itertools import accumulate, pairwise, repeat
from typing import Any

import numpy as np

Put = Callable[[np.ndarray], int]
Take = Callable[[int], np.ndarray]

_KINDS = {t: t.__name__ for t in (bool, int, float, str, date, datetime, tuple)}
_KINDS[type(None)] = "none"
_PLAIN = {"bool": np.dtype(bool), "int": np.dtype(np.int64), "float": np.dtype(np.float64)}
_TEXT: dict[str, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    "str": (str, str),
    "bigint": (hex, lambda text: int(text, 16)),
    "date": (date.isoformat, date.fromisoformat),
    "datetime": (datetime.isoformat, datetime.fromisoformat),
}


def is_column(values: list[Any], levels: int = 4) -> bool:
    """Return whether a column can hold all values; tuples may be nested up to `levels` deep."""
    types = set(map(type, values))
    if tuple not in types:
        return types <= _KINDS.keys()
    if levels == 0 or not types <= _KINDS.keys():
        return False
    return is_column(_items([v for v in values if type(v) is tuple]), levels - 1)


def encode_column(values: list[Any], put: Put) -> dict[str, Any]:
    """Return the column as JSON; `put` stores an array and returns its index."""
    kinds = _kinds_of(values)
    names = list(dict.fromkeys(kinds))
    if len(names) == 1 and names != ["none"]:
        return {"codes": None, "parts": [[names[0], _encode_part(names[0], values, put)]]}
    code = {name: i for i, name in enumerate(names)}
    codes = put(np.fromiter((code[k] for k in kinds), np.uint8, len(kinds)))
    parts = []
    for name in names:
        chosen = [value for value, kind in zip(values, kinds, strict=True) if kind == name]
        parts.append([name, _encode_part(name, chosen, put)])
    return {"codes": codes, "parts": parts}


def decode_column(column: dict[str, Any], take: Take) -> list[Any]:
    """Return the list that `encode_column` encoded; `take` returns the array of an index."""
    if column["codes"] is None:
        ((kind, payload),) = column["parts"]
        return _decode_part(kind, payload, take)
    codes = _array(take(column["codes"]), np.dtype(np.uint8))
    counts = np.bincount(codes, minlength=len(column["parts"])).tolist()
    parts: list[Iterator[Any]] = []
    for (kind, payload), count in zip(column["parts"], counts, strict=True):
        if kind == "none":
            parts.append(repeat(None, count))
            continue
        part = _decode_part(kind, payload, take)
        if len(part) != count:
            raise ValueError(f"a column has {len(part)} values of kind {kind}, expected {count}")
        parts.append(iter(part))
    return [next(parts[code]) for code in codes.tobytes()]


def _kinds_of(values: list[Any]) -> list[str]:
    kinds = [_KINDS[type(value)] for value in values]
    for i, kind in enumerate(kinds):
        if kind == "int" and not -(2**63) <= values[i] < 2**63:
            kinds[i] = "bigint"
    return kinds


def _encode_part(kind: str, values: list[Any], put: Put) -> Any:
    if kind == "none":
        return None
    if kind in _PLAIN:
        return put(np.array(values, _PLAIN[kind]))
    if kind == "tuple":
        lengths = put(np.array([len(value) for value in values], np.int64))
        return [lengths, encode_column(_items(values), put)]
    to_text = _TEXT[kind][0]
    # Lone surrogates are legal in Python strings: keep them, here and in `_decode_part`.
    texts = [to_text(value).encode("utf-8", "surrogatepass") for value in values]
    lengths = put(np.array([len(text) for text in texts], np.int64))
    return [lengths, put(np.frombuffer(b"".join(texts), np.uint8))]


def _decode_part(kind: str, payload: Any, take: Take) -> list[Any]:
    if kind in _PLAIN:
        return _array(take(payload), _PLAIN[kind]).tolist()
    lengths = _array(take(payload[0]), np.dtype(np.int64))
    if kind == "tuple":
        items = decode_column(payload[1], take)
        return [tuple(items[a:b]) for a, b in _spans(lengths, len(items))]
    from_text = _TEXT[kind][1]
    blob = _array(take(payload[1]), np.dtype(np.uint8)).tobytes()
    spans = _spans(lengths, len(blob))
    if blob.isascii():  # one byte a character: slicing one string is faster
        text = blob.decode("ascii")
        return [from_text(text[a:b]) for a, b in spans]
    return [from_text(blob[a:b].decode("utf-8", "surrogatepass")) for a, b in spans]


def _spans(lengths: np.ndarray, total: int) -> Iterator[tuple[int, int]]:
    sizes = lengths.tolist()  # Python integers: their sum cannot overflow
    if sum(sizes) != total or min(sizes, default=0) < 0:
        raise ValueError("the lengths of a column do not match its contents")
    return pairwise(accumulate(sizes, initial=0))


def _items(tuples: list[tuple[Any, ...]]) -> list[Any]:
    return [item for value in tuples for item in value]


def _array(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if array.ndim != 1 or array.dtype.newbyteorder("=") != dtype:
        raise ValueError(f"a column needs a flat array of {dtype}, got {array.dtype}")
    return array
