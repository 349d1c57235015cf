"""Models of tables: which column is what, in front of a learner."""

from condmeta.table.model import TableModel

__all__ = ["TableModel"]
