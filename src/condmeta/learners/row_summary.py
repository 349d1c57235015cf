"""The summary of counts, classes and ordered classes: a method of their learners."""

from __future__ import annotations

from condmeta.fitted.summary import Summary
from condmeta.learners.learner import Learner


def summary(self: Learner, level: float = 0.95, robust: bool | None = None) -> Summary:
    """Return the effects of side columns with intervals, and variances between tasks.

    Effects are on the scale of <x, w>: of log rates for counts, of log odds for classes. Standard
    errors come from the information about the map, with the rows weighted as in the variational
    posteriors; they take H and the dispersion as known. A penalty on the map (kappa > 0) shrinks
    effects and their intervals towards zero: fit with `kappa=0` for those of maximum likelihood.
    More than two classes have one table below the other, by `class`.

    Parameters
    ----------
    level : float in (0, 1)
        Coverage of the intervals.
    robust : bool, optional
        Whether standard errors are also valid if variances differ between tasks. None means yes
        with 50 tasks or more.

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> rng = np.random.default_rng(0)
    >>> size, task = rng.normal(size=60), np.repeat(np.arange(60), 4)
    >>> y = rng.poisson(np.exp(1 + size[task]))
    >>> model = cm.ConditionalCount(metric="identity", kappa=0.0, fit_intercept=False).fit(
    ...     np.ones((240, 1)), y, task=task, side_info=cm.TaskTable({"size": size}, range(60))
    ... )
    >>> model.summary().effects[["side", "effect"]].round(1).to_numpy().tolist()
    [['(base)', 1.1], ['size', 1.0]]
    """
    return Summary.of(self.fitted_, level, robust, type(self).__name__)
