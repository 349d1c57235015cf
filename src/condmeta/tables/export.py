"""Models that leave as tables: coefficients, effects, a card and a query, in one folder."""

from __future__ import annotations

import json
from pathlib import Path

from condmeta.errors import DataError
from condmeta.fitted.sql import coefficient_columns
from condmeta.fitted.tables import map_columns
from condmeta.tables.files import write_table
from condmeta.tables.learner import uncalibrated
from condmeta.tables.table_model import TableModel
from condmeta.tasks.frames import make_frame
from condmeta.typing import FittedModel, PathLike


def export(
    model: FittedModel, folder: PathLike, dialect: str = "duckdb", *, std: bool = False
) -> None:
    """Write a linear model as tables, so that a database or another program can use it.

    The folder gets `coefficients.parquet` (a row for each task), `effects.parquet` (the effect of
    each side feature on each coefficient), `score.sql` (the query of `to_sql`) and `card.json`
    (columns, encodings, settings). Needs the package pyarrow.

    Parameters
    ----------
    model : fitted linear learner, such as `ConditionalRidge`, or `TableModel`
    folder : path
        It is made if it does not exist. Files of these names are replaced.
    dialect : "duckdb", "postgres", "sqlite", "snowflake", "bigquery" or "spark"
    std : bool
        Also write what the standard deviations of predictions need (`ConditionalRidge`): a column
        of coefficients for each pair of features.

    Examples
    --------
    >>> import condmeta as cm, pathlib, tempfile
    >>> X, y = [[0.0], [2.0], [0.0], [2.0]], [1.0, 3.0, 2.0, 6.0]
    >>> model = cm.ConditionalRidge().fit(X, y, task=["a", "a", "b", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cm.export(model, folder)
    ...     sorted(path.name for path in pathlib.Path(folder).iterdir())
    ['card.json', 'coefficients.parquet', 'effects.parquet', 'score.sql']
    """
    learner = uncalibrated(model.learner_ if isinstance(model, TableModel) else model)
    if not hasattr(learner, "to_sql"):
        raise DataError(
            "Only a linear learner, such as ConditionalRidge, can be exported. Got "
            f"{type(learner).__name__}."
        )
    query = (model if isinstance(model, TableModel) else learner).to_sql(dialect, std=std)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tables = {
        "coefficients": coefficient_columns(learner.fitted_, std),
        "effects": map_columns(learner.fitted_),
    }
    for name, columns in tables.items():
        write_table(make_frame(columns, "pyarrow"), folder / f"{name}.parquet")
    card = json.dumps(model.card() | {"dialect": dialect}, indent=2, default=str)
    for name, text in {"score.sql": query, "card.json": card}.items():
        (folder / name).write_text(text, encoding="utf-8")
