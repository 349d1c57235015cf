"""One writer at a time: changes of a learner by several threads follow one another.

Readers take no lock. They read one immutable value, which a writer replaces as its last step.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, RLock
from typing import Any
from weakref import WeakKeyDictionary

# The locks are not attributes of learners, so that these can be copied and pickled.
_locks: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_guard = Lock()


@contextmanager
def writing(learner: Any) -> Iterator[None]:
    """Wait until no other thread changes the learner, and keep others waiting until the end.

    Examples
    --------
    >>> import condmeta as cm
    >>> learner = cm.PooledRegressor()
    >>> with writing(learner), writing(learner):  # a writer may call another method that writes
    ...     pass
    """
    with _guard:
        lock = _locks.get(learner)
        if lock is None:
            lock = _locks[learner] = RLock()
    with lock:
        yield


def _forget() -> None:
    """Start without locks: in a forked process no thread is left that could release them."""
    global _locks, _guard
    _locks, _guard = WeakKeyDictionary(), Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
