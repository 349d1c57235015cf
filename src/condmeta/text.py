"""Numbers with nouns, for messages."""

from __future__ import annotations


def pluralize(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun, singular or plural.

    Examples
    --------
    >>> pluralize(1, "row"), pluralize(12000, "row")
    ('1 row', '12,000 rows')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
