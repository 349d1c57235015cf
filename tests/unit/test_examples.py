"""The examples run: the worked one, whose report stands alone, the gallery, and the pictures."""

from __future__ import annotations

import importlib.util
import re
import runpy
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "stores.py"
PICTURES = EXAMPLE.with_name("theory_pictures.py")
GALLERY = sorted(EXAMPLE.with_name("gallery").glob("plot_*.py"))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run the example once on a small chain; return what it printed and its report."""
    folder = tmp_path_factory.mktemp("demo") / "report"
    command = [sys.executable, "-W", "error", "-X", "utf8", str(EXAMPLE), "--stores", "80"]
    done = subprocess.run(
        [*command, "--out", str(folder)], capture_output=True, encoding="utf-8", timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, folder / "demo.html"


def test_last_line_says_where_the_report_is(run):
    printed, report = run
    assert printed.rstrip().splitlines()[-1] == f"The report is in {report.resolve()}"
    assert report.is_file()


def test_it_says_that_it_is_a_worked_example_on_made_up_data(run):
    for text in (run[0], run[1].read_text(encoding="utf-8")):
        assert "worked example on made-up data" in " ".join(text.split())


def test_the_report_needs_no_other_file(run):
    page = run[1].read_text(encoding="utf-8")
    assert not re.search(r"https?:|//[a-z]|url\(|@import|<link|<script|<img|src=", page)


def test_the_report_holds_the_numbers_that_were_printed(run):
    printed, report = run
    page = report.read_text(encoding="utf-8")
    rows = [line for line in printed.splitlines() if re.match(r"(0|1|2|5|10) +\d", line)]
    assert len(rows) == 5
    for row in rows:
        pairs = re.findall(r"(\d+\.\d\d) ± (\d+\.\d\d)", row)
        assert len(pairs) == 4, row
        cells = [f">{mean}</span> <small>± {se}</small>" for mean, se in pairs]
        assert re.search("[^\\n]*?".join(map(re.escape, cells)), page), row


class Outline(HTMLParser):
    """Collect the tags of a page, and check that they close in order."""

    VOID = {"meta", "line", "path"}

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], {}

    def handle_starttag(self, tag, attrs):
        self.seen.setdefault(tag, []).append(dict(attrs))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.seen.setdefault(tag, []).append(dict(attrs))


def test_the_report_is_well_formed_and_its_chart_has_a_text(run):
    outline = Outline()
    page = run[1].read_text(encoding="utf-8")
    outline.feed(page)
    assert outline.open == []
    (chart,) = [svg for svg in outline.seen["svg"] if svg.get("role") == "img"]
    for label in chart["aria-labelledby"].split():
        assert re.search(rf'id="{label}">[^<]{{20,}}<', page)
    assert "prefers-color-scheme: dark" in page
    assert any(meta.get("name") == "viewport" for meta in outline.seen["meta"])


def test_the_pictures_of_the_theory_are_drawn(tmp_path):
    command = [sys.executable, "-W", "error", str(PICTURES), "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stderr
    for name, words in (("cluster-gap", "printed lower bound (wrong)"), ("bounds", "Theorem 2")):
        assert words in (tmp_path / f"{name}.svg").read_text(encoding="utf-8")


def test_the_picture_of_the_gap_has_its_curves_in_order():
    spec = importlib.util.spec_from_file_location("theory_pictures", PICTURES)
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    curves = pictures.draw_cluster_gap().axes[0].lines
    exact = next(line for line in curves if line.get_label() == "exact gap")
    for line in curves:
        above = (line.get_ydata() >= exact.get_ydata() - 1e-12).all()
        assert above == (line.get_label().split()[0] in ("printed", "upper", "exact"))


def test_the_picture_of_a_story_is_the_one_that_its_script_draws():
    pytest.importorskip("matplotlib")
    story = runpy.run_path(str(EXAMPLE.with_name("story_pictures.py")))
    figure, words = story["draw"](*story["STORIES"]["flights"])
    assert figure.axes[0].get_ylim() == (-0.1, 1.0)
    assert words.endswith("by number of points: 84 % at 0, 11 % at 1, 5 % at 2, 2 % at 5.")
    for name in story["STORIES"]:
        page = (EXAMPLE.parents[1] / "docs" / f"story-{name}.md").read_text(encoding="utf-8")
        assert f"](images/story-{name}.svg)" in page.split("##")[0]


@pytest.mark.parametrize("script", GALLERY, ids=lambda script: script.stem)
def test_gallery(script):
    """Each runs in five seconds of processor time and draws axes that say what they show."""
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    start = time.process_time()
    runpy.run_path(str(script), run_name="__main__")
    used = time.process_time() - start
    axes = [ax for number in plt.get_fignums() for ax in plt.figure(number).axes]
    plt.close("all")
    assert axes
    assert all(ax.get_xlabel() for ax in axes)
    assert any(ax.get_ylabel() for ax in axes)
    assert used < 5


def test_the_gallery_is_one():
    assert len(GALLERY) >= 8
