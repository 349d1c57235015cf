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

from condmeta.inner.likelihoods import Binomial, NegativeBinomial, Ordered
from condmeta.meta.constant_prior import ConstantPrior
from condmeta.meta.prior_mixture import bootstrap_weights, evidence_weights
from condmeta.meta.ridge_choice import KAPPAS, LOG_DENSITY_TIE
from condmeta.meta.row_judge import RowJudge
from condmeta.meta.selection import EVIDENCE, HELD_OUT, Selection, drop_behind, select
from condmeta.meta.setting_path import evidence, path
from condmeta.meta.unseen_map import weigh_points

# Tasks with points to judge by; with fewer, the evidence chooses. Labels of classes say little: the
# losses of 20 held-out tasks choose nearly at random, and often too weak a ridge.
MIN_TASKS = {Binomial: 30, Ordered: 30, NegativeBinomial: 20}
MARGIN = 1.2  # a candidate with a log loss above this many times the least drops out
COLD_STARTS = "prior", "pooled"  # how a task without points is predicted


class LogisticSetting(NamedTuple):
    """One setting of the learner."""

    metric: str
    kappa: float


def choose(judge: RowJudge, metrics, kappas) -> Selection:
    """Choose kappa with the first, simplest metric, then the metric with that kappa.

    A fit takes much longer than in `meta.ridge_choice`, so that not all pairs are compared.
    """
    likely = tuple(kappas) == (0.0,)  # maximum likelihood, also of b: see `meta.constant_prior`
    no_map = not judge.Phi.shape[1] and not likely
    kappas = (np.inf,) if no_map else tuple(sorted(kappas, reverse=True))
    if len(metrics) == len(kappas) == 1:
        return Selection.given(LogisticSetting(metrics[0], kappas[0]))
    priors = {}

    def log_losses(number, left):
        for pair, learned in path(left, judge.fit(number)):
            lost = judge.losses(number, *pair, learned.prior)
            yield LogisticSetting(*pair), lost.sum(axis=0)

    def minus_evidence(left):
        for pair, learned in path(left, judge.fit(None)):
            prior = priors[LogisticSetting(*pair)] = learned.prior
            law = judge.likelihood(prior.s2)
            stats = weigh_points(judge.points, judge.Phi, law, prior)
            unit = learned._replace(prior=prior._replace(s2=1.0))  # D is in the statistics
            of_b = ConstantPrior.of(judge.points, judge.likelihood, pair[1]).root(prior.W[-1])
            yield LogisticSetting(*pair), -evidence(stats, judge.Phi, *pair, unit, of_b)

    if judge.judged.sum() >= MIN_TASKS[judge.likelihood]:
        method, drop, n = HELD_OUT, partial(drop_behind, margin=MARGIN), judge.n_labels
        rounds = [partial(log_losses, number) for number in range(len(judge.folds))]
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


def choose_cold_start(judge: RowJudge, setting: LogisticSetting, names, reads_side: bool = True):
    """Return the ridge of the pooled model for tasks without points; None if the prior is taken.

    The pooled model is taken if it makes the labels of held-out tasks more likely. `names` are
    those of `COLD_STARTS` to choose among.
    """
    kappas = KAPPAS if reads_side and judge.Phi.shape[1] else (np.inf,)
    enough = judge.judged.sum() >= MIN_TASKS[judge.likelihood]
    if "pooled" not in names or (len(names) > 1 and not enough):
        return None
    if len(names) == len(kappas) == 1 or not judge.folds:
        return kappas[-1]
    lost = {each: found.sum() for each, found in judge.cold_losses(*setting, kappas).items()}
    of_prior = lost.pop(None)
    best = min(lost, key=lost.__getitem__)
    return best if len(names) == 1 or lost[best] < of_prior - LOG_DENSITY_TIE else None
