"""The ids that a stream has seen, as an immutable set that grows cheaply."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from condmeta.persistence import register
from condmeta.persistence.fields import ANY, sequence


class SeenIds:
    """An immutable set of ids. Adding n ids to N costs O(n log N) over a stream, not O(N).

    Ids are kept in sets of falling sizes; a new set absorbs the smaller ones before it.

    Examples
    --------
    >>> first = SeenIds(["a", "b"])
    >>> both = first.add(["c"])
    >>> "c" in both, "c" in first, len(both)
    (True, False, 3)
    """

    def __init__(self, ids: Iterable[Any] = (), parts: tuple[frozenset, ...] = ()):
        new = frozenset(ids)
        while parts and len(parts[-1]) <= 2 * len(new):
            new, parts = new | parts[-1], parts[:-1]
        self.parts = (*parts, new) if new else parts

    def add(self, ids: Iterable[Any]) -> SeenIds:
        """Return a set with further ids."""
        return SeenIds(ids, self.parts)

    def __contains__(self, task: Any) -> bool:
        return any(task in part for part in self.parts)

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __iter__(self):
        return (task for part in self.parts for task in part)


register(
    SeenIds,
    export=lambda seen: {"ids": sorted(seen, key=repr)},
    restore=lambda cls, parts: cls(parts["ids"]),
    fields={"ids": sequence(ANY, distinct=True)},
)
