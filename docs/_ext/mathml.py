"""Write formulas as MathML while the site is built: browsers draw it without any script."""

from __future__ import annotations

from docutils import nodes
from latex2mathml.converter import convert


def visit_inline(writer, node: nodes.math) -> None:
    """Write a formula within a line."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_block(writer, node: nodes.math_block) -> None:
    """Write a formula on its own; a wide one scrolls."""
    writer.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app) -> dict:
    """Offer the renderer ``html_math_renderer = "mathml"``."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
