"""`condmeta predict`: read rows, write them with predictions."""

import click

from condmeta.cli.options import PROBABILITY, common_options, model_options, output_option
from condmeta.cli.terminal import show_notes, spinner
from condmeta.errors import DataError
from condmeta.text import pluralize


@click.command("predict", short_help="Predict the rows of a table.")
@model_options
@click.option("--coverage", type=PROBABILITY,
              help="Add intervals that contain this share of labels (needs fit "
              "--intervals).")  # fmt: skip
@click.option("--chunks", is_flag=True, help="Read and write in parts, for a large table.")
@output_option
@common_options
def predict_command(model, table, coverage, chunks, output, safe, force, quiet, **params):
    """Predict the rows of TABLE with MODEL.

    Known tasks are predicted by their own models, new tasks from their side information. The output
    has the rows of TABLE and these columns:

    \b
    prediction    the predicted number or class
    probability   of the second class; with more classes, one column for each
    lower, upper  the interval, with --coverage
    task_points   how many rows of the task the model has learned from
    task_kind     known, new, or outside: a new task whose side information is
                  far outside the training range

    \b
    condmeta predict stores.condmeta monday.csv -o predicted.csv
    condmeta predict stores.condmeta new.parquet --side-table stores.csv --coverage 0.9 | head

    Exit codes: 0 done, 1 error in the data or a file, 2 wrong usage.
    """
    from condmeta.cli.inputs import load_model, read_rows, read_side
    from condmeta.cli.outputs import PREDICTIONS, check_files
    from condmeta.tables.files import as_text, write_parts

    check_files(model, table, params["side_table"], output=output, kind=PREDICTIONS, force=force)
    with show_notes(quiet) as note:
        fitted = load_model(model)
        schema, counts = fitted.schema_, {"known": 0, "new": 0, "outside": 0}
        side = read_side(schema, params)

        def answer(rows):
            answers = fitted.predict_frame(as_text(rows, schema.text), side, coverage=coverage)
            kinds = answers.column("task_kind").to_pylist()
            for kind in counts:
                counts[kind] += kinds.count(kind)
            return _beside(rows, answers)

        with spinner(f"Predicting {table}", quiet):
            parts = read_rows(table, schema, params, keep_types=True, chunks=chunks)
            write_parts(map(answer, parts if chunks else [parts]), output, safe=safe)
        two = schema.classes is not None and len(schema.classes) == 2
        if two and hasattr(fitted.learner_, "predict_proba"):
            note(f"The column probability is that of {schema.roles.target} = {schema.classes[1]}.")
        if output != "-":
            counts["new"] += counts.pop("outside")
            predicted = [f"{pluralize(counts[kind], 'row')} of {kind} tasks" for kind in counts]
            note(f"{' and '.join(predicted)} predicted: {output}.")


def _beside(rows, answers):
    """Return rows with predictions as further columns."""
    taken = next((name for name in answers.column_names if name in rows.column_names), None)
    if taken is not None:
        raise DataError(
            f"The table already has a column {taken!r}, and predict adds one of that name: "
            "rename yours first."
        )
    for name in answers.column_names:
        rows = rows.append_column(name, answers.column(name))
    return rows
