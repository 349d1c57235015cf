"""`condmeta check`: is a model still right?"""

from __future__ import annotations

import json
import sys

import click

from condmeta.cli.failures import tell_failures
from condmeta.cli.notes import tell_notes, tell_work
from condmeta.cli.options import csv_options, quiet_option, read_options, side_options

CODES = {"keep": 0, "update": 3, "refit": 4}
WORST = 10  # tasks that are shown


@click.command("check", short_help="Keep, update or refit a model? By new rows.")
@click.argument("model")
@click.argument("table")
@side_options
@click.option("--false-alarm", type=click.FloatRange(0, 1, min_open=True, max_open=True),
              default=0.05, show_default=True,
              help="Chance of another verdict than keep, if nothing has changed.")  # fmt: skip
@click.option("-o", "--output", metavar="FILE", help="Also write a row for each task.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@csv_options
@quiet_option
@tell_failures
def check_command(model, table, side_table, false_alarm, output, as_json, quiet, **params):
    """Judge MODEL by the rows of TABLE, which it has not seen: keep, update or refit it.

    Prints one line for all tasks, and those that are beyond expectation. Keep: errors are as
    expected. Update: some tasks have moved (condmeta update). Refit: many have, or their side
    information has (condmeta fit). In brackets stands what errors are compared with; "the other
    tasks" cannot tell a change that all share: fit with --intervals, or without --share.

    \b
    condmeta check stores.condmeta monday.csv || echo "look at the model"
    condmeta check stores.condmeta monday.csv --side-table stores.csv -o by_store.csv

    Exit codes: 0 keep, 3 update, 4 refit; 1 the data do not allow it, 2 the command was not
    understood.
    """
    from condmeta.cli.models import load_model, read_for, read_side
    from condmeta.files import check_output, write_table

    if output is not None:
        check_output(output)
    csv = read_options(params)
    with tell_notes(quiet):
        fitted = load_model(model)
        rows = read_for(fitted, table, csv)
        with tell_work(f"Checking {model}", quiet):
            found = fitted.check(rows, read_side(fitted, side_table, csv), false_alarm=false_alarm)
        tasks = _arrow(found.frame)
        if output is not None:
            write_table(tasks, output)
        if as_json:
            click.echo(json.dumps(_outcome(found, tasks), indent=2))
        elif not quiet and output != "-":
            click.echo("\n".join([str(found), *_worst(tasks)]))
    sys.exit(CODES[found.verdict])


def _arrow(frame):
    """Return the table of tasks as one of PyArrow, whatever the model was fitted on."""
    import narwhals.stable.v2 as nw

    return nw.from_native(frame, eager_only=True).to_arrow()


def _outcome(found, tasks) -> dict:
    return {
        "verdict": found.verdict,
        "sentence": found.sentence,
        "ground": found.ground,
        "drifting": found.drifting,
        "excess": found.excess,
        "tasks": tasks.to_pylist(),
    }


def _worst(tasks) -> list[str]:
    """Return a line for each task that is not to be kept, the worst first."""
    rows = [row for row in tasks.to_pylist() if row["verdict"] != "keep" or row["side"]]
    rows.sort(key=lambda row: -row["z"])
    lines = []
    for row in rows[:WORST]:
        first = next(iter(row.values()))
        side = f"; {row['side']}" if row["side"] else ""
        lines.append(f"  {first}: {row['verdict']}, z {row['z']:.1f}, n {row['n']}{side}")
    return [*lines, f"  ... and {len(rows) - WORST} more"] if len(rows) > WORST else lines
