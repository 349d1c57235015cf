"""Results in notebooks: complete, escaped, small, and without colours of their own."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import condmeta as cm
from condmeta.notebook import html_table

NASTY = "<img src=x onerror=alert(1)>"
VOID = {"br", "img", "hr"}


class Cells(HTMLParser):
    """Collect the text of each cell, and whether every tag is closed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.cells = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("td", "th", "p", "caption"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    ids = [f"shop {t}" for t in range(30)] + [NASTY]
    task = np.repeat(ids, 8)
    x = pd.DataFrame({NASTY: rng.normal(size=len(task)), "b": rng.normal(size=len(task))})
    side = pd.DataFrame(
        {"size": rng.normal(size=31), "kind" + NASTY: rng.choice([NASTY, "plain"], 31)}, index=ids
    )
    y = 2 * np.repeat(side["size"].to_numpy(), 8) * x["b"] + 0.3 * rng.normal(size=len(task))
    return x, y.to_numpy(), task, side


def shown(kind, tables):
    x, y, task, side = tables
    if kind == "TaskSet":
        return cm.TaskSet.from_arrays(x, y, task, side_info=side)
    if kind == "Comparison":
        return cm.compare(x, y, task=task, side_info=side, shots=(0, 4), base=None)
    if kind == "Advantage":
        return cm.advantage(x, y, task=task, side_info=side, shots=(0, 2))
    model = cm.ConditionalRidge(metric="diagonal", noise="shared").fit(
        x, y, task=task, side_info=side
    )
    if kind == "Explanation":
        return cm.explain(model, task=[NASTY, "shop 3", "shop 4", "shop 5", "shop 6", "shop 7"])
    return cm.check(model, x, y + 3, task=task)


WANTED = {
    "TaskSet": ["task", "rows", "size", "shop 0", "features: ", "31 tasks"],
    "Comparison": ["learner", "conditional", "Use ", "0", "4"],
    "Advantage": ["side column", "size", "explains alone", "gain", "±"],
    "Explanation": ["a mean task", "starts at", "with its 8 points", "like ", "1 more task"],
    "CheckReport": ["rmse | expected | z | side | shop", "26 more tasks in frame", "refit"],
}


@pytest.mark.parametrize("kind", WANTED)
def test_results_show_themselves(tables, kind):
    html = shown(kind, tables)._repr_html_()
    found = Cells(html)
    assert not found.open
    text = " | ".join(found.cells)
    for word in WANTED[kind]:
        assert word in text, word
    assert "<img" not in html  # names are the user's: they must not become tags
    assert "img" not in found.tags
    assert "script" not in found.tags
    assert len(html) < 20_000
    # no colour of its own on light or dark pages, but the grey of a line
    colours = re.findall(r"(?:color|background):\s*([^;\"]+)", html)
    assert set(colours) <= {"inherit", "none"}
    assert set(re.findall(r"rgba?\([^)]*\)", html)) <= {"rgba(128,128,128,.45)"}
    assert not re.findall(r'style="[^"]*#', html)


def test_a_comparison_marks_the_best_of_each_number_of_points(tables):
    found = shown("Comparison", tables)
    bold = re.findall(r"<td[^>]*><strong>([^<]+)</strong>", found._repr_html_())
    assert set(bold) == {f"{error:.4g}" for error in found.errors.min(axis=1)}


def test_a_check_shows_the_worst_tasks_first(tables):
    found = shown("CheckReport", tables)
    rows = Cells(found._repr_html_()).cells
    worst = found.frame.sort_values("z", ascending=False)["task"].iloc[0]
    header = [c for c in rows if c in found.frame.columns]
    assert rows[rows.index(header[-1]) + 1] == worst


def test_numbers_are_right_and_words_left():
    html = html_table(["name", "value"], [["a", 1234.5678], ["b", "+0.1"]])  # heads as columns
    assert re.findall(r"text-align:(\w+)[^>]*>([^<]+)<", html) == [
        ("left", "name"), ("right", "value"), ("left", "a"), ("right", "1235"), ("left", "b"),
        ("right", "+0.1"),
    ]  # fmt: skip


def test_gaps_are_empty_and_truth_values_words():
    html = html_table(["a", "b"], [[np.nan, np.True_], [2.0, False]])
    assert Cells(html).cells == ["a", "b", "", "True", "2", "False"]
    assert "nan" not in html
