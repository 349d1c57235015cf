"""The report in a real browser with no network: it opens, says what it should, and fits.

Headless Chromium opens the file itself, and then, from a server of this test, a page that holds it
in frames as wide as a phone and as a desktop, measures them and writes down what it finds.
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

import pytest
from small_panels import hide_data, shrink_panels

from condmeta.experiments import PANELS
from condmeta.experiments.claims import claims_of
from condmeta.experiments.reproduction import reproduce
from condmeta.report import write_report

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next((path for name in NAMES if (path := shutil.which(name))), None)
FLAGS = (
    "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--enable-logging=stderr", "--v=0", "--virtual-time-budget=20000", "--dump-dom",
)  # fmt: skip
WIDTHS = (375, 1280)
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
  const rows = () => [...page.querySelectorAll("table.sortable tbody tr")];
  const here = () => rows().map((row) => Number(row.cells[2].dataset.value));
  const head = page.querySelectorAll("table.sortable th")[2];
  head.querySelector("button").click();
  const up = here();
  head.querySelector("button").click();
  found[width] = {
    inner: root.clientWidth, content: root.scrollWidth, body: page.body.scrollWidth,
    wide: [...page.querySelectorAll("body *")].filter(
      (e) => !e.closest("svg, thead") && e.getBoundingClientRect().right > width + 1
    ).map((e) => e.outerHTML.slice(0, 80)),
    pictures: [...page.querySelectorAll("figure svg")].map((e) => {
      const box = e.getBoundingClientRect();
      return [box.width, box.height, e.getAttribute("role"), e.getAttribute("aria-label")];
    }),
    links: [...page.querySelectorAll("a")].map((e) => e.getAttribute("href")),
    ids: [...page.querySelectorAll("[id]")].map((e) => e.id),
    rows: rows().length, up, down: here(), sorted: head.getAttribute("aria-sort"),
    text: page.body.innerText,
  };
}
look(375).then(() => look(1280)).then(() => {
  document.body.innerHTML = "";
  const out = document.createElement("pre");
  out.id = "found";
  out.textContent = JSON.stringify(found);
  document.body.append(out);
});
</script></body>"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium found: apt install chromium"),
]


def open_page(address: str, profile) -> tuple[str, list[str]]:
    """Return the page after its scripts ran, and the messages on its console."""
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    command = [BROWSER, *FLAGS, *root, f"--user-data-dir={profile}", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, re.findall(r"CONSOLE.*", done.stderr)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Return the folder of a small reproduction whose real panels were skipped."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONDMETA_ENGINE", "numpy")
        shrink_panels(patch)
        hide_data(patch, folder)
        found = reproduce(["all"], seeds=2, out=folder / "out", jobs=1)
    write_report(found, found.out / "report.html", command="condmeta reproduce --seeds 2")
    return found.out


@pytest.fixture(scope="module")
def looked(out, tmp_path_factory):
    """Return what the harness found, the console, and the paths that were asked for."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            asked.append(self.path)

    (out / "harness.html").write_text(HARNESS, encoding="utf-8")
    handler = functools.partial(Handler, directory=str(out))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/harness.html"
        dom, console = open_page(address, tmp_path_factory.mktemp("profile"))
        server.shutdown()
        thread.join()
    told = re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)
    assert told, f"The harness did not finish: {dom[:2000]} {console}"
    return json.loads(html.unescape(told.group(1))), console, asked


def test_the_file_opens_by_itself_without_a_word_on_the_console(out, tmp_path):
    dom, console = open_page((out / "report.html").as_uri(), tmp_path)
    assert console == []
    assert "The paper, reproduced</h1>" in dom
    assert dom.count("<svg") == 8  # two a panel


def test_nothing_else_is_asked_for(looked):
    _, console, asked = looked
    assert console == []
    assert set(asked) - {"/favicon.ico"} == {"/harness.html", "/report.html"}


@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_the_window(looked, width):
    found = looked[0][str(width)]
    assert found["inner"] == width
    assert found["content"] <= width
    assert found["wide"] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_figures_are_drawn_and_described(looked, width):
    pictures = looked[0][str(width)]["pictures"]
    assert len(pictures) == 8
    for wide, high, role, alt in pictures:
        assert role == "img"
        assert len(alt) > 60
        assert wide > 0.4 * min(width, 1152) - 40
        assert 0.5 < high / wide < 1


def test_panels_claims_and_skipped_data_are_told(looked):
    text = looked[0]["1280"]["text"]
    for name, panel in PANELS.items():
        if panel.is_real:
            assert f"{panel.title}: its data are not on this machine" in text
        else:
            assert all(claim.sentence in text for claim in claims_of(name))
    assert "condmeta reproduce --seeds 2" in text


def test_the_table_can_be_sorted(looked):
    found = looked[0]["1280"]
    assert found["rows"] == 17  # methods of the four synthetic panels
    assert found["up"] == sorted(found["up"])
    assert found["down"] == sorted(found["down"], reverse=True)
    assert found["up"] != found["down"]
    assert found["sorted"] == "descending"


def test_links_lead_somewhere(looked, out):
    found = looked[0]["1280"]
    assert len(found["links"]) > 15
    for link in found["links"]:
        if link.startswith("#"):
            assert link[1:] in found["ids"]
        else:
            assert (out / link).is_file(), link
    assert len(set(found["ids"])) == len(found["ids"])
