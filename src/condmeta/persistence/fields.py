"""What the fields of a stored class may hold: the words of which its schema is made.

A class states its schema where it registers itself, as a table of field -> `Field`:

    @register_tuple(fields={"gram": floats("T d d"), "count": counts("T")})

Letters in a shape are sizes. They are the same in all fields of one object; `instance(..., T="T")`
also compares them with those of the object in the field.
"""

from collections.abc import Callable, Iterable
from math import inf
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

MOST_POINTS = 10**15  # of a task; the compiled core refuses more


class InvalidFieldError(ValueError):
    """A field that does not hold what the schema says: the name of the field, and a sentence."""

    def __init__(self, field: str, problem: str):
        super().__init__(f"{field} {problem}")
        self.field, self.problem = field, problem


class Sizes:
    """The sizes that the fields of one object have shown so far, by letter."""

    def __init__(self, inside: Callable[[Any], tuple[str, dict[str, int]] | None]):
        self.named: dict[str, int] = {}
        self.inside = inside  # class name and sizes of an object that was checked before

    def fit(self, letter: str, size: int) -> bool:
        """Return whether a size agrees with its letter: "T", "k+1" or a number."""
        name, _, more = letter.partition("+")
        size -= int(more or 0)
        if name.isdigit():
            return size == int(name)
        return size >= 0 and self.named.setdefault(name, size) == size


class Field(NamedTuple):
    """What a value must be, in words and as a test; `required` fields are in every file."""

    says: str
    holds: Callable[[Any, Sizes], bool]
    required: bool = True


def optional(field: Field) -> Field:
    """Return a field that files of older versions may lack."""
    return field._replace(required=False)


def maybe(field: Field) -> Field:
    """Return a field that may be None."""
    return Field(f"{field.says}, or None", lambda v, s: v is None or field.holds(v, s))


def either(*fields: Field) -> Field:
    """Return a field that holds one of several kinds of values."""
    says = ", or ".join(field.says for field in fields)
    return Field(says, lambda v, s: any(field.holds(v, s) for field in fields))


ANY = Field("any value", lambda value, sizes: True)
FLAG = Field("True or False", lambda value, sizes: isinstance(value, bool | np.bool_))
TEXT = Field("a text", lambda value, sizes: isinstance(value, str))


def one_of(*words: str) -> Field:
    """Return a field that holds one of some words."""
    says = " or ".join(map(repr, words))
    return Field(says, lambda value, sizes: isinstance(value, str) and value in words)


def number(
    above: float = -inf, low: float = -inf, high: float = inf, *, whole: bool = False,
    infinite: bool = False,
) -> Field:  # fmt: skip
    """Return a field that holds one number, finite unless `infinite`."""
    kind = "a whole number" if whole else "a number" if infinite else "a finite number"

    def holds(value: Any, sizes: Sizes) -> bool:
        real = Integral if whole else Real
        if not isinstance(value, real) or isinstance(value, bool | np.bool_):
            return False
        if isinstance(value, int) and not -(2**63) <= value < 2**63:  # NumPy would make an object
            return False
        within = value > above if above > -inf else value == value
        return bool(within and low <= value <= high and (infinite or whole or abs(value) < inf))

    return Field(kind + _limits(above, low, high), holds)


def floats(
    shape: str, *, above: float = -inf, low: float = -inf, high: float = inf, nan: bool = False
) -> Field:
    """Return a field that holds an array of float64; `nan` allows NaN and infinities."""
    return _array(shape, "float64", above, low, high, nan)


def integers(shape: str, *, low: float = -inf, high: float = inf, dtype: str = "int64") -> Field:
    """Return a field that holds an array of whole numbers."""
    return _array(shape, dtype, -inf, low, high)


def point_counts(shape: str) -> Field:
    """Return a field that holds numbers of points."""
    return integers(shape, low=0, high=MOST_POINTS)


def counts(shape: str) -> Field:
    """Return a field that holds numbers of points, or sums of their weights."""
    return either(point_counts(shape), floats(shape, low=0))


def flags(shape: str) -> Field:
    """Return a field that holds an array of booleans."""
    return _array(shape, "bool", -inf, -inf, inf)


def _array(
    shape: str, dtype: str, above: float, low: float, high: float, nan: bool = False
) -> Field:
    letters = shape.split()
    kind = dtype if nan or dtype != "float64" else "finite float64"
    says = f"an array ({', '.join(letters)}) of {kind}{_limits(above, low, high)}"

    def holds(value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, np.ndarray) or value.dtype != dtype or value.ndim != len(letters):
            return False
        if not all(map(sizes.fit, letters, value.shape)):
            return False
        if dtype == "bool" or not value.size:
            return True
        if dtype == "float64" and not nan and not np.isfinite(value).all():
            return False
        within = value > above if above > -inf else np.True_
        return bool((within & (value >= low) & (value <= high)).all() if not nan else True)

    return Field(says, holds)


