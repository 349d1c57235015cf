"""`condmeta update`: more rows for a model."""

from __future__ import annotations

import click

from condmeta.cli.failures import tell_failures
from condmeta.cli.notes import tell_notes, tell_work
from condmeta.cli.options import csv_options, quiet_option, read_options, side_options
from condmeta.words import count


@click.command("update", short_help="Add rows to the tasks of a model.")
@click.argument("model")
@click.argument("table")
@side_options
@click.option("-o", "--output", metavar="NEW", help="Model file to write.  [default: MODEL]")
@csv_options
@quiet_option
@tell_failures
def update_command(model, table, side_table, output, quiet, **params):
    """Add the rows of TABLE to the tasks they belong to, and enrol new tasks.

    What MODEL has learned about all tasks stays; fit it again when condmeta check says so. Each
    row counts as one more observation, so give a row once.

    \b
    condmeta update stores.condmeta monday.csv
    condmeta update stores.condmeta monday.csv --side-table stores.csv -o stores2.condmeta

    Exit codes: 0 done, 1 the data do not allow it, 2 the command was not understood.
    """
    from condmeta.cli.models import (
        check_model_output,
        load_model,
        read_for,
        read_side,
        show_size,
    )

    check_model_output(output or model)
    csv = read_options(params)
    with tell_notes(quiet) as tell:
        fitted = load_model(model)
        rows = read_for(fitted, table, csv)
        with tell_work(f"Updating {model}", quiet):
            known, new = _tasks(fitted, rows)
            fitted.update(rows, read_side(fitted, side_table, csv))
        fitted.save(output or model)
        tell(
            f"{count(rows.num_rows, 'row')} added: {count(known, 'known task')}, "
            f"{count(new, 'new task')}. {output or model}, {show_size(output or model)}."
        )


def _tasks(fitted, rows) -> tuple[int, int]:
    """Return how many tasks of a table the model has points of, and how many it has not."""
    import numpy as np

    from condmeta.tasks.ids import factorize

    codes, ids = factorize(fitted.schema_.ids(rows))
    known = len(np.unique(codes[fitted.n_points(rows) > 0]))
    return known, len(ids) - known
