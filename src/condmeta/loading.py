"""Open a model file of any class of condmeta."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

# Importing these modules registers every class that a file may hold.
import condmeta.evaluation.calibrate
import condmeta.tables.formula
import condmeta.tables.table_model  # noqa: F401
from condmeta.learners import (  # noqa: F401
    auto_classifier,
    auto_regressor,
    baselines,
    coin,
    count,
    erm,
    kernel_sgd,
    levels,
    logistic,
    ordinal,
    ridge,
    sgd,
    sgd_cv,
    shrinkage,
)
from condmeta.persistence import read_model
from condmeta.tasks.ids import factorize
from condmeta.typing import PathLike, TaskId


def load(path: PathLike, *, tasks: Iterable[TaskId] | None = None) -> Any:
    """Read a model that `save` wrote.

    The file is checked before it is read. It holds only arrays and JSON: opening it runs no code.
    A damaged or foreign file raises a `condmeta.errors.ModelFileError` with the remedy.

    Parameters
    ----------
    path : str or path
    tasks : array-like of ids, optional
        Read only these tasks, for example of a model of millions of tasks. All other tasks are new
        to the model. It can predict, adapt and update, but `partial_fit` needs the whole model, and
        so do `update` and standard deviations of `ConditionalLevels`.

    Examples
    --------
    >>> import condmeta as cm, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "pooled.condmeta"
    ...     cm.PooledRegressor(lam=0.5).fit([[0.0], [1.0]], [0.0, 1.0]).save(path)
    ...     cm.load(path)
    PooledRegressor(lam=0.5)
    """
    if tasks is None:
        return read_model(path)
    return read_model(path, set(factorize(tasks, what="tasks")[1].tolist()))
