"""What `TableModel.fit` leaves: a fitted learner, and how tables are read for it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.evaluation.extrapolation import warn_extrapolating
from condmeta.fitted.at_times import drift_of
from condmeta.tables.learner import known_ids, uncalibrated
from condmeta.tables.schema import Schema
from condmeta.tables.task_columns import with_known_columns
from condmeta.tasks import TaskSet
from condmeta.tasks.frames import eager, is_frame
from condmeta.tasks.messages import explain_mismatch
from condmeta.typing import Frame, SideInfo
from condmeta.warn import warn

CHOSEN = "metric_", "noise_", "kappa_", "lam_", "meta_step_", "s2_", "alpha_"  # of learners
TRANSFORMS = "x_transform_", "y_transform_"


@dataclass(frozen=True, eq=False)
class FittedTable:
    """A fitted learner, the schema of its tables, and the rows it has seen."""

    learner: Any
    schema: Schema
    n_rows: int
    added: dict[str, int] = field(default_factory=dict)

    @property
    def linear(self) -> Any:
        """The learner without its calibration; an error if its tasks have no coefficients."""
        learner = uncalibrated(self.learner)
        if not hasattr(learner, "coef_frame"):
            raise DataError(
                f"{type(learner).__name__} mixes learners, so a task has no coefficients: use "
                "one learner, such as ConditionalRidge."
            )
        return learner

    def read(self, frame: Frame, side_info: SideInfo, labelled: bool) -> TaskSet:
        """Return the tasks of a table, in the columns of the schema."""
        frame, task = as_table(frame), self.schema.roles.task
        if len(task) > 1:
            frame = with_known_columns(frame, side_info, task, known_ids(self.learner))
        tasks = self.schema.tasks(frame, self.schema.side(frame, side_info), labelled)
        self._warn_of_near_ids(tasks)
        return tasks

    def read_new(self, frame: Frame, side_info: SideInfo) -> tuple[TaskSet, np.ndarray]:
        """Return rows to predict, and which rows (N,) extrapolate from the training range."""
        tasks = self.read(frame, side_info, labelled=False)
        self.schema.warn_far_rows(tasks)
        outside = np.zeros(len(tasks), bool)
        if tasks.side is not None:
            first = tasks.row_order[tasks.offsets[:-1]]
            new = self.learner.n_points(tasks)[first] == 0
            outside[new] = warn_extrapolating(
                uncalibrated(self.learner), tasks.ids[new], tasks.side
            )
        return tasks, tasks.restore_order(np.repeat(outside, tasks.sizes))

    def _warn_of_near_ids(self, tasks: TaskSet) -> None:
        """Warn if a new id differs from a known one only by its type or by leading zeros."""
        first = tasks.row_order[tasks.offsets[:-1][tasks.sizes > 0]]
        new = tasks.ids[tasks.sizes > 0][self.learner.n_points(tasks)[first] == 0]
        near = explain_mismatch(known_ids(self.learner), new.tolist()) if len(new) else ""
        if near:
            warn(near)

    def slim(self, tasks: bool, resume: bool) -> FittedTable:
        """Return what a file holds: without the models of tasks, or what `update` needs."""
        return replace(
            self, learner=self.learner.slim(tasks, resume), added=self.added if resume else {}
        )

    def card(self) -> dict[str, Any]:
        """Return columns, sizes, settings and choices."""
        learner, card = uncalibrated(self.learner), self.learner.card()
        drift = drift_of(learner.fitted_.inner) if hasattr(learner, "drift") else None
        chosen = {name: getattr(learner, name) for name in CHOSEN if hasattr(learner, name)}
        chosen = {n: v.item() if isinstance(v, np.generic) else v for n, v in chosen.items()}
        named = {name: getattr(learner, name, None) for name in TRANSFORMS}
        chosen |= {name: value for name, value in named.items() if isinstance(value, str)}
        return {"class": "TableModel"} | card | {
            "learner": type(learner).__name__, "sizes": card["sizes"] | {"rows": self.n_rows},
            "tables": [{"sha256": name[:12], "rows": n} for name, n in self.added.items()],
            "schema": self.schema.describe(), "encoded_features": self.schema.feature_names,
            "side_features": list(getattr(learner, "side_features_", [])),
            "chosen": {name.rstrip("_"): value for name, value in chosen.items()},
            "drift": None if drift is None else str(drift),
        }  # fmt: skip


def as_table(frame: Frame) -> Any:
    """Return a table in memory; raise an error for anything else."""
    if not is_frame(frame):
        raise DataError(
            f"TableModel reads pandas, polars and PyArrow tables, got a {type(frame).__name__}."
        )
    return eager(frame)
