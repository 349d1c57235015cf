"""`condmeta adapt`: read rows of new tasks, write their coefficients."""

import click

from condmeta.cli.options import common_options, model_options, output_option
from condmeta.cli.terminal import show_notes, spinner
from condmeta.text import pluralize


@click.command("adapt", short_help="Estimate the coefficients of new tasks.")
@model_options
@output_option
@common_options
def adapt_command(model, table, output, safe, force, quiet, **params):
    """Estimate the coefficients of the tasks in TABLE from its rows and MODEL.

    The output has one row per task: its id, the number n of its rows, the intercept, and one column
    per feature. MODEL is not changed; use condmeta update to add the rows to it.

    \b
    condmeta adapt stores.condmeta first_week.csv --side-table stores.csv -o coefficients.csv

    Exit codes: 0 done, 1 error in the data or a file, 2 wrong usage.
    """
    from condmeta.cli.inputs import load_model, read_rows, read_side
    from condmeta.cli.outputs import COEFFICIENTS, check_files
    from condmeta.tables.files import as_text, write_table

    check_files(model, table, params["side_table"], output=output, kind=COEFFICIENTS, force=force)
    with show_notes(quiet) as note:
        fitted = load_model(model)
        schema = fitted.schema_
        rows = read_rows(table, schema, params, keep_types=True)
        side = read_side(schema, params)
        with spinner(f"Adapting to {table}", quiet):
            found = fitted.adapt_frame(as_text(rows, schema.text), side)
        for name in schema.roles.task:  # ids in the type of the table
            ids = found.column(name).cast(rows.schema.field(name).type)
            found = found.set_column(found.column_names.index(name), name, ids)
        scale = fitted.card()["chosen"].get("y_transform")
        if scale is not None:
            note(f"Note: Coefficients are on the {scale} scale of {schema.roles.target!r}.")
        write_table(found, output, safe=safe)
        if output != "-":
            note(f"Coefficients of {pluralize(found.num_rows, 'task')}: {output}.")
