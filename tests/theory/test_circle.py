"""The circle example: the best linear function is tau_rho itself."""

import numpy as np
import pytest

from condmeta.environments import Circle, paper_environment
from condmeta.feature_maps import CircleMap
from condmeta.theory import best_linear, gap, guarantees, radii, variance

ENV = Circle(radius=3.0, center=[1, -1, 2, 0, 0.5, 0], d=6, sigma_w=0.8, n=1)


def test_closed_forms():
    best = best_linear(ENV, CircleMap())
    np.testing.assert_allclose(best.map.M, 3 * np.eye(6, 2))
    np.testing.assert_allclose(best.map.b, ENV.center)
    np.testing.assert_array_equal(best.moments.nu, [0, 0])
    np.testing.assert_array_equal(best.moments.Css, np.eye(2) / 2)
    assert best.map.norm**2 == pytest.approx(2 * 9 + ENV.center @ ENV.center)
    assert best.mean == pytest.approx(12.84)
    assert best.variance == pytest.approx(3.84)
    assert best.gap == pytest.approx(9)
    tasks = ENV.sample(50, random_state=0)
    assert pytest.approx(1) == radii(tasks, CircleMap(), how="max").K
    phi = CircleMap().transform(tasks.side.data["s"][:, None])
    np.testing.assert_allclose(best.map(phi), ENV.tau(tasks), atol=1e-12)


def test_variances_and_gaps():
    assert variance(ENV, "best").value == pytest.approx(3.84)
    assert variance(ENV, "mean").value == pytest.approx(12.84)
    assert gap(ENV).value == pytest.approx(9)
    assert gap(ENV, against="zero").value == pytest.approx(15.25)
    paper = paper_environment("circle")
    values = [variance(paper, tau).value for tau in ("best", "mean", "zero")]
    assert values == [20, 84, 84]


def test_guarantees_compare_the_three_ways():
    bounds = guarantees(paper_environment("circle"), CircleMap(), T=300, n=10)
    R = np.sqrt(20 + 1)  # unit inputs around 1, d = 20
    assert bounds.independent.value == pytest.approx(2 * R * np.sqrt(84 / 10), rel=1e-3)
    assert bounds.unconditional.value == pytest.approx(bounds.independent.value)  # w_rho = 0
    learning = R * np.sqrt(2) * np.sqrt(128 / 300)
    expected = 2 * R * np.sqrt(20 / 10) + learning
    assert bounds.conditional.value == pytest.approx(expected, rel=1e-3)
    online = guarantees(paper_environment("circle"), CircleMap(), T=300, n=10, inner="online")
    assert online.conditional.bias == pytest.approx(
        bounds.conditional.bias * np.sqrt(2 * (1 + np.log(10)))
    )
