"""Models that read tables themselves, where a learner is expected."""

from typing import Any

from condmeta.errors import DataError


def refuse_table_model(learner: Any, remedy: str) -> None:
    """Raise if a model reads tables itself, as `TableModel` and `FormulaModel` do."""
    if hasattr(learner, "schema_") or hasattr(learner, "formula"):
        raise DataError(f"A {type(learner).__name__} reads tables itself: {remedy}.")
