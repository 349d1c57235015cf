"""`condmeta fit`: a table in, a model file out."""

from __future__ import annotations

from itertools import chain

import click

from condmeta.cli.failures import tell_failures
from condmeta.cli.notes import tell_notes, tell_work
from condmeta.cli.options import csv_options, quiet_option, read_options, table_options
from condmeta.cli.training import (
    in_order,
    options_of,
    read_training,
    read_training_side,
    table_model,
    used_columns,
    without_order,
)
from condmeta.errors import DataError
from condmeta.words import count

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
@table_options
@click.option("--learner", type=click.Choice(list(LEARNERS)),
              help="[default: ridge; logistic if the target has two values]")  # fmt: skip
@click.option("--missing-side", type=click.Choice(["error", "mean"]), default="error",
              show_default=True, help="Tasks without a row in the side table.")  # fmt: skip
@click.option("--boosting/--no-boosting", default=None,
              help="Boosted trees under the learner: of ridge, logistic and auto.  [default: of "
              "auto]")  # fmt: skip
@click.option("--order", metavar="COL",
              help="Time or order of the rows, no feature: held-out tasks, of auto and of "
              "--intervals, show their earliest ones.")  # fmt: skip
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
    csv, params = read_options(params), without_order(params)
    with tell_notes(quiet) as tell:
        with tell_work(f"Learning from {table}", quiet):
            fit = _fit_parts if chunks else _fit_whole
            model = fit(table, csv, params)
        model.save(output, resume=not share)
        tell(f"{summary(model.card())} {output}, {show_size(output)}.")


def _fit_whole(path, csv, params):
    from condmeta.table.target import find_classes

    table, side, own = read_training(path, csv, params)
    table = in_order(table, params["order"])
    if params["learner"] is None and params["boosting"] is None:
        return _model(own, None).fit(table, side)  # TableModel chooses by the target
    classes = find_classes(table, params["target"], _wants_classes(params["learner"]))
    learner = _learner(params, classes is not None)
    return _model(own, learner).fit(table, side)


def _fit_parts(path, csv, params):
    from condmeta.files import check_columns, read_batches

    if params["order"] is not None:
        raise DataError("A table that is read in parts cannot be put in order: leave --order out.")
    side, side_columns = read_training_side(csv, params)
    parts = read_batches(path, text=[*params["task"], *params["text"]], csv=csv)
    first = next(parts)
    own = options_of(first, side_columns, params)

    def checked(part):
        check_columns(part, used_columns(part, own), params["text"], params["target"])
        return part

    return _model(own, _learner(params, False)).fit_batches(
        map(checked, chain([first], parts)), side
    )


def _wants_classes(learner: str | None) -> bool | None:
    """Return whether the target must be classes; None leaves it to the target."""
    if learner is None:
        return None
    numbers, classes = LEARNERS[learner]
    return None if numbers and classes else numbers is None


def _learner(params, classes: bool):
    """Return the learner that the options name."""
    import condmeta

    name = params["learner"] or ("logistic" if classes else "ridge")
    learner = getattr(condmeta, LEARNERS[name][classes])()
    if params["boosting"] is not None:
        if "base" not in learner.get_params():
            raise DataError(f"--boosting is of ridge, logistic and auto, not of {name}.")
        learner.set_params(base="boosting" if params["boosting"] else None)
    if name == "auto":
        learner.set_params(support=_order(params))
    return learner


def _model(params, learner):
    more = {name: params[name] for name in ("missing_side", "intervals")}
    return table_model(params, learner, order=_order(params), **more)


def _order(params) -> str:
    return "random" if params["order"] is None else "first"


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
