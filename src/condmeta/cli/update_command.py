"""`condmeta update`: add rows to a model."""

import click

from condmeta.cli.options import common_options, force_option, model_options, wait_option
from condmeta.cli.terminal import show_notes, spinner
from condmeta.text import pluralize


@click.command("update", short_help="Add rows to the tasks of a model.")
@model_options
@click.option("-o", "--output", metavar="NEW", help="Model file to write.  [default: MODEL]")
@click.option("--again", is_flag=True, help="Add the rows even if MODEL holds them already.")
@force_option
@wait_option
@common_options
def update_command(model, table, output, again, force, wait, quiet, **params):
    """Add the rows of TABLE to the tasks they belong to, and add new tasks.

    What MODEL has learned about all tasks together does not change. Fit the model again when
    condmeta check says refit. Each row counts as one more observation.

    If the command is interrupted, run it again. It refuses a table of two or more rows that MODEL
    already holds, so no row counts twice; --again adds them all the same. Several updates of one
    model run one after another.

    \b
    condmeta update stores.condmeta monday.csv
    condmeta update stores.condmeta monday.csv --side-table stores.csv -o stores2.condmeta

    Exit codes: 0 done, 1 error in the data or a file, 2 wrong usage.
    """
    import numpy as np

    from condmeta.cli import inputs
    from condmeta.cli.lock import locked
    from condmeta.cli.outputs import MODEL, check_files
    from condmeta.tasks.ids import factorize

    output = output or model
    side_table = params["side_table"]
    check_files(model, table, side_table, output=output, kind=MODEL, force=force, changes=model)
    import condmeta.loading  # noqa: F401 - before others have to wait for it

    with show_notes(quiet) as note, locked(output, wait):
        fitted = inputs.load_model(model)
        rows = inputs.read_rows(table, fitted.schema_, params)
        with spinner(f"Updating {model}", quiet):
            codes, ids = factorize(fitted.schema_.roles.ids(rows))
            known = len(np.unique(codes[fitted.n_points(rows) > 0]))
            fitted.update(rows, inputs.read_side(fitted.schema_, params), again=again)
        fitted.save(output)
        note(
            f"{pluralize(rows.num_rows, 'row')} added: {pluralize(known, 'known task')}, "
            f"{pluralize(len(ids) - known, 'new task')}. {output}, {inputs.show_size(output)}."
        )
