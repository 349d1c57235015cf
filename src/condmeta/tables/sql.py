"""The query that scores the rows of a table in a database."""

from condmeta.errors import DataError
from condmeta.fitted.sql import Tables, score_query
from condmeta.tables.fitted_table import FittedTable


def table_query(model: FittedTable, dialect: str, tables: Tables, std: bool = False) -> str:
    """Return the query of `TableModel.to_sql`: features are computed from the table's columns."""
    schema = model.schema
    if schema.readers or schema.side_readers:
        first = next(iter({**schema.readers, **schema.side_readers}))
        raise DataError(
            f"SQL cannot compute features of dates or of numbers written as text (column "
            f"{first!r}). Score the rows with predict."
        )
    features, impute = schema.encoder.columns_out(), schema.missing == "impute"
    return score_query(model.linear.fitted_, dialect, tables, features, impute, std)
