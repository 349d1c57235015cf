"""Results as small HTML tables, for notebooks: escaped, and in the colours of the page.

No colour is set but a half-transparent grey, which is visible on light and on dark pages.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

LINE = "1px solid rgba(128,128,128,.45)"
CELL = "padding:.15em .6em;border:0;background:none"


class Strong(str):
    """A text or number that a table shows in bold."""

    __slots__ = ()


def html_table(header: Sequence[Any], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """Return a table; numbers are written with four digits and aligned right.

    Examples
    --------
    >>> html_table(["a"], [[1.23456]]).count("<td"), "1.235" in html_table(["a"], [[1.23456]])
    (1, True)
    >>> "<script>" in html_table(["<script>"], [["<script>"]], "<script>")
    False
    """
    above = _row("th", header, f"border-bottom:{LINE}")
    below = "".join(_row("td", cells) for cells in rows)
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


def _row(tag: str, cells: Sequence[Any], style: str = "") -> str:
    return f"<tr>{''.join(_cell(tag, cell, style) for cell in cells)}</tr>"


def _cell(tag: str, cell: Any, style: str) -> str:
    is_number = not isinstance(cell, (str, bool)) and hasattr(cell, "__float__")
    text = f"{float(cell):.4g}" if is_number else str(cell)
    inside = f"<strong>{escape(text)}</strong>" if isinstance(cell, Strong) else escape(text)
    side = "right" if is_number or _reads_as_number(text) else "left"
    more = f";{style}" if style else ""
    return f'<{tag} style="text-align:{side};{CELL}{more}">{inside}</{tag}>'


def _reads_as_number(text: str) -> bool:
    return text[:1] in "+-.0123456789" and text[:1] != ""
