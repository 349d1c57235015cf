"""Print the tables of a summary as text."""

from __future__ import annotations

import numpy as np

Table = dict[str, np.ndarray]
CORR = "corr "  # before the name of a coefficient: the column of correlations with it
WIDEST = 80  # letters in a line of a table of correlations


def in_a_line(table: Table) -> Table:
    """Return a table that fits in a line: of too many correlations the strongest of each row."""
    keys = [key for key in table if key.startswith(CORR)]
    if len(keys) < 2 or max(map(len, text_of(table).splitlines())) <= WIDEST:
        return table
    names = np.array([key.removeprefix(CORR) for key in keys])
    correlation = np.column_stack([table[key] for key in keys])
    others = np.where(names == table["coefficient"][:, None], 0.0, correlation)
    at = np.abs(np.nan_to_num(others)).argmax(axis=1)
    strongest = {"strongest correlation": correlation[np.arange(len(at)), at], "with": names[at]}
    return {key: column for key, column in table.items() if key not in keys} | strongest


def cells_of(table: Table) -> list[list[str]]:
    """Return the cells of a table, row by row; a number has four digits, NaN is empty."""

    def show(value) -> str:
        if not isinstance(value, float):
            return str(value)
        return "" if np.isnan(value) else f"{value:.4g}"

    return [
        [show(value) for value in row]
        for row in zip(*(c.tolist() for c in table.values()), strict=True)
    ]


def text_of(table: Table) -> str:
    rows = [list(table), *cells_of(table)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    words = [values.dtype.kind == "U" for values in table.values()]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if word else cell.rjust(width)
            for cell, width, word in zip(row, widths, words, strict=True)
        ).rstrip()
        for row in rows
    )
