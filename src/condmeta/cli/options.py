"""Options that several commands share, and the command as the user typed it."""

import csv
import shlex
from collections.abc import Callable

import click
from click.core import ParameterSource

from condmeta.cli.failures import report_failures

PROBABILITY = click.FloatRange(0, 1, min_open=True, max_open=True)
FOR_ONE_RUN = "force", "debug"  # options that are left out of the command to run again


class Names(click.ParamType):
    """Column names separated by commas; a name that has a comma must be in quotes."""

    name = "columns"

    def convert(self, value, param, ctx) -> list[str]:
        """Return the names as a list."""
        if isinstance(value, list):
            return value
        names = [name.strip() for name in next(csv.reader([value], skipinitialspace=True), [])]
        if not all(names):
            self.fail(f"{value!r} has an empty column name.", param, ctx)
        return names


def together(*options: Callable) -> Callable:
    """Return a decorator that adds several options to a command, in this order."""

    def add(command: Callable) -> Callable:
        for option in reversed(options):
            command = option(command)
        return command

    return add


table_options = together(
    click.argument("table"),
    click.option("--task", type=Names(), required=True, metavar="COL",
                 help="Column with the task ids; several columns (A,B) make joint ids."),
    click.option("--target", required=True, metavar="COL", help="Column to predict."),
    click.option("--features", type=Names(), metavar="COLS",
                 help="Feature columns, as A,B.  [default: all other columns]"),
    click.option("--exclude", type=Names(), metavar="COLS",
                 help="Columns that the model must not read."),
    click.option("--side", type=Names(), metavar="COLS",
                 help="Columns of side information, constant within a task; with --side-table, the "
                 "columns of it to use."),
    click.option("--side-table", metavar="FILE",
                 help="Table of side information, one row per task."),
    click.option("--side-key", type=Names(), metavar="COL",
                 help="Column with the task ids in the side table.  [default: as in TABLE]"),
    click.option("--missing", type=click.Choice(["error", "impute"]), default="error",
                 show_default=True,
                 help="Missing features: stop with an error, or use the mean and mark the gap."),
    click.option("--text", type=Names(), default=[], metavar="COLS",
                 help="Columns to read as text, even if they look like numbers."),
)  # fmt: skip
model_options = together(
    click.argument("model"),
    click.argument("table"),
    click.option("--side-table", metavar="FILE",
                 help="Table of side information, one row per task. New tasks need it, if the "
                 "model uses side information."),
)  # fmt: skip
force_option = click.option(
    "--force", is_flag=True, help="Replace any file, also one that the command reads."
)
wait_option = click.option(
    "--wait", type=click.FloatRange(min=0), default=60.0, show_default=True, metavar="SECONDS",
    help="How long to wait for another command that changes the same model.",
)  # fmt: skip
output_option = together(
    click.option("-o", "--output", default="-", metavar="FILE", show_default=True,
                 help="File to write: .csv, .tsv, .parquet or .feather; - is CSV on standard "
                 "output."),
    force_option,
)  # fmt: skip
common_options = together(  # the last ones of each command that reads a table
    click.option("--delimiter", help="Delimiter of CSV files.  [default: detected]"),
    click.option("--decimal", type=click.Choice([".", ","]),
                 help="Decimal sign of CSV files.  [default: detected]"),
    click.option("--encoding", default="utf-8", show_default=True, help="Encoding of CSV files."),
    click.option("-q", "--quiet", is_flag=True, help="Print only errors."),
    report_failures,
)  # fmt: skip


def command_line(ctx: click.Context) -> str:
    """Return the command with its arguments and the options that were given."""
    words = ["condmeta", str(ctx.command.name)]
    for param in ctx.command.params:
        given = ctx.get_parameter_source(param.name) == ParameterSource.COMMANDLINE
        value = ctx.params.get(param.name)
        if isinstance(param, click.Argument):
            words += [value] if isinstance(value, str) else value
        elif given and param.name not in FOR_ONE_RUN:
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            words += [param.opts[-1]] + ([] if param.is_flag else [text])
    return shlex.join(words)
