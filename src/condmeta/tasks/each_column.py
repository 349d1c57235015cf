"""Do something with each column; one error names all columns that it is about."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from condmeta.errors import DataError
from condmeta.text import pluralize

MOST = 5  # columns in a sentence

Name = TypeVar("Name")
Found = TypeVar("Found")


def each_column(names: Iterable[Name], read: Callable[[Name], Found]) -> dict[Name, Found]:
    """Return {name: read(name)}, or raise one error for all columns with the same problem.

    Examples
    --------
    >>> def read(name):
    ...     raise DataError(f"Column {name!r} is empty", ": fill it.")
    >>> each_column("ab", read)
    Traceback (most recent call last):
    condmeta.errors.DataError: Column 'a' is empty, column 'b' is empty: fill it.
    """
    found, wrong = {}, []
    for name in names:
        try:
            found[name] = read(name)
        except DataError as error:
            if not error.remedy:
                raise
            wrong.append(error)
    if wrong:
        raise _joined([error for error in wrong if error.remedy == wrong[0].remedy])
    return found


def _joined(errors: list[DataError]) -> DataError:
    if len(errors) == 1:
        return errors[0]
    first, *others = [error.what for error in errors[:MOST]]
    rest = len(errors) - MOST
    more = [f"and so on in {pluralize(rest, 'more column')}"] if rest > 0 else []
    listed = [first, *(what[0].lower() + what[1:] for what in others), *more]
    return DataError(", ".join(listed), errors[0].remedy)
