"""The page without a browser: it holds all it needs, escapes what it is given, can be read."""

from __future__ import annotations

import base64
import hashlib
import html
import re

import numpy as np
import pytest
from small_panels import hide_data, shrink_panels

from condmeta.display.pages.render import TEMPLATES
from condmeta.paper.experiments.page import SCHOOLS_NOTE, reproduction_page, write_report
from condmeta.paper.experiments.reproduction import reproduce
from condmeta.paper.experiments.results import Results
from condmeta.paper.experiments.summary import to_json


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONDMETA_ENGINE", "numpy")
        patch.setattr("condmeta.paper.experiments.reproduction.FORMATS", ())
        shrink_panels(patch)
        hide_data(patch, folder)
        return reproduce(["circle"], seeds=2, out=folder, jobs=1)


def test_the_page_refers_to_nothing_outside(found):
    page = reproduction_page(found)
    for address in re.findall(r'(?:src|href|action|srcset|data)="([^"]*)"', page):
        assert address.startswith(("#", "data:,", "circle.", "figure-1.", "authors."))
    assert "url(" not in page.replace("url(#", "")
    assert "@import" not in page


def test_the_policy_allows_the_one_script(found):
    page = reproduction_page(found)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1)
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'")
    assert f"script-src 'sha256-{digest}'" in policy
    assert not re.search(r"\son\w+=", page)


def test_what_is_given_is_escaped(found):
    odd = "<script>alert(1)</script>"
    page = reproduction_page(found._replace(skipped={"lenk": odd}), command=odd)
    assert odd not in page
    assert page.count("&lt;script&gt;alert(1)") == 2


def as_panel(found, name, **options):
    """Return the circle's results as those of another panel."""
    results = found.results["circle"]
    methods = results.columns["method"]
    methods = np.where(methods == "conditional, true map", "conditional", methods)
    made = results.provenance | {"options": results.provenance["options"] | options}
    return found._replace(results={name: Results(results.columns | {"method": methods}, made)})


def test_the_page_says_that_schools_needs_the_map_of_the_authors_code(found):
    pages = [as_panel(found, "schools"), as_panel(found, "schools", schools_map="features"), found]
    noted = [SCHOOLS_NOTE in html.unescape(reproduction_page(page)) for page in pages]
    assert noted == [True, False, False]


def test_titles_do_not_break_before_a_number(found):
    page = reproduction_page(as_panel(found, "two-clusters-mean-4"))
    assert "Two clusters, <i>w</i><sub>ρ</sub>&nbsp;=&nbsp;4" in page


def test_the_same_outcome_gives_the_same_page(found, tmp_path):
    one, other = (write_report(found, tmp_path / name).read_bytes() for name in "ab")
    assert one == other


def test_numbers_of_the_page_are_those_of_the_results(found):
    page, errors = reproduction_page(found), to_json(found)["panels"]["circle"]["errors"]
    for row in errors:
        assert f'data-value="{row["mean"]}"' in page
        assert f"{row['mean']:.2f} ({row['standard_error']:.2f})" in page


def test_other_readings_are_listed(found):
    assert "depart from" not in reproduction_page(found)
    results = found.results["circle"]
    provenance = {
        **results.provenance,
        "options": {**results.provenance["options"], "inner": "batch"},
    }
    page = reproduction_page(
        found._replace(results={"circle": type(results)(results.columns, provenance)})
    )
    assert "documented readings: <code>inner = batch</code>." in page


def test_one_seed_is_not_judged(found):
    results = found.results["circle"]
    keep = results.columns["seed"] == 0
    one = type(results)(
        {name: column[keep] for name, column in results.columns.items()},
        {**results.provenance, "seeds": [0]},
    )
    page = reproduction_page(found._replace(results={"circle": one}))
    assert "takes at least two seeds" in page
    assert page.count("not judged</span>") == 3


def luminance(colour: str) -> float:
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


PAIRS = [
    ("text", "ground"), ("text", "raised"), ("soft", "ground"), ("link", "ground"),
    ("good", "good-ground"), ("bad", "bad-ground"), ("open", "open-ground"),
]  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("front", "back"), PAIRS)
def test_text_has_the_contrast_of_wcag_aa(scheme, front, back):
    css = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", blocks[scheme == "dark"]))
    high, low = sorted((luminance(colours[front]), luminance(colours[back])), reverse=True)
    assert (high + 0.05) / (low + 0.05) >= 4.5
