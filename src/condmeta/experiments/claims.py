"""The claims of the paper's experiments, each judged from results.

One table serves the tests, the report and the docs. Methods see the same tasks in a seed, so that
differences are taken seed by seed, and a standard error is that of their mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from condmeta.experiments.paper import (
    CONDITIONAL,
    ITL,
    MEAN,
    RANDOM_FEATURES,
    TRUE_MAP,
    UNCONDITIONAL,
)
from condmeta.experiments.results import Results


class Verdict(NamedTuple):
    """Whether a claim holds (None: it takes two seeds to tell), and the numbers behind it."""

    holds: bool | None
    numbers: str

    def __str__(self) -> str:
        word = {True: "holds", False: "does not hold", None: "not judged"}[self.holds]
        return f"{word}: {self.numbers}"


class Claim(NamedTuple):
    """A sentence about one panel, and the function of its results that judges it."""

    panel: str
    sentence: str
    judge: Callable[[Results], Verdict]


class Gap(NamedTuple):
    """How much larger the final error of one method is than that of another."""

    small: float
    large: float
    standard_error: float

    @property
    def share(self) -> float:
        """The gap in parts of the larger error."""
        return (self.large - self.small) / self.large

    @property
    def margin(self) -> float:
        """The gap in standard errors."""
        gap = self.large - self.small
        return gap / self.standard_error if self.standard_error else np.copysign(np.inf, gap)


def gap_between(results: Results, small: str, large: str) -> Gap:
    """Return the gap between two methods, nan standard error for a single seed."""
    a, b = results.finals(small), results.finals(large)
    error = np.std(b - a, ddof=1) / np.sqrt(len(a)) if len(a) > 1 else np.nan
    return Gap(float(a.mean()), float(b.mean()), float(error))


def below(small: str, large: str, errors: float = 0.0, share: float = 0.0):
    """Return the judge of "`small` is below `large`", by some standard errors or a share."""

    def judge(results: Results) -> Verdict:
        gap = gap_between(results, small, large)
        text = f"{small} {gap.small:.4g} against {large} {gap.large:.4g}: {gap.share:.1%} below"
        if np.isnan(gap.standard_error):
            return Verdict(None, text)
        text += f", {gap.margin:.1f} standard errors"
        return Verdict(bool(gap.margin > errors and gap.share >= share), text)

    return judge


def within(method: str, other: str, share: float):
    """Return the judge of "`method` is within a share of `other`"."""

    def judge(results: Results) -> Verdict:
        gap = gap_between(results, method, other)
        off = (gap.small - gap.large) / gap.large
        text = f"{method} {gap.small:.4g} against {other} {gap.large:.4g}: {off:+.1%}"
        if np.isnan(gap.standard_error):
            return Verdict(None, text)
        text += f" (standard error {gap.standard_error / gap.large:.1%})"
        return Verdict(bool(abs(off) <= share), text)

    return judge


def approaches(method: str, goal: str, start: str):
    """Return the judge of "`method` ends between `goal` and `start`, and comes nearer to `goal`".

    The distance to `goal` after a tenth of the tasks is compared with the last.
    """

    def judge(results: Results) -> Verdict:
        curve, aim = results.curve(method), results.curve(goal)
        tenth = max(1, int(curve.T[-1]) // 10)
        at = int(np.searchsorted(curve.T, tenth))
        early, late = curve.mean[at] - aim.mean[at], curve.mean[-1] - aim.mean[-1]
        last = results.curve(start).mean[-1]
        text = (
            f"{method} {curve.mean[-1]:.4g}; {goal} {aim.mean[-1]:.4g}; {start} {last:.4g}. "
            f"Distance to the {goal.removeprefix('conditional, ')}: {early:.2g} after "
            f"{curve.T[at]} tasks, {late:.2g} after {curve.T[-1]}"
        )
        if curve.n_seeds < 2:
            return Verdict(None, text)
        is_between = aim.mean[-1] <= curve.mean[-1] < last
        return Verdict(bool(is_between and late < early), text)

    return judge


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "one-cluster",
        "Unconditional meta-learning converges to the mean oracle (within 5%).",
        within(UNCONDITIONAL, MEAN, 0.05),
    ),
    Claim(
        "one-cluster",
        "Unconditional meta-learning is far below independent learning (at least 30%).",
        below(UNCONDITIONAL, ITL, errors=3, share=0.30),
    ),
    Claim(
        "one-cluster",
        "The conditional approach is equivalent to the unconditional one (within 8%).",
        within(CONDITIONAL, UNCONDITIONAL, 0.08),
    ),
    Claim(
        "two-clusters-mean-4",
        "Unconditional meta-learning outperforms independent learning (3 standard errors).",
        below(UNCONDITIONAL, ITL, errors=3),
    ),
    Claim(
        "two-clusters-mean-4",
        "The conditional approach outperforms the unconditional one (3 standard errors).",
        below(CONDITIONAL, UNCONDITIONAL, errors=3),
    ),
    Claim(
        "two-clusters-mean-0",
        "Unconditional meta-learning mimics independent learning (within 3%).",
        within(UNCONDITIONAL, ITL, 0.03),
    ),
    Claim(
        "two-clusters-mean-0",
        "The conditional approach is far below the unconditional one (at least 30%).",
        below(CONDITIONAL, UNCONDITIONAL, errors=3, share=0.30),
    ),
    Claim(
        "circle",
        "Unconditional meta-learning mimics independent learning (within 3%).",
        within(UNCONDITIONAL, ITL, 0.03),
    ),
    Claim(
        "circle",
        "With the true map the conditional approach is far below it (at least 20%).",
        below(TRUE_MAP, UNCONDITIONAL, errors=3, share=0.20),
    ),
    Claim(
        "circle",
        "With random features it lies between, and approaches the true map.",
        approaches(RANDOM_FEATURES, TRUE_MAP, UNCONDITIONAL),
    ),
    Claim(
        "lenk",
        "Unconditional meta-learning outperforms independent learning (3 standard errors).",
        below(UNCONDITIONAL, ITL, errors=3),
    ),
    Claim(
        "lenk",
        "The conditional approach outperforms the unconditional one (3 standard errors).",
        below(CONDITIONAL, UNCONDITIONAL, errors=3),
    ),
    Claim(
        "schools",
        "Unconditional meta-learning improves on independent learning.",
        below(UNCONDITIONAL, ITL),
    ),
    Claim(
        "schools",
        "The conditional approach improves on the unconditional one.",
        below(CONDITIONAL, UNCONDITIONAL),
    ),
)


def claims_of(panel: str) -> list[Claim]:
    """Return the claims about one panel.

    Examples
    --------
    >>> from condmeta.experiments.claims import claims_of
    >>> claims_of("lenk")[0].sentence
    'Unconditional meta-learning outperforms independent learning (3 standard errors).'
    """
    return [claim for claim in CLAIMS if claim.panel == panel]
