"""`condmeta fit`: read a table, write a model file."""

from functools import partial

import click

from condmeta.cli.learner_options import (
    FLAGS,
    LEARNERS,
    kind_of_learner,
    learner_of,
    model_of,
    names_a_learner,
)
from condmeta.cli.options import Names, common_options, force_option, table_options, wait_option
from condmeta.cli.terminal import show_notes, spinner
from condmeta.errors import DataError
from condmeta.text import pluralize

BY_FILES = None, "ridge", "logistic", "count", "ordinal"  # need not have all rows at once


@click.command("fit", short_help="Learn a model from a table.")
@table_options
@click.option("--learner", type=click.Choice(list(LEARNERS)),
              help="Learner to fit. levels is for tasks in groups, such as --task region,store.  "
              "[default: ridge for numbers, logistic for classes, count for "
              "counts]")  # fmt: skip
@click.option(
    "--exposure",
    metavar="COL",
    help="Column to which expected counts are proportional, such as days (with --learner count).",
)
@click.option("--trials", metavar="COL",
              help="Column with the number of trials, if the target is a number of successes "
              "(with --learner logistic).")  # fmt: skip
@click.option(
    "--classes",
    type=Names(),
    metavar="A,B,C",
    help="Classes from the lowest to the highest (with --learner ordinal).",
)
@click.option("--missing-side", type=click.Choice(["error", "mean"]), default="error",
              show_default=True,
              help="If a task has no row in the side table: stop with an error, or treat it "
              "as an average task.")  # fmt: skip
@click.option("--boosting/--no-boosting", default=None,
              help="Fit boosted trees to all tasks first (ridge, levels, logistic, auto).  "
              "[default: only auto]")  # fmt: skip
@click.option("--random", type=Names(), metavar="COLS",
              help="Columns whose coefficients may differ between tasks, or 'intercept' if only "
              "the intercept may (ridge, levels, logistic, ordinal, count).  "
              "[default: all]")  # fmt: skip
@click.option("--linear", is_flag=True,
              help="Do not transform target or features (ridge, levels, count).  [default: a "
              "power of the target, or splines of features, if held-out tasks show "
              "a gain]")  # fmt: skip
@click.option("--shared-start", is_flag=True,
              help="Start all tasks from the same coefficients. Only boosted trees then use side "
              "information.")  # fmt: skip
@click.option("--sort-by", metavar="COL",
              help="Sort the rows by this column, such as a date. The model then sees the "
              "earliest rows of held-out tasks (auto, --intervals) and predicts the later "
              "ones. The column is not a feature unless named in --features.")  # fmt: skip
@click.option("--time", metavar="COL",
              help="Column with the time of each row, a number or a date. Old rows then count "
              "less if tasks change with time (ridge). The column is not a feature unless "
              "named in --features.")  # fmt: skip
@click.option("--weight", metavar="COL",
              help="Column with the weight of each row: 2 counts like two equal rows. It is not a "
              "feature.")  # fmt: skip
@click.option("--intervals", is_flag=True, help="Calibrate prediction intervals on held-out tasks.")
@click.option("--chunks", is_flag=True,
              help="Read a table larger than memory in parts. It must be sorted by "
              "task.")  # fmt: skip
@click.option("--memory", metavar="SIZE",
              help="Read files larger than memory, with rows in any order. The rows are ordered "
              "by task on disk, using this much memory, such as 2GB.  [default for several "
              "files: 1GB]")  # fmt: skip
@click.option("--workers", type=click.IntRange(min=1), metavar="N",
              help="Fit on a Dask cluster of N processes on this machine.")  # fmt: skip
@click.option("--scheduler", metavar="ADDRESS",
              help="Fit on the Dask cluster of this scheduler, such as tcp://10.0.0.1:8786. Its "
              "workers must be able to open the files and the folder of MODEL.")  # fmt: skip
