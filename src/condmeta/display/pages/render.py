"""Fill a page template: one file with style, scripts and figures inside."""

import base64
import hashlib
import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

try:
    import jinja2
    from markupsafe import Markup, escape
except ImportError as error:
    raise ImportError('The report needs jinja2: pip install "condmeta[report]".') from error

from condmeta.display.plots.canvas import figure_bytes

TEMPLATES = Path(__file__).parent / "templates"
THEMED = {  # neutral colours of figures -> the variable of page.css, which dark mode changes
    "#ffffff": "--ground", "#000000": "--text", "#333333": "--text", "#595959": "--soft",
    "#d9d9d9": "--line",
}  # fmt: skip


def render(template: str, scripts: Sequence[str], **content: Any) -> str:
    """Return a page; its security policy allows only its style sheet and the named scripts.

    They are known by their hashes. Figures have style attributes, which cannot run anything.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["as_title"] = lambda text: Markup(
        html.escape(text).replace("w_rho = ", "<i>w</i><sub>ρ</sub>&nbsp;=&nbsp;")
    )
    environment.filters["unbroken"] = lambda text: text.replace(" %", "\u00a0%").replace(
        " ± ", "\u00a0±\u00a0"
    )
    environment.filters["share"] = lambda share: f"{100 * min(max(share, 0.0), 1.0):.0f}"
    style, *texts = (_read(name) for name in ("page.css", *scripts))
    return environment.get_template(template).render(
        style=Markup(style),
        style_hash=_hash(style),
        scripts=[Markup(text) for text in texts],
        script_hashes=[_hash(text) for text in texts],
        **content,
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def inline_svg(figure: Any, name: str, alt: str, kind: str = "") -> Markup:
    """Return a figure as an SVG element that scales with its container, described by `alt`.

    `kind` is its class. Ids get the prefix `name`, because several figures share a page. Header,
    metadata and style sheet of the file are left out: a style sheet would apply to the whole page.
    Black, white and greys follow the colour scheme of the page.
    """
    text = figure_bytes(figure, "svg").decode("utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="|href="#|url\(#', rf"\g<0>{name}-", text)
    text = re.sub(r"\s+$", "", text, flags=re.MULTILINE)
    text = re.sub(
        r"(fill|stroke): (#[0-9a-f]{6})\b",
        lambda m: f"{m[1]}: var({THEMED[m[2]]})" if m[2] in THEMED else m[0],
        text,
    )
    head, rest = text.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    shown = f' class="{kind}"' if kind else ""
    return Markup(f'<svg {box.group()}{shown} role="img" aria-label="{escape(alt)}">{rest}')
