"""Explain the prior tau(s) of tasks: contributions of side columns, and similar known tasks."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.evaluation.calibrate import Calibrated
from condmeta.evaluation.extrapolation import (
    Nearest,
    Neighbourhood,
    Sides,
    sides_of,
    unusual_sides,
)  # fmt: skip
from condmeta.feature_maps.raw_columns import raw_columns
from condmeta.feature_maps.training_ranges import UnusualValue
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.tables import coefficient_names, map_effects
from condmeta.fitted.tau import LinearTau
from condmeta.learners.learner import Learner
from condmeta.learners.side_inputs import read_sides
from condmeta.tasks.frames import make_frame
from condmeta.tasks.ids import as_id_array, id_columns
from condmeta.tasks.messages import show_id
from condmeta.tasks.numbers import level_name

SHOWN = 5  # tasks, and columns of each, that are printed
NEW = "(new)"  # the id of a task given by its side row alone


@dataclass(frozen=True, repr=False)
class Explanation:
    """The contributions of side columns to the priors of tasks; it prints as a text.

    Attributes
    ----------
    ids : (T,) array
    columns, features : list of str
        The J side columns and the d coefficients (intercept last).
    theta : (T, d) array
        tau(s), the prior coefficients of the tasks, in the user's units.
    theta_mean : (d,) array
        tau at the mean Phi of the training tasks.
    contributions : (T, J, d) array or None
        What each side column adds: theta = theta_mean + contributions.sum(axis=1). None for kernel
        learners: their map is not a sum over columns.
    unusual : list of UnusualValue
        Side information outside the training range.
    scale : (d,) array
        The usual size of each feature; the text shows the coefficients that are largest times it.
    is_outside : (T,) bool array
        Whether the side information of a task is outside the training range.

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
    unusual: list[UnusualValue]
    task_name: Any = None
    backend: str | None = None
    scale: np.ndarray | float = 1.0

    @property
    def is_outside(self) -> np.ndarray:
        return np.isin(np.arange(len(self.ids)), [one.row for one in self.unusual])

    @property
    def frame(self):
        """A row for each task, coefficient and side column: its value and its contribution."""
        if self.contributions is None:
            raise DataError(
                "A kernel learner has no contributions of side columns: use nearest and outside."
            )
        T, J, d = self.contributions.shape
        columns = self._ids(np.repeat(np.arange(T), d * J))
        columns["feature"] = np.tile(np.repeat(as_id_array(self.features), J), T)
        columns["column"] = np.tile(as_id_array(self.columns), T * d)
        columns["value"] = np.repeat(self.values, d, axis=0).ravel()
        columns["contribution"] = np.swapaxes(self.contributions, 1, 2).ravel()
        return make_frame(columns, self.backend)

    @property
    def nearest(self):
        """A row for each task and each of its nearest known tasks: rank, distance, points.

        Distances are Euclidean in Phi; features are in standard deviations over the known tasks.
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
        """A row for each unusual value of the side information: task, column, value, reason."""
        columns = self._ids(np.array([one.row for one in self.unusual], dtype=int))
        columns["column"] = as_id_array([one.column for one in self.unusual])
        columns["value"] = as_id_array([_value(one) for one in self.unusual])
        columns["reason"] = as_id_array([one.reason for one in self.unusual])
        return make_frame(columns, self.backend)

    def _ids(self, at: np.ndarray) -> dict[str, np.ndarray]:
        ids = [NEW if task is None else task for task in self.ids[at].tolist()]
        return id_columns(ids, self.task_name)

    def __repr__(self) -> str:
        parts = [self._text(t) for t in range(min(len(self.ids), SHOWN))]
        left = len(self.ids) - len(parts)
        return "\n\n".join(parts) + (f"\n\n... and {left} more tasks: see frame." if left else "")

    def _text(self, t: int) -> str:
        task = "The new task" if self.ids[t] is None else f"Task {show_id(self.ids[t])}"
        lines = [f"{task} starts at {self._terms(self.theta[t])}"]
        lines.append(f"  a mean task starts at {self._terms(self.theta_mean)}")
        if self.contributions is not None:
            # The columns with the largest shares in the changes of the coefficients come first.
            total = np.abs(self.contributions[t]).sum(axis=0)
            weight = (np.abs(self.contributions[t]) / np.where(total > 0, total, 1.0)).sum(axis=1)
            for j in np.argsort(-weight, kind="stable")[:SHOWN].tolist():
                value = f" = {self.values[t, j]}" if self.values[t, j] else ""
                terms = self._terms(self.contributions[t, j], sign="+")
                lines.append(f"  {self.columns[j]}{value} adds {terms}")
            if len(self.columns) > SHOWN:
                lines.append(f"  ... and {len(self.columns) - SHOWN} more columns")
        if self.neighbours is not None:
            near = zip(self.neighbours.ids[t], self.neighbours.distance[t], strict=True)
            near = (f"{show_id(one)} (distance {distance:.2g})" for one, distance in near)
            lines.append(f"  like {', '.join(near)}")
        for one in self.unusual:
            if one.row == t:
                value = f" = {_value(one)}" if one.value is not None else ""
                lines.append(f"  outside the training range: {one.column}{value}: {one.reason}")
        return "\n".join(lines)

    def _terms(self, values: np.ndarray, sign: str = "") -> str:
        shown = list(zip(self.features, values.tolist(), strict=True))
        if len(shown) > SHOWN + 1:  # the largest for features of usual size
            by_size = np.argsort(-np.abs(values * self.scale), kind="stable")
            shown = [shown[j] for j in np.sort(by_size[:SHOWN]).tolist()]
        text = ", ".join(f"{name} {value:{sign}.3g}" for name, value in shown)
        return text + (", ..." if len(shown) < len(values) else "")


def explain(model: Any, side_info: Any = None, *, n_nearest: int = 3) -> Explanation:
    r"""Explain the prior coefficients tau(s) of tasks by the contributions of their side columns.

    With nu the mean Phi of the training tasks, and Phi_j the features of side column j (the levels
    of a category; a number and its indicator of gaps),

        tau(s) = tau at nu + sum_j M_j (Phi_j(s) - nu_j),

    in the user's units. Features of a map that mixes columns (Fourier features, a transformer)
    count as one column, named like the map.

    Parameters
    ----------
    model : fitted learner
        A kernel learner has no contributions, only nearest tasks and unusual values.
    side_info : row or table
        As for `theta_for`: the row of one task, or a table keyed by task id.
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
    """
    learner = model.model if isinstance(model, Calibrated) else model
    _refuse(learner, n_nearest)
    fitted = learner.fitted_
    ids, table, points, _ = read_sides(learner, fitted, side_info)
    sides = sides_of(fitted, ids, table, points)
    around = Neighbourhood.of(fitted)
    linear = isinstance(fitted.tau, LinearTau)
    columns, contributions = _contributions(fitted, sides.Phi) if linear else ([], None)
    near = None if around is None else around.nearest(sides.Phi, n_nearest, ids)
    theta = fitted.scales.user_vector(fitted.tau.theta(sides.Phi))
    scale = np.append(fitted.scales.x_scale, np.ones(int(fitted.scales.fit_intercept)))
    return Explanation(
        ids, columns, coefficient_names(fitted), theta, learner.theta_mean_, contributions,
        _values(sides, columns), near, unusual_sides(fitted, sides, around, near),
        fitted.columns.task_name, fitted.columns.backend, scale,
    )  # fmt: skip


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


def _value(unusual: UnusualValue) -> str:
    return "" if unusual.value is None else level_name(unusual.value)


def _refuse(learner: Any, n_nearest: Any) -> None:
    kind = type(learner).__name__
    if hasattr(learner, "schema_"):
        raise DataError("A TableModel reads tables itself: call its own explain(side_info).")
    if hasattr(learner, "learners_"):
        raise DataError(
            f"{kind} mixes several learners with different priors: fit the one that its report_ "
            "names, such as ConditionalRidge, and explain that."
        )
    if not isinstance(learner, Learner):
        raise DataError(f"explain needs a fitted learner, such as ConditionalRidge. Got a {kind}.")
    if not (isinstance(n_nearest, int | np.integer) and n_nearest > 0):
        raise DataError(
            f"The 'n_nearest' parameter must be an int of at least 1. Got {n_nearest!r} instead."
        )
