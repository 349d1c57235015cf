"""The classes a model file may hold: each is stored under a name and rebuilt from a dict.

A file only ever names a class; the class itself is looked up here, and never imported by that name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, overload

State = dict[str, Any]
Class = TypeVar("Class", bound=type)


class Entry(NamedTuple):
    """How objects of one class are stored and rebuilt."""

    cls: type
    name: str
    export: Callable[[Any], State]
    restore: Callable[[type, State], Any]


_BY_NAME: dict[str, Entry] = {}
_BY_CLASS: dict[type, Entry] = {}


def restore_attributes(cls: Any, state: State) -> Any:
    """Make an object without calling its constructor and give it its attributes back."""
    obj = cls.__new__(cls)
    vars(obj).update(state)
    return obj


@overload
def register(cls: Class) -> Class: ...
@overload
def register(
    cls: Class,
    *,
    name: str | None = None,
    export: Callable[[Any], State] = vars,
    restore: Callable[[type, State], Any] | None = None,
) -> Class: ...
@overload
def register(
    cls: None = None,
    *,
    name: str | None = None,
    export: Callable[[Any], State] = vars,
    restore: Callable[[type, State], Any] | None = None,
) -> Callable[[Class], Class]: ...
def register(cls=None, *, name=None, export=vars, restore=None):
    """Let model files hold objects of a class.

    Subclasses are not included: each has to be registered itself.

    Parameters
    ----------
    cls : type
        The class. Left out, a class decorator is returned.
    name : str, default the name of the class
        The name in files. It has to stay the same for old files to open.
    export : callable, default `vars`
        ``export(obj)`` gives a dict of attribute names to values that can be stored.
    restore : callable, optional
        ``restore(cls, state)`` gives the object back. By default the attributes are set on a new
        object, without a call of its constructor.

    Examples
    --------
    >>> from condmeta.persistence import decode, encode, register
    >>> @register(name="doctest.Shift")
    ... class Shift:
    ...     by = 3
    >>> decode(*encode(Shift())).by
    3
    """
    if cls is None:
        return lambda wrapped: register(wrapped, name=name, export=export, restore=restore)
    entry = Entry(cls, name or cls.__qualname__, export, restore or restore_attributes)
    known = _BY_NAME.get(entry.name)
    # The same class defined again, as on a reload of its module, takes the place of the old one.
    if known is not None and _address(known.cls) != _address(cls):
        raise ValueError(
            f"The name {entry.name!r} already stands for {_address(known.cls)} in model files. "
            f"Give {_address(cls)} another `name`."
        )
    _BY_NAME[entry.name] = _BY_CLASS[cls] = entry
    return cls


def find_by_class(cls: type) -> Entry | None:
    """Return the entry of exactly this class, not of a base class."""
    return _BY_CLASS.get(cls)


def find_by_name(name: str) -> Entry | None:
    """Return the entry stored under a name."""
    return _BY_NAME.get(name)


def _address(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
