"""The report of a comparison speaks of stores, rows and errors."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import condmeta as cm
from condmeta.display.pages.render import render
from condmeta.evaluation.report_words import noun_of, words_of


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    size, task = rng.normal(size=30), np.repeat(np.arange(30), 6)
    rows = pd.DataFrame({"store_id": task, "price": rng.normal(size=180)})
    rows["sold"] = (1 + 2 * size[task]) * rows["price"] + 0.3 * rng.normal(size=180)
    side = cm.TaskTable({"size": size}, ids=np.arange(30))
    tasks = cm.TaskSet.from_frame(rows, task="store_id", target="sold", side=side)
    return cm.compare(tasks, base=None, shots=(0, 3))


def test_words(found):
    words = words_of(found)
    assert words.noun == "store"
    assert words.advice.startswith("Use 'start by side information', ConditionalRidge(): its error")
    assert "for a new store it cuts the error by" in words.side
    assert re.search(r" % ± \d+ with no rows known", words.side)


def test_the_page_speaks_so_too(found):
    page = found.to_html()
    text = re.sub(r"<(script|style|svg).*?</\1>", "", page, flags=re.DOTALL)
    for jargon in ("task coefficients", "conditional on base", "points", "+-", "-0.0"):
        assert jargon not in text, jargon
    assert "Error for a new store" in text
    assert "±" in text
    assert "(filled) and with 0 (hollow)" not in page


@pytest.mark.parametrize(
    ("name", "noun"),
    [("store", "store"), ("StoreID", "Store"), ("id", "task"), (None, "task"), (("a", "b"), "task"),
     ("x 1", "task")],
)  # fmt: skip
def test_nouns(name, noun):
    assert noun_of(name) == noun


def test_shares_stay_within_0_and_100_percent(monkeypatch, tmp_path):
    (tmp_path / "page.css").write_text("")
    (tmp_path / "t.html").write_text("{{ share | share }} %")
    monkeypatch.setattr("condmeta.display.pages.render.TEMPLATES", tmp_path)
    assert render("t.html", (), share=-0.004) == "0 %"
    assert render("t.html", (), share=1.004) == "100 %"


def test_descriptions_of_charts_use_the_words_of_the_report(found):
    page = found.to_html()
    described = re.findall(r'aria-label="([^"]*)"', page)
    assert any("With no rows known: " in text for text in described)
    assert any("Alone: " in text for text in described)
    for text in described:
        assert "conditional" not in text
        assert "task coefficients" not in text


def test_the_page_does_not_depend_on_the_style_of_matplotlib(found):
    from matplotlib import style

    page = found.to_html()
    with style.context("dark_background"):
        assert found.to_html() == page


def test_percents_stay_on_one_line(found):
    (side,) = re.findall(r"<p>(Side information explains .*?)</p>", found.to_html())
    assert "\u00a0%" in side
    assert " %" not in side
    assert "\u00a0±\u00a0" in side
