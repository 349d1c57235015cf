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

TABLE_OPTIONS = (
    click.option("--task", type=NAMES, required=True, metavar="COL",
                 help="Column of task ids; several, with commas, make joint ids."),
    click.option("--target", required=True, metavar="COL", help="Column to predict."),
    click.option("--features", type=NAMES, metavar="COLS",
                 help="Features, with commas.  [default: all other columns]"),
    click.option("--exclude", type=NAMES, metavar="COLS", help="Columns that are no features."),
    click.option("--side", type=NAMES, metavar="COLS",
                 help="Side columns: constant within a task; with --side-table, its columns to "
                 "use."),
    click.option("--side-table", metavar="FILE", help="Side information, one row a task."),
    click.option("--side-key", type=NAMES, metavar="COL",
                 help="Task ids in the side table.  [default: named as in TABLE]"),
    click.option("--missing", type=click.Choice(["error", "impute"]), default="error",
                 show_default=True, help="Missing features: refused, or mean and a mark."),
    click.option("--text", type=NAMES, default=[], metavar="COLS",
                 help="Columns to read as names, whatever they look like."),
)  # fmt: skip


def table_options(command: Callable) -> Callable:
    """Add which column of a table is what."""
    for option in reversed(TABLE_OPTIONS):
        command = option(command)
    return command


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
