"""Headless Chromium: open a page, and look at it in frames as wide as a phone and a desktop.

Nothing but the local machine can be reached.
"""

from __future__ import annotations

import functools
import html
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next((path for name in NAMES if (path := shutil.which(name))), None)
FLAGS = (
    "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--enable-logging=stderr", "--v=0", "--virtual-time-budget=20000", "--dump-dom",
)  # fmt: skip

HARNESS = """<!doctype html><title>harness</title><body><script>
const found = {};
async function look(width) {
  const frame = document.createElement("iframe");
  frame.style = `width: ${width}px; height: 800px; border: 0`;
  frame.src = "report.html";
  const loaded = new Promise((done) => frame.addEventListener("load", done));
  document.body.append(frame);
  await loaded;
  const page = frame.contentDocument, root = page.documentElement;
  found[width] = {
    inner: root.clientWidth, content: root.scrollWidth, body: page.body.scrollWidth,
    wide: [...page.querySelectorAll("body *")].filter(
      (e) => !e.closest("svg, thead") && e.getBoundingClientRect().right > width + 1
    ).map((e) => e.outerHTML.slice(0, 80)),
    pictures: [...page.querySelectorAll("figure svg")].filter(
      (e) => e.checkVisibility()
    ).map((e) => {
      const box = e.getBoundingClientRect();
      return [box.width, box.height, e.getAttribute("role"), e.getAttribute("aria-label")];
    }),
    links: [...page.querySelectorAll("a")].map((e) => e.getAttribute("href")),
    ids: [...page.querySelectorAll("[id]")].map((e) => e.id),
    text: page.body.innerText,
    ...await use(page, frame.contentWindow),
  };
}
async function use(page, window) { %s }
look(375).then(() => look(1280)).then(() => {
  document.body.innerHTML = "";
  const out = document.createElement("pre");
  out.id = "found";
  out.textContent = JSON.stringify(found);
  document.body.append(out);
});
</script></body>"""

WIDTHS = (375, 1280)

needs_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium found: apt install chromium"),
]


def open_page(address: str, profile) -> tuple[str, list[str]]:
    """Return the page after its scripts ran, and the messages on its console."""
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    command = [BROWSER, *FLAGS, *root, f"--user-data-dir={profile}", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, re.findall(r"CONSOLE.*", done.stderr)


def check_quiet(looked: tuple[dict, list[str], list[str]]) -> None:
    """Require an empty console, and that nothing but the page was asked for."""
    _, console, asked = looked
    assert console == []
    assert set(asked) - {"/favicon.ico"} == {"/harness.html", "/report.html"}


def check_fits(found: dict[str, Any], width: int) -> None:
    """Require that a page as wide as its window has nothing that sticks out."""
    assert found["inner"] == width
    assert found["content"] <= width
    assert found["wide"] == []


def look(folder: Path, use: str, profile: Path) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return what was found on report.html, the console, and the paths that were asked for.

    `use` is JavaScript that works the page and returns an object of further findings.
    """
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            asked.append(self.path)

    (folder / "harness.html").write_text(HARNESS % use, encoding="utf-8")
    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/harness.html"
        dom, console = open_page(address, profile)
        server.shutdown()
        thread.join()
    told = re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)
    assert told, f"The harness did not finish: {dom[:2000]} {console}"
    return json.loads(html.unescape(told.group(1))), console, asked
