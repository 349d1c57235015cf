"""The maps of a prior: for tasks with points, and for tasks without any."""

from functools import partial
from typing import NamedTuple, Self

import numpy as np

from condmeta.inner.context import Context
from condmeta.meta.blocks import Blocks
from condmeta.meta.context import learn_context, without_context
from condmeta.meta.pooled_map import pooled_map
from condmeta.meta.prior import LearnedPrior, Prior
from condmeta.meta.ridge_choice import COLD_STARTS, RidgeChoice
from condmeta.meta.ridge_judge import BY_SIDE
from condmeta.meta.side_noise import learn_side_noise


class LearnedMaps(NamedTuple):
    """What `ConditionalRidge` learns, in the scales of all rows and the coordinates of Phi.

    `cold` (k+1, width) is the map for tasks without points, None for the map of the prior. `open`
    (width, width) is what the estimation of the prior adds to the covariance of weights, if known.
    `delta` (k,): the noise of a task is s2 exp(delta . Phi); None if it does not follow Phi.
    """

    choice: RidgeChoice
    learned: LearnedPrior
    context: Context | None
    cold: np.ndarray | None
    open: np.ndarray | None = None
    delta: np.ndarray | None = None

    def with_setting(self, setting) -> Self:
        """Return it with another chosen setting."""
        selection = self.choice.selection._replace(chosen=setting)
        return self._replace(choice=self.choice._replace(selection=selection))


def learn_maps(choice: RidgeChoice, blocks: Blocks, learn, start: Prior | None) -> LearnedMaps:
    """Fit what was chosen to tasks; `learn(blocks, start, delta=None)` fits a prior."""
    learned, context, cold, delta = learn(blocks, start), None, None, None
    if choice.context:
        found, context = learn_context(blocks, learned.prior, learn)
        learned = learned if found is None else found
    if choice.selection.chosen.noise == BY_SIDE:
        left = (
            blocks if context is None else blocks.changed(partial(without_context, context=context))
        )
        learned, delta = learn_side_noise(left, learned, partial(learn, left))
    if context is not None:
        cold = learned.prior.W.copy()
        cold[-1] += context.start()
    if choice.pooled is not None:
        share = COLD_STARTS[choice.cold_start]
        without = learned.prior.W if cold is None else cold
        pooled = pooled_map(blocks, choice.pooled, without.shape)
        cold = (1 - share) * without + share * pooled
    return LearnedMaps(choice, learned, context, cold, delta=delta)