def _limits(above: float, low: float, high: float) -> str:
    parts = [f"> {above:g}"] * (above > -inf) + [f">= {low:g}"] * (low > -inf)
    parts += [f"<= {high:g}"] * (high < inf)
    return f" {' and '.join(parts)}" if parts else ""


def ids(letter: str) -> Field:
    """Return a field that holds an object array of task ids, each once."""

    def holds(value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, np.ndarray) or value.dtype != object or value.ndim != 1:
            return False
        return sizes.fit(letter, len(value)) and _distinct(value.tolist())

    return Field(f"an array ({letter}) of ids, each once", holds)


def labels(letter: str | None = None) -> Field:
    """Return a field that holds an array of different labels: numbers, booleans or texts."""

    def holds(value: Any, sizes: Sizes) -> bool:
        if not (isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "biufUO"):
            return False
        return (letter is None or sizes.fit(letter, len(value))) and _distinct(value.tolist())

    size = "" if letter is None else f" ({letter})"
    return Field(f"an array{size} of different labels", holds)


def sequence(field: Field, letter: str | None = None, *, distinct: bool = False) -> Field:
    """Return a field that holds a list or tuple of values."""

    def holds(value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, list | tuple):
            return False
        if letter is not None and not sizes.fit(letter, len(value)):
            return False
        return all(field.holds(v, sizes) for v in value) and (not distinct or _distinct(value))

    size = "" if letter is None else f" of {letter}"
    return Field(f"a list{size}, each {field.says}{', all different' * distinct}", holds)


def mapping(field: Field, *, key: Field = TEXT) -> Field:
    """Return a field that holds a dict."""

    def holds(value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, dict):
            return False
        return all(key.holds(k, sizes) and field.holds(v, sizes) for k, v in value.items())

    return Field(f"a dict of {key.says} -> {field.says}", holds)


def check_fields(fields: dict[str, Field], state: dict[str, Any], sizes: Sizes) -> None:
    """Raise `InvalidFieldError` for the first field that is unknown, missing or wrong."""
    for name in state:
        if name not in fields:
            raise InvalidFieldError(name, "is not a field of this class")
    for name, field in fields.items():
        if name not in state:
            if field.required:
                raise InvalidFieldError(name, f"is missing; it must be {field.says}")
        elif not field.holds(state[name], sizes):
            got = describe(state[name])
            raise InvalidFieldError(name, f"must be {field.says}. Got {got} instead")


def record(fields: dict[str, Field]) -> Field:
    """Return a field that holds a dict with these entries."""

    def holds(value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, dict):
            return False
        check_fields(
            {f"['{name}']": f for name, f in fields.items()},
            {f"[{name!r}]": v for name, v in value.items()},
            sizes,
        )
        return True

    return Field("a dict of " + "; ".join(f"{n}: {f.says}" for n, f in fields.items()), holds)


def describe(value: Any) -> str:
    """Return a value in a few words, for a message."""
    if isinstance(value, np.ndarray):
        infinite = value.dtype.kind == "f" and not np.isfinite(value).all()
        shape = ", ".join(map(str, value.shape))
        return f"an array ({shape}) of {value.dtype}{', not all finite' * bool(infinite)}"
    if isinstance(value, list | tuple | dict | set):
        return f"a {type(value).__name__} of length {len(value)}"
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:57]}..."
    return f"an object of class {type(value).__name__}"


def instance(*names: str, **sizes: str) -> Field:
    """Return a field that holds an object of one of some classes; without names, of any class.

    `sizes` are letters of that object and the letters that they have here.
    """

    def holds(value: Any, here: Sizes) -> bool:
        found = here.inside(value)
        if found is None or (names and found[0] not in names):
            return False
        there = found[1]
        return all(here.fit(mine, there[its]) for its, mine in sizes.items() if its in there)

    same = ", ".join(f"{its} = {mine}" for its, mine in sizes.items())
    says = f"an object of class {' or '.join(names)}" if names else "an object"
    return Field(says + f" with {same}" * bool(same), holds)


def _distinct(values: Iterable[Any]) -> bool:
    listed = list(values)
    try:
        return len(set(listed)) == len(listed)
    except TypeError:  # a list is no id
        return False
