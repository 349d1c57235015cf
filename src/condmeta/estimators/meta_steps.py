"""What learners by meta-steps share: the step, and divergence said in words."""

from __future__ import annotations

import numpy as np

from condmeta.errors import DivergenceError
from condmeta.estimators.base import Prepared
from condmeta.estimators.streaming import Incremental
from condmeta.estimators.task_store import naming_task
from condmeta.inner.algorithms import Online, diverged
from condmeta.inner.online import HUGE, loss_is_unbounded
from condmeta.inner.scores import row_scores


class MetaSteps(Incremental):
    """Steps of Algorithm 1."""

    def _meta_step(self) -> float:
        return float(self.meta_step)

    def _refuse_divergence(self, bad: int, data: Prepared, before, after) -> None:
        """Say so when the pass failed at the task `bad` (-1: none), or the map left all scales.

        `before` and `after` give theta (T, width) of the tasks at the last iterate, on demand.
        """
        if bad >= 0 and isinstance(self._inner, Online):
            with naming_task(data.ids):
                raise diverged(bad, self._inner.lam)
        if bad >= 0 or self._is_huge(before, after, data):
            raise DivergenceError(
                f"The meta-steps diverge at meta_step={self._meta_step():g}. Use a smaller "
                "meta_step, a loss with bounded slopes, or scale='standard'."
            )

    def _is_huge(self, before, after, data: Prepared) -> bool:
        """Tell whether the map left the scale of the targets, which bounded slopes cannot do.

        The scale is also that of the map before: the tasks of one call may have targets of zero.
        """
        if not loss_is_unbounded(getattr(self._inner, "loss", None)):
            return False
        task = np.repeat(np.arange(len(data.ids)), np.diff(data.offsets))
        reach = []
        with np.errstate(over="ignore", invalid="ignore"):
            for theta in (before, after):
                z = row_scores(data.X, theta(), task, 1)
                reach.append(np.abs(z).max(initial=0.0))
        return not reach[1] <= HUGE * max(np.abs(data.y).max(initial=0.0), reach[0])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # One pass of online steps at a fixed lam learns little from one task, and says so.
        if tags.regressor_tags is not None:
            tags.regressor_tags.poor_score = True
        if tags.classifier_tags is not None:
            tags.classifier_tags.poor_score = True
        return tags
