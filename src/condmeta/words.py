"""Numbers with their nouns."""

from __future__ import annotations


def count(number: int, one: str, many: str | None = None) -> str:
    """Write a number with its noun.

    Examples
    --------
    >>> count(1, "row"), count(12000, "row")
    ('1 row', '12,000 rows')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
