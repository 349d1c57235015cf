"""Check the state of a stored object against the schema of its class, before it is rebuilt."""

from typing import Any

from condmeta.persistence import registry, transformers
from condmeta.persistence.fields import Sizes, check_fields
from condmeta.persistence.registry import Entry, State


class Checker:
    """Check objects from the inside out; the sizes of an object are known to those around it."""

    def __init__(self) -> None:
        self.checked: dict[int, tuple[Any, str, dict[str, int]]] = {}  # keeps them alive: ids stay

    def restore(self, entry: Entry, state: State) -> Any:
        """Return the object of a state, or raise `InvalidFieldError`."""
        if entry.upgrade is not None:
            state = entry.upgrade(entry.cls, state)
        named = self.check(entry, state)
        obj = entry.restore(entry.cls, state)
        self.checked[id(obj)] = obj, entry.name, named
        return obj

    def check(self, entry: Entry, state: State) -> dict[str, int]:
        """Return the sizes of an object by letter, or raise `InvalidFieldError`."""
        sizes = Sizes(self.inside)
        if entry.fields is None:
            return {}
        check_fields(entry.fields, state, sizes)
        if entry.rule is not None:
            entry.rule(state, sizes.named)
        return sizes.named

    def inside(self, value: Any) -> tuple[str, dict[str, int]] | None:
        """Return class name and sizes of an object; check it now if nothing did yet."""
        if id(value) in self.checked:
            return self.checked[id(value)][1:]
        entry = registry.find_by_class(type(value)) or transformers.find_by_class(type(value))
        if entry is None:
            return None
        named = self.check(entry, entry.export(value))
        self.checked[id(value)] = value, entry.name, named
        return entry.name, named
