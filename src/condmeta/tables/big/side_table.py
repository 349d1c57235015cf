"""A side table that is read when it is needed."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from condmeta.tables.files import arrow, read_table
from condmeta.tables.files.source import Source
from condmeta.tables.roles import open_side_table


class SideTable(NamedTuple):
    """A table, a dict or a TaskTable, the path of a file, or None.

    `text` are columns of names; `key` are the columns of task ids, which a dict of rows gets.
    """

    given: Any
    text: Sequence[str] = ()
    key: Sequence[str] = ()

    def head(self) -> Any:
        """Return its columns, without rows if it is a Parquet file."""
        is_file = isinstance(self.given, str | os.PathLike)
        if is_file and Source(self.given).format == "parquet":
            return arrow.parquet.read_schema(self.given).empty_table()
        return self.read()

    def read(self) -> Any:
        """Return the table, or None."""
        if not isinstance(self.given, str | os.PathLike):
            return None if self.given is None else open_side_table(self.given, self.key)
        return read_table(self.given, text=self.text)