@click.option("--prior-tasks", type=click.IntRange(min=1), metavar="N",
              help="With several files: learn what tasks share from N tasks (logistic, count, "
              "ordinal, --boosting).  [default: 10000, with at most 2000000 rows]")  # fmt: skip
@click.option("--share", is_flag=True,
              help="Leave out of MODEL the statistics that update needs. They could reveal the "
              "rows of very small tasks.")  # fmt: skip
@click.option("-o", "--output", required=True, metavar="MODEL", help="Model file to write.")
@force_option
@wait_option
@common_options
def fit_command(
    table, output, force, wait, quiet, share, chunks, memory, workers, scheduler, **params
):  # fmt: skip
    """Learn a model from TABLE (CSV, Parquet, Feather; - is standard input).

    Each row is one observation of a task, such as a customer, a store or a patient. Features may be
    numbers, booleans, dates and text. Side information describes each task, such as the size of a
    store or the age of a patient.

    TABLE may be a pattern in quotes, such as 'sales/*.parquet', or a folder of files. condmeta then
    orders their rows by task on disk (see --memory). If you stop the command, run it again: it
    continues where it stopped.

    \b
    condmeta fit sales.csv --task store --target sold -o stores.condmeta
    condmeta fit sales.parquet --task store --target sold --exclude day \\
        --side-table stores.csv --intervals -o stores.condmeta
    condmeta fit 'sales/*.parquet' --task store --target sold --memory 2GB -o stores.condmeta
    zcat sales.csv.gz | condmeta fit - --task store --target sold -o stores.condmeta

    Exit codes: 0 done, 1 error in the data or a file, 2 wrong usage.
    """
    from condmeta.cli.inputs import column_options, show_size
    from condmeta.cli.lock import locked
    from condmeta.cli.outputs import MODEL, check_files
    from condmeta.tables.big.paths import is_pattern

    cluster = workers is not None or scheduler is not None
    many = memory is not None or cluster or (table != "-" and is_pattern(table))
    one = None if many and table != "-" else table
    check_files(one, params["side_table"], output=output, kind=MODEL, force=force)
    params |= {name: params[name] or None for name in FLAGS}
    columns, folder = column_options(params), f"{output}.work"
    with show_notes(quiet) as note:
        with spinner(f"Learning from {table}", quiet):
            if many:
                _refuse_with_files(table, columns, params, chunks)
                if cluster:
                    _refuse_with_cluster(workers, scheduler, memory)
                    note(f"Working in {folder}.")
                    fit = partial(_fit_on_workers, workers=workers, scheduler=scheduler)
                else:
                    note(
                        f"Working in {folder}. If you stop the command, run it again: it "
                        "continues there."
                    )
                    fit = partial(_fit_files, memory=memory or "1GB")
                model = fit(table, columns, params, folder)
            elif params["prior_tasks"] is not None:
                raise DataError("--prior-tasks is for several files, --memory, or a cluster.")
            else:
                fit = _fit_parts if chunks else _fit_whole
                model = fit(table, columns, params)
        with locked(output, wait):
            model.save(output, resume=not share)
        if many:
            from condmeta.tables.big.fit import remove_work

            remove_work(folder)
        note(f"{_summary(model)} {output}, {show_size(output)}.")


def _fit_whole(path, columns, params):
    from condmeta.cli.inputs import read_training

    table, side, columns = read_training(path, columns, params)
    from condmeta.tables.schema_learning import kind_of_target  # it loads scikit-learn

    learner = None  # TableModel chooses by the target
    if params["classes"] is not None and params["learner"] != "ordinal":
        raise DataError("--classes and --learner ordinal go together: give both.")
    if names_a_learner(params):
        kind = kind_of_learner(params) or kind_of_target(table, columns, None)
        learner = learner_of(params, kind)
    return model_of(columns, learner, params).fit(table, side)


