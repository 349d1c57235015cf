"""Read and write tables as CSV, Parquet and Feather, in files or pipes (needs pyarrow)."""

from condmeta.tables.files.dialect import CsvOptions
from condmeta.tables.files.reader import as_text, read_batches, read_table
from condmeta.tables.files.source import no_file
from condmeta.tables.files.suspicious_columns import check_columns, sort_rows
from condmeta.tables.files.writer import check_output, check_place, write_parts, write_table

__all__ = [
    "CsvOptions", "as_text", "check_columns", "check_output", "check_place", "no_file",
    "read_batches", "read_table", "sort_rows", "write_parts", "write_table",
]  # fmt: skip
