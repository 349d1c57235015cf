"""A table in parts gives what the whole table gives."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import condmeta as cm
from condmeta.errors import DataError, ReadingNote
from condmeta.tables.stream import whole_tasks


def draw(n_tasks=30, n=5):
    rng = np.random.default_rng(0)
    s = rng.normal(size=n_tasks)
    task = np.repeat(np.arange(n_tasks), n)
    x = rng.normal(size=task.size)
    frame = pd.DataFrame(
        {"task": [f"t{t}" for t in task], "x": x, "kind": np.where(x > 0, "a", "b")}
    )
    frame["y"] = (1 + 2 * s[task]) * x + 0.1 * rng.normal(size=task.size)
    return frame, pd.DataFrame(
        {"task": [f"t{t}" for t in range(n_tasks + 5)], "s": [*s, *range(5)]}
    )


FRAME, SIDE = draw()


def cut(frame, size):
    return [frame[i : i + size] for i in range(0, len(frame), size)]


PLAIN = cm.ConditionalRidge(metric="diagonal", noise="shared", kappa=1.0)  # nothing to choose


@pytest.mark.parametrize(
    ("size", "make"),
    [
        (4, pd.DataFrame),
        (64, pd.DataFrame),
        (1000, pd.DataFrame),
        (7, pa.Table.from_pandas),
        (7, pl.from_pandas),
    ],
)
def test_parts_equal_the_whole(size, make):
    """Tasks of five rows straddle parts of four and seven."""
    settings = {"task": "task", "target": "y"}
    whole = cm.TableModel(PLAIN, **settings).fit(FRAME, SIDE[:30])
    parts = cm.TableModel(PLAIN, **settings).fit_batches(map(make, cut(FRAME, size)), make(SIDE))
    assert parts.n_rows_ == len(FRAME)
    np.testing.assert_allclose(parts.predict(make(FRAME)), whole.predict(FRAME), rtol=1e-6)


def test_dates_of_a_side_table_are_read_once():
    dated = SIDE.assign(opened=pd.date_range("2020-01-01", periods=len(SIDE)))
    settings = {"task": "task", "target": "y"}
    with pytest.warns(ReadingNote, match="'opened' holds dates"):
        whole = cm.TableModel(PLAIN, **settings).fit(FRAME, dated[:30])
    with pytest.warns(ReadingNote, match="'opened' holds dates"):
        parts = cm.TableModel(PLAIN, **settings).fit_batches(cut(FRAME, 64), dated[:30])
    np.testing.assert_allclose(parts.predict(FRAME), whole.predict(FRAME), rtol=1e-6)


def test_side_columns_in_the_parts():
    joined = FRAME.merge(SIDE, on="task")
    settings = {"task": "task", "target": "y", "side": ["s"]}
    whole = cm.TableModel(PLAIN, **settings).fit(joined)
    parts = cm.TableModel(PLAIN, **settings).fit_batches(cut(joined, 7))
    np.testing.assert_allclose(parts.predict(joined), whole.predict(joined), rtol=1e-6)


def test_tasks_are_cut_whole():
    schema = cm.TableModel(task="task", target="y").fit(FRAME).schema_
    parts = list(whole_tasks(iter(cut(FRAME, 7)), schema))
    assert pd.concat(parts).equals(FRAME)
    ids = [set(part["task"]) for part in parts]
    assert sum(map(len, ids)) == len(set.union(*ids)) == 30


def test_a_task_that_comes_back_is_an_error():
    mixed = FRAME.sort_values("x")
    with pytest.raises(DataError, match="do not follow each other: sort the table by 'task' first"):
        cm.TableModel(task="task", target="y").fit_batches(cut(mixed, 20))


def test_what_cannot_be_done_in_parts():
    model = cm.TableModel(cm.ConditionalERMRegressor(), task="task", target="y")
    with pytest.raises(DataError, match="ConditionalERMRegressor needs all rows at once"):
        model.fit_batches([FRAME])
    model = cm.TableModel(task="task", target="y", intervals=True)
    with pytest.raises(DataError, match="Intervals need all rows at once"):
        model.fit_batches([FRAME])
    with pytest.raises(DataError, match="There are no rows"):
        cm.TableModel(task="task", target="y").fit_batches([])
    with pytest.raises(DataError, match=r"holds text, .*: call fit with the whole table"):
        cm.TableModel(task="task", target="kind", features=["x"]).fit_batches([FRAME])


def test_a_target_of_two_numbers_written_as_text():
    written = FRAME.assign(y=np.where(FRAME["y"] > 0, "2,100.50", "1,451.50"))
    model = cm.TableModel(PLAIN, task="task", target="y", features=["x"])
    with pytest.warns(ReadingNote, match="'y' is written as text") as caught:
        model.fit_batches(cut(written, 64))
    assert len(caught) == 1
    assert 1400 < model.predict(written).mean() < 2200
