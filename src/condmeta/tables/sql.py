"""The query that scores the rows of a table in a database."""

from condmeta.evaluation import Calibrated
from condmeta.fitted.against_rest import with_classes
from condmeta.fitted.dialects import find_dialect
from condmeta.fitted.sql import Tables, score_query
from condmeta.tables.fitted_table import FittedTable
from condmeta.tables.sql_dates import date_sources


def table_query(model: FittedTable, dialect: str, tables: Tables, std: bool = False) -> str:
    """Return the query of `TableModel.to_sql`: features are computed from the table's columns."""
    schema = model.schema
    find_dialect(dialect)
    sources = [date_sources(found, dialect) for found in (schema.readers, schema.side_readers)]
    features, impute = schema.encoder.columns_out(), schema.missing == "impute"
    bounds = {}
    if isinstance(model.learner, Calibrated):
        bounds = {"bounds": model.learner.calibration.bounds}
    fitted = with_classes(model.linear.fitted_, schema.classes)
    return score_query(
        fitted, dialect, tables, features, impute, std, *sources,
        exposure=schema.roles.exposure, **bounds,
    )  # fmt: skip
