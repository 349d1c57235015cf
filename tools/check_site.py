"""Check the built site: links within it lead somewhere, and no page loads a file from elsewhere.

python tools/check_site.py docs/_build/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}


class Page(HTMLParser):
    """Collect the ids, links and loaded files of a page."""

    def __init__(self, file: Path):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Note what a tag names, leads to, or loads."""
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given:
            self.loads.append(given[LOADED[tag]])


def faults(root: Path) -> list[str]:
    """Return a sentence for each fault."""
    files = [file for file in root.rglob("*.html") if "_static" not in file.parts]
    pages = {file.resolve(): Page(file) for file in files}
    found = []
    for file, page in pages.items():
        name = file.relative_to(root.resolve())
        for address in page.loads:
            if urlsplit(address).netloc:
                found.append(f"{name} loads {address}")
        for address in page.links + page.loads:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if not target.exists():
                found.append(f"{name} leads to {address}, which is not there")
            elif (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].ids
            ):
                found.append(f"{name} leads to {address}, which has no such place")
    return found


def main() -> None:
    """Print the faults; exit 1 if there are any."""
    found = faults(Path(sys.argv[1]))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
