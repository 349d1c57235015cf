"""Options that several commands share."""

from __future__ import annotations

import csv
from collections.abc import Callable

import click


class Names(click.ParamType):
    """Column names with commas between them; a name with a comma stands in quotes."""

    name = "columns"

    def convert(self, value, param, ctx) -> list[str]:
        """Return the names as a list."""
        if isinstance(value, list):
            return value
        names = [name.strip() for name in next(csv.reader([value], skipinitialspace=True), [])]
        if not all(names):
            self.fail(f"{value!r} has an empty column name.", param, ctx)
        return names


NAMES = Names()
OUTPUT_HELP = "File to write: .csv, .tsv, .parquet or .feather; - is CSV on standard output."


def csv_options(command: Callable) -> Callable:
    """Add how CSV files are written; Parquet and Feather say so themselves."""
    command = click.option(
        "--encoding", default="utf-8", show_default=True, help="Encoding of CSV, such as latin-1."
    )(command)
    command = click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="Decimal sign of CSV.  [default: found out]",
    )(command)
    return click.option(
        "--delimiter", help="What stands between columns of CSV.  [default: found out]"
    )(command)


def quiet_option(command: Callable) -> Callable:
    """Add --quiet."""
    return click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")(command)


def side_options(command: Callable) -> Callable:
    """Add the table of side information of a command that has a model."""
    return click.option(
        "--side-table", metavar="FILE",
        help="Side information, one row a task; new tasks need it, if the model has any.",
    )(command)  # fmt: skip


def read_options(params: dict):
    """Return the CSV options among the parameters of a command, which are taken out."""
    from condmeta.files import CsvOptions

    delimiter = params.pop("delimiter")
    delimiter = "\t" if delimiter in ("\\t", "tab") else delimiter
    return CsvOptions(delimiter, params.pop("decimal"), params.pop("encoding"))
