"""Every kind of bad input gets its sentence, at once, and changes nothing; the page lists them."""

from __future__ import annotations

import os

import pytest

from tools.bad_input.__main__ import PAGE, answers, page


@pytest.fixture(scope="module")
def found():
    return answers()


def test_every_case_keeps_the_contract(found):
    faults = [f"{c.call} ({c.given}): {a.fault}: {a.sentence}" for c, a in found if a.fault]
    assert not faults, "\n".join(faults)


def test_there_are_many_kinds(found):
    kinds = {(case.call, case.given) for case, _ in found}
    assert len(kinds) == len(found) >= 300


@pytest.mark.skipif("CONDMETA_FLOORS" in os.environ, reason="scikit-learn has other words")
def test_the_page_is_up_to_date(found):
    """Run `python -m tools.bad_input` after a change of a sentence."""
    assert PAGE.read_text(encoding="utf-8") == page(found)
