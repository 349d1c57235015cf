"""`condmeta adapt`: points of new tasks in, their coefficients out."""

from __future__ import annotations

import click

from condmeta.cli.failures import tell_failures
from condmeta.cli.notes import tell_notes, tell_work
from condmeta.cli.options import (
    OUTPUT_HELP,
    csv_options,
    quiet_option,
    read_options,
    side_options,
)
from condmeta.words import count


@click.command("adapt", short_help="Coefficients of new tasks from a few rows.")
@click.argument("model")
@click.argument("table")
@side_options
@click.option("-o", "--output", default="-", metavar="FILE", show_default=True, help=OUTPUT_HELP)
@csv_options
@quiet_option
@tell_failures
def adapt_command(model, table, side_table, output, quiet, **params):
    """Give the coefficients of the tasks in TABLE, from its rows and what MODEL has learned.

    One row a task: its id, the number n of its rows, the intercept, one column a feature. MODEL
    is not changed; condmeta update does that.

    \b
    condmeta adapt stores.condmeta first_week.csv --side-table stores.csv -o coefficients.csv

    Exit codes: 0 done, 1 the data do not allow it, 2 the command was not understood.
    """
    from condmeta.cli.models import load_model, read_for, read_side
    from condmeta.files import as_text, check_output, write_table

    check_output(output)
    csv = read_options(params)
    with tell_notes(quiet) as tell:
        fitted = load_model(model)
        rows = read_for(fitted, table, csv, keep_types=True)
        side = read_side(fitted, side_table, csv)
        with tell_work(f"Adapting to {table}", quiet):
            found = fitted.adapt_frame(as_text(rows, fitted.schema_.text), side)
        for name in fitted.schema_.columns.task:  # ids as the table has them
            ids = found.column(name).cast(rows.schema.field(name).type)
            found = found.set_column(found.column_names.index(name), name, ids)
        write_table(found, output)
        if output != "-":
            tell(f"Coefficients of {count(found.num_rows, 'task')}: {output}.")
