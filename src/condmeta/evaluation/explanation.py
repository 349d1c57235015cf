"""The result of `explain`: tables, a text, and a table for notebooks."""

from dataclasses import dataclass

import numpy as np

from condmeta.errors import DataError
from condmeta.evaluation.extrapolation import Nearest
from condmeta.feature_maps.training_ranges import UnusualValue
from condmeta.notebook import Strong, html_block, html_table, paragraph
from condmeta.tasks.frames import make_frame
from condmeta.tasks.ids import as_id_array, id_columns
from condmeta.tasks.messages import show_id
from condmeta.tasks.numbers import level_name
from condmeta.text import pluralize
from condmeta.typing import Frame, TaskId

SHOWN = 5  # tasks, and columns of each, that are printed
KEPT = "  all ", "  like ", "  outside ", "  it forgets "  # lines below the table of a notebook
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
    adapted : (T, d) array or None
        The coefficients after the task's own points; None unless known tasks were asked for.
    n : (T,) array or None
        The number of these points.
    drift : str or None
        How tasks change with time, in words; None if they do not.
    y_scale : str or None
        The scale of y that coefficients are on, "log" or "yeo-johnson"; None for y itself.

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
    task_name: TaskId = None
    backend: str | None = None
    scale: np.ndarray | float = 1.0
    adapted: np.ndarray | None = None
    n: np.ndarray | None = None
    drift: str | None = None
    y_scale: str | None = None

    @property
    def is_outside(self) -> np.ndarray:
        return np.isin(np.arange(len(self.ids)), [one.row for one in self.unusual])

    @property
    def frame(self) -> Frame:
        """A row for each task, coefficient and side column: its value and its contribution."""
        if self.contributions is None:
            raise DataError(
                "A kernel learner has no contributions of side columns: use its attributes "
                "nearest and outside."
            )
        T, J, d = self.contributions.shape
        columns = self._ids(np.repeat(np.arange(T), d * J))
        columns["feature"] = np.tile(np.repeat(as_id_array(self.features), J), T)
        columns["column"] = np.tile(as_id_array(self.columns), T * d)
        columns["value"] = np.repeat(self.values, d, axis=0).ravel()
        columns["contribution"] = np.swapaxes(self.contributions, 1, 2).ravel()
        return make_frame(columns, self.backend)

    @property
    def nearest(self) -> Frame:
        """A row for each task and each of its nearest known tasks: rank, distance, points.

        Distances are Euclidean in Phi; features are in standard deviations over the known tasks.
        """
        if self.neighbours is None:
            raise DataError(
                "The model does not keep the side information of its tasks. It was fitted with "
                "keep_tasks=False or by partial_fit, or saved with tasks=False, or it has no "
                "side information or more than 128 side features."
            )
        ids, n, distance = self.neighbours
        T, count = ids.shape
        columns = self._ids(np.repeat(np.arange(T), count))
        near = id_columns(ids.ravel().tolist(), "nearest")
        columns |= {"rank": np.tile(np.arange(1, count + 1), T), **near}
        return make_frame(columns | {"distance": distance.ravel(), "n": n.ravel()}, self.backend)

    @property
    def outside(self) -> Frame:
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
        if self.y_scale is not None:
            lines.append(f"  all coefficients are on the {self.y_scale} scale of y")
        lines.append(f"  a mean task starts at {self._terms(self.theta_mean)}")
        if self.adapted is not None and self.n is not None and self.n[t] > 0:
            points = pluralize(int(self.n[t]), "point")
            lines.append(f"  with its {points} it is at {self._terms(self.adapted[t])}")
            if self.drift is not None:
                lines.append(f"  it forgets earlier points: {self.drift}")
        if self.contributions is not None:
            for j in self._by_weight(t)[:SHOWN]:
                value = f" = {self.values[t, j]}" if self.values[t, j] else ""
                terms = self._terms(self.contributions[t, j], sign="+")
                lines.append(f"  {self.columns[j]}{value} adds {terms}")
            if len(self.columns) > SHOWN:
                lines.append(f"  ... and {pluralize(len(self.columns) - SHOWN, 'more column')}")
        if self.neighbours is not None:
            near = zip(self.neighbours.ids[t], self.neighbours.distance[t], strict=True)
            near = (f"{show_id(one)} (distance {distance:.2g})" for one, distance in near)
            lines.append(f"  like {', '.join(near)}")
        for one in self.unusual:
            if one.row == t:
                value = f" = {_value(one)}" if one.value is not None else ""
                lines.append(f"  outside the training range: {one.column}{value}: {one.reason}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [self._html(t) for t in range(min(len(self.ids), SHOWN))]
        left = len(self.ids) - len(parts)
        more = paragraph(f"... and {pluralize(left, 'more task')}: see frame.") if left else ""
        return html_block(*parts, more)

    def _html(self, t: int) -> str:
        """Return a table of one task: where it starts, column by column, and its neighbours."""
        task = "The new task" if self.ids[t] is None else f"Task {show_id(self.ids[t])}"
        at = self._largest(self.theta[t])
        rows = [["a mean task", "", *self.theta_mean[at]]]
        if self.contributions is not None:
            for j in self._by_weight(t)[:SHOWN]:
                added = [f"{value:+.3g}" for value in self.contributions[t, j, at]]
                rows.append([self.columns[j], self.values[t, j], *added])
        rows.append([Strong("starts at"), "", *(Strong(f"{v:.4g}") for v in self.theta[t, at])])
        if self.adapted is not None and self.n is not None and self.n[t] > 0:
            points = pluralize(int(self.n[t]), "point")
            rows.append([f"with its {points}", "", *self.adapted[t, at]])
        names = [self.features[j] for j in at]
        table = html_table(["", "value", *names], rows, task)
        rest = self._text(t).splitlines()
        kept = [line.strip() for line in rest if line.startswith(KEPT)]
        return table + "".join(map(paragraph, kept))

    def _by_weight(self, t: int) -> list[int]:
        """Return the side columns, those with the largest shares in changes of coefficients first.

        t is the position of a task; there must be contributions.
        """
        total = np.abs(self.contributions[t]).sum(axis=0)
        weight = (np.abs(self.contributions[t]) / np.where(total > 0, total, 1.0)).sum(axis=1)
        return np.argsort(-weight, kind="stable").tolist()

    def _largest(self, values: np.ndarray) -> list[int]:
        """Return the coefficients to show: all, or the largest for features of usual size."""
        if len(values) <= SHOWN + 1:
            return list(range(len(values)))
        by_size = np.argsort(-np.abs(values * self.scale), kind="stable")
        return np.sort(by_size[:SHOWN]).tolist()

    def _terms(self, values: np.ndarray, sign: str = "") -> str:
        shown = self._largest(values)
        text = ", ".join(f"{self.features[j]} {values[j]:{sign}.3g}" for j in shown)
        return text + (", ..." if len(shown) < len(values) else "")


def _value(unusual: UnusualValue) -> str:
    return "" if unusual.value is None else level_name(unusual.value)
