"""The choice of engine: the compiled twin of a function, or its NumPy definition.

A hot function is written once in NumPy, easy to read beside the paper, and marked with `@twin`. If
the compiled core `condmeta.native._core` is installed, calls run its function of the same name;
otherwise, or with `CONDMETA_ENGINE=numpy`, they run the NumPy definition. The NumPy definition is
always available as `function.reference`.
"""

import functools
import importlib
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from condmeta.errors import EngineWarning
from condmeta.warn import warn

PLAIN = np.ndarray, float, int, type(None)  # most arguments; never a loss or a kernel
ALWAYS_PLAIN = frozenset((*PLAIN, bool, np.float64))
LARGE = 20_000_000  # numbers in X; beyond it the NumPy engine warns that it is slow


@functools.cache
def compiled_core() -> ModuleType | None:
    """Return the compiled module, or None if it was not built."""
    try:
        return importlib.import_module("condmeta.native._core")
    except ImportError:
        return None


def active_engine() -> str:
    """Return the engine in use, "native" or "numpy".

    The environment variable CONDMETA_ENGINE forces one of them.

    Examples
    --------
    >>> from condmeta.engine import active_engine
    >>> active_engine() in ("native", "numpy")
    True
    """
    wanted = os.environ.get("CONDMETA_ENGINE", "").strip().lower()
    if wanted not in ("", "native", "numpy"):
        raise ValueError(f"CONDMETA_ENGINE must be 'native' or 'numpy'. Got {wanted!r} instead.")
    if wanted == "native" and compiled_core() is None:
        raise ImportError(
            "CONDMETA_ENGINE asks for the native engine, but condmeta was installed without its "
            "compiled core. Install a C++ compiler and reinstall condmeta, or unset the variable."
        )
    if wanted:
        return wanted
    return "numpy" if compiled_core() is None else "native"


def instruction_set() -> str:
    """Return the instruction set that the native engine chose for this machine."""
    core = compiled_core()
    return "none" if core is None else core.instruction_set()


def twin(function: Callable) -> Callable:
    """Run the compiled twin of a function if there is one.

    The twin gets losses and kernels as their `native` row of numbers. A user's own loss or kernel
    has no such row: the call then runs the NumPy definition. Where a function has `n_jobs`, its
    tasks (rows, lanes) are independent, and the twin runs them, or chunks of them, on that many
    threads; the NumPy definition runs one after the other.
    """

    def row_of(arg: Any) -> Any:
        if isinstance(arg, PLAIN) or not (hasattr(arg, "slope") or hasattr(arg, "gram")):
            return arg
        return getattr(arg, "native", None)

    @functools.wraps(function)
    def dispatch(*args: Any) -> Any:
        if active_engine() == "numpy":
            return function(*args)
        if ALWAYS_PLAIN.issuperset(map(type, args)):  # most calls, some in a few microseconds
            return getattr(compiled_core(), function.__name__)(*args)
        rows = [row_of(arg) for arg in args]
        if any(row is None and arg is not None for row, arg in zip(rows, args, strict=True)):
            return function(*args)
        return getattr(compiled_core(), function.__name__)(*rows)

    dispatch.reference = function
    return dispatch


def warn_if_slow(size: int) -> None:
    """Warn, once a process, before a large fit that runs without the compiled core."""
    if size > LARGE and active_engine() == "numpy" and not os.environ.get("CONDMETA_ENGINE"):
        _warn_once()


@functools.cache
def _warn_once() -> None:
    text = (
        "This fit is large and condmeta runs on its NumPy engine, because its compiled core "
        "was not built at installation. Install a C++ compiler and reinstall condmeta."
    )
    warn(text, EngineWarning)
