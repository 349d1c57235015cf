"""What a fitted table model answers: predictions, coefficients, updates, checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.estimators.serving import atomic
from condmeta.estimators.tables import INTERCEPT, coefficient_names
from condmeta.evaluation import Calibrated, CheckReport, Explanation, check, explain
from condmeta.evaluation.outside import warn_far_out
from condmeta.table import storage
from condmeta.table.schema import Schema
from condmeta.tasks import TaskSet
from condmeta.tasks.frames import backend_of, eager, is_frame, make_frame
from condmeta.tasks.ids import id_columns


class Answering:
    """The methods of a fitted table model, which has `learner_`, `schema_` and `n_rows_`."""

    learner_: Any
    schema_: Schema
    n_rows_: int

    def _read(self, frame: Any, side_info: Any, labelled: bool) -> TaskSet:
        self._require_fit()
        frame = as_table(frame)
        return self.schema_.tasks(frame, self.schema_.side(frame, side_info), labelled)

    def _read_new(self, frame: Any, side_info: Any) -> tuple[TaskSet, np.ndarray]:
        """Return rows to predict, and which of them (N,) are of tasks unlike all that fit saw."""
        tasks = self._read(frame, side_info, labelled=False)
        outside = np.zeros(len(tasks), bool)
        if tasks.side is not None:
            first = tasks.row_order[tasks.offsets[:-1]]
            new = self.learner_.n_points(tasks)[first] == 0
            outside[new] = warn_far_out(storage.core(self.learner_), tasks.ids[new], tasks.side)
        return tasks, tasks.restore_order(np.repeat(outside, tasks.sizes))

    def _require_fit(self) -> None:
        if "schema_" not in self.__dict__:
            raise DataError("This TableModel is not fitted yet: call fit, or load a saved one.")

    def predict(self, frame: Any, side_info: Any = None, *, coverage: float | None = None) -> Any:
        """Predict the rows of a table: tasks known or new, by their points or side row.

        Parameters
        ----------
        frame : table
            Task and features; side columns, or `side_info`, where tasks are new.
        coverage : float in (0, 1), optional
            Return also the ends of intervals that hold a new label with this probability; the
            model must be fitted with `intervals=True`.

        Returns
        -------
        (N,) array of numbers or classes, or a tuple of predictions, lower and upper ends
        """
        tasks, _ = self._read_new(frame, side_info)
        predicted = self._decoded(self.learner_.predict(tasks))
        return predicted if coverage is None else (predicted, *self._ends(tasks, coverage))

    def _decoded(self, predicted: np.ndarray) -> np.ndarray:
        classes = self.schema_.classes
        return predicted if classes is None else np.array(classes)[predicted.astype(int)]

    def _ends(self, tasks: TaskSet, coverage: float) -> tuple[np.ndarray, np.ndarray]:
        if not isinstance(self.learner_, Calibrated):
            raise DataError("The model has no intervals: fit it with intervals=True.")
        return self.learner_.predict_interval(tasks, coverage=coverage)

    def predict_frame(
        self, frame: Any, side_info: Any = None, *, coverage: float | None = None
    ) -> Any:
        """Return predictions as a table of the kind of `frame`, a row for each of its rows.

        Columns: `prediction`; for classes `probability`, of the second of them, where the learner
        has any; with `coverage` also `lower` and `upper`; `task_points`, how many of its task the
        model knows; `task_kind`, "known", "new", or "outside": new, with side information far
        outside what was seen.
        """
        tasks, outside = self._read_new(frame, side_info)
        columns = {"prediction": self._decoded(self.learner_.predict(tasks))}
        if self.schema_.classes is not None and hasattr(self.learner_, "predict_proba"):
            columns["probability"] = self.learner_.predict_proba(tasks)[:, 1]
        if coverage is not None:
            columns["lower"], columns["upper"] = self._ends(tasks, coverage)
        columns["task_points"] = points = self.learner_.n_points(tasks)
        kind = np.where(points > 0, "known", np.where(outside, "outside", "new"))
        columns["task_kind"] = kind.astype(object)
        return make_frame(columns, backend_of(frame))

    def adapt(self, frame: Any, side_info: Any = None) -> Any:
        """Solve the tasks of a table from its rows alone; the model is not changed.

        Returns
        -------
        TaskModels, whose coefficients are those of `schema_.feature_names`
        """
        tasks = self._read(frame, side_info, labelled=True)
        warn_far_out(storage.core(self.learner_), tasks.ids, tasks.side)
        return self.learner_.adapt(tasks)

    def adapt_frame(self, frame: Any, side_info: Any = None) -> Any:
        """Return what `adapt` finds as a table: task, n, intercept, one column a feature."""
        models, core = self.adapt(frame, side_info), self._with_coefficients()
        columns = id_columns(models.ids.tolist(), self.schema_.task_name) | {"n": models.n_}
        names = [name for name in coefficient_names(core) if name != INTERCEPT]
        columns[INTERCEPT] = np.broadcast_to(models.intercept_, len(models.ids))
        columns |= {name: models.coef_[:, j] for j, name in enumerate(names)}
        return make_frame(columns, backend_of(frame))

    @atomic
    def update(self, frame: Any, side_info: Any = None) -> Any:
        """Add the rows of a table to the tasks they belong to, and enrol new tasks.

        What was learned about all tasks stays. A model that was saved needs `save(resume=True)`.
        """
        tasks = self._read(frame, side_info, labelled=True)
        storage.require_resumable(self.learner_)
        self.learner_.update(tasks)
        self.n_rows_ += len(tasks.X)
        return self

    def n_points(self, frame: Any) -> np.ndarray:
        """Return for each row how many points of its task the model knows (N,); 0 is a new task."""
        return self.learner_.n_points(self._read(frame, None, labelled=False))

    def check(self, frame: Any, side_info: Any = None, *, false_alarm: float = 0.05) -> CheckReport:
        """Judge the model by new labelled rows: keep, update or refit (see `condmeta.check`)."""
        return check(
            self.learner_, self._read(frame, side_info, labelled=True), false_alarm=false_alarm
        )

    def explain(self, side_info: Any) -> Explanation:
        """Say why the tasks of a side table start where they start (see `condmeta.explain`)."""
        self._require_fit()
        return explain(self.learner_, self.schema_.side_of_table(side_info))

    def coef_frame(self, wide: bool = False) -> Any:
        """Return the coefficients of the tasks (see `ConditionalRidge.coef_frame`)."""
        return self._with_coefficients().coef_frame(wide)

    def _with_coefficients(self) -> Any:
        """Return the learner within, if its tasks have coefficients."""
        core = storage.core(self.learner_)
        if not hasattr(core, "coef_frame"):
            raise DataError(
                f"{type(core).__name__} mixes learners, so that a task has no coefficients: take "
                "one learner, such as ConditionalRidge."
            )
        return core


def as_table(frame: Any) -> Any:
    """Return a table in memory, or say that this is none."""
    if not is_frame(frame):
        raise DataError(
            f"TableModel reads pandas, polars and PyArrow tables, got a {type(frame).__name__}."
        )
    return eager(frame)
