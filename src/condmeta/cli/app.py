"""The group of all commands."""

import click

import condmeta
from condmeta.cli.adapt_command import adapt_command
from condmeta.cli.check_command import check_command
from condmeta.cli.compare_command import compare_command
from condmeta.cli.export_command import export_command
from condmeta.cli.fit_command import fit_command
from condmeta.cli.inspect_command import inspect_command
from condmeta.cli.predict_command import predict_command
from condmeta.cli.reproduce_command import reproduce_command
from condmeta.cli.shrink_command import shrink_command
from condmeta.cli.summary_command import summary_command
from condmeta.cli.update_command import update_command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(condmeta.__version__, prog_name="condmeta")
def app() -> None:
    """Learn a model for each store, customer or patient, even from few rows of each.

    Each store, customer or patient is a task. condmeta learns all tasks together. If you give facts
    about each task (side information), it also predicts new tasks that have no rows yet.

    \b
    condmeta fit sales.csv --task store --target sold -o stores.condmeta
    condmeta predict stores.condmeta tomorrow.csv -o predicted.csv

    Tables are CSV, Parquet or Feather files, or - for standard input.
    """


@app.command("versions", short_help="Show versions of condmeta and its packages.")
def versions_command() -> None:
    """Show the versions of condmeta, its engine and the packages that it uses."""
    condmeta.show_versions()


for command in (
    compare_command, fit_command, predict_command, adapt_command, update_command, check_command,
    inspect_command, summary_command, export_command, shrink_command, reproduce_command,
):  # fmt: skip
    app.add_command(command)
