"""`condmeta check`: judge a model by new rows."""

import json
import sys

import click

from condmeta.cli.options import (
    PROBABILITY,
    common_options,
    force_option,
    model_options,
    spreadsheet_option,
)
from condmeta.cli.terminal import show_notes, spinner
from condmeta.text import pluralize

CODES = {"keep": 0, "update": 3, "refit": 4}
MAX_SHOWN = 10  # tasks


@click.command("check", short_help="Say whether to keep, update or refit a model.")
@model_options
@click.option("--false-alarm", type=PROBABILITY, default=0.05, show_default=True,
              help="Probability of a verdict other than keep if nothing has changed.")  # fmt: skip
@click.option("-o", "--output", metavar="FILE", help="Also write a table with one row per task.")
@spreadsheet_option
@force_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@common_options
def check_command(model, table, false_alarm, output, safe, force, as_json, quiet, **params):
    """Judge MODEL by the rows of TABLE, which it has not seen: keep, update or refit it.

    The first line of the output gives the verdict on all tasks:

    \b
    keep    errors are as expected
    update  some tasks have changed: run condmeta update
    refit   many tasks, or their side information, have changed: run condmeta fit

    Further lines list the tasks with larger errors than expected. The first line also says, in
    brackets, what errors are compared with. A comparison with "the other tasks" cannot detect a
    change that all tasks share. To detect it, fit with --intervals or without --share.

    \b
    condmeta check stores.condmeta monday.csv || echo "look at the model"
    condmeta check stores.condmeta monday.csv --side-table stores.csv -o by_store.csv

    Exit codes: 0 keep, 3 update, 4 refit; 1 error in the data or a file, 2 wrong usage.
    """
    from condmeta.cli.inputs import load_model, read_rows, read_side
    from condmeta.cli.outputs import VERDICTS, check_files
    from condmeta.tables.files import write_table

    check_files(model, table, params["side_table"], output=output, kind=VERDICTS, force=force)
    import narwhals.stable.v2 as nw

    with show_notes(quiet):
        fitted = load_model(model)
        rows = read_rows(table, fitted.schema_, params)
        with spinner(f"Checking {model}", quiet):
            side = read_side(fitted.schema_, params)
            found = fitted.check(rows, side, false_alarm=false_alarm)
        tasks = nw.from_native(found.frame, eager_only=True).to_arrow()
        if output is not None:
            write_table(tasks, output, safe=safe)
        if as_json:
            names = "verdict", "sentence", "ground", "drifting", "excess", "forgetting"
            outcome = {name: getattr(found, name) for name in names}
            click.echo(json.dumps(outcome | {"tasks": tasks.to_pylist()}, indent=2))
        elif not quiet and output != "-":
            click.echo("\n".join([str(found), *_worst(tasks, found.verdict)]))
    sys.exit(CODES[found.verdict])


def _worst(tasks, verdict: str) -> list[str]:
    """Return a line for each task with larger errors than expected, the worst first.

    If all of the model is to be fitted again, that is so for each task: no line says otherwise.
    """
    rows = [row for row in tasks.to_pylist() if row["verdict"] != "keep" or row["side"]]
    rows.sort(key=lambda row: -row["z"])
    lines = []
    for row in rows[:MAX_SHOWN]:
        first = next(iter(row.values()))
        advice = f"{row['verdict']}, " if verdict != "refit" else ""
        judged = next(row[name] for name in ("rmse", "log_loss", "error_rate") if name in row)
        side = f"; {row['side']}" if row["side"] else ""
        lines.append(
            f"  {first}: {advice}error {judged:.3g}, expected {row['expected']:.3g}, "
            f"{pluralize(row['n'], 'row')}{side}"
        )
    return [*lines, f"  ... and {len(rows) - MAX_SHOWN} more"] if len(rows) > MAX_SHOWN else lines
