"""Why a task starts where it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.estimators.linear_map import LinearMap
from condmeta.estimators.tables import coefficient_names, map_effects
from condmeta.estimators.task_model import user_vector
from condmeta.evaluation.calibrate import Calibrated
from condmeta.evaluation.nearest import Nearest, Neighbourhood
from condmeta.evaluation.outside import Sides, oddities, sides_of
from condmeta.feature_maps.raw_columns import raw_columns
from condmeta.tasks.frames import make_frame
from condmeta.tasks.ids import id_columns, show_id
from condmeta.tasks.numbers import level_name
from condmeta.tasks.seen import Odd

SHOWN = 5  # tasks, and columns of each, in print
NEW = "(new)"  # the id of a task given by its row alone


@dataclass(frozen=True, repr=False)
class Explanation:
    """Hold why tasks start where they start; printed it is a text.

    Attributes
    ----------
    ids : (T,) array
    columns, features : list of str
        Side columns, J, and coefficients, d (intercept last).
    theta : (T, d) array
        tau(s), where the tasks start, in the user's units.
    theta_mean : (d,) array
        Where a task starts whose Phi is the mean of the training tasks.
    contributions : (T, J, d) array or None
        What each side column adds: theta = theta_mean + contributions.sum(axis=1). None for kernel
        learners, whose map is no sum over columns.
    scale : (d,) array
        The usual size of what each coefficient is multiplied by; the text tells the coefficients
        that are largest with it.
    is_outside : (T,) bool array
        Whether the side information lies outside what was seen.

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.environments.Circle(d=2, n=8).sample(40, random_state=0)
    >>> found = cm.explain(cm.ConditionalRidge().fit(tasks), {"s": 0.25})
    >>> found.columns, found.theta.shape, bool(found.is_outside[0])
    (['s'], (1, 3), False)
    """

    ids: np.ndarray
    columns: list[str]
    features: list[str]
    theta: np.ndarray
    theta_mean: np.ndarray
    contributions: np.ndarray | None
    values: np.ndarray
    neighbours: Nearest | None
    odd: list[Odd]
    task_name: Any = None
    backend: str | None = None
    scale: np.ndarray | float = 1.0

    @property
    def is_outside(self) -> np.ndarray:
        return np.isin(np.arange(len(self.ids)), [odd.row for odd in self.odd])

    @property
    def frame(self):
        """A row for each task, coefficient and side column: its value and its contribution."""
        if self.contributions is None:
            raise DataError(
                "A kernel learner has no contributions of side columns: its map is no sum over "
                "them. nearest and outside tell what there is to tell."
            )
        T, J, d = self.contributions.shape
        columns = self._ids(np.repeat(np.arange(T), d * J))
        columns["feature"] = np.tile(np.repeat(_texts(self.features), J), T)
        columns["column"] = np.tile(_texts(self.columns), T * d)
        columns["value"] = np.repeat(self.values, d, axis=0).ravel()
        columns["contribution"] = np.swapaxes(self.contributions, 1, 2).ravel()
        return make_frame(columns, self.backend)

    @property
    def nearest(self):
        """A row for each task and near known task: rank, distance and number of points.

        Distances are between Phi, each feature in its standard deviations over the known tasks.
        """
        if self.neighbours is None:
            raise DataError(
                "The model does not keep the side information of its tasks: it was fitted with "
                "keep_tasks=False or by partial_fit, saved with tasks=False, or has no side "
                "information, or more than 128 features of it."
            )
        ids, n, distance = self.neighbours
        T, count = ids.shape
        columns = self._ids(np.repeat(np.arange(T), count))
        near = id_columns(ids.ravel().tolist(), "nearest")
        columns |= {"rank": np.tile(np.arange(1, count + 1), T), **near}
        return make_frame(columns | {"distance": distance.ravel(), "n": n.ravel()}, self.backend)

    @property
    def outside(self):
        """A row for each value unlike those of training: task, column, value, reason."""
        columns = self._ids(np.array([odd.row for odd in self.odd], dtype=int))
        columns["column"] = _texts([odd.column for odd in self.odd])
        values = ["" if odd.value is None else level_name(odd.value) for odd in self.odd]
        columns["value"] = _texts(values)
        return make_frame(
            columns | {"reason": _texts([odd.reason for odd in self.odd])}, self.backend
        )

    def _ids(self, at: np.ndarray) -> dict[str, np.ndarray]:
        ids = [NEW if task is None else task for task in self.ids[at].tolist()]
        return id_columns(ids, self.task_name)

    def __repr__(self) -> str:
        parts = [self._text(t) for t in range(min(len(self.ids), SHOWN))]
        left = len(self.ids) - len(parts)
        return "\n\n".join(parts) + (f"\n\n... and {left} more tasks: see frame." if left else "")

    def _text(self, t: int) -> str:
        task = "The new task" if self.ids[t] is None else f"Task {show_id(self.ids[t])}"
        lines = [f"{task} starts at " + self._terms(self.theta[t])]
        lines.append("  a mean task starts at " + self._terms(self.theta_mean))
        if self.contributions is not None:
            # Columns by what they move, in units of what each coefficient is moved in all.
            total = np.abs(self.contributions[t]).sum(axis=0)
            weight = (np.abs(self.contributions[t]) / np.where(total > 0, total, 1.0)).sum(axis=1)
            order = np.argsort(-weight, kind="stable")[:SHOWN]
            for j in order.tolist():
                value = f" = {self.values[t, j]}" if self.values[t, j] else ""
                terms = self._terms(self.contributions[t, j], sign="+")
                lines.append(f"  {self.columns[j]}{value} adds {terms}")
            if len(self.columns) > SHOWN:
                lines.append(f"  ... and {len(self.columns) - SHOWN} more columns")
        if self.neighbours is not None:
            near = zip(self.neighbours.ids[t], self.neighbours.distance[t], strict=True)
            lines.append(
                "  like " + ", ".join(f"{show_id(one)} (distance {d:.2g})" for one, d in near)
            )
        for odd in self.odd:
            if odd.row == t:
                value = "" if odd.value is None else f" = {level_name(odd.value)}"
                lines.append(f"  outside what was seen: {odd.column}{value}: {odd.reason}")
        return "\n".join(lines)

    def _terms(self, values: np.ndarray, sign: str = "") -> str:
        shown = list(zip(self.features, values.tolist(), strict=True))
        if len(shown) > SHOWN + 1:  # those that matter most for a feature of usual size
            by_size = np.argsort(-np.abs(values * self.scale), kind="stable")
            shown = [shown[j] for j in np.sort(by_size[:SHOWN]).tolist()]
        text = ", ".join(f"{name} {value:{sign}.3g}" for name, value in shown)
        return text + (", ..." if len(shown) < len(values) else "")


def explain(model: Any, side_info: Any = None, *, n_nearest: int = 3) -> Explanation:
    r"""Tell why tasks start where they start: tau(s), column by column.

    With nu the mean Phi of the training tasks, and J the groups of features that come from one side
    column (the levels of a category, a number and its gap),

        tau(s) = tau at nu + sum_j M_j (Phi_j(s) - nu_j),

    in the user's units. Features of a map that mixes columns (Fourier features, a transformer)
    count as one column, named like the map.

    Parameters
    ----------
    model : fitted learner
        One with a linear map; of a kernel learner only the nearest tasks, and what is outside.
    side_info : row or table
        As for `theta_for`: the row of one task, or a table keyed by task id.
    n_nearest : int
        Known tasks to name for each.

    Returns
    -------
    Explanation

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
    """
    learner = model.model if isinstance(model, Calibrated) else model
    _refuse(learner, n_nearest)
    learner._ready()
    ids, table, points, _ = learner._read_sides(side_info)
    sides = sides_of(learner, ids, table, points)
    around = Neighbourhood.of(learner)
    linear = isinstance(learner, LinearMap)
    columns, contributions = _contributions(learner, sides.Phi) if linear else ([], None)
    near = None if around is None else around.nearest(sides.Phi, n_nearest, ids)
    return Explanation(
        ids,
        columns,
        coefficient_names(learner),
        user_vector(learner._head.preparation, learner._theta(sides.Phi)),
        learner.theta_mean_,
        contributions,
        _values(sides, columns),
        near,
        oddities(learner, sides, around, near),
        learner._task_name,
        learner._backend,
        _scale(learner),
    )


def _scale(learner: Any) -> np.ndarray:
    """Return the usual size of what each coefficient is multiplied by, 1 for the intercept."""
    preparation = learner._head.preparation
    return np.append(preparation.x_scale, np.ones(int(preparation.fit_intercept)))


def _contributions(learner: Any, Phi: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Return the side columns (J,), and what each adds to each coefficient (T, J, d)."""
    sources = raw_columns(learner._map)
    columns = list(dict.fromkeys(sources))
    off, effects = Phi - learner._phi_mean, map_effects(learner)
    contributions = np.empty((len(Phi), len(columns), effects.shape[1]))
    for j, name in enumerate(columns):
        at = [source == name for source in sources]
        contributions[:, j] = off[:, at] @ effects[at]
    return columns, contributions


def _values(sides: Sides, columns: list[str]) -> np.ndarray:
    """Return the raw values behind the columns as text (T, J); nothing where there is none."""
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


def _texts(values: Any) -> np.ndarray:
    return np.array(list(values), dtype=object)


def _refuse(learner: Any, n_nearest: Any) -> None:
    kind = type(learner).__name__
    if hasattr(learner, "schema_"):
        raise DataError("A TableModel reads tables itself: call its own explain(side_info).")
    if hasattr(learner, "_learners"):
        raise DataError(
            f"{kind} mixes several learners, each of which starts elsewhere: fit the one that its "
            "report_ names, as ConditionalRidge, and explain that."
        )
    if not hasattr(learner, "_read_sides"):
        raise DataError(f"explain takes a fitted learner, as ConditionalRidge. Got a {kind}.")
    if not (isinstance(n_nearest, int | np.integer) and n_nearest > 0):
        raise DataError(
            f"The 'n_nearest' parameter must be an int of at least 1. Got {n_nearest!r} instead."
        )
