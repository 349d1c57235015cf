"""Explain the prior tau(s) of tasks: contributions of side columns, and similar known tasks.

The result is an `Explanation`.
"""

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from condmeta.errors import DataError
from condmeta.evaluation.calibrate import Calibrated
from condmeta.evaluation.explanation import Explanation
from condmeta.evaluation.extrapolation import (
    Neighbourhood,
    Sides,
    sides_of,
    unusual_sides,
)  # fmt: skip
from condmeta.evaluation.table_models import refuse_table_model
from condmeta.feature_maps.raw_columns import raw_columns
from condmeta.fitted.against_rest import one_class_only
from condmeta.fitted.at_times import drift_of
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.starts import start as start_of
from condmeta.fitted.tables import coefficient_names, map_effects
from condmeta.fitted.tau import LinearTau
from condmeta.learners.learner import Learner
from condmeta.learners.side_inputs import read_sides
from condmeta.tasks.messages import explain_absent, show_id
from condmeta.tasks.numbers import level_name
from condmeta.typing import FittedModel, Ids, SideInfo

GROUPS = "(groups)"  # what the groups of a task add, as a column


def explain(
    model: FittedModel, side_info: SideInfo = None, *, task: Ids = None, n_nearest: int = 3
) -> Explanation:
    r"""Explain the prior coefficients tau(s) of tasks by the contributions of their side columns.

    With nu the mean Phi of the training tasks, and Phi_j the features of side column j (the levels
    of a category; a number and its indicator of gaps),

        tau(s) = tau at nu + sum_j M_j (Phi_j(s) - nu_j),

    in the user's units. Features of a map that mixes columns (Fourier features, a transformer)
    count as one column, named like the map. For `ConditionalLevels` the column "(groups)" is what
    the other tasks of its groups add.

    Parameters
    ----------
    model : fitted learner
        A kernel learner has no contributions, only nearest tasks and unusual values.
    side_info : row or table
        As for `theta_for`: the row of one task, or a table keyed by task id.
    task : id or list of ids, optional
        Known tasks instead, by what the model keeps of them. The result then also has their
        adapted coefficients, but not the raw values of their side columns.
    n_nearest : int
        Number of nearest known tasks to list for each task.

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> rng = np.random.default_rng(0)
    >>> size, city = rng.normal(size=50), rng.choice(["Bonn", "Rome"], size=50)
    >>> task, X = np.repeat(np.arange(50), 6), rng.normal(size=(300, 1))
    >>> y = (2 * size + (city == "Rome"))[task] * X[:, 0] + 0.01 * rng.normal(size=300)
    >>> model = cm.ConditionalRidge(kappa=0.1).fit(
    ...     X, y, task=task, side_info=cm.TaskTable({"size": size, "city": city}, range(50)))
    >>> found = cm.explain(model, {"size": 9.0, "city": "Rome"})
    >>> bool(np.allclose(found.theta_mean + found.contributions.sum(axis=1), found.theta))
    True
    >>> found.outside["column"].tolist()
    ['size']
    >>> cm.explain(model, task=7).n.tolist()
    [6]
    """
    learner = model.model if isinstance(model, Calibrated) else model
    _refuse(learner, n_nearest)
    fitted = learner.fitted_
    one_class_only(fitted, "explain")
    at = None if task is None else _known(fitted, task, side_info)
    sides = _given_sides(learner, fitted, side_info) if at is None else _kept_sides(fitted, at)
    ids = sides.ids
    around = Neighbourhood.of(fitted)
    linear = isinstance(fitted.tau, LinearTau)
    columns, contributions = _contributions(fitted, sides.Phi) if linear else ([], None)
    near = None if around is None else around.nearest(sides.Phi, n_nearest, ids)
    theta = fitted.scales.user_vector(fitted.tau.theta(sides.Phi))
    if fitted.groups is not None:
        start = start_of(fitted, ids, sides.Phi)[0] if at is None else fitted.tasks.theta[at]
        start = fitted.scales.user_vector(start)
        columns, theta, own = [*columns, GROUPS], start, start - theta
        contributions = np.concatenate([contributions, own[:, None]], axis=1)
    scale = np.append(fitted.scales.x_scale, np.ones(int(fitted.scales.fit_intercept)))
    return Explanation(
        ids, columns, coefficient_names(fitted), theta, learner.theta_mean_, contributions,
        _values(sides, columns), near, unusual_sides(fitted, sides, around, near),
        fitted.columns.task_name, fitted.columns.backend, scale,
        None if at is None else fitted.scales.user_vector(fitted.tasks.coef[at]),
        None if at is None else fitted.tasks.sizes[at],
        None if drift_of(fitted.inner) is None else str(drift_of(fitted.inner)),
        None if fitted.target is None else fitted.target.name,
    )  # fmt: skip


