"""Learners that read tables: the roles of columns, their encoding, files."""

from condmeta.tables.table_model import TableModel

__all__ = ["TableModel"]
