"""One task, as it is given or taken out."""

from __future__ import annotations

from typing import Any, NamedTuple


class Task(NamedTuple):
    """Hold one task: X (n, d), y (n,), its id, its side row (a dict), how often each row counts."""

    X: Any
    y: Any
    id: Any = None
    side: Any = None
    weight: Any = None