def _given_sides(learner: Learner, fitted: Fitted, side_info: Any) -> Sides:
    """Return the side information of a call; an id in its place is named as one."""
    store = fitted.tasks
    if isinstance(side_info, (str, int, tuple)) and store is not None and side_info in store.index:
        try:
            return sides_of(fitted, *read_sides(learner, fitted, side_info)[:3])
        except DataError as error:
            known = f"{show_id(side_info)} is a known task: call explain(model, task=...)"
            raise DataError(f"{known} with its id. As side information: {error}") from None
    return sides_of(fitted, *read_sides(learner, fitted, side_info)[:3])


def _known(fitted: Fitted, task: Any, side_info: Any) -> np.ndarray:
    """Return the positions of known tasks, or raise."""
    if side_info is not None:
        raise DataError("Give side_info, or the ids of known tasks as task=, not both.")
    store = fitted.tasks
    if store is None or store.Phi is None:
        raise DataError(
            "The model does not keep the side information of its tasks: give it as side_info=."
        )
    ids = list(task) if isinstance(task, (list, np.ndarray)) else [task]
    at = store.positions(ids)
    if (at < 0).any():
        absent = [one for one, position in zip(ids, at, strict=True) if position < 0]
        raise DataError(explain_absent(store.ids.tolist(), absent, "the model"))
    return at


def _kept_sides(fitted: Fitted, at: np.ndarray) -> Sides:
    """Return the side information of known tasks: Phi alone, or the mean where there is none."""
    Phi = np.array(fitted.tasks.Phi[at], dtype=float)
    gaps = ~np.isfinite(Phi).all(axis=1)
    Phi[gaps] = fitted.tau.phi_mean
    return Sides(fitted.tasks.ids[at], None, Phi)


def _contributions(fitted: Fitted, Phi: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Return the side columns (J,), and what each adds to each coefficient (T, J, d)."""
    sources = raw_columns(fitted.reader.map)
    columns = list(dict.fromkeys(sources))
    off, effects = Phi - fitted.tau.phi_mean, map_effects(fitted)
    contributions = np.empty((len(Phi), len(columns), effects.shape[1]))
    for j, name in enumerate(columns):
        at = [source == name for source in sources]
        contributions[:, j] = off[:, at] @ effects[at]
    return columns, contributions


def _values(sides: Sides, columns: list[str]) -> np.ndarray:
    """Return the raw values of the side columns as text (T, J), "" where there is none."""
    values = np.full((len(sides.ids), len(columns)), "", dtype=object)
    if sides.table is None:
        return values
    rows = sides.table.positions(sides.ids.tolist())
    for j, name in enumerate(columns):
        if name in sides.table.data:
            column = sides.table.data[name].tolist()
            values[:, j] = [_text(column[row]) if row >= 0 else "" for row in rows]
    return values


def _text(value: Any) -> str:
    if value is None or value != value:
        return "(missing)"
    return f"{value:.6g}" if isinstance(value, float) else level_name(value)


def _refuse(learner: Any, n_nearest: Any) -> None:
    kind = type(learner).__name__
    refuse_table_model(learner, "call its own explain")
    if hasattr(learner, "learners_"):
        raise DataError(
            f"{kind} mixes several learners with different priors: fit the one that its report_ "
            f"names, such as Conditional{'Logistic' if is_classifier(learner) else 'Ridge'}, and "
            "explain that."
        )
    if not isinstance(learner, Learner):
        raise DataError(f"explain needs a fitted learner, such as ConditionalRidge. Got {kind}.")
    if not (isinstance(n_nearest, int | np.integer) and n_nearest > 0):
        raise DataError(
            f"The 'n_nearest' parameter must be an int of at least 1. Got {n_nearest!r} instead."
        )
