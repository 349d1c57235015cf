"""`condmeta fit`: a table in, a model file out."""

from __future__ import annotations

import click

from condmeta.cli.failures import tell_failures
from condmeta.cli.notes import count, tell_notes, tell_work
from condmeta.cli.options import NAMES, csv_options, quiet_option, read_options

# For numbers and for two classes. Names of classes, not classes: `--help` must load nothing.
LEARNERS = {
    "ridge": ("ConditionalRidge", None),
    "logistic": (None, "ConditionalLogistic"),
    "auto": ("AutoRegressor", "AutoClassifier"),
    "erm": ("ConditionalERMRegressor", None),
    "coin": ("ConditionalCoinRegressor", None),
    "sgd": ("ConditionalSGDRegressor", "ConditionalSGDClassifier"),
    "independent": ("IndependentRegressor", "IndependentClassifier"),
    "pooled": ("PooledRegressor", "PooledClassifier"),
}


@click.command("fit", short_help="Learn a model from a table.")
@click.argument("table")
@click.option("--task", type=NAMES, required=True, metavar="COL",
              help="Column of task ids; several, with commas, make joint ids.")  # fmt: skip
@click.option("--target", required=True, metavar="COL", help="Column to predict.")
@click.option("--features", type=NAMES, metavar="COLS",
              help="Features, with commas.  [default: all other columns]")  # fmt: skip
@click.option("--exclude", type=NAMES, metavar="COLS", help="Columns that are no features.")
@click.option("--side", type=NAMES, metavar="COLS",
              help="Side columns: constant within a task; with --side-table, its columns to "
              "use.")  # fmt: skip
@click.option("--side-table", metavar="FILE", help="Side information, one row a task.")
@click.option("--side-key", type=NAMES, metavar="COL",
              help="Task ids in the side table.  [default: named as in TABLE]")  # fmt: skip
@click.option("--learner", type=click.Choice(list(LEARNERS)),
              help="[default: ridge; logistic if the target has two values]")  # fmt: skip
@click.option("--missing", type=click.Choice(["error", "impute"]), default="error",
              show_default=True, help="Missing features: refused, or mean and a mark.")  # fmt: skip
@click.option("--missing-side", type=click.Choice(["error", "mean"]), default="error",
              show_default=True, help="Tasks without a row in the side table.")  # fmt: skip
@click.option("--text", type=NAMES, default=[], metavar="COLS",
              help="Columns to read as names, whatever they look like.")  # fmt: skip
@click.option("--intervals", is_flag=True, help="Calibrate intervals on held-out tasks.")
@click.option("--chunks", is_flag=True,
              help="Read in parts a table larger than memory, sorted by task.")  # fmt: skip
@click.option("--share", is_flag=True,
              help="Leave out what update needs: statistics from which rows of tiny tasks could be "
              "read off.")  # fmt: skip
@click.option("-o", "--output", required=True, metavar="MODEL", help="Model file to write.")
@csv_options
@quiet_option
@tell_failures
def fit_command(table, output, quiet, share, chunks, **params):
    """Learn a model from TABLE (CSV, Parquet, Feather; - is standard input).

    A row is one observation of a task: a customer, a store, a patient. Features may be numbers,
    booleans and text; side information says what is known about each task.

    \b
    condmeta fit sales.csv --task store --target sold -o stores.condmeta
    condmeta fit sales.parquet --task store --target sold --exclude day \\
        --side-table stores.csv --intervals -o stores.condmeta
    zcat sales.csv.gz | condmeta fit - --task store --target sold -o stores.condmeta

    Exit codes: 0 done, 1 the data do not allow it, 2 the command was not understood.
    """
    from condmeta.cli.models import check_model_output, show_size

    check_model_output(output)
    with tell_notes(quiet) as tell:
        with tell_work(f"Learning from {table}", quiet):
            fit = _fit_parts if chunks else _fit_whole
            model = fit(table, read_options(params), params)
        model.save(output, resume=not share)
        tell(f"{summary(model.card())} {output}, {show_size(output)}.")


def _fit_whole(path, csv, params):
    from condmeta.files import check_columns, read_table
    from condmeta.table.target import find_classes
    from condmeta.tasks.frames import require_columns

    table = read_table(path, text=[*params["task"], *params["text"]], csv=csv)
    require_columns(table, params["task"], "task")
    require_columns(table, [params["target"]], "target")
    check_columns(table, _used(table, params), params["text"])
    classes = None
    if params["learner"] is not None:
        classes = find_classes(table, params["target"], _wants_classes(params["learner"]))
    model = _model(params, classes is not None)
    return model.fit(table, _read_side(params, csv))


def _fit_parts(path, csv, params):
    from condmeta.files import check_columns, read_batches

    def parts():
        for part in read_batches(path, text=[*params["task"], *params["text"]], csv=csv):
            check_columns(part, _used(part, params), params["text"])
            yield part

    return _model(params, False).fit_batches(parts(), _read_side(params, csv))


def _used(table, params) -> list[str]:
    """Return the columns of a table that the model would read as features, side or target."""
    away = {*params["task"], *(params["exclude"] or [])}
    wanted = params["features"]
    if wanted is not None:
        side = params["side"] if params["side_table"] is None else None
        wanted = {*wanted, *(side or []), params["target"]}
    names = table.column_names
    return [n for n in names if n not in away and (wanted is None or n in wanted)]


def _wants_classes(learner: str) -> bool | None:
    numbers, classes = LEARNERS[learner]
    return None if numbers and classes else numbers is None


def _read_side(params, csv):
    from condmeta.files import check_columns, read_table

    path = params["side_table"]
    if path is None:
        return None
    keys = params["side_key"] or params["task"]
    table = read_table(path, text=[*keys, *params["text"]], csv=csv)
    used = params["side"] or [name for name in table.column_names if name not in keys]
    check_columns(table, [n for n in used if n in table.column_names], params["text"])
    return table


def _model(params, classes: bool):
    import condmeta

    learner = None
    if params["learner"] is not None:
        learner = getattr(condmeta, LEARNERS[params["learner"]][classes])()
    if params["missing_side"] == "mean":
        kind = condmeta.ConditionalLogistic if classes else condmeta.ConditionalRidge
        learner = (learner or kind()).set_params(missing_side="mean")
    return condmeta.TableModel(
        learner, task=params["task"], target=params["target"], features=params["features"],
        exclude=params["exclude"] or [], side=params["side"], side_key=params["side_key"],
        missing=params["missing"], intervals=params["intervals"],
    )  # fmt: skip


def summary(card: dict) -> str:
    """Say in a sentence what a model is."""
    sizes, schema = card["sizes"], card["schema"]
    side = count(len(schema["side_columns"]), "side column")
    parts = [
        count(sizes["training_tasks"], "task"),
        count(sizes["rows"], "row"),
        count(len(schema["features"]), "feature column"),
        side if schema["side_columns"] else "no side information",
    ]
    return f"{card['learner']} of {schema['target']}: {', '.join(parts)}."
