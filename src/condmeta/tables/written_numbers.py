"""Numbers that are written as text: 12%, 1,904.66, EUR 5."""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.persistence.fields import TEXT, one_of
from condmeta.persistence.registry import register_tuple
from condmeta.tasks.numbers import is_empty, is_na

_SYMBOLS = "€$£¥₹₽₩₺₫₴₪฿%‰"
_CODES = (
    "EUR USD GBP JPY CHF CAD AUD NZD CNY INR BRL MXN SEK NOK DKK PLN CZK HUF RON TRY ZAR SGD HKD "
    "KRW THB IDR MYR PHP ILS AED SAR RUB UAH ARS CLP COP kr zł Kč"
)
_SPACE = " \u00a0\u202f"
_UNIT = rf"[{_SYMBOLS}]|{'|'.join(_CODES.split())}"
_SIGN = rf"[{_SPACE}]*[-+−]?[{_SPACE}]*"


def _form(decimal: str, thousands: str) -> str:
    """Return a pattern of numbers with this decimal sign, with or without marks at thousands."""
    marks = (thousands, "['’]", f"[{_SPACE}]")
    whole = "|".join([r"\d+", *(rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+" for mark in marks)])
    return rf"(?:(?:{whole})(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][+-]?\d+)?"


_PATTERNS = {".": _form(r"\.", ","), ",": _form(",", r"\.")}
_FORMS = {decimal: re.compile(pattern) for decimal, pattern in _PATTERNS.items()}
_BODY = "|".join(_PATTERNS.values())
WRITTEN = (
    rf"^{_SIGN}(?:{_UNIT})?{_SIGN}(?:{_BODY})[{_SPACE}]*(?:{_UNIT})?[{_SPACE}]*$"  # for RE2 too
)
_WRITTEN = re.compile(
    rf"(?P<sign>{_SIGN})(?P<before>{_UNIT})?(?P<sign2>{_SIGN})(?P<body>{_BODY})"
    rf"[{_SPACE}]*(?P<after>{_UNIT})?[{_SPACE}]*"
)
_PLAIN = re.compile(r"\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?")
_PERCENT = "%", "‰"


class NumberReader(NamedTuple):
    """How the numbers of one column are written.

    Attributes
    ----------
    decimal : "." or ","
    unit : str
        What every value has before or after the number, such as "%" or "EUR"; it may be empty.

    Examples
    --------
    >>> reader = find_numbers(["EUR 1,904.66", "EUR -5"], "price")
    >>> reader
    NumberReader(decimal='.', unit='EUR')
    >>> reader.read(np.array(["EUR 7.50", None], object), "price")
    {'price': array([7.5, nan])}
    """

    decimal: str
    unit: str

    def read(self, values: np.ndarray, name: str) -> dict[str, np.ndarray]:
        """Return the numbers of a column, NaN for gaps; refuse text that is written otherwise."""
        if values.dtype != object:
            if self.unit in _PERCENT and not is_empty(values):
                raise DataError(
                    f"Column {name!r} was written with {self.unit} in fit, as 12{self.unit}, and "
                    "holds numbers without it now",
                    ": write them in the same way.",
                )
            return {name: values.astype(np.float64)}
        known: dict[Any, float] = {}
        for value in dict.fromkeys(values.tolist()):
            known[value] = np.nan if is_na(value) else self._number(value, values, name)
        return {name: np.array([known[value] for value in values.tolist()])}

    def _number(self, value: Any, values: np.ndarray, name: str) -> float:
        found = _split(str(value))
        if found is None or found[0] != self.unit or not _FORMS[self.decimal].fullmatch(found[2]):
            row = values.tolist().index(value) + 1
            number = f"1{self.decimal}5"
            percent = self.unit in _PERCENT
            like = f"{number}{self.unit}" if percent else f"{self.unit} {number}".strip()
            raise DataError(
                f"Column {name!r} holds {str(value)!r} in row {row:,}, which is not a number "
                f"written as in fit (like {like!r})",
                ": correct it, or leave the cell empty.",
            )
        _, sign, body = found
        thousands = "," if self.decimal == "." else "."
        plain = re.sub(rf"[{thousands}'’{_SPACE}]", "", body).replace(self.decimal, ".")
        return float(f"{sign}{plain}")

    def note(self, name: str, example: str) -> str:
        """Say how a column is read."""
        number = self.read(np.array([example], object), name)[name][0]
        return f"Column {name!r} is written as text: {example!r} is read as the number {number:g}"

    def describe(self) -> str:
        """Return how the column is read, for a model card."""
        unit = f", unit {self.unit}" if self.unit else ""
        return f"numbers written with the decimal sign {self.decimal!r}{unit}"


register_tuple(NumberReader, fields={"decimal": one_of(".", ","), "unit": TEXT})


def find_numbers(
    texts: Iterable[str], name: str, decimal: str | None = None,
    row_of: Callable[[str], int] | None = None,
) -> NumberReader | None:  # fmt: skip
    """Return how the numbers of a column are written, or None if it holds no written numbers.

    Numbers without unit and separators, such as 12 or 1.5, are left alone: as text they are codes.
    What could be read in two ways is refused, unless `decimal` decides it. `row_of` returns the row
    of a text, from 0 on, for errors.
    """

    def shown(text: str) -> str:
        return repr(text) if row_of is None else f"{text!r} in row {row_of(text) + 1:,}"

    parts = {text: _split(text) for text in texts}
    if not parts or None in parts.values():
        return None
    bodies = {text: part[2] for text, part in parts.items()}
    signs = [d for d in _FORMS if all(map(_FORMS[d].fullmatch, bodies.values()))]
    units: dict[str, str] = {}
    for text, part in parts.items():
        units.setdefault(part[0], text)
    if not signs or (units.keys() == {""} and all(map(_PLAIN.fullmatch, bodies.values()))):
        return None
    if len(units) > 1:
        listed = ", ".join(map(shown, list(units.values())[:5]))
        raise DataError(
            f"Column {name!r} holds numbers in several units ({listed})",
            ": write all of them in one unit.",
        )
    open_to_doubt = next((text for text, body in bodies.items() if re.search(r"[.,]", body)), None)
    if decimal is not None and decimal in signs:
        signs = [decimal]
    elif len(signs) == 2 and open_to_doubt is not None:
        both = [NumberReader(d, next(iter(units)))._number(open_to_doubt, np.array([]), name)
                for d in signs]  # fmt: skip
        raise DataError(
            f"Column {name!r} holds {shown(open_to_doubt)}, which may be {both[0]:g} or "
            f"{both[1]:g}",
            ": set decimal= to '.' or ','. If it holds names, list it in text=.",
        )
    return NumberReader(signs[0], next(iter(units)))


def _split(text: str) -> tuple[str, str, str] | None:
    """Return unit, sign and number of a text; None if it does not look like a number."""
    found = _WRITTEN.fullmatch(text)
    if found is None or (found["before"] and found["after"]):
        return None
    signs = (found["sign"] + found["sign2"]).translate(dict.fromkeys(map(ord, _SPACE)))
    if len(signs) > 1:
        return None
    sign = "-" if signs in ("-", "−") else ""
    return found["before"] or found["after"] or "", sign, found["body"]
