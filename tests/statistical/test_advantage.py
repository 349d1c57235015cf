"""The interval of `advantage` has its nominal coverage of the true gap, on a small scale."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import condmeta as cm
from condmeta.feature_maps import CircleMap, Identity, MeanInput

UNITS = {"scale": "none", "fit_intercept": False, "shots": ()}


@pytest.mark.parametrize(
    ("name", "feature_map", "repeats"),
    [
        ("circle", CircleMap(), 20),
        ("two-clusters-mean-4", MeanInput(), 4),
    ],
)
def test_interval_holds_the_true_gap(name, feature_map, repeats):
    environment = cm.environments.paper_environment(name, n=10)
    true = cm.theory.best_linear(environment, feature_map).gap
    held = 0
    for seed in range(repeats):
        gap = cm.advantage(environment.sample(300, seed), feature_map=feature_map, **UNITS).gap
        held += gap.low <= true <= gap.high
        assert gap.low > 0
    assert held >= binom.ppf(0.02, repeats, 0.85)


def test_noise_does_not_pay():
    environment = cm.environments.paper_environment("circle", n=10)
    quiet = 0
    for rng in np.random.default_rng(0).spawn(20):
        noise = cm.TaskTable(rng.normal(size=(300, 5)), range(300))
        tasks = environment.sample(300, rng).with_side(noise)
        found = cm.advantage(tasks, feature_map=Identity(), **UNITS)
        quiet += not found.pays
    assert quiet >= binom.ppf(0.02, 20, 0.85)
