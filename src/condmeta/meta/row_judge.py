"""Log losses of priors on held-out tasks with rows of one form (see `meta.logistic_choice`)."""

from functools import partial
from typing import NamedTuple, Self

import numpy as np

from condmeta.inner.likelihoods import Binomial, Likelihood
from condmeta.inner.row_posterior import solve_rows
from condmeta.inner.scores import row_scores
from condmeta.meta.ascent import Stopping
from condmeta.meta.logistic import learn_prior
from condmeta.meta.pooled_rows import pooled_priors
from condmeta.meta.prior import Prior
from condmeta.meta.selection import task_rounds
from condmeta.meta.unseen_map import open_prior
from condmeta.tasks.points import Points
from condmeta.tasks.splits import first_points, half_of
from condmeta.tasks.weights import repeats

SAMPLE = 400  # tasks that settings are chosen on
FEW = 1, 3  # points that a held-out task shows, beside none and half of them
ACCURACY = 1e-4  # of posteriors that are only compared
ROUGH = Stopping(tol=0.05, max_evaluations=60)  # of fits that are only compared


class ShownPoints(NamedTuple):
    """Points that tasks show, those that judge them then, and the features (T, k) that go with it.

    The features are those without points where maps of points read none.
    """

    support: Points
    query: Points
    Phi: np.ndarray

    def take(self, at) -> Self:
        """Return the tasks at positions `at`."""
        return type(self)(self.support.take(at), self.query.take(at), self.Phi[at])


def held_out_views(points: Points, read, reduce) -> list[ShownPoints]:
    """Return tasks with half of their points, with 1 and 3 of these, and without any.

    Each half judges in turn. `read(shown, n)` returns the features of tasks that show n points, all
    of them if n is None; `reduce` keeps what the prior reads of points.
    """
    halves = [half_of(points, half) for half in (True, False)]

    def view(shown: Points, query: Points, n: int | None) -> ShownPoints:
        shown = shown if n is None else first_points(shown, n)
        return ShownPoints(reduce(shown), reduce(query), read(shown, n))

    pairs = halves, halves[::-1]
    return [view(*pair, n) for n in (None, *FEW) for pair in pairs] + [view(points, points, 0)]


class RowJudge:
    """Held-out tasks, fold by fold.

    views : list of ShownPoints, the first of which shows half of the points, the last none;
    fold : (T,) int, the round in which a task is held out; parameter : that of the likelihood if it
    is given.
    """

    def __init__(
        self, points: Points, Phi, views: list[ShownPoints], fold, n_jobs=1,
        likelihood: type[Likelihood] = Binomial, parameter=None,
    ):  # fmt: skip
        self.points, self.Phi, self.views, self.n_jobs = points, Phi, views, n_jobs
        self.likelihood, self.parameter = likelihood, parameter
        self.judged = views[0].query.count > 0
        self.folds = list(task_rounds(fold, self.judged))
        self._cold: dict[tuple[int, str, float], tuple[Prior, np.ndarray]] = {}

    @property
    def n_labels(self) -> float:
        """How many labels all views judge by."""
        return sum(view.query.count[held].sum() for _, held in self.folds for view in self.views)

    def fit(self, number: int | None):
        """Return the function (metric, kappa, start=None) that fits the tasks outside a fold."""
        kind = {"likelihood": self.likelihood, "parameter": self.parameter}
        how = {"accuracy": ACCURACY, "n_jobs": self.n_jobs, "stopping": ROUGH}
        return partial(learn_prior, *self._train(number), **kind, **how)

    def _train(self, number: int | None) -> tuple[Points, np.ndarray]:
        if number is None:
            return self.points, self.Phi
        train, _ = self.folds[number]
        return self.points.take(train), self.Phi[train]

    def losses(self, number: int, metric: str, kappa: float, prior: Prior) -> np.ndarray:
        """Return the log losses (views, T) of the tasks of a fold, with a prior of the others."""
        found = self._losses(number, prior, kappa, self.views)
        self._cold[number, metric, kappa] = prior, found[-1]
        return found

    def _losses(self, number: int, prior: Prior, kappa: float, views) -> np.ndarray:
        law = self.likelihood(prior.s2)
        spread = open_prior(*self._train(number), law, prior, kappa, accuracy=ACCURACY)
        held = [view.take(self.folds[number][1]) for view in views]
        return np.array([
            task_losses(law, prior.theta(Phi), spread.factors(Phi), support, query, self.n_jobs)
            for support, query, Phi in held
        ])  # fmt: skip

    def cold_losses(self, metric: str, kappa: float, kappas) -> dict[float | None, np.ndarray]:
        """Return the log losses (T,) of all held-out tasks without points.

        Under None those of the prior with these settings; under each of `kappas` those of the
        pooled model with this ridge.
        """
        found: dict[float | None, list[np.ndarray]] = {each: [] for each in (None, *kappas)}
        for number in range(len(self.folds)):
            if (number, metric, kappa) not in self._cold:
                self.losses(number, metric, kappa, self.fit(number)(metric, kappa).prior)
            prior, lost = self._cold[number, metric, kappa]
            found[None].append(lost)
            how = kappas, prior.s2, ROUGH, self.n_jobs
            for each, pooled in pooled_priors(*self._train(number), *how):
                found[each].append(self._losses(number, pooled, each, self.views[-1:])[0])
        return {each: np.concatenate(parts) for each, parts in found.items()}


def task_losses(
    law: Likelihood, theta, factor, support: Points, query: Points, n_jobs=1
) -> np.ndarray:
    """Return the sums of -log P(y) over the query points of tasks adapted to their support (T,).

    `factor` is as in `solve_rows`.
    """
    solved = solve_rows(law, support, theta, factor, n_jobs)
    codes = np.repeat(np.arange(len(theta)), query.sizes)
    mean = row_scores(query.X, solved.coef, codes, n_jobs)
    lost = -law.log_density(query, mean, solved.state.of_rows(query.X, codes))
    lost = lost if query.weight is None else repeats(query.weight) * lost
    return np.bincount(codes, lost, minlength=len(theta))
