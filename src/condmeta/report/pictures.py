"""Figures as SVG elements inside a page."""

from __future__ import annotations

import re
from typing import Any

from markupsafe import Markup, escape

from condmeta.plots.save import figure_bytes


def inline_svg(figure: Any, name: str, alt: str) -> Markup:
    """Return a figure as an SVG element that scales with its place and says what it shows.

    Ids get the prefix `name`, as several figures share a page; the file's header, metadata and
    style sheet, which would apply to the whole page, are left out.
    """
    text = figure_bytes(figure, "svg").decode("utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    text = re.sub(r"\s+$", "", text, flags=re.MULTILINE)
    head, rest = text.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    return Markup(f'<svg {box.group()} role="img" aria-label="{escape(alt)}">{rest}')
