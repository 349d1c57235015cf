"""Decode JSON and plain arrays to Python values.

Invalid content raises any exception here; the caller reports a damaged file.
"""

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import numpy as np

from condmeta.errors import ModelFileError
from condmeta.persistence import registry, transformers
from condmeta.persistence.columns import decode_column
from condmeta.persistence.encoder import TYPES, is_attribute
from condmeta.persistence.fields import InvalidFieldError
from condmeta.persistence.npy import DTYPE
from condmeta.persistence.schema import Checker


def decode(value: Any, arrays: list[np.ndarray]) -> Any:
    """Return the value that `encode` encoded."""
    return Decoder(arrays).decode_all(value)


class Decoder:
    """Decode one value; each array is used once, so a small file cannot become a large value."""

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self.arrays: list[np.ndarray | None] = list(arrays)
        self.has_sklearn = False
        self.checker = Checker()
        self.path: list[str] = []  # where we are; after an error, where it is

    def decode_all(self, value: Any) -> Any:
        """Return the value of its JSON; an array that is not used is a ValueError."""
        result = self.decode(value)
        if any(array is not None for array in self.arrays):
            raise ValueError("an array is not used")
        return result

    def take(self, index: int) -> np.ndarray:
        array = self.arrays[index] if type(index) is int and index >= 0 else None
        if array is None:
            raise ValueError(f"array {index!r} is used twice or does not exist")
        self.arrays[index] = None
        return array

    def where(self) -> str:
        """Return the field that is being decoded, as a Python expression."""
        return "".join(self.path).lstrip(".")

    def inside(self, step: str, value: Any) -> Any:
        """Return the value of a field, an item or an entry of the present object."""
        self.path.append(step)
        result = self.decode(value)
        self.path.pop()
        return result

    def decode(self, value: Any) -> Any:
        """Return the value of its JSON."""
        if type(value) is list:
            return [self.inside(f"[{i}]", v) for i, v in enumerate(value)]
        if type(value) is not dict:
            return value
        ((tag, payload),) = value.items()
        if tag in _FROM_TEXT:
            return _FROM_TEXT[tag](payload)
        return getattr(self, _METHODS[tag])(payload)

    def items(self, payload: Any) -> list[Any]:
        if type(payload) is list:
            return [self.inside(f"[{i}]", v) for i, v in enumerate(payload)]
        ((tag, column),) = payload.items()
        if tag != "column":
            raise ValueError(f"expected a column, got {tag!r}")
        return decode_column(column, self.take)

    def decode_float(self, payload: str) -> float:
        if payload not in ("nan", "inf", "-inf"):
            raise ValueError(f"{payload!r} is not a float")
        return float(payload)  # a new NaN each time: as keys of a dict they stay different

    def decode_tuple(self, payload: Any) -> tuple[Any, ...]:
        return tuple(self.items(payload))

    def decode_dict(self, payload: dict[str, Any]) -> dict[str, Any]:
        return {key: self.inside(f"[{key!r}]", v) for key, v in payload.items()}

    def decode_map(self, payload: list[Any]) -> dict[Any, Any]:
        keys, values = (self.items(part) for part in payload)
        return dict(zip(keys, values, strict=True))

    def decode_slice(self, payload: list[Any]) -> slice:
        start, stop, step = (self.decode(v) for v in payload)
        return slice(start, stop, step)

    def decode_transposed(self, payload: int) -> np.ndarray:
        return self.take(payload).T

    def decode_objects(self, payload: list[Any]) -> np.ndarray:
        shape, items = payload
        values = self.items(items)
        return np.fromiter(values, object, len(values)).reshape([int(n) for n in shape])

    def decode_scalar(self, payload: list[str]) -> np.generic:
        descr, data = payload
        if not DTYPE.fullmatch(descr) or "U" in descr:
            raise ValueError(f"{descr!r} is not a dtype of a scalar")
        if descr == "|b1" and data not in ("00", "01"):
            raise ValueError(f"{data!r} is not a boolean")
        (value,) = np.frombuffer(bytes.fromhex(data), descr)
        return value

    def decode_dtype(self, payload: str) -> np.dtype:
        if payload != "|O" and not DTYPE.fullmatch(payload):
            raise ValueError(f"{payload!r} is not a dtype")
        return np.dtype(payload)

    def decode_state(self, entry: registry.Entry, state: dict[str, Any]) -> dict[str, Any]:
        """Return the values of the fields of an object."""
        return {key: self.inside(f".{key}", value) for key, value in state.items()}

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
                raise ValueError(f"{key!r} is not an attribute name")
        if not self.path:
            self.path.append(name)
        state = self.decode_state(entry, state)
        try:
            return self.checker.restore(entry, state)
        except InvalidFieldError as error:
            self.path.append(f".{error.field}")
            raise


_FROM_TEXT: dict[str, Callable[[str], Any]] = {
    "int": lambda text: int(text, 16),
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "numpy.str": np.str_,
    "type": TYPES.__getitem__,
}
_TAGS = "float", "tuple", "dict", "map", "slice", "objects", "scalar", "dtype", "object"
_METHODS = {tag: f"decode_{tag}" for tag in _TAGS}
_METHODS |= {"list": "items", "array": "take", "array.T": "decode_transposed"}
