"""The report of a comparison in a real browser with no network: it opens, works, and fits."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from headless import WIDTHS, check_fits, check_quiet, look, needs_browser, open_page

import condmeta as cm

pytestmark = needs_browser
USE = """
  const one = (selector) => page.querySelector(selector);
  const rows = () => [...page.querySelectorAll("#cards tbody tr")];
  const errors = () => rows().map((row) => Number(row.cells[2].dataset.value));
  const fire = (element, kind) => element.dispatchEvent(new window.Event(kind));
  const letters = [...page.querySelectorAll("figure svg text")].filter((e) => e.checkVisibility())
    .map((e) => parseFloat(window.getComputedStyle(e).fontSize) * e.getScreenCTM().a)
    .filter((size) => size > 0);  // 0: turned by 90 degrees
  const out = { letters, all: rows().length, first: one("#card h3").textContent };
  out.drawn = page.querySelectorAll("#card circle.after").length;
  const head = page.querySelectorAll("#cards th")[2];
  head.querySelector("button").click();
  out.up = errors();
  head.querySelector("button").click();
  out.down = errors();
  rows()[0].querySelector("button").click();
  out.picked = one("#card h3").textContent;
  out.pressed = [...page.querySelectorAll(".pick[aria-pressed=true]")].map((e) => e.textContent);
  out.worst = rows()[0].cells[0].dataset.value;
  one("#shot").selectedIndex = 0;
  fire(one("#shot"), "change");
  out.drawnAtFirst = page.querySelectorAll("#card circle.after").length;
  out.captionAtFirst = one("#card figcaption").textContent;
  one("#find").value = "store 7";
  fire(one("#find"), "input");
  out.found = rows().map((row) => row.cells[0].dataset.value);
  out.count = one("#count").textContent;
  one("#find").value = "<none>";
  fire(one("#find"), "input");
  out.none = rows().length;
  out.saved = decodeURIComponent(one("#save").href).split("\\n").length;
  out.picture = one("#card svg").getAttribute("aria-label");
  out.called = ["Task 3", "3"].map((id) => window.called({ id }));
  out.known = [0, 1, 2].map(window.known);
  out.focusable = [...page.querySelectorAll("button, a, select, input, [tabindex]")]
    .filter((e) => e.tabIndex < 0).length;
  return out;
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Return the folder of a small comparison; ids and side columns that could break a page."""
    rng = np.random.default_rng(0)
    ids = [f"store {t} </script><b>" for t in range(30)]
    size = rng.normal(size=30)
    task = np.repeat(np.arange(30), 9)
    X = rng.normal(size=(270, 3))
    y = X[:, 0] * 2 * size[task] + X[:, 1] + 0.3 * rng.normal(size=270)
    X = pd.DataFrame(X, columns=["price", "a_feature_with_a_very_long_name=and_a_level", "x"])
    side = cm.TaskTable({"size & <weight>": size, "town": ["A", "B", "C"] * 10}, ids=ids)
    found = cm.compare(
        X, y, task=[ids[t] for t in task], side_info=side, base=None, shots=(0, 2, 5)
    )
    folder = tmp_path_factory.mktemp("comparison")
    found.to_html(
        folder / "report.html", title="Sales <by> store", command="condmeta compare a.csv"
    )
    return folder


@pytest.fixture(scope="module")
def looked(out, tmp_path_factory):
    """Return what the browser found, the console, and the paths that were asked for."""
    return look(out, USE, tmp_path_factory.mktemp("profile"))


def test_the_file_opens_by_itself_without_a_word_on_the_console(out, tmp_path):
    dom, console = open_page((out / "report.html").as_uri(), tmp_path)
    assert console == []
    assert "Sales &lt;by&gt; store</h1>" in dom


def test_nothing_else_is_asked_for(looked):
    check_quiet(looked)


@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_the_window(looked, width):
    check_fits(looked[0][str(width)], width)


@pytest.mark.parametrize("width", WIDTHS)
def test_figures_are_drawn_and_described(looked, width):
    pictures = looked[0][str(width)]["pictures"]
    assert len(pictures) == 3  # errors, side information, the picked task
    for wide, high, role, alt in pictures:
        assert role == "img"
        assert len(alt) > 60
        assert wide > 250
        assert 0.2 < high / wide < 1.2


@pytest.mark.parametrize("width", WIDTHS)
def test_charts_are_as_wide_as_the_page(looked, width):
    for wide, *_ in looked[0][str(width)]["pictures"][:2]:  # the third is on the card of a task
        assert wide > 0.85 * min(width, 1152)


@pytest.mark.parametrize("width", WIDTHS)
def test_words_in_charts_can_be_read(looked, width):
    assert min(looked[0][str(width)]["letters"]) >= 10  # pixels


def test_charts_follow_the_colour_scheme(out):
    page = (out / "report.html").read_text(encoding="utf-8")
    charts = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    assert len(charts) == 4  # errors and side information, for a desk and for a phone
    for chart in charts:
        assert "fill: var(--ground)" in chart
        assert not re.search(r"(fill|stroke): #(ffffff|000000|333333|595959|d9d9d9)", chart)


def test_advice_and_side_information_are_shown(looked):
    text = looked[0]["1280"]["text"]
    assert "ConditionalRidge(): its error for a new task is the lowest, or within noise" in text
    assert "Side information explains" in text
    assert "condmeta compare a.csv" in text
    assert "size & <weight>" in text


def test_a_task_can_be_picked_and_its_points_change(looked):
    found = looked[0]["1280"]
    assert found["first"] == f"task {found['worst']}"  # the worst first
    assert found["drawn"] == 4  # 9 points, 5 shown
    assert found["drawnAtFirst"] == 9
    assert found["captionAtFirst"].startswith("Predictions with no rows known.")
    assert found["picked"] == f"task {found['worst']}"
    assert found["pressed"] == [found["worst"]]
    assert "no rows known" in found["picture"]
    assert found["called"] == ["Task 3", "task 3"]  # not "task Task 3"
    assert found["known"] == ["no rows known", "1 row known", "2 rows known"]


def test_tasks_can_be_sorted_filtered_and_saved(looked):
    found = looked[0]["1280"]
    assert found["all"] == 30
    assert found["up"] == sorted(found["up"])
    assert found["down"] == sorted(found["down"], reverse=True)
    assert found["found"] == ["store 7 </script><b>"]
    assert found["count"] == "1 of 30 shown"
    assert found["none"] == 0
    assert found["saved"] == 1 + 30 * 3 + 1  # heading, tasks at three shots, the last line's end


def test_everything_can_be_reached_by_the_keyboard(looked):
    assert looked[0]["1280"]["focusable"] == 0
