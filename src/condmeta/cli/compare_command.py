"""`condmeta compare`: compare learners on held-out tasks."""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import condmeta
from condmeta.cli.learner_options import LEARNERS
from condmeta.cli.options import (
    FOR_ONE_RUN,
    command_line,
    common_options,
    force_option,
    given_options,
    option_words,
    table_options,
)
from condmeta.cli.terminal import show_notes, spinner
from condmeta.text import pluralize, rows_known

ONLY_HERE = "shots", "criterion", "no_boosting", "output", "as_json", "quiet", *FOR_ONE_RUN


class Shots(click.ParamType):
    """Numbers of rows separated by commas."""

    name = "numbers"

    def convert(self, value, param, ctx) -> list[int]:
        """Return the numbers as a list."""
        if isinstance(value, list):
            return value
        try:
            return [int(part) for part in value.split(",")]
        except ValueError:
            self.fail(f"{value!r} is not a list of whole numbers such as 0,1,5.", param, ctx)


@click.command("compare", short_help="Compare learners, and see whether side information helps.")
@table_options
@click.option("--sort-by", metavar="COL",
              help="Sort the rows by this column, such as a date. Learners then see the earliest "
              "rows of a held-out task and predict the later ones. The column is not a "
              "feature unless named in --features.")  # fmt: skip
@click.option("--time", metavar="COL",
              help="Column with the time of each row, a number or a date. Learners that forget "
              "old rows are then compared with learners that do not, on new tasks and on the "
              "next rows of known tasks. The column is not a feature unless named in "
              "--features.")  # fmt: skip
@click.option("--shots", type=Shots(), default="0,1,2,5,10", show_default=True,
              help="How many rows of a held-out task the learners see.")  # fmt: skip
@click.option("--criterion",
              type=click.Choice(["absolute", "squared", "deviance", "log density"]),
              help="Error to compare by. For classes it is always the log loss.  [default: "
              "deviance for counts, else absolute]")  # fmt: skip
@click.option("--no-boosting", is_flag=True, help="Leave out the learners with boosted trees.")
@click.option("-o", "--output", default="comparison.html", show_default=True, metavar="REPORT",
              help="HTML page to write. The numbers go to a file beside it, such as "
              "comparison-errors.csv.")  # fmt: skip
@force_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@common_options
@click.pass_context
def compare_command(
    ctx, table, shots, criterion, no_boosting, output, force, as_json, quiet, **params
):
    """Compare learners on held-out tasks of TABLE (CSV, Parquet, Feather; - is standard input).

    Each task is held out once. The learners see a few of its rows and predict the rest. They are: a
    separate model for each task, one model for all tasks, models that start from what all tasks
    share, models that start from side information, and the same models on top of boosted trees.

    The command recommends a learner, estimates how much side information explains, and writes a
    report.

    \b
    condmeta compare sales.csv --task store --target sold --side-table stores.csv
    condmeta compare visits.parquet --task patient --target dose --sort-by date -o doses.html
    condmeta compare sales.csv --task store --target sold --time day

    Exit codes: 0 done, 1 error in the data or a file, 2 wrong usage.
    """
    from condmeta.cli.inputs import column_options
    from condmeta.cli.outputs import ERRORS, PAGE, check_files
    from condmeta.tables.files import write_table

    page = Path(output)
    numbers = page.with_name(f"{page.stem}-errors.csv")
    for path, kind in ((output, PAGE), (str(numbers), ERRORS)):
        check_files(table, params["side_table"], output=path, kind=kind, force=force)
    columns = column_options(params)
    extra: dict[str, str] = {}  # options of fit that compare does not have
    with show_notes(quiet) as note:
        tasks, schema = _read(table, columns, params, shots, note)
        classes = schema.classes
        if criterion is None:
            criterion = "deviance" if schema.kind == "count" else "absolute"
            if schema.kind == "count":
                note(
                    f"Note: The target {columns.target!r} holds counts: learners are compared by "
                    "their deviance, and ConditionalCount is among them. For the absolute error "
                    "give --criterion absolute."
                )
        with_rows = tasks.ids[tasks.sizes > 0]
        lacking = 0 if tasks.side is None else int((~tasks.side.has(with_rows)).sum())
        if lacking:
            who = pluralize(lacking, "task has", "tasks have")
            note(f"Note: {who} no side information and are treated as average tasks.")
            extra["missing_side"] = "mean"
        from condmeta.evaluation.report_words import words_of

        with spinner("Comparing", quiet) as step:
            found = condmeta.compare(
                tasks, shots=shots, criterion=criterion, base=None if no_boosting else "boosting",
                order="random" if columns.sort_by is None else "first", progress=step, n_jobs=-1,
                classes=classes,
            )  # fmt: skip
        given = given_options(ctx) | extra
        what, following = columns.target, _fit_command(found, table, given, no_boosting)
        if classes is not None and len(classes) == 2:
            found, what = replace(found, positive=str(classes[1])), f"{what} = {classes[1]}"
        title = f"{what} by {' and '.join(columns.task)}"
        words = words_of(found)
        found.to_html(page, title=title, command=command_line(ctx), following=following)
        write_table(found.frame, str(numbers))
        if as_json:
            outcome = {
                "criterion": found.criterion.title, "errors": found.rows,
                "best": {str(shot): name for shot, name in found.best.items()},
                "known_tasks_ahead": found.ahead_rows,
                "advice": found.advice, "side_information": found.side_sentence,
                "report": str(page), "numbers": str(numbers),
            }  # fmt: skip
            click.echo(json.dumps(outcome, indent=2))
        elif not quiet:
            click.echo(comparison_text(found, words))
        for shot in sorted(set(shots) - set(found.shots)):
            note(f"Left out: {rows_known(shot)}; fewer than 10 tasks have more rows.")
        note(f"Report: {page}\nNumbers: {numbers}\nNext: {following}")