def _refuse_with_files(path, columns, params, chunks) -> None:
    """Refuse what a fit to files cannot do."""
    if path == "-":
        raise DataError(
            "--memory, --workers and --scheduler read files, not standard input: name the files."
        )
    if params["learner"] not in BY_FILES:
        raise DataError(
            f"--learner {params['learner']} needs all rows at once: name one file and leave "
            "--memory out, or use --learner ridge."
        )
    if columns.sort_by is not None:
        raise DataError("condmeta orders the rows of several files by task: leave --sort-by out.")
    if chunks:
        raise DataError("--memory reads rows in any order: leave --chunks out.")


def _refuse_with_cluster(workers, scheduler, memory) -> None:
    if workers is not None and scheduler is not None:
        raise DataError(
            "--workers starts a cluster, --scheduler uses a running one: give only one of them."
        )
    if memory is not None:
        raise DataError(
            "--memory does not work with a cluster (--workers, --scheduler): leave it out."
        )


def _fit_files(path, columns, params, folder, memory):
    from condmeta.tables.big.fit import remove_work

    _, side, model, columns = _open_files(path, columns, params)
    how = {"memory": memory, "text": columns.table_text, "csv": _csv(params)}
    how["prior_tasks"] = params["prior_tasks"]
    try:
        return model.fit_files(path, side, folder=folder, **how)
    except DataError:
        remove_work(folder)  # a refused call leaves nothing
        raise


def _fit_on_workers(path, columns, params, folder, workers, scheduler):
    from pathlib import Path

    from condmeta.tables.big.fit import STAGED, remove_work
    from condmeta.tables.big.paths import stage
    from condmeta.tables.cluster.workers import cluster_of

    paths, side, model, columns = _open_files(path, columns, params)
    work, text = Path(folder).resolve(), columns.table_text
    try:
        staged = stage(paths, work / STAGED, text, _csv(params))
        with cluster_of(workers, scheduler) as client:
            how = {"folder": work / "rows", "text": text, "prior_tasks": params["prior_tasks"]}
            return model.fit_dask(staged, side, client=client, **how)
    finally:
        remove_work(folder)


def _open_files(path, columns, params):
    """Return the files, the side table, an unfitted model, and the options of columns."""
    from condmeta.cli.inputs import read_side
    from condmeta.tables.big.paths import find_files
    from condmeta.tables.files.reader import names_in_file

    side, paths = read_side(columns, params), find_files(path)
    names = [*names_in_file(paths[0]), *(side.column_names if side else [])]
    columns = columns.with_commas(names)
    learner = None
    if names_a_learner(params):
        learner = learner_of(params, kind_of_learner(params) or "number")
    return paths, side, model_of(columns, learner, params), columns


def _csv(params):
    from condmeta.cli.inputs import csv_options

    return csv_options(params)


def _fit_parts(path, columns, params):
    from condmeta.cli.inputs import check_training, csv_options, read_side
    from condmeta.tables.files import read_batches

    if params["learner"] not in (None, "ridge", "levels"):
        raise DataError(
            f"--learner {params['learner']} needs all rows at once: leave --chunks out, or use "
            "--learner ridge."
        )
    if columns.sort_by is not None:
        raise DataError("A table that is read in parts cannot be sorted: leave --sort-by out.")
    side = read_side(columns, params)
    parts = read_batches(path, text=columns.table_text, csv=csv_options(params))

    def check(part):
        check_training(part, side, columns)
        return part

    model = model_of(columns, learner_of(params, "number"), params)
    return model.fit_batches(map(check, parts), side)


def _summary(model) -> str:
    """Describe a model in one sentence."""
    card = model.card()
    sizes, schema = card["sizes"], card["schema"]
    side = pluralize(len(schema["side_columns"]), "side column")
    parts = [
        pluralize(sizes["training_tasks"], "task"),
        pluralize(sizes["rows"], "row"),
        pluralize(len(model.schema_.roles.features), "feature column"),
        side if schema["side_columns"] else "no side information",
    ]
    if schema["time"] is not None:
        parts.append("nothing forgotten" if card["drift"] is None else card["drift"])
    return f"{card['learner']} of {schema['target']}: {', '.join(parts)}."
