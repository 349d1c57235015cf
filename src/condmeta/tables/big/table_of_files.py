"""A table whose rows are not in memory: what fits from files and on a cluster have in common."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from condmeta.errors import DataError
from condmeta.learners.ridge import ConditionalRidge
from condmeta.tables.big.schema import RowSource, learn_rows, learn_sides
from condmeta.tables.big.side_table import SideTable
from condmeta.tables.learner import make_learner
from condmeta.tables.roles import ColumnOptions
from condmeta.tables.schema import Schema
from condmeta.tasks import TaskTable


class TableOfFiles:
    """An unfitted learner for rows that are not in memory, and how they are read.

    Parameters
    ----------
    learner : learner or None, as `TableModel` has it
    options : ColumnOptions
    missing, missing_side : as `TableModel` has them
    text : columns that are read as text
    remedy : what to do instead, if the learner needs all rows at once

    Attributes
    ----------
    learner : an unfitted copy
    schema : Schema
        Set by `learn`; side columns are known after `read_side`.
    """

    schema: Schema

    def __init__(
        self, learner: Any, side_info: Any, options: ColumnOptions, missing: str, missing_side: str,
        text: Sequence[str], remedy: str,
    ):  # fmt: skip
        self.guess, self.learner = learner is None, make_learner(learner, "number", missing_side)
        if type(self.learner) is not ConditionalRidge:
            raise DataError(
                f"{type(self.learner).__name__} needs all rows at once; ConditionalRidge {remedy}"
            )
        self.options, self.missing, self.text = options, missing, list(text)
        self.sides = SideTable(side_info, options.side_table_text if text else ())

    def learn(self, rows: RowSource) -> list[str]:
        """Learn how rows are read, from all of them; return the columns that a fit reads."""
        self.schema, self.side_rows = learn_rows(
            rows, self.sides.head(), self.options, self.missing, self.guess
        )
        return self.schema.roles.read

    def read_side(self) -> TaskTable | None:
        """Return the side rows of all tasks; not before they are needed: they may be large."""
        self.schema, side = learn_sides(
            self.schema, self.side_rows, self.sides.read(), self.options
        )
        return side

    def warn_not_kept(self, size: str, remedy: str, stacklevel: int) -> None:
        """Say that the fitted learner does not hold statistics, as they have this size."""
        if self.learner.fitted_.state is None:
            warnings.warn(
                f"The statistics of the tasks take {size}: the model does not keep them. It "
                f"predicts and adapts, but takes no update{remedy}.",
                stacklevel=stacklevel + 1,
            )


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a new folder to work in, and remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="condmeta-", ignore_cleanup_errors=True) as made:
        yield Path(made)
