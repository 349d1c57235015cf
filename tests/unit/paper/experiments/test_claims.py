"""The judges of claims, on errors made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from condmeta.experiments import PANELS, Results
from condmeta.paper.experiments.claims import CLAIMS, approaches, below, claims_of, within


def results_of(**curves) -> Results:
    """Return results of methods given as arrays (seeds, T)."""
    rows = [
        (method, seed, t + 1, 1.0, 0.1, "test", error)
        for method, table in curves.items()
        for seed, line in enumerate(table)
        for t, error in enumerate(line)
    ]
    columns = ("method", "seed", "T", "lam", "meta_step", "split", "error")
    return Results(dict(zip(columns, zip(*rows, strict=True), strict=True)))


def column(*errors):
    return np.array(errors, dtype=float)[:, None]


def test_below_counts_standard_errors_of_the_paired_difference():
    results = results_of(a=column(1, 5), b=column(3, 8))  # differences 2, 3: mean 2.5, error 0.5
    assert below("a", "b", errors=4.9)(results).holds is True
    assert below("a", "b", errors=5.0)(results).holds is False
    assert below("b", "a")(results).holds is False
    assert below("a", "b", share=0.46)(results).holds is False  # 2.5 / 5.5 = 0.4545
    verdict = below("a", "b", share=0.45)(results)
    assert str(verdict) == "holds: a 3 against b 5.5: 45.5% below, 5.0 standard errors"


def test_a_difference_without_spread_is_certain():
    results = results_of(a=column(1, 1), b=column(2, 2))
    assert below("a", "b", errors=3)(results).holds is True
    assert below("b", "a", errors=3)(results).holds is False


def test_within_is_a_share_of_the_other():
    results = results_of(a=column(1.0, 1.1), b=column(1.0, 1.0))
    assert within("a", "b", 0.051)(results).holds is True
    assert within("a", "b", 0.049)(results).holds is False
    assert "+5.0%" in within("a", "b", 0.1)(results).numbers
    close = results_of(a=column(0.9999, 0.9999), b=column(1.0, 1.0))
    assert "against b 1: +0.0%" in within("a", "b", 0.1)(close).numbers


def test_approaching_needs_both_the_place_and_the_way():
    goal, start = np.full((2, 20), 1.0), np.full((2, 20), 3.0)
    near = np.tile(np.linspace(2.9, 1.2, 20), (2, 1))
    judge = approaches("mine", "goal", "start")
    assert judge(results_of(mine=near, goal=goal, start=start)).holds is True
    assert judge(results_of(mine=near[:, ::-1], goal=goal, start=start)).holds is False
    assert judge(results_of(mine=near - 1, goal=goal, start=start)).holds is False
    assert judge(results_of(mine=near + 3, goal=goal, start=start)).holds is False


@pytest.mark.parametrize("judge", [below("a", "b"), within("a", "b", 1), approaches("a", "b", "c")])
def test_one_seed_judges_nothing(judge):
    verdict = judge(results_of(a=column(1), b=column(2), c=column(3)))
    assert verdict.holds is None
    assert str(verdict).startswith("not judged")


def test_every_panel_has_claims():
    assert {claim.panel for claim in CLAIMS} == set(PANELS)
    assert sum(len(claims_of(name)) for name in PANELS) == len(CLAIMS)
