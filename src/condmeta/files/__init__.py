"""Tables in files: CSV, Parquet and Feather, from a path or a pipe and to one (needs pyarrow)."""

from condmeta.files.columns import check_columns, check_order
from condmeta.files.dialect import CsvOptions
from condmeta.files.reader import as_text, read_batches, read_table
from condmeta.files.source import no_file
from condmeta.files.writer import check_output, check_place, write_parts, write_table

__all__ = [
    "CsvOptions",
    "as_text",
    "check_columns",
    "check_order",
    "check_output",
    "check_place",
    "no_file",
    "read_batches",
    "read_table",
    "write_parts",
    "write_table",
]
