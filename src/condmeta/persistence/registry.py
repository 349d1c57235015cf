"""The classes that a model file may hold: each is stored under a name and rebuilt from a dict.

A file only names a class. The class is looked up here; it is never imported by the name in a file.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict, TypeVar, Unpack, overload

from condmeta.persistence.fields import Field, InvalidFieldError

State = dict[str, Any]
Class = TypeVar("Class", bound=type)


class Entry(NamedTuple):
    """How objects of one class are stored and rebuilt."""

    cls: type
    name: str
    export: Callable[[Any], State]
    restore: Callable[[type, State], Any]
    fields: dict[str, Field] | None = None
    rule: Callable[[State, dict[str, int]], None] | None = None
    upgrade: Callable[[type, State], State] | None = None
    by_task: dict[str, str] | str | None = None


class RegisterKeywords(TypedDict, total=False):
    """The keywords of `register`."""

    name: str | None
    export: Callable[[Any], State]
    restore: Callable[[Any, State], Any] | None
    fields: dict[str, Field] | None
    rule: Callable[[State, dict[str, int]], None] | None
    upgrade: Callable[[Any, State], State] | None
    by_task: dict[str, str] | str | None


_BY_NAME: dict[str, Entry] = {}
_BY_CLASS: dict[type, Entry] = {}


def restore_attributes(cls: Any, state: State) -> Any:
    """Return a new object with these attributes, without calling its constructor."""
    for name in state:
        known = getattr(cls, name, None)
        if callable(known) or isinstance(known, property):
            raise InvalidFieldError(name, f"would hide a method of {cls.__name__}")
    obj = cls.__new__(cls)
    vars(obj).update(state)
    return obj


# An overload may take keywords that are not listed: type dicts cannot be closed yet.
@overload
# pyrefly: ignore[inconsistent-overload]
def register(cls: Class, **options: Unpack[RegisterKeywords]) -> Class: ...
@overload
# pyrefly: ignore[inconsistent-overload]
def register(cls: None = None, **options: Unpack[RegisterKeywords]) -> Callable[[Class], Class]: ...
def register(
    cls: Any = None, *, name: str | None = None, export: Callable[[Any], State] = vars,
    restore: Callable[[Any, State], Any] | None = None, fields: dict[str, Field] | None = None,
    rule: Callable[[State, dict[str, int]], None] | None = None,
    upgrade: Callable[[Any, State], State] | None = None,
    by_task: dict[str, str] | str | None = None,
) -> Any:  # fmt: skip
    """Let model files hold objects of a class.

    Subclasses are not included: register each of them.

    Parameters
    ----------
    cls : type
        The class. Without it, a class decorator is returned.
    name : str, default the name of the class
        The name in files. Old files need it: do not change it.
    export : callable, default `vars`
        ``export(obj)`` returns a dict of attribute names to values that can be stored.
    restore : callable, optional
        ``restore(cls, state)`` rebuilds the object. By default it sets the attributes of a new
        object, without calling its constructor.
    fields : dict of name -> Field, optional
        The schema (`condmeta.persistence.fields`): what each attribute must be. A file that differs
        is refused, with the name of the field. Without it, any attributes are accepted.
    rule : callable, optional
        ``rule(state, sizes)`` raises `InvalidFieldError` if fields do not fit each other. It may
        add sizes.
    upgrade : callable, optional
        ``upgrade(cls, state)`` returns the state of an older file with the fields of today.
    by_task : dict of field -> "rows", "none" or "drop"; or "drop", optional
        For a class with a row for each task and a field `ids`: what is read of a field if only some
        tasks are read. Their rows, no rows, or nothing: it is None then. Others are read whole.
        "drop" alone: the object is None then.

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
        given = {"name": name, "export": export, "restore": restore, "fields": fields}
        more = {"rule": rule, "upgrade": upgrade, "by_task": by_task}
        return lambda wrapped: register(wrapped, **given, **more)
    how = export, restore or restore_attributes, fields, rule, upgrade, by_task
    entry = Entry(cls, name or cls.__qualname__, *how)
    known = _BY_NAME.get(entry.name)
    # A class defined again, as by a reload of its module, replaces the old one.
    if known is not None and _address(known.cls) != _address(cls):
        raise ValueError(
            f"Model files already use the name {entry.name!r} for {_address(known.cls)}. "
            f"Give {_address(cls)} another `name`."
        )
    _BY_NAME[entry.name] = _BY_CLASS[cls] = entry
    return cls


def construct(cls: Any, state: State) -> Any:
    """Make an object by its constructor, with its attributes as arguments."""
    return cls(**state)


def register_tuple(cls: Any = None, **options: Any) -> Any:
    """Let model files hold objects of a NamedTuple, by its fields; also a class decorator."""
    if cls is None:
        return lambda wrapped: register_tuple(wrapped, **options)
    return register(cls, export=cls._asdict, restore=construct, **options)


def entries() -> list[Entry]:
    """Return the entries of all registered classes."""
    return list(_BY_NAME.values())


def find_by_class(cls: type) -> Entry | None:
    """Return the entry of exactly this class, not of a base class."""
    return _BY_CLASS.get(cls)


def find_by_name(name: str) -> Entry | None:
    """Return the entry stored under a name."""
    return _BY_NAME.get(name)


def _address(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
