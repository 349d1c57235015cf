"""Results as small HTML tables, for notebooks: escaped, and in the colours of the page.

No colour is set but a half-transparent grey, which is visible on light and on dark pages.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

LINE = "1px solid rgba(128,128,128,.45)"
CELL = "padding:.15em .6em;border:0;background:none"


class Strong(str):
    """A text or number that a table shows in bold."""

    __slots__ = ()


def html_table(header: Sequence[Any], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """Return a table; numbers are written with four digits and aligned right, gaps are empty.

    Examples
    --------
    >>> html_table(["a"], [[1.23456]]).count("<td"), "1.235" in html_table(["a"], [[1.23456]])
    (1, True)
    >>> "<script>" in html_table(["<script>"], [["<script>"]], "<script>")
    False
    """
    rows = [list(map(_text, cells)) for cells in rows]
    sides = [_side([cells[j] for cells in rows]) for j in range(len(header))]
    above = _row("th", list(map(_text, header)), sides, f";border-bottom:{LINE}")
    below = "".join(_row("td", cells, sides) for cells in rows)
    title = f'<caption style="text-align:left">{escape(caption)}</caption>' if caption else ""
    style = "border-collapse:collapse;font-size:.9em;margin:.4em 0"
    return f'<table style="{style}">{title}<thead>{above}</thead><tbody>{below}</tbody></table>'


def html_block(*parts: str) -> str:
    """Return parts of HTML in a box that scrolls sideways if a table is wide."""
    return f'<div style="overflow-x:auto;color:inherit">{"".join(parts)}</div>'


def paragraph(text: str, strong: bool = False) -> str:
    """Return a paragraph of escaped text; "" for no text."""
    if not text:
        return ""
    inside = f"<strong>{escape(text)}</strong>" if strong else escape(text)
    return f'<p style="margin:.3em 0">{inside}</p>'


def _row(tag: str, texts: Sequence[str], sides: Sequence[str], more: str = "") -> str:
    cells = (
        f'<{tag} style="text-align:{side};{CELL}{more}">{_inside(text)}</{tag}>'
        for text, side in zip(texts, sides, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _inside(text: str) -> str:
    return f"<strong>{escape(text)}</strong>" if isinstance(text, Strong) else escape(text)


def _text(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool | np.bool_) or not hasattr(cell, "__float__"):
        return str(cell)
    return "" if np.isnan(float(cell)) else f"{float(cell):.4g}"


def _side(column: Sequence[str]) -> str:
    """Return where a column is aligned: right if all its cells that are not empty are numbers."""
    texts = [text for text in column if text]
    return "right" if texts and all(text[0] in "+-.0123456789" for text in texts) else "left"
