"""docs/capabilities.md: every cell of the table is run."""

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("formulaic")

from tools.capabilities import KINDS, OTHERS, PAGE, answer, page, rows_of


def test_the_page_is_up_to_date():
    """Run `python -m tools.capabilities` after a change."""
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text


@pytest.mark.parametrize("name", [*KINDS, *OTHERS])
def test_everything_saves_adapts_and_updates(name):
    for cell in ("`save`, `load`", "`adapt`", "`update`", "`coef_frame(std=True)`"):
        assert answer(name, cell) == "yes"


def test_what_does_not_work_has_a_sentence():
    """Not a message of Python's, and one that says what to do."""
    _, sentences = rows_of()
    assert sentences
    for sentence in sentences:
        assert sentence.endswith(".")
        assert "object has no attribute" not in sentence
        assert "unexpected keyword" not in sentence
