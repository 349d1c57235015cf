"""Write a figure, the same bytes whenever it is drawn again."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FORMATS = ("png", "svg", "pdf")
UNDATED = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
SETTINGS = {"svg.hashsalt": "condmeta", "svg.fonttype": "none", "pdf.fonttype": 42}


def figure_bytes(figure: Any, kind: str) -> bytes:
    """Return a figure as a PNG (300 dpi), SVG or PDF file, without a date."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context(SETTINGS):
        figure.savefig(buffer, format=kind, dpi=300, metadata=UNDATED[kind])
    return buffer.getvalue()


def save_figure(figure: Any, stem: Any, formats: Iterable[str] = FORMATS) -> list[Path]:
    """Write `stem`.png, `stem`.svg and `stem`.pdf; return the paths.

    Examples
    --------
    Draw the learning curves of some results into a folder::

        save_figure(results.plot().figure_, "out/curves")
    """
    written = []
    for kind in formats:
        path = Path(f"{stem}.{kind}")
        path.write_bytes(figure_bytes(figure, kind))
        written.append(path)
    return written
