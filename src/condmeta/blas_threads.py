"""How many threads BLAS and OpenMP use: a limit that several threads of the user may share."""

import functools
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_inside = 0  # calls of `limit_threads` that run now
_limits: Any = None  # a limiter of threadpoolctl while there is one


@contextmanager
def limit_threads(jobs: int) -> Iterator[None]:
    """Let BLAS and OpenMP use `jobs` threads; the last call that ends restores what was before.

    The limit is one number of the process. If calls in several threads each restored what they
    found, the last one would restore the limit of the first.

    Examples
    --------
    >>> with limit_threads(1):
    ...     pass  # small matrices
    """
    global _inside, _limits
    with _lock:
        if not _inside:
            _limits = _libraries(len(sys.modules)).limit(limits=jobs)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside and _limits is not None:
                _limits.restore_original_limits()
                _limits = None


@functools.lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:
    """Return the libraries that are loaded; they are looked for again after further imports.

    To look for them takes 3 ms.
    """
    return ThreadpoolController()


def _forget() -> None:
    """In the child of a fork, no other thread is left that would give the lock back."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
