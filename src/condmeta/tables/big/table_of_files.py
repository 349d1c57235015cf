"""A table whose rows are not in memory: what fits from files and on a cluster have in common."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from condmeta.errors import DataError
from condmeta.learners.sampled import RowParts, fit_sampled, needs_rows
from condmeta.learners.streams import StreamLearner
from condmeta.tables.big.schema import RowSource, learn_rows, learn_sides
from condmeta.tables.big.side_table import SideTable
from condmeta.tables.files import arrow
from condmeta.tables.learner import kind_of_learner, make_learner
from condmeta.tables.roles import ColumnOptions
from condmeta.tables.schema import Schema
from condmeta.tasks import TaskTable
from condmeta.tasks.side_table import as_names
from condmeta.warn import warn


class TableOfFiles:
    """An unfitted learner for rows that are not in memory, and how they are read.

    Parameters
    ----------
    learner : learner or None, as `TableModel` has it
    options : ColumnOptions
    missing, missing_side : as `TableModel` has them
    text : columns that are read as text
    prior_tasks : int or None
        How many tasks a learner by rows learns its prior from (see `fit_sampled`).
    in_order : bool
        Whether rows come in the order of the table, so that Algorithm 1 can go through them.

    Attributes
    ----------
    learner : an unfitted copy, or the default for the target
        Set by `learn`.
    schema : Schema
        Set by `learn`; side columns are known after `read_side`.
    by_rows : bool
        Whether the learner needs rows, not statistics. Set by `learn`.
    """

    learner: Any
    schema: Schema
    by_rows: bool

    def __init__(
        self, learner: Any, side_info: Any, options: ColumnOptions, missing: str, missing_side: str,
        text: Sequence[str], prior_tasks: int | None = None, in_order: bool = False,
    ):  # fmt: skip
        self.in_order = in_order
        if learner is not None:
            self._needs_rows(learner)  # raises if it needs all at once
        if prior_tasks is not None and (prior_tasks != int(prior_tasks) or prior_tasks < 1):
            raise DataError(f"prior_tasks must be a number of tasks, got {prior_tasks!r}.")
        self.given, self.missing_side, self.prior_tasks = learner, missing_side, prior_tasks
        self.options, self.missing, self.text = options, missing, list(text)
        key = as_names(options.side_key) or as_names(options.task)
        self.sides = SideTable(side_info, options.side_table_text if text else (), key)

    def learn(self, rows: RowSource) -> list[str]:
        """Learn how rows are read, from all of them; return the columns that a fit reads."""
        kind, order = kind_of_learner(self.given), getattr(self.given, "classes", None)
        self.schema, self.side_rows = learn_rows(
            rows, self.sides.head(), self.options, self.missing, kind, order
        )
        self.learner = make_learner(self.given, self.schema.kind, self.missing_side)
        self.by_rows = self._needs_rows(self.learner)
        if self.prior_tasks is not None and not self.by_rows:
            name = type(self.learner).__name__
            raise DataError(f"{name} learns from all tasks: leave prior_tasks out.")
        return self.schema.roles.read

    def _needs_rows(self, learner: Any) -> bool:
        """Return whether a learner needs a sample of the rows; raise if it needs all at once."""
        goes_through = self.in_order and isinstance(learner, StreamLearner)
        return not goes_through and needs_rows(learner)

    def fit_rows(self, parts: RowParts, folder: Path) -> None:
        """Fit a learner by rows to parts of the rows."""
        how = self.read_side, self.prior_tasks
        self.learner = fit_sampled(self.learner, parts, folder, *how)

    def read_side(self) -> TaskTable | None:
        """Return the side rows of all tasks; not before they are needed: they may be large."""
        rows, self.side_rows = self.side_rows, None
        self.schema, side = learn_sides(self.schema, rows, self.sides.read(), self.options)
        arrow.pa.default_memory_pool().release_unused()  # else it keeps what the file took
        return side

    def warn_not_kept(self, size: str, remedy: str) -> None:
        """Say that the fitted learner does not hold statistics, as they have this size."""
        if self.learner.fitted_.state is None:
            warn(
                f"The statistics of the tasks take {size}, so the model does not keep them. It "
                f"can predict and adapt, but not update{remedy}.",
            )


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a new folder to work in, and remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="condmeta-", ignore_cleanup_errors=True) as made:
        yield Path(made)
