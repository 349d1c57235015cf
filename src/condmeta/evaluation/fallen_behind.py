"""Whether a model that never forgets has fallen behind one that does, on new rows with times."""

from __future__ import annotations

from typing import Any

import numpy as np

from condmeta.fitted.known_statistics import statistics
from condmeta.fitted.prepared import scaled_tasks
from condmeta.inner.posterior import Gaussian
from condmeta.inner.squared import SquaredState
from condmeta.learners.parameters import jobs_of
from condmeta.meta.drift_choice import NONE, choose_drift
from condmeta.tasks import TaskSet
from condmeta.tasks.timed import Timed
from condmeta.tasks.times import as_clock


def gain_of_forgetting(learner: Any, tasks: TaskSet) -> float | None:
    """Return the share by which errors one step ahead would be lower with drift; 0 if unclear.

    The statistics of known tasks are as of the time of their first new row, which is not judged.
    None if this is not known: no times, too few tasks, or not a `ConditionalRidge` without drift.
    """
    fitted = learner.fitted_
    if tasks.time is None or type(fitted.inner) is not Gaussian or fitted.tasks is None:
        return None
    known = tasks.subset(np.flatnonzero(fitted.tasks.positions(tasks.ids.tolist()) >= 0))
    theta, before = statistics(fitted, known.ids)
    if not isinstance(before, SquaredState) or not len(known):
        return None
    part = fitted.past_shared_model(known)
    scaled, y = scaled_tasks(part, fitted.scales)
    X = fitted.scales.with_ones(scaled)
    rows = Timed(X, y, part.offsets, part.weight, as_clock(known.time))
    choice = choose_drift(fitted.inner, theta, rows, jobs_of(learner), before)
    if not choice.scores:
        return None
    now, best = choice.scores[NONE], choice.scores[choice.chosen]
    return 1 - best / now if now > 0 else 0.0
