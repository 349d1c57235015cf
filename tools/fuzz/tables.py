"""Text that may or may not be CSV, and side tables of odd values."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

import condmeta as cm
from condmeta.errors import DataError
from condmeta.tables.files import read_batches, read_table
from condmeta.tables.files.dialect import CsvOptions

CELLS = [
    "", "1", "-2.5", "1e400", "0x1F", "007", "1,5", "NA", "nan", "inf", "true", "é", "\ufeff",
    "2024-01-31", "24:61", '"a"', '"', '""', "a\nb", "\0", "=1+1", "x" * 300, "9" * 25,
]  # fmt: skip
ENDS = ["\n", "\r\n", "\r", "\n\n", ""]
ENCODINGS = ["utf-8", "utf-16", "latin-1", "utf-8-sig"]


class CsvFile(NamedTuple):
    """Bytes of a file, and the options that it is read with."""

    data: bytes
    text: tuple[str, ...]
    options: CsvOptions


def csv_files() -> st.SearchStrategy[CsvFile]:
    """Return rows of odd cells in several dialects and encodings, and plain bytes."""
    cell = st.one_of(st.sampled_from(CELLS), st.text(max_size=6), st.floats().map(str))
    rows = st.lists(st.lists(cell, min_size=1, max_size=5), max_size=8)

    def text(rows, delimiter, end, encoding) -> bytes:
        lines = end.join(delimiter.join(row) for row in rows)
        return lines.encode(encoding, errors="replace")

    written = st.builds(
        text, rows, st.sampled_from([",", ";", "\t", "|", " "]), st.sampled_from(ENDS),
        st.sampled_from(ENCODINGS),
    )  # fmt: skip
    options = st.builds(
        CsvOptions, st.sampled_from([None, ",", ";", "\t"]), st.sampled_from([None, ".", ","]),
        st.sampled_from(["utf-8", "latin-1"]),
    )  # fmt: skip
    names = st.lists(st.sampled_from(["1", "a", "007", ""]), max_size=2).map(tuple)
    return st.builds(CsvFile, st.one_of(written, st.binary(max_size=200)), names, options)


def check_csv(file: CsvFile) -> None:
    """Read the file, whole and in parts: a table with rows, or a DataError that names the file."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # columns without a name are left out
        path = Path(folder) / "rows.csv"
        path.write_bytes(file.data)
        how = {"text": file.text, "csv": file.options}
        whole = _read(lambda: [read_table(path, **how)])
        parts = _read(lambda: read_batches(path, **how))
    for found in (whole, parts):
        assert isinstance(found, int) or "rows.csv" in found, f"this names no file: {found}"
    assert not isinstance(whole, int) or whole > 0
    assert isinstance(whole, str) or isinstance(parts, str) or whole == parts


def _read(read: Callable) -> int | str:
    """Return the number of rows, or the sentence of the error."""
    try:
        return sum(table.num_rows for table in read())
    except DataError as error:
        return str(error)


class Side(NamedTuple):
    """A column of a side table, and the ids of its rows."""

    values: list
    ids: list


def side_tables() -> st.SearchStrategy[Side]:
    """Return columns of four rows with odd values, and ids of which some repeat or are missing."""
    value = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4),
        st.binary(max_size=3), st.complex_numbers(), st.lists(st.integers(), max_size=2),
        st.datetimes(), st.sampled_from([np.float32(1), np.int8(3), np.str_("a"), np.nan, object]),
    )  # fmt: skip
    ids = st.one_of(st.integers(0, 5), st.text(max_size=3), st.none(), st.floats(0, 5))
    return st.builds(
        Side,
        st.lists(value, min_size=4, max_size=4),
        st.one_of(st.just([0, 1, 2, 3]), st.lists(ids, min_size=4, max_size=4)),
    )


def check_side_table(side: Side) -> None:
    """Fit with the table: predictions of every task are finite, or a DataError says why not."""
    task = np.repeat(np.arange(4), 3)
    X = np.linspace(-1, 1, 12)[:, None]
    y = X[:, 0] * (1 + task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            table = cm.TaskTable({"s": side.values}, ids=side.ids)
            model = cm.ConditionalSGDRegressor(missing_side="mean")
            model.fit(X, y, task=task, side_info=table)
            predicted = model.predict(X, task=task)
        except DataError:
            return
    assert np.isfinite(predicted).all(), f"{predicted} is predicted"
