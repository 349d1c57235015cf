"""Model files of an earlier version open, and answer as they did then.

The files in tests/data/models were written by version 0.1.0 before the format of one fitted value,
with `save(tasks=True, resume=True)`, from small random tasks. answers.json holds, for each file,
what that version stored and what it answered: chains of calls on the loaded model and the value of
the last call. The files are never written again; a new format adds files of its own.

Where a chain learns the prior of ConditionalRidge again, its answers are those of the maximum up to
the tolerance of a fit: other steps to the maximum end at another point within it.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import condmeta as cm

FOLDER = Path(__file__).parents[1] / "data" / "models"
BOOK = json.loads((FOLDER / "answers.json").read_text())
CHAINS = [(name, i) for name, about in BOOK.items() for i in range(len(about["steps"]))]
ROUNDING = 1e-10  # processors and engines round differently; iterations of the logistic enlarge it
TOLERANCE = 2e-3  # of a prior that is learned again; coefficients and labels are about 1


def read(name: str):
    return cm.load(FOLDER / f"{name}.condmeta")


def run(model, calls: list[dict]):
    """Call methods one after another, each on what the one before returned."""
    value = model
    for call in calls:
        options = dict(call)
        method = getattr(value, options.pop("call"))
        if "frame" in options:  # a TableModel reads data frames
            tables = {"frame", "side_info"} & options.keys()
            options |= {part: pd.DataFrame(options[part]) for part in tables}
        value = method(**options)
    return value


def tolerance_of(name: str, calls: list[dict]) -> float:
    """Return how near answers have to be: a fit ends within its tolerance of the maximum."""
    learns = BOOK[name]["class"] == "ConditionalRidge" and calls[0]["call"] == "partial_fit"
    return TOLERANCE if learns else ROUNDING


def assert_answers(found, expected, near=ROUNDING) -> None:
    if isinstance(expected, dict):
        assert list(found.columns) == list(expected)
        for name in expected:
            assert_answers(found[name], expected[name], near)
    elif np.ndim(expected) > 0 and np.asarray(expected).dtype.kind == "f":
        found = np.array(found if isinstance(found, pd.Series) else list(found))
        np.testing.assert_allclose(found, expected, rtol=near, atol=near)
    else:
        assert list(found) == expected


def test_every_file_has_answers():
    assert {path.stem for path in FOLDER.glob("*.condmeta")} == set(BOOK)


@pytest.mark.parametrize("name", BOOK)
def test_file_holds_the_numbers_that_were_stored(name):
    model = read(name)
    assert type(model).__name__ == BOOK[name]["class"]
    for attribute, expected in BOOK[name]["stored"].items():
        np.testing.assert_array_equal(getattr(model, attribute), expected)


@pytest.mark.parametrize(("name", "i"), CHAINS)
def test_model_answers_as_it_did(name, i):
    step = BOOK[name]["steps"][i]
    near = tolerance_of(name, step["calls"])
    assert_answers(run(read(name), step["calls"]), step["answer"], near)


@pytest.mark.parametrize("name", BOOK)
def test_model_can_be_saved_again(name, tmp_path):
    path = tmp_path / "again.condmeta"
    read(name).save(path, tasks=True, resume=True)
    for step in BOOK[name]["steps"]:
        near = tolerance_of(name, step["calls"])
        assert_answers(run(cm.load(path), step["calls"]), step["answer"], near)
