"""Types of arguments and results, for annotations and editors.

The names are for type checkers. Nothing is loaded for them when a program runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

__all__ = ["Frame", "Ids", "Matrix", "PathLike", "SideInfo", "Values"]

Frame: TypeAlias = Any  # a table of the user's library: pandas, polars or PyArrow

if TYPE_CHECKING:
    import os
    from collections.abc import Hashable, Mapping, Sequence

    from narwhals.typing import IntoDataFrame, IntoSeries
    from numpy.typing import ArrayLike
    from scipy.sparse import sparray, spmatrix

    from condmeta.tasks import TaskSet, TaskTable

    PathLike: TypeAlias = str | os.PathLike[str]
    Matrix: TypeAlias = ArrayLike | IntoDataFrame | sparray | spmatrix | TaskSet  # rows (N, d)
    # These may be None where a parameter is optional. Ids may be the name of a column.
    Values: TypeAlias = ArrayLike | IntoSeries | None  # (N,): targets, weights, times
    Ids: TypeAlias = ArrayLike | IntoSeries | IntoDataFrame | Sequence[Hashable] | None  # (N,)
    SideInfo: TypeAlias = TaskTable | IntoDataFrame | Mapping[Any, Any] | ArrayLike | TaskSet | None
else:
    Ids = Matrix = PathLike = SideInfo = Values = Any
