"""Options that several commands share, and the command as the user typed it."""

import csv
import io
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


class SideColumns(Names):
    """Columns of side information; a file in their place is a common slip."""

    def convert(self, value, param, ctx) -> list[str]:
        """Return the names as a list."""
        names = super().convert(value, param, ctx)
        files = [name for name in names if Path(name).suffix and Path(name).is_file()]
        if files:
            instead = shlex.join(["--side-table", files[0]])
            self.fail(f"{files[0]!r} is a file, and --side names columns: use {instead}.")
        return names


table_options = together(
    click.argument("table"),
    click.option("--task", type=Names(), required=True, metavar="COL",
                 help="Column with the task ids; several columns (A,B) make joint ids."),
    click.option("--target", required=True, metavar="COL", help="Column to predict."),
    click.option("--features", type=Names(), metavar="COLS",
                 help="Feature columns, separated by commas.  [default: all other columns]"),
    click.option("--exclude", type=Names(), metavar="COLS",
                 help="Columns that the model must not read."),
    click.option("--side", type=SideColumns(), metavar="COLS",
                 help="Columns of side information: columns of TABLE that are constant within "
                 "each task or, with --side-table, columns of that table.  [default: all "
                 "columns of the side table]"),
    click.option("--side-table", metavar="FILE",
                 help="Table of side information, one row per task."),
    click.option("--side-key", type=Names(), metavar="COL",
                 help="Column with the task ids in the side table.  [default: as in TABLE]"),
    click.option("--missing", type=click.Choice(["error", "impute"]), default="error",
                 show_default=True,
                 help="If a feature is missing: stop with an error, or use the mean and mark the "
                 "gap."),
    click.option("--text", type=Names(), default=[], metavar="COLS",
                 help="Columns to read as text, even if they look like numbers or dates."),
    click.option("--dates", type=Names(), metavar="PARTS",
                 help="Features to make from dates: any of weekday,month,days.  [default: weekday "
                 "and days, and month if all twelve occur; for side columns only days]"),
    click.option("--holidays", metavar="COUNTRY",
                 help="Add a feature that marks the public holidays of this country, such as DE "
                 "or US-NY (needs condmeta[dates])."),
)  # fmt: skip
model_options = together(
    click.argument("model"),
    click.argument("table"),
    click.option("--side-table", metavar="FILE",
                 help="Table of side information, one row per task. Needed for new tasks if the "
                 "model uses side information."),
)  # fmt: skip
force_option = click.option(
    "--force",
    is_flag=True,
    help="Replace the output file, even if it is an input or was not written by this command.",
)
wait_option = click.option(
    "--wait", type=click.FloatRange(min=0), default=60.0, show_default=True, metavar="SECONDS",
    help="How long to wait for another command that changes the same model.",
)  # fmt: skip
spreadsheet_option = click.option(
    "--spreadsheet-safe", "safe", is_flag=True,
    help="In CSV, put an apostrophe before text that a spreadsheet would read as a formula.",
)  # fmt: skip
output_option = together(
    click.option("-o", "--output", default="-", metavar="FILE", show_default=True,
                 help="File to write: .csv, .tsv, .parquet or .feather; - is CSV on standard "
                 "output."),
    spreadsheet_option,
    force_option,
)  # fmt: skip
common_options = together(  # the last ones of each command that reads a table
    click.option("--delimiter", help="Delimiter of CSV files.  [default: detected]"),
    click.option("--decimal", type=click.Choice([".", ","]),
                 help="Decimal sign of CSV files.  [default: detected]"),
    click.option("--encoding", help="Encoding of CSV files.  [default: UTF-8]"),
    *(click.option(f"--side-{name}", type=kind,
                   help=f"Like --{name}, for the side table.  [default: {default}]")
      for name, kind, default in (("delimiter", None, "detected"),
                                  ("decimal", click.Choice([".", ","]), "detected"),
                                  ("encoding", None, "UTF-8 if it fits, else as --encoding"))),
    click.option("-q", "--quiet", is_flag=True, help="Print only errors."),
    report_failures,
)  # fmt: skip


def given_options(ctx: click.Context) -> dict[str, Any]:
    """Return the options that the user gave, by the names of their parameters."""
    given = (
        param.name for param in ctx.command.params
        if ctx.get_parameter_source(param.name) == ParameterSource.COMMANDLINE
        and not isinstance(param, click.Argument)
    )  # fmt: skip
    return {str(name): ctx.params[name] for name in given}


def option_words(options: dict[str, Any]) -> list[str]:
    """Return options as words of a command; a column name that holds a comma gets quotes."""
    words: list[str] = []
    for name, value in options.items():
        if value is None or value is False or value == []:
            continue
        words.append(f"--{name.replace('_', '-')}")
        if value is not True:
            words.append(join_names(value) if isinstance(value, list) else str(value))
    return words


def join_names(names: list) -> str:
    """Return names as an option: separated by commas, in quotes if they hold one.

    Examples
    --------
    >>> join_names(["price", "height, cm"])
    'price,"height, cm"'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def command_line(ctx: click.Context) -> str:
    """Return the command with its arguments and the options that were given."""
    words = ["condmeta", str(ctx.command.name)]
    for param in ctx.command.params:
        if isinstance(param, click.Argument):
            value = ctx.params.get(param.name)
            words += [value] if isinstance(value, str) else value
    options = given_options(ctx)
    flags = {param.name: param.opts[-1].lstrip("-") for param in ctx.command.params}
    kept = {flags[name]: value for name, value in options.items() if name not in FOR_ONE_RUN}
    return shlex.join([*words, *option_words(kept)])
