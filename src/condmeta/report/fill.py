"""How a page is filled: one file with its style and scripts inside, and nothing else allowed."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

try:
    import jinja2
    from markupsafe import Markup
except ImportError as error:
    raise ImportError('The report needs jinja2: pip install "condmeta[report]".') from error

TEMPLATES = Path(__file__).parent / "templates"


def fill(template: str, scripts: Sequence[str], **content: Any) -> str:
    """Return a page; only the named scripts may run in it, by their hashes."""
    world = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    world.filters["as_title"] = lambda text: Markup(
        html.escape(text).replace("w_rho", "<i>w</i><sub>ρ</sub>")
    )
    texts = [_read(name) for name in scripts]
    return world.get_template(template).render(
        style=Markup(_read("page.css")),
        scripts=[Markup(text) for text in texts],
        script_hashes=[
            base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts
        ],
        **content,
    )


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
