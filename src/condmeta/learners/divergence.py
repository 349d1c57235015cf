"""Meta-steps that diverge, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from condmeta.errors import DivergenceError
from condmeta.fitted.task_store import naming_task
from condmeta.inner.algorithms import Batch, Online, diverged
from condmeta.inner.online import HUGE, loss_is_unbounded
from condmeta.inner.scores import row_scores
from condmeta.learners.training import Training


def refuse_divergence(
    bad: int, data: Training, inner: Any, meta_step: Any, before: Any, after: Any
) -> None:
    """Raise if the pass failed at the task `bad` (-1: none), or if the map became huge.

    `before` and `after` are functions that return theta (T, width) of the tasks at the last
    iterate, before and after the pass.
    """
    if bad >= 0 and isinstance(inner, Online):
        with naming_task(data.ids):
            raise diverged(bad, inner.lam)
    if bad >= 0 and not isinstance(inner, Batch):
        with naming_task(data.ids):
            raise _no_gradient(bad, inner)
    refuse_huge_map(bad >= 0, data, inner, meta_step, before, after)


def _no_gradient(position: int, inner: Any) -> DivergenceError:
    error = DivergenceError(
        f"The method solve of {type(inner).__name__} returned a gradient that is not finite. If "
        "condmeta.testing.check_inner finds no mistake in it, use a smaller meta_step."
    )
    error.position = position
    return error


def refuse_huge_map(
    failed: bool, data: Training, inner: Any, meta_step: Any, before: Any, after: Any
) -> None:
    """Raise if a step of the map failed, or if the map became huge; see `refuse_divergence`."""
    if failed or _is_huge(data, inner, before, after):
        shown = f"{meta_step:g}" if isinstance(meta_step, float) else repr(meta_step)
        raise DivergenceError(
            f"The meta-steps diverge at meta_step={shown}. Use a smaller meta_step, a loss with "
            "bounded slopes, or scale='standard'."
        )


def _is_huge(data: Training, inner: Any, before: Any, after: Any) -> bool:
    """Return whether predictions are far beyond the targets, which bounded slopes cannot cause.

    The predictions before the pass count as well: the targets of one call may all be zero.
    """
    if not loss_is_unbounded(getattr(inner, "loss", None)):
        return False
    X, y, offsets, _ = data.rows
    task = np.repeat(np.arange(len(data.ids)), np.diff(offsets))
    reach = []
    with np.errstate(over="ignore", invalid="ignore"):
        for theta in (before, after):
            reach.append(np.abs(row_scores(X, theta(), task, 1)).max(initial=0.0))
    return not reach[1] <= HUGE * max(np.abs(y).max(initial=0.0), reach[0])
