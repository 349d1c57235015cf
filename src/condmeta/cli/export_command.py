"""`condmeta export`: a model as Parquet tables and a query that scores rows in a database."""

import click

from condmeta.cli.failures import report_failures

# Those of condmeta.fitted.dialects, which --help need not load.
DIALECTS = ["duckdb", "postgres", "sqlite", "snowflake", "bigquery", "spark"]


@click.command("export", short_help="Write a model as tables and a query.")
@click.argument("model")
@click.argument("folder")
@click.option(
    "--dialect", type=click.Choice(DIALECTS), default="duckdb", show_default=True,
    help="The database that the query is for.",
)  # fmt: skip
@click.option("--std", is_flag=True, help="Add standard deviations of predictions (ridge).")
@report_failures
def export_command(model, folder, dialect, std):
    """Write the linear model MODEL to FOLDER, as tables that other programs can read.

    FOLDER gets coefficients.parquet, effects.parquet, card.json, and score.sql: a query that
    predicts the rows of a table by a join with the coefficients.

    \b
    condmeta export stores.condmeta stores/ --dialect snowflake

    Exit codes: 0 done, 1 the model cannot be read or is not linear, 2 wrong usage.
    """
    from condmeta.cli.inputs import open_model
    from condmeta.tables.export import export

    export(open_model(model), folder, dialect, std=std)
    click.echo(f"Tables and query: {folder}", err=True)
