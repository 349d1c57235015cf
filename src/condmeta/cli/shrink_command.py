"""`condmeta shrink`: read estimates and standard errors of tasks, write shrunken estimates."""

import click

from condmeta.cli.options import Names, SideColumns, common_options, output_option
from condmeta.cli.terminal import show_notes, spinner


@click.command("shrink", short_help="Improve estimates that you already have, by shrinkage.")
@click.argument("table")
@click.option("--task", type=Names(), required=True, metavar="COL", help="Column with the ids.")
@click.option(
    "--estimate", type=Names(), required=True, metavar="COLS", help="Columns with the estimates."
)
@click.option(
    "--se",
    type=Names(),
    required=True,
    metavar="COLS",
    help="Columns with their standard errors, in the same order.",
)
@click.option(
    "--side",
    type=SideColumns(),
    metavar="COLS",
    help="Columns of side information: columns of TABLE or, with --side-table, columns of that "
    "table.  [default: all columns of the side table]",
)
@click.option("--side-table", metavar="FILE", help="Table of side information, one row per task.")
@click.option(
    "--kappa",
    type=click.FloatRange(min=0),
    metavar="NUMBER",
    help="Penalty on the effects of side columns; 0 means maximum likelihood.  [default: chosen]",
)
@output_option
@common_options
def shrink_command(
    table, task, estimate, se, side, side_table, kappa, output, safe, force, quiet, **params
):
    """Improve the estimates in TABLE, which has one row per task.

    Each estimate is shrunk towards the mean of all tasks or, with side information, towards the
    value that side information predicts. Use it for regressions that were fitted task by task, or
    for the studies of a meta-analysis.

    The output has one row per task and estimate: the id, the predicted value (prior), the estimate
    from TABLE (own), the shrunken estimate (adapted) and its standard deviation (std).

    \b
    condmeta shrink trials.csv --task trial --estimate effect --se se -o shrunken.csv
    condmeta shrink trials.csv --task trial --estimate effect --se se --side latitude --kappa 0

    Exit codes: 0 done, 1 error in the data or a file, 2 wrong usage.
    """  # fmt: skip
    from condmeta.cli.inputs import csv_options
    from condmeta.cli.outputs import SHRUNKEN, check_files
    from condmeta.errors import DataError
    from condmeta.learners.shrinkage import shrink
    from condmeta.tables.files import read_table, write_table
    from condmeta.tasks.frames import require_columns

    if len(estimate) != len(se):
        raise DataError(
            f"--estimate names {len(estimate)} columns and --se {len(se)}: give one standard error "
            "for each estimate."
        )
    check_files(table, side_table, output=output, kind=SHRUNKEN, force=force)
    csv = csv_options(params)
    with show_notes(quiet) as note, spinner(f"Shrinking {table}", quiet):
        rows = read_table(table, text=task, csv=csv)
        require_columns(rows, [*task, *estimate, *se])
        errors = rows.select([*task, *se]).rename_columns([*task, *estimate])
        facts = rows
        if side_table is not None:
            facts = read_table(side_table, text=task, csv=csv_options(params, side=True))
        if side is not None:
            require_columns(facts, [*task, *side], "--side")
            facts = facts.select([*task, *side])
        result = shrink(
            rows.select([*task, *estimate]), std_errors=errors,
            task=task[0] if len(task) == 1 else task,
            side_info=None if side is None and side_table is None else facts,
            kappa="auto" if kappa is None else kappa,
        )  # fmt: skip
        write_table(result.coef_frame(std=True), output, safe=safe)
        note(str(result.summary()))
