"""One colour, line and marker for each method, the same in every figure.

The colours are Okabe and Ito's, which colour-blind readers can distinguish; dashes and markers
distinguish the methods in grey print.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple


class Style(NamedTuple):
    """How a method is drawn."""

    colour: str
    line: Any
    marker: str


PAPER = {
    "ITL": Style("#595959", (0, (1, 1.2)), "x"),
    "mean": Style("#000000", (0, (6, 1.5, 1, 1.5)), "+"),
    "unconditional": Style("#0072b2", (0, (5, 1.8)), "s"),
    "conditional": Style("#d55e00", "-", "o"),
    "conditional, true map": Style("#d55e00", "-", "o"),
    "conditional, random features": Style("#009e73", (0, (3, 1, 1, 1)), "^"),
}
LEARNERS = {  # those of `compare`; the colours stand out from white and from dark pages
    "own data": PAPER["ITL"],
    "pooled": PAPER["mean"],
    "unconditional on base": Style("#7b68c8", (0, (2, 1)), "P"),
    "conditional on base": Style("#b84a8a", (0, (9, 1)), "D"),
    "task mean on base": Style("#2e8b57", (0, (4, 1)), "v"),
    "transformed": Style("#1b9e9e", (0, (6, 1, 2, 1)), "<"),
    "constant on base": Style("#a0522d", (0, (2, 2)), ">"),
    "unconditional counts": Style("#4f7cac", (0, (1, 1)), "h"),
    "conditional counts": Style("#c0504d", (0, (8, 2, 2, 2)), "p"),
    "never forgets": Style("#3f7f5f", (0, (3, 2)), "d"),
    "forgets": Style("#b5527a", (0, (10, 2)), "*"),
    "auto": Style("#a6761d", (0, (7, 1, 1, 1)), "X"),
}
FIXED = PAPER | LEARNERS
OTHERS = (
    Style("#cc79a7", "-", "D"),
    Style("#009e73", (0, (4, 1)), "v"),
    Style("#56b4e9", (0, (2, 1)), "P"),
    Style("#e69f00", (0, (7, 2)), "<"),
    Style("#8c564b", (0, (3, 1, 1, 1, 1, 1)), ">"),
)


def styles_of(methods: Iterable[str]) -> dict[str, Style]:
    """Return the style of each method: fixed for the library's own, else by a hash of the name.

    If two methods would share a style, the later one gets another; there are 25 for names that are
    not the library's own.

    Examples
    --------
    >>> styles_of(["unconditional", "mine"])["unconditional"].colour
    '#0072b2'
    """
    methods = list(methods)
    found: dict[str, Style] = {}
    for name in methods:
        if name in FIXED and FIXED[name] not in found.values():
            found[name] = FIXED[name]
    for name in methods:
        if name not in found:
            free = (style for style in _others(name) if style not in found.values())
            found[name] = next(free, OTHERS[0])
    return {name: found[name] for name in methods}


def _others(name: str) -> Iterator[Style]:
    """Yield the colours of `OTHERS`, from one that the name determines, with every dash in turn."""
    first, count = zlib.crc32(name.encode()), len(OTHERS)
    for shift in range(count):
        for place in range(first, first + count):
            colour, line = OTHERS[place % count], OTHERS[(place + shift) % count]
            yield Style(colour.colour, line.line, line.marker)
