"""`condmeta predict`: rows in, predictions out."""

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


@click.command("predict", short_help="Predict the rows of a table.")
@click.argument("model")
@click.argument("table")
@side_options
@click.option("--coverage", type=click.FloatRange(0, 1, min_open=True, max_open=True),
              help="Add intervals that hold this share of labels (fit --intervals).")  # fmt: skip
@click.option("--chunks", is_flag=True, help="Read and write in parts, for a large table.")
@click.option("-o", "--output", default="-", metavar="FILE", show_default=True, help=OUTPUT_HELP)
@csv_options
@quiet_option
@tell_failures
def predict_command(model, table, side_table, coverage, chunks, output, quiet, **params):
    """Predict the rows of TABLE with MODEL.

    A task that the model knows is predicted by its own model, a new one by its side information.
    The rows of TABLE come back with the columns prediction, lower and upper (with --coverage),
    task_points (how many of its task the model has seen) and task_kind (known, new, or outside: new
    and far from all that was seen); of two classes, probability is that of the second.

    \b
    condmeta predict stores.condmeta monday.csv -o predicted.csv
    condmeta predict stores.condmeta new.parquet --side-table stores.csv --coverage 0.9 | head

    Exit codes: 0 done, 1 the data do not allow it, 2 the command was not understood.
    """
    from condmeta.cli.models import load_model, read_for, read_side
    from condmeta.files import as_text, check_output, read_batches, write_parts

    check_output(output)
    csv = read_options(params)
    with tell_notes(quiet) as tell:
        fitted = load_model(model)
        side = read_side(fitted, side_table, csv)
        names, counts = fitted.schema_.text, {"known": 0, "new": 0, "outside": 0}

        def answer(rows):
            answers = fitted.predict_frame(as_text(rows, names), side, coverage=coverage)
            kinds = answers.column("task_kind").to_pylist()
            for kind in counts:
                counts[kind] += kinds.count(kind)
            return _beside(rows, answers)

        with tell_work(f"Predicting {table}", quiet):
            if chunks:
                parts = read_batches(table, text=names, csv=csv, keep_types=True)
                write_parts(map(answer, parts), output)
            else:
                rows = read_for(fitted, table, csv, keep_types=True)
                write_parts(iter([answer(rows)]), output)
        classes = fitted.schema_.classes
        if classes is not None and hasattr(fitted.learner_, "predict_proba"):
            tell(
                f"The column probability is that of {fitted.schema_.columns.target} = {classes[1]}."
            )
        if output != "-":
            counts["new"] += counts.pop("outside")
            told = [f"{count(counts[kind], 'row')} of {kind} tasks" for kind in counts]
            tell(f"{' and '.join(told)} predicted: {output}.")


def _beside(rows, answers):
    """Return rows with answers as further columns."""
    from condmeta.errors import DataError

    taken = next((name for name in answers.column_names if name in rows.column_names), None)
    if taken is not None:
        raise DataError(
            f"The table has a column {taken!r} already, which the answer is to be called: rename "
            "it first."
        )
    for name in answers.column_names:
        rows = rows.append_column(name, answers.column(name))
    return rows
