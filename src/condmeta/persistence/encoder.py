"""Encode Python values as JSON and plain arrays.

None, booleans, integers, finite floats, strings and short lists are written as they are; any other
value is an object of one key, its tag: `{"tuple": [...]}`. Arrays are numbered as they are encoded.
"""

import math
from datetime import date, datetime
from typing import Any

import numpy as np

from condmeta.errors import ModelFileError
from condmeta.persistence import registry, transformers
from condmeta.persistence.columns import encode_column, is_column
from condmeta.persistence.npy import is_plain

_DEEPEST = 64  # levels; the reader must reach them too, also if its stack is small
_COMPACT = 32  # from this length on, sequences of ids are stored as arrays
TYPES: dict[str, type] = {t.__name__: t for t in (bool, int, float, str, object)} | {
    f"numpy.{t.__name__}": t
    for t in (
        *(np.bool_, np.str_, np.object_, np.number, np.integer, np.floating),
        *(np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64),
        *(np.uint8, np.uint16, np.uint32, np.uint64),
    )
}
_TYPE_NAMES = {t: name for name, t in TYPES.items()}
_PICKLE = (
    "pickle and joblib can store it; open their files only if you trust them, because opening them "
    "can run code."
)


def encode(value: Any, name: str | None = None) -> tuple[Any, list[np.ndarray]]:
    """Return a value as JSON and a list of C-ordered arrays.

    Parameters
    ----------
    value : object
        None, bool, int, float, str, date, datetime, slice; lists, tuples and dicts; NumPy arrays
        and scalars of numbers, booleans or text, object arrays, dtypes; registered objects. Time
        zones are stored as offsets from UTC.
    name : str, optional
        What error messages call the value; the name of its class by default.
    """
    encoder = _Encoder()
    path = name or type(value).__name__
    return encoder.encode(value, path), encoder.arrays


class _Encoder:
    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.depth = 0

    def put(self, array: np.ndarray) -> int:
        self.arrays.append(np.asarray(array, order="C"))
        return len(self.arrays) - 1

    def encode(self, value: Any, path: str) -> Any:
        self.depth += 1
        if self.depth > _DEEPEST:
            top = path.split(".")[0].split("[")[0]
            deep = f"{top} is nested too deeply for a model file, or contains itself"
            raise ModelFileError(f"{deep}. {_PICKLE}")
        result = self.encode_value(value, path)
        self.depth -= 1
        return result

    def encode_value(self, value: Any, path: str) -> Any:
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int:
            return value if abs(value) < 2**63 else {"int": hex(value)}
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is list:
            items = self.items(value, path)
            return items if type(items) is list else {"list": items}
        if kind is tuple:
            return {"tuple": self.items(list(value), path)}
        if kind is dict:
            return self.encode_dict(value, path)
        if kind is slice:
            return {"slice": [self.encode(v, path) for v in (value.start, value.stop, value.step)]}
        if kind is date or kind is datetime:
            return {kind.__name__: value.isoformat()}
        if kind is np.ndarray or kind is np.memmap:
            return self.encode_array(np.asarray(value), path)
        if kind is np.str_:
            return {"numpy.str": _python(value)}
        if _is_plain_scalar(value):
            return {"scalar": [value.dtype.str, value.tobytes().hex()]}
        if isinstance(value, np.dtype) and (is_plain(value) or value.kind == "O"):
            return {"dtype": value.str}
        if isinstance(value, type) and value in _TYPE_NAMES:
            return {"type": _TYPE_NAMES[value]}
        return self.encode_object(value, path)

    def items(self, values: list[Any], path: str) -> Any:
        if len(values) >= _COMPACT and is_column(values):
            return {"column": encode_column(values, self.put)}
        return [self.encode(value, f"{path}[{i}]") for i, value in enumerate(values)]

    def encode_dict(self, value: dict[Any, Any], path: str) -> Any:
        if len(value) < _COMPACT and all(type(key) is str for key in value):
            return {"dict": {k: self.encode(v, f"{path}[{k!r}]") for k, v in value.items()}}
        keys = self.items(list(value), f"{path} (key)")
        if is_column(list(value.values())):
            return {"map": [keys, self.items(list(value.values()), path)]}
        return {"map": [keys, [self.encode(v, f"{path}[{k!r}]") for k, v in value.items()]]}

    def encode_array(self, value: np.ndarray, path: str) -> Any:
        if value.dtype == object:
            # NumPy scalars among ids become the equal Python values.
            flat = [_python(v) for v in value.ravel().tolist()]
            column = {"column": encode_column(flat, self.put)} if is_column(flat) else None
            return {"objects": [list(value.shape), column or self.items(flat, path)]}
        if value.dtype.kind == "U" and value.dtype.itemsize == 0:
            value = value.astype("U1")
        if not is_plain(value.dtype):
            raise ModelFileError(
                f"{path} is an array of {value.dtype}; a model file holds arrays of numbers up to "
                f"64 bits, booleans, text and ids. {_PICKLE}"
            )
        if _is_by_columns(value):
            # Keep the order in memory: matrix products then have the same bits after loading.
            return {"array.T": self.put(value.T)}
        return {"array": self.put(value)}

    def encode_object(self, value: Any, path: str) -> Any:
        entry = registry.find_by_class(type(value)) or transformers.find_by_class(type(value))
        if entry is None:
            what = f"{path} is {_describe(value)}"
            raise ModelFileError(f"{what}, which a model file cannot hold. {_PICKLE}")
        try:
            exported = entry.export(value)
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from error
        state = {}
        for key, part in exported.items():
            if not is_attribute(key):
                raise ModelFileError(f"{path} has {key!r}, which is not an attribute name.")
            state[key] = self.encode(part, f"{path}.{key}")
        return {"object": {"class": entry.name, "state": state}}


def _is_by_columns(value: np.ndarray) -> bool:
    """Return whether the columns of an array lie together, also in a slice of a larger one."""
    if value.ndim == 2 and not value.flags.forc:
        return 0 < value.strides[0] < value.strides[1]
    return value.flags.f_contiguous and not value.flags.c_contiguous


def is_attribute(key: Any) -> bool:
    """Return whether a key can be an attribute of a stored object."""
    return type(key) is str and key.isidentifier() and not key.startswith("__")


def _describe(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"the function {value.__qualname__}"
    return f"an object of class {type(value).__module__}.{type(value).__qualname__}"


def _is_plain_scalar(value: Any) -> bool:
    return isinstance(value, np.generic) and is_plain(value.dtype)


def _python(value: Any) -> Any:
    """Return the Python value equal to a plain NumPy scalar; other values unchanged."""
    if type(value) is np.str_:
        return str.__str__(value)  # str() and item() drop trailing NULs
    return value.item() if _is_plain_scalar(value) else value
