"""The modules of pyarrow, loaded at first use: `arrow.csv` is pyarrow.csv, `arrow.pa` pyarrow."""

from importlib import import_module
from typing import Any

MODULES = {"pa": "pyarrow"} | {
    name: f"pyarrow.{name}" for name in ("compute", "csv", "feather", "ipc", "parquet", "types")
}


def __getattr__(name: str) -> Any:
    """Return a module of pyarrow; raise an ImportError with the remedy if it is missing."""
    if name not in MODULES:
        raise AttributeError(name)
    try:
        return import_module(MODULES[name])
    except ImportError as error:
        raise ImportError(
            'Reading and writing tables needs pyarrow: pip install "condmeta[cli]".'
        ) from error


def is_text(kind: Any) -> bool:
    """Return whether a PyArrow type is text."""
    types = import_module("pyarrow.types")
    return types.is_string(kind) or types.is_large_string(kind)
