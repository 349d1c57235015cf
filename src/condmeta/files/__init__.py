"""Tables in files: CSV, Parquet and Feather, from a path or a pipe and to one (needs pyarrow)."""

from condmeta.files.columns import check_columns
from condmeta.files.dialect import CsvOptions
from condmeta.files.reader import read_batches, read_table
from condmeta.files.writer import check_output, write_table

__all__ = [
    "CsvOptions",
    "check_columns",
    "check_output",
    "read_batches",
    "read_table",
    "write_table",
]
