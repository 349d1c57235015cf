r"""The choice of metric and ridge for `meta.logistic`: on held-out tasks, or by the evidence.

Held-out tasks: every fold of tasks is held out in turn, and the prior is learned from the others.
Each half of a held-out task's points judges it, adapted to 1, 3 and all points of the other half,
and without any: by the log density of labels, averaged over the posterior of the task's weights and
over what is open about the map (`meta.unseen_map`), as the learner predicts. Evidence, if there are
too few tasks to hold out: that of `meta.setting_path`, with this J and the points' weights D.
Settings that are about as good as the best get a weight (`meta.prior_mixture`).
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from condmeta.inner.likelihoods import Binomial, Likelihood
from condmeta.inner.row_posterior import solve_rows
from condmeta.inner.scores import row_scores
from condmeta.meta.logistic import learn_prior
from condmeta.meta.prior_mixture import bootstrap_weights, evidence_weights
from condmeta.meta.ridge_choice import MIN_TASKS
from condmeta.meta.ridge_judge import ROUGH
from condmeta.meta.selection import EVIDENCE, HELD_OUT, Selection, drop_behind, select, task_rounds
from condmeta.meta.setting_path import evidence, path
from condmeta.meta.unseen_map import open_prior, weigh_points
from condmeta.tasks.points import Points
from condmeta.tasks.weights import repeats

MARGIN = 1.2  # a candidate with a log loss above this many times the least drops out


class LogisticSetting(NamedTuple):
    """One setting of the learner."""

    metric: str
    kappa: float


class ShownPoints(NamedTuple):
    """Points that tasks show, those that judge them then, and the features (T, k) that go with it.

    The features are those without points where maps of points read none.
    """

    support: Points
    query: Points
    Phi: np.ndarray


def choose(
    points: Points, Phi, trials: list[ShownPoints], fold, metrics, kappas, n_jobs=1,
    likelihood: type[Likelihood] = Binomial, parameter=None,
) -> Selection:  # fmt: skip
    """Choose kappa with the first, simplest metric, then the metric with that kappa.

    The first trial shows half of the points. The other parameters are those of
    `meta.ridge_choice.choose`. A fit takes much longer than there, so that not all pairs are
    compared.
    """
    kappas = tuple(sorted(kappas, reverse=True)) if Phi.shape[1] else (np.inf,)
    if len(metrics) == len(kappas) == 1:
        return Selection.given(LogisticSetting(metrics[0], kappas[0]))
    judged, priors = trials[0].query.count > 0, {}
    kind = {"likelihood": likelihood, "parameter": parameter}
    rough_fit = partial(learn_prior, **kind, accuracy=1e-4, n_jobs=n_jobs, stopping=ROUGH)

    def log_losses(train, held, left):
        some, Z = points.take(train), Phi[train]
        shown = [ShownPoints(a.take(held), b.take(held), seen[held]) for a, b, seen in trials]
        for pair, learned in path(left, partial(rough_fit, some, Z)):
            prior, law = learned.prior, likelihood(learned.prior.s2)
            spread = open_prior(some, Z, law, prior, pair[1], accuracy=1e-4)
            lost = [
                task_losses(law, prior.theta(seen), spread.factors(seen).factor, a, b, n_jobs)
                for a, b, seen in shown
            ]
            yield LogisticSetting(*pair), sum(lost)

    def minus_evidence(left):
        for pair, learned in path(left, partial(rough_fit, points, Phi)):
            prior = priors[LogisticSetting(*pair)] = learned.prior
            law = likelihood(prior.s2)
            stats = weigh_points(points, Phi, law, prior)
            unit = learned._replace(prior=prior._replace(s2=1.0))  # D is in the statistics
            yield LogisticSetting(*pair), -evidence(stats, Phi, *pair, unit)

    if judged.sum() >= MIN_TASKS:
        method, drop = HELD_OUT, partial(drop_behind, margin=MARGIN)
        folds = list(task_rounds(fold, judged))
        rounds = [partial(log_losses, *parts) for parts in folds]
        n = sum(trial.query.count[held].sum() for _, held in folds for trial in trials)
    else:
        method, drop, n, rounds = EVIDENCE, None, 1, [minus_evidence]

    def compare(candidates) -> dict[LogisticSetting, np.ndarray]:
        """Return the losses (T,) of the candidates that stay to the end; (1,) of evidences."""
        found = {}

        def keep(losses, scores):
            found.update(losses)
            return next(iter(losses))

        join, none = lambda *losses: np.hstack(losses), np.empty(0)
        select(candidates, rounds, keep, score=np.sum, drop=drop, join=join, initial=none)
        return found

    losses = compare([LogisticSetting(metrics[0], kappa) for kappa in kappas])
    kappa = _best(losses).kappa
    if metrics[1:]:
        losses |= compare([LogisticSetting(metric, kappa) for metric in metrics[1:]])
    scores = {setting: float(lost.sum() / n) for setting, lost in losses.items()}
    weigh, by = (bootstrap_weights, losses) if method == HELD_OUT else (evidence_weights, scores)
    chosen = _best(losses)
    return Selection(chosen, method, scores, priors.get(chosen), weigh(by))


def _best(losses: dict[LogisticSetting, np.ndarray]) -> LogisticSetting:
    return min(losses, key=lambda setting: losses[setting].sum())


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
