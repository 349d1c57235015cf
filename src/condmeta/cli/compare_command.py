"""`condmeta compare`: which learner, and does side information pay?"""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from condmeta.cli.command_line import command_line
from condmeta.cli.failures import tell_failures
from condmeta.cli.fit_command import LEARNERS
from condmeta.cli.notes import tell_notes, tell_work
from condmeta.cli.options import csv_options, quiet_option, read_options, table_options
from condmeta.cli.training import in_order, read_training, table_model, without_order
from condmeta.words import count


class Shots(click.ParamType):
    """Numbers of points with commas between them."""

    name = "numbers"

    def convert(self, value, param, ctx) -> list[int]:
        """Return the numbers as a list."""
        if isinstance(value, list):
            return value
        try:
            return [int(part) for part in value.split(",")]
        except ValueError:
            self.fail(f"{value!r} is not a list of whole numbers, as 0,1,5.", param, ctx)


@click.command("compare", short_help="Which learner, and does side information pay?")
@click.argument("table")
@table_options
@click.option("--order", metavar="COL",
              help="Time or order of the rows: a new task shows its earliest ones, and is judged "
              "by the later; no feature.")  # fmt: skip
@click.option("--shots", type=Shots(), default="0,1,2,5,10", show_default=True,
              help="Numbers of points that a new task has shown.")  # fmt: skip
@click.option("--criterion", type=click.Choice(["absolute", "squared"]), default="absolute",
              show_default=True,
              help="The error that counts; of two classes the log loss.")  # fmt: skip
@click.option("--no-boosting", is_flag=True, help="Leave out what stands on boosted trees.")
@click.option("-o", "--output", default="comparison.html", show_default=True, metavar="REPORT",
              help="Page to write; the numbers go beside it as NAME-errors.csv.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@csv_options
@quiet_option
@tell_failures
@click.pass_context
def compare_command(ctx, table, shots, criterion, no_boosting, output, as_json, quiet, **params):
    """Compare learners on tasks of TABLE that are held out (CSV, Parquet, Feather; - is a pipe).

    Each task is left out in turn, shows a few of its points, and is judged by the others: by its
    own points alone, one model for all, learned priors without and with side information, and
    boosted trees. Says what to use and whether side information pays, and writes a report.

    \b
    condmeta compare sales.csv --task store --target sold --side-table stores.csv
    condmeta compare visits.parquet --task patient --target dose --order date -o doses.html

    Exit codes: 0 done, 1 the data do not allow it, 2 the command was not understood.
    """
    page = _checked(output)
    csv = read_options(params)
    command = command_line(ctx)
    with tell_notes(quiet) as tell:
        tasks, classes = _read(table, csv, without_order(params), shots, tell)
        lacking = _without_side(tasks)
        if lacking:
            who = count(lacking, "task has", "tasks have")
            tell(f"Note: {who} no row of side information; each starts where the mean does.")
            params["missing_side"] = "mean"
        with tell_work("Comparing", quiet) as step:
            from condmeta.evaluation import compare

            found = compare(
                tasks, shots=shots, criterion=criterion, base=None if no_boosting else "boosting",
                order="random" if params["order"] is None else "first", progress=step, n_jobs=-1,
            )  # fmt: skip
        by, what = " and ".join(params["task"]), params["target"]
        if classes is not None:
            found, what = replace(found, positive=str(classes[1])), f"{what} = {classes[1]}"
        following = _fit_command(found, table, params, no_boosting)
        title = f"{what} by {by}"
        found.to_html(page, title=title, command=command, following=following)
        numbers = _write_numbers(found, page)
        if as_json:
            click.echo(json.dumps(_outcome(found, page, numbers), indent=2))
        elif not quiet:
            click.echo(repr(found))
        for shot in sorted(set(shots) - set(found.shots)):
            tell(f"Left out: {count(shot, 'point')} shown; fewer than 10 tasks have more.")
        tell(f"Report: {page}\nNumbers: {numbers}\nNext: {following}")


def _checked(output: str) -> Path:
    """Return where the page goes, or say why it cannot, before the work is done."""
    from condmeta.errors import DataError
    from condmeta.files import check_place

    page = Path(output)
    if page.suffix.lower() not in (".html", ".htm"):
        raise DataError(f"The report is an HTML page: call it {page.stem}.html, not '{output}'.")
    check_place(output)
    return page


def _read(path, csv, params, shots, tell) -> tuple[Any, list | None]:
    """Return the tasks, and the two classes of the target if it has some; say what will be done."""
    from condmeta.table.target import find_classes

    table, side, own = read_training(path, csv, params)
    listed = ", ".join(map(str, shots))
    tasks = table.group_by(params["task"]).aggregate([]).num_rows
    tell(
        f"{path}: {count(table.num_rows, 'row')} of {count(tasks, 'task')}, "
        f"{count(len(table.column_names), 'column')}. "
        f"Tasks are held out in 5 folds and judged with {listed} of their points shown."
    )
    classes = find_classes(table, params["target"], None)
    return table_model(own).read_tasks(in_order(table, params["order"]), side), classes


def _without_side(tasks: Any) -> int:
    """Return how many tasks with rows lack side information that others have."""
    if tasks.side is None:
        return 0
    return int((~tasks.side.has(tasks.ids[tasks.sizes > 0])).sum())


def _write_numbers(found, page: Path) -> Path:
    from condmeta.files import write_table

    path = page.with_name(f"{page.stem}-errors.csv")  # not the name of a table that was read
    write_table(found.frame, str(path))
    return path


def _outcome(found, page: Path, numbers: Path) -> dict[str, Any]:
    """Return the outcome as a dict that JSON can hold."""
    return {
        "criterion": found.criterion.title,
        "errors": found.rows,
        "best": {str(shot): name for shot, name in found.best.items()},
        "advice": found.advice,
        "side_information": found.side_sentence,
        "report": str(page),
        "numbers": str(numbers),
    }


def _fit_command(found, table: str, params: dict, no_boosting: bool) -> str:
    """Return the command that makes the model which the advice names."""
    kind = type(found.model).__name__
    learner = next(name for name, classes in LEARNERS.items() if kind in classes)
    words = ["condmeta", "fit", table, "--learner", learner]
    if "base=" in found.call:
        words.append("--boosting")
    elif learner == "auto" and no_boosting:
        words.append("--no-boosting")
    # Only auto, and intervals, hold tasks out; to others an order says what is no feature.
    own = params if learner == "auto" else without_order(params) | {"order": None}
    if found.advised == "unconditional":
        own = own | {"side": None, "side_table": None, "side_key": None, "missing_side": None}
    for name, value in own.items():
        if value and (name, value) != ("missing", "error"):
            words += [
                f"--{name.replace('_', '-')}",
                ",".join(value) if isinstance(value, list) else value,
            ]
    return shlex.join([*words, "-o", "model.condmeta"])
