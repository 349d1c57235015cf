"""Coin betting compared with tuned Algorithm 1 on the paper's synthetic settings.

Ten fresh seeds, 300 training tasks. The bound of 3 % is for the worst of ten comparisons; paired
differences of ten seeds have standard errors of about half a per cent.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from condmeta import ConditionalCoinRegressor, ConditionalSGDRegressor, TaskTable
from condmeta.environments import paper_environment
from condmeta.experiments import PANELS, run
from condmeta.feature_maps import Identity

ELSEWHERE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "coin_elsewhere.py"))
SETTINGS, errors = ELSEWHERE["SETTINGS"], ELSEWHERE["errors"]
SYNTHETIC = [name for name, panel in PANELS.items() if not panel.is_real]


@pytest.mark.parametrize("inputs", ["gaussian", "unit"])
@pytest.mark.parametrize("name", SYNTHETIC)
def test_as_good_as_tuned_steps(name, inputs):
    panel = PANELS[name]
    methods = {}
    for which, feature_map in panel.maps.items():
        methods["tuned", which] = ConditionalSGDRegressor(feature_map)
        methods["coin", which] = ConditionalCoinRegressor(feature_map)
    results = run(
        paper_environment(name, inputs=inputs),
        {" ".join(key): method for key, method in methods.items()},
        setting=panel.setting,
        grid={"lam": panel.grid, "meta_step": panel.grid},
        seeds=range(700, 710),
        at=[300],
    )
    for which in panel.maps:
        tuned, coin = (results.finals(f"{who} {which}").mean() for who in ("tuned", "coin"))
        assert coin <= 1.03 * tuned, f"{name}, {inputs}, {which}: {coin / tuned - 1:+.1%}"


@pytest.mark.parametrize("name", SETTINGS)
def test_elsewhere_within_six_per_cent_and_better_than_independent(name):
    """d = 6, Gaussian inputs: with one stake for all tasks it was 8 to 42 % behind the tuned."""
    error = errors(name, seeds=4)
    assert error["coin"] <= 1.06 * error["tuned"]
    assert error["coin"] <= 0.9 * error["independent"]


def test_features_of_noise_cost_little():
    """Twenty standard normal side features that say nothing: at most 2 % after 300 tasks."""
    ratios = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        tasks = paper_environment("one-cluster").sample(380, rng)
        noise = TaskTable(rng.normal(size=(380, 20)), tasks.ids)
        train, (support, query) = tasks[:300], tasks[300:].split_points(0.5, "first")
        train = train.split_points(0.5, "first")[0]
        errors = []
        for feature_map in (None, Identity()):
            learner = ConditionalCoinRegressor(feature_map).fit(train, side_info=noise)
            predicted = learner.adapt(support, side_info=noise).predict(query)
            errors.append(np.abs(predicted - query.y).mean())
        ratios.append(errors[1] / errors[0])
    assert np.mean(ratios) <= 1.02
