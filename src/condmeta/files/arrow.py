"""The one library that reads and writes files, loaded when a file is."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load(module: str = "pyarrow") -> Any:
    """Return pyarrow or a module of it; a missing one is an ImportError with the remedy."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            'Reading and writing tables needs pyarrow: pip install "condmeta[cli]".'
        ) from error
