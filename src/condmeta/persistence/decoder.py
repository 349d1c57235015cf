"""Python values back from JSON and plain arrays.

Anything that does not fit raises some exception here; the caller says that the file is damaged.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np

from condmeta.errors import ModelFileError
from condmeta.persistence import registry, transformers
from condmeta.persistence.columns import decode_column
from condmeta.persistence.encoder import TYPES, is_attribute
from condmeta.persistence.npy import DTYPE


def decode(value: Any, arrays: list[np.ndarray]) -> Any:
    """Return what `encode` was given."""
    decoder = Decoder(arrays)
    result = decoder.decode(value)
    decoder.finish()
    return result


class Decoder:
    """Decodes one value; each array may be used once, so a file cannot multiply its contents."""

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self.arrays: list[np.ndarray | None] = list(arrays)
        self.has_sklearn = False

    def finish(self) -> None:
        """Check that no array is left over."""
        if any(array is not None for array in self.arrays):
            raise ValueError("an array is not used")

    def take(self, index: int) -> np.ndarray:
        array = self.arrays[index] if type(index) is int and index >= 0 else None
        if array is None:
            raise ValueError(f"array {index!r} is used twice or does not exist")
        self.arrays[index] = None
        return array

    def decode(self, value: Any) -> Any:
        """Return the value behind its JSON."""
        if type(value) is list:
            return [self.decode(v) for v in value]
        if type(value) is not dict:
            return value
        ((tag, payload),) = value.items()
        return getattr(self, _METHODS[tag])(payload)

    def items(self, payload: Any) -> list[Any]:
        if type(payload) is list:
            return [self.decode(v) for v in payload]
        ((tag, column),) = payload.items()
        if tag != "column":
            raise ValueError(f"expected a column, got {tag!r}")
        return decode_column(column, self.take)

    def decode_int(self, payload: str) -> int:
        return int(payload, 16)

    def decode_float(self, payload: str) -> float:
        if payload not in ("nan", "inf", "-inf"):
            raise ValueError(f"{payload!r} is no float")
        return float(payload)  # a new NaN each time: as keys of a dict they stay apart

    def decode_tuple(self, payload: Any) -> tuple[Any, ...]:
        return tuple(self.items(payload))

    def decode_dict(self, payload: dict[str, Any]) -> dict[str, Any]:
        return {key: self.decode(v) for key, v in payload.items()}

    def decode_map(self, payload: list[Any]) -> dict[Any, Any]:
        keys, values = (self.items(part) for part in payload)
        return dict(zip(keys, values, strict=True))

    def decode_slice(self, payload: list[Any]) -> slice:
        start, stop, step = (self.decode(v) for v in payload)
        return slice(start, stop, step)

    def decode_date(self, payload: str) -> date:
        return date.fromisoformat(payload)

    def decode_datetime(self, payload: str) -> datetime:
        return datetime.fromisoformat(payload)

    def decode_transposed(self, payload: int) -> np.ndarray:
        return self.take(payload).T

    def decode_objects(self, payload: list[Any]) -> np.ndarray:
        shape, items = payload
        values = self.items(items)
        return np.fromiter(values, object, len(values)).reshape([int(n) for n in shape])

    def decode_scalar(self, payload: list[str]) -> np.generic:
        descr, data = payload
        if not DTYPE.fullmatch(descr) or "U" in descr:
            raise ValueError(f"{descr!r} is no dtype of a scalar")
        if descr == "|b1" and data not in ("00", "01"):
            raise ValueError(f"{data!r} is no boolean")
        (value,) = np.frombuffer(bytes.fromhex(data), descr)
        return value

    def decode_numpy_str(self, payload: str) -> np.str_:
        return np.str_(payload)

    def decode_dtype(self, payload: str) -> np.dtype:
        if payload != "|O" and not DTYPE.fullmatch(payload):
            raise ValueError(f"{payload!r} is no dtype")
        return np.dtype(payload)

    def decode_type(self, payload: str) -> type:
        return TYPES[payload]

    def decode_object(self, payload: dict[str, Any]) -> Any:
        name, state = payload["class"], payload["state"]
        entry = registry.find_by_name(name) or transformers.find_by_name(name)
        if entry is None:
            raise ModelFileError(
                f"it holds an object of class {name!r}, which this version of condmeta does not "
                "know. Upgrade condmeta, or import the package that registers the class first."
            )
        self.has_sklearn |= name.startswith("sklearn.")
        for key in state:
            if not is_attribute(key):
                raise ValueError(f"{key!r} is no attribute name")
        return entry.restore(entry.cls, {key: self.decode(v) for key, v in state.items()})


_METHODS = {
    "int": "decode_int",
    "float": "decode_float",
    "list": "items",
    "tuple": "decode_tuple",
    "dict": "decode_dict",
    "map": "decode_map",
    "slice": "decode_slice",
    "date": "decode_date",
    "datetime": "decode_datetime",
    "array": "take",
    "array.T": "decode_transposed",
    "objects": "decode_objects",
    "scalar": "decode_scalar",
    "numpy.str": "decode_numpy_str",
    "dtype": "decode_dtype",
    "type": "decode_type",
    "object": "decode_object",
}
