"""Learners that read tables: the roles of columns, their encoding, files."""

from typing import Any

__all__ = ["TableModel"]


def __getattr__(name: str) -> Any:
    """Load `TableModel` when it is first used: reading a file needs no scikit-learn."""
    if name != "TableModel":
        raise AttributeError(f"module 'condmeta.tables' has no attribute {name!r}")
    from condmeta.tables.table_model import TableModel

    return TableModel
