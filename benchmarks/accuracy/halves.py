"""The two halves of the tables of `registry.py`: one to design on, one that only judges.

The half of a table follows from its name, so that nobody chooses it. Learners may be designed on
the development half. The validation half is looked at only to report. The tables of `fresh.py`
belong to no half.
"""

from __future__ import annotations

from hashlib import sha256

HALVES = "development", "validation"


def half(name: str) -> str:
    """Return the half of a table: by the first byte of the SHA-256 of its name, even or odd."""
    return HALVES[sha256(name.encode()).digest()[0] % 2]