def comparison_text(found, words) -> str:
    """Return the errors as a table, and the advice, in an analyst's words."""
    names = [words.labels[name] for name in found.names]
    width = max(map(len, names))
    rows = {"": [str(shot) for shot in found.shots]}
    for name, errors in zip(names, found.errors.T, strict=True):
        rows[name] = [f"{error:.4g}" for error in errors]
    counts = [len(trial.ids) for trial in found.trials]
    if len(set(counts)) > 1:
        rows["(tasks)"] = [f"{count:,}" for count in counts]
    cell = 2 + max(len(text) for texts in rows.values() for text in texts)
    lines = [f"Mean {found.criterion.title} for a new {words.noun}, by number of its rows known:"]
    for name, texts in rows.items():
        lines.append(name.ljust(width) + "".join(text.rjust(cell) for text in texts))
    lines += [words.ahead] if words.ahead else []
    return "\n".join([*lines, words.advice, words.side]).rstrip()


def _read(path, columns, params, shots, note) -> tuple[Any, Any]:
    """Return the tasks, and how the table is read; note what will be done."""
    from condmeta.cli.inputs import read_training

    table, side, columns = read_training(path, columns, params)
    from condmeta.tables.schema_learning import learn_schema  # after reading: it loads scikit-learn

    n_tasks = table.group_by(columns.task).aggregate([]).num_rows
    note(
        f"{path}: {pluralize(table.num_rows, 'row')} of {pluralize(n_tasks, 'task')}, "
        f"{pluralize(len(table.column_names), 'column')}. Each task is held out once, and "
        f"predicted with {', '.join(map(str, shots))} of its rows known."
    )
    schema, X, side = learn_schema(table, side, columns, params["missing"], None)
    return schema.tasks(table, side, labelled=True, X=X), schema


def _fit_command(found, table: str, params: dict[str, Any], no_boosting: bool) -> str:
    """Return the command that fits the recommended model; `params` are the options given."""
    from condmeta.evaluation.comparison import LINEAR
    from condmeta.tables.roles import ColumnOptions

    params = {name: value for name, value in params.items() if name not in ONLY_HERE}
    kind = type(found.model).__name__
    learner = next(name for name, classes in LEARNERS.items() if kind in classes)
    words = ["condmeta", "fit", table, "--learner", learner]
    if "base=" in found.call:
        words.append("--boosting")
    elif learner == "auto" and no_boosting:
        words.append("--no-boosting")
    if learner != "auto":  # others hold no tasks out: the rows need not be sorted
        time = params.get("time") if found.advised == "forgets" else None  # others read no times
        columns = ColumnOptions(**{name: params.get(name) for name in ColumnOptions._fields})
        left = [name for name in columns.excluded if name != time]
        params = params | {"exclude": left, "sort_by": None, "time": time}
    if found.advised == "unconditional":
        params = {name: value for name, value in params.items() if "side" not in name}
    elif "feature_map=None" in found.call:
        words.append("--shared-start")  # trees read the side columns
    if LINEAR in found.call:
        words.append("--linear")
    if "random=" in found.call:
        words += ["--random", "intercept"]
    return shlex.join([*words, *option_words(params), "-o", "model.condmeta"])
