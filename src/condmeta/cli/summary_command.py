"""`condmeta summary`: effects of side columns with intervals, and how tasks differ beyond them."""

import click

from condmeta.cli.failures import report_failures


@click.command("summary", short_help="Show effects of side columns with intervals.")
@click.argument("model")
@click.option("--level", type=float, default=0.95, show_default=True, help="Coverage of intervals.")
@click.option(
    "--robust/--model-based", default=None,
    help="Whether standard errors allow for variances that differ between tasks. By default they "
    "do from 50 tasks on.",
)  # fmt: skip
@report_failures
def summary_command(model, level, robust):
    """Show what MODEL has learned (learners ridge, levels, count, logistic and ordinal).

    It prints the effect of each side column on each coefficient with its interval, the differences
    between tasks that side columns do not explain, and the noise.

    \b
    condmeta summary stores.condmeta

    Exit codes: 0 done, 1 the file cannot be read or has no summary, 2 wrong usage.
    """
    from condmeta.cli.inputs import open_model
    from condmeta.errors import DataError

    found = open_model(model)
    if not hasattr(found, "summary"):
        kind = type(found).__name__
        raise DataError(f"{kind} has no summary: fit with --learner ridge, count or logistic.")
    click.echo(str(found.summary(level, robust)))
