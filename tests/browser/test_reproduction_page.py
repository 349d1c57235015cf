"""The report of a reproduction in a real browser without a network."""

from __future__ import annotations

import pytest
from headless import WIDTHS, check_fits, check_quiet, look, needs_browser, open_page
from small_panels import hide_data, shrink_panels

from condmeta.experiments import PANELS, reproduce, write_report
from condmeta.paper.experiments.claims import claims_of

pytestmark = needs_browser
USE = """
  const rows = () => [...page.querySelectorAll("table.sortable tbody tr")];
  const here = () => rows().map((row) => Number(row.cells[2].dataset.value));
  const head = page.querySelectorAll("table.sortable th")[2];
  head.querySelector("button").click();
  const up = here();
  head.querySelector("button").click();
  return { rows: rows().length, up, down: here(), sorted: head.getAttribute("aria-sort") };
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Return the folder of a small reproduction without the panels on real data."""
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
    """Return the results of the script, the console output and the requested paths."""
    return look(out, USE, tmp_path_factory.mktemp("profile"))


def test_the_file_opens_by_itself_without_a_word_on_the_console(out, tmp_path):
    dom, console = open_page((out / "report.html").as_uri(), tmp_path)
    assert console == []
    assert "The paper, reproduced</h1>" in dom
    assert dom.count("<svg") == 8  # two a panel


def test_nothing_else_is_asked_for(looked):
    check_quiet(looked)


@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_the_window(looked, width):
    check_fits(looked[0][str(width)], width)


@pytest.mark.parametrize("width", WIDTHS)
def test_figures_are_drawn_and_described(looked, width):
    pictures = looked[0][str(width)]["pictures"]
    assert len(pictures) == 8
    for wide, high, role, alt in pictures:
        assert role == "img"
        assert len(alt) > 60
        assert wide > 0.4 * min(width, 1152) - 40
        assert 0.5 < high / wide < 1


def test_panels_claims_and_skipped_data_are_shown(looked):
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
