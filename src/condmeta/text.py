"""Numbers with nouns, and texts of others, for messages."""

from __future__ import annotations

from unicodedata import category


def visible(text: str) -> str:
    """Return a text with control characters and marks of direction as escapes; line breaks too.

    Examples
    --------
    >>> print(visible("caf\xe9 \x1b[31m"))
    café \\x1b[31m
    """
    return "".join(
        c if c.isprintable() or category(c) == "Zs" else c.encode("unicode_escape").decode()
        for c in text
    )


def pluralize(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun, singular or plural.

    Examples
    --------
    >>> pluralize(1, "row"), pluralize(12000, "row")
    ('1 row', '12,000 rows')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def rows_known(count: int) -> str:
    """Return how many rows of a task are known.

    Examples
    --------
    >>> rows_known(0), rows_known(1), rows_known(5)
    ('no rows known', '1 row known', '5 rows known')
    """
    return "no rows known" if count == 0 else f"{pluralize(count, 'row')} known"
