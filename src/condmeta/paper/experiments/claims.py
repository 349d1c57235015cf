"""The claims of the paper's experiments, and functions that judge them from results.

The tests, the report and the docs all use the table `CLAIMS`. All methods see the same tasks in a
seed, so methods are compared by their differences within each seed; a standard error is that of the
mean difference.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from condmeta.paper.experiments.panels import (
    CONDITIONAL,
    ITL,
    MEAN,
    RANDOM_FEATURES,
    TRUE_MAP,
    UNCONDITIONAL,
)
from condmeta.paper.experiments.results import Results, standard_error


class Verdict(NamedTuple):
    """Whether a claim holds (None: not judged, with fewer than two seeds), and its numbers."""

    holds: bool | None
    numbers: str

    def __str__(self) -> str:
        word = {True: "holds", False: "does not hold", None: "not judged"}[self.holds]
        return f"{word}: {self.numbers}"


class Claim(NamedTuple):
    """A sentence about one panel, and the function that judges it from the panel's results."""

    panel: str
    sentence: str
    judge: Callable[[Results], Verdict]


def below(small: str, large: str, errors: float = 0.0, share: float = 0.0):
    """Return a function that judges whether the error of `small` is below that of `large`.

    Parameters
    ----------
    small, large : str
        Names of two methods.
    errors : float
        The difference must exceed this number of standard errors.
    share : float
        The difference must be at least this share of the error of `large`.
    """

    def judge(results: Results) -> Verdict:
        a, b, error = _final_errors(results, small, large)
        gap = b - a
        text = f"{small} {a:.4g} against {large} {b:.4g}: {gap / b:.1%} below"
        if np.isnan(error):
            return Verdict(None, text)
        margin = gap / error if error else np.copysign(np.inf, gap)
        text += f", {margin:.1f} standard errors"
        return Verdict(bool(margin > errors and gap / b >= share), text)

    return judge


def within(method: str, other: str, share: float):
    """Return a function that judges whether two errors differ by at most a share of `other`."""

    def judge(results: Results) -> Verdict:
        a, b, error = _final_errors(results, method, other)
        off = (a - b) / b
        text = f"{method} {a:.4g} against {other} {b:.4g}: {off:+z.1%}"
        if np.isnan(error):
            return Verdict(None, text)
        text += f" (standard error {error / b:.1%})"
        return Verdict(bool(abs(off) <= share), text)

    return judge


def _final_errors(results: Results, one: str, other: str) -> tuple[float, float, float]:
    """Return two mean final errors, and the standard error of their difference (nan: one seed)."""
    a, b = results.paired_finals(one, other)
    return float(a.mean()), float(b.mean()), standard_error(b - a)


def approaches(method: str, goal: str, start: str):
    """Return a function that judges whether `method` approaches `goal`.

    The claim holds if the final error of `method` is at least that of `goal` and below that of
    `start`, and if its distance to `goal` is smaller after all tasks than after a tenth of them.
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
    Claim("one-cluster", "Unconditional meta-learning converges to the mean oracle (within 5%).",
        within(UNCONDITIONAL, MEAN, 0.05)),
    Claim("one-cluster",
        "Unconditional meta-learning is far below independent learning (at least 30%).",
        below(UNCONDITIONAL, ITL, errors=3, share=0.30)),
    Claim("one-cluster",
        "The conditional approach is equivalent to the unconditional one (within 8%).",
        within(CONDITIONAL, UNCONDITIONAL, 0.08)),
    Claim("two-clusters-mean-4",
        "Unconditional meta-learning outperforms independent learning (3 standard errors).",
        below(UNCONDITIONAL, ITL, errors=3)),
    Claim("two-clusters-mean-4",
        "The conditional approach outperforms the unconditional one (3 standard errors).",
        below(CONDITIONAL, UNCONDITIONAL, errors=3)),
    Claim("two-clusters-mean-0",
        "Unconditional meta-learning mimics independent learning (within 3%).",
        within(UNCONDITIONAL, ITL, 0.03)),
    Claim("two-clusters-mean-0",
        "The conditional approach is far below the unconditional one (at least 30%).",
        below(CONDITIONAL, UNCONDITIONAL, errors=3, share=0.30)),
    Claim("circle", "Unconditional meta-learning mimics independent learning (within 3%).",
        within(UNCONDITIONAL, ITL, 0.03)),
    Claim("circle",
        "With the true map the conditional approach is far below the unconditional (at least 20%).",
        below(TRUE_MAP, UNCONDITIONAL, errors=3, share=0.20)),
    Claim("circle",
        "With random features the conditional approach gets close to the one with the true map.",
        approaches(RANDOM_FEATURES, TRUE_MAP, UNCONDITIONAL)),
    Claim("lenk",
        "Unconditional meta-learning outperforms independent learning (3 standard errors).",
        below(UNCONDITIONAL, ITL, errors=3)),
    Claim("lenk", "The conditional approach outperforms the unconditional one (3 standard errors).",
        below(CONDITIONAL, UNCONDITIONAL, errors=3)),
    Claim("schools", "Unconditional meta-learning improves on independent learning.",
        below(UNCONDITIONAL, ITL)),
    Claim("schools", "The conditional approach improves on the unconditional one.",
        below(CONDITIONAL, UNCONDITIONAL)),
)  # fmt: skip


def claims_of(panel: str) -> list[Claim]:
    """Return the claims about one panel.

    Examples
    --------
    >>> from condmeta.experiments import claims
    >>> claims.claims_of("lenk")[0].sentence
    'Unconditional meta-learning outperforms independent learning (3 standard errors).'
    """
    return [claim for claim in CLAIMS if claim.panel == panel]
