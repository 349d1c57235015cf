"""Open a model file, whichever of our models it holds."""

from __future__ import annotations

from typing import Any

# Their classes enter themselves into the list of what a file may hold.
import condmeta.estimators
import condmeta.evaluation
import condmeta.table  # noqa: F401
from condmeta.persistence import read_model


def load(path: Any) -> Any:
    """Read a model that `save` wrote.

    The file is checked before it is read, and holds arrays and JSON only: opening it runs nothing.
    Every fault is a `condmeta.errors.ModelFileError` that says what to do.

    Examples
    --------
    >>> import condmeta as cm, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "pooled.condmeta"
    ...     cm.PooledRegressor(lam=0.5).fit([[0.0], [1.0]], [0.0, 1.0]).save(path)
    ...     cm.load(path)
    PooledRegressor(lam=0.5)
    """
    return read_model(path)
