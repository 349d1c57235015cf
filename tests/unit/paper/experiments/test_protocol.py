"""The paper's protocol: seeds that stand alone, two routes with one answer, tidy results."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import condmeta as cm
from condmeta.environments import Circle
from condmeta.errors import DataError
from condmeta.experiments import Results, Setting, get_panel, run
from condmeta.feature_maps import CircleMap, RandomFourier
from condmeta.paper.experiments.protocol import _evaluate_any, draw, evaluate, seeded

ENVIRONMENT = Circle(d=4, n=8)
SETTING = Setting((12, 6, 5))
GRID = {"lam": [0.1, 1.0, 10.0], "meta_step": [0.03, 0.3]}
METHODS = {
    "own": cm.FixedBiasRegressor(),
    "true map": cm.ConditionalSGDRegressor(CircleMap()),
    "random": cm.ConditionalSGDRegressor(RandomFourier(6, std=3.0)),
}


def errors(results, method, seed):
    mine = (results.columns["method"] == method) & (results.columns["seed"] == seed)
    return results.columns["error"][mine]


def test_a_seed_does_not_depend_on_what_else_runs(engine):
    together = run(ENVIRONMENT, METHODS, setting=SETTING, grid=GRID, seeds=3)
    alone = run(ENVIRONMENT, {"random": METHODS["random"]}, setting=SETTING, grid=GRID, seeds=[2])
    side_by_side = run(ENVIRONMENT, METHODS, setting=SETTING, grid=GRID, seeds=3, jobs=2)
    np.testing.assert_array_equal(errors(together, "random", 2), errors(alone, "random", 2))
    np.testing.assert_array_equal(together.columns["error"], side_by_side.columns["error"])


@pytest.mark.parametrize("inner", ["online", "batch"])
@pytest.mark.parametrize("name", METHODS)
def test_fast_route_equals_fitting_anew(engine, name, inner):
    method = seeded(METHODS[name].set_params(inner=inner), 0, name)
    tasks = draw(ENVIRONMENT, SETTING, 0)
    at = [1, 5, 12]
    pairs = {"lam": np.repeat(GRID["lam"], 2), "meta_step": np.tile(GRID["meta_step"], 3)}
    if name == "own":
        pairs = {"lam": np.array(GRID["lam"])}
    fast = list(evaluate(method, tasks, GRID, at))
    slow = list(_evaluate_any(method, tasks, pairs, at))
    METHODS[name].set_params(inner="online")
    for one, two in zip(fast, slow, strict=True):
        assert one[3] == two[3]
        np.testing.assert_allclose(one[:3], two[:3])
        assert one[4] == pytest.approx(two[4], rel=1e-8)


def test_random_maps_inside_a_list_are_seeded_too():
    method = cm.ConditionalSGDRegressor([RandomFourier(6), CircleMap()])
    methods = {"listed": method}
    first, again = (
        run(ENVIRONMENT, methods, setting=SETTING, grid=GRID, seeds=2) for _ in range(2)
    )
    np.testing.assert_array_equal(first.columns["error"], again.columns["error"])
    assert method.feature_map[0].random_state is None


class Zero(BaseEstimator):
    """Somebody's own method: predict zero."""

    def fit(self, tasks):
        return self

    def adapt(self, tasks):
        return self

    def predict(self, X, *, task):
        return np.zeros(len(X))


def test_anyones_method():
    results = run(ENVIRONMENT, {"zero": Zero()}, setting=SETTING, seeds=2, at=[3, 12])
    tasks = draw(ENVIRONMENT, SETTING, 0)
    expected = np.mean([np.abs(task.y).mean() for task in tasks.test[1]])
    np.testing.assert_array_equal(results.curve("zero").T, [3, 12])
    assert results.finals("zero")[0] == pytest.approx(expected)


def test_tasks_are_cut_once_and_points_within():
    tasks = draw(ENVIRONMENT, SETTING, 4)
    assert [len(tasks.train), len(tasks.validation[0]), len(tasks.test[0])] == [12, 6, 5]
    assert set(tasks.train.sizes) == {4}
    assert set(tasks.test[0].sizes) == set(tasks.test[1].sizes) == {4}
    everything = draw(ENVIRONMENT, SETTING._replace(train_on="all"), 4)
    assert set(everything.train.sizes) == {8}


def test_a_taskset_as_the_source():
    tasks = ENVIRONMENT.sample(30, 0)
    results = run(tasks, METHODS, setting=SETTING, grid=GRID, seeds=2)
    assert results.methods == list(METHODS)
    with pytest.raises(DataError, match="needs 40 tasks; the source has 30"):
        run(tasks, METHODS, setting=Setting((20, 10, 10)), seeds=1)
    with pytest.raises(DataError, match="must be an environment or a TaskSet"):
        run([1, 2], METHODS, setting=SETTING, seeds=1)


def test_tidy_results_survive_a_file(tmp_path):
    results = run(ENVIRONMENT, METHODS, setting=SETTING, grid=GRID, seeds=2)
    assert set(results.columns["split"]) == {"validation", "test"}
    results.to_csv(tmp_path / "results.csv")
    again = Results.read_csv(tmp_path / "results.csv")
    for name, column in results.columns.items():
        np.testing.assert_array_equal(again.columns[name], column)
    results.to_parquet(tmp_path / "results.parquet")
    frame = results.frame
    assert len(frame) == len(results) == len(results + again) / 2
    assert results.provenance["seeds"] == [0, 1]


def test_curves_and_chosen_pairs():
    results = run(ENVIRONMENT, METHODS, setting=SETTING, grid=GRID, seeds=3)
    curve = results.curve("true map")
    np.testing.assert_array_equal(curve.T, np.arange(1, 13))
    assert curve.mean[-1] == pytest.approx(results.finals("true map").mean())
    assert curve.standard_error[-1] == pytest.approx(
        results.finals("true map").std(ddof=1) / np.sqrt(3)
    )
    for seed, (lam, step) in enumerate(results.chosen("true map")):
        mine = (results.columns["method"] == "true map") & (results.columns["seed"] == seed)
        mine &= results.columns["split"] == "validation"
        best = np.flatnonzero(mine)[np.argmin(results.columns["error"][mine])]
        assert (lam, step) == (results.columns["lam"][best], results.columns["meta_step"][best])
    with pytest.raises(DataError, match="There are no test errors of 'nobody'"):
        results.curve("nobody")


def test_the_papers_panels():
    panel = get_panel("two-clusters-mean-4")
    source = panel.source()
    assert list(panel.methods(source)) == ["ITL", "mean", "unconditional", "conditional"]
    assert panel.setting.sizes == (300, 100, 80)
    assert len(panel.grid) == 14
    assert len(get_panel("circle").grid) == 16
    with pytest.raises(DataError, match="There is no experiment 'moon'"):
        get_panel("moon")


def test_a_method_that_chooses_lam_itself_is_left_to_do_so():
    """lam="auto" outside the grid stays, and is not replaced by a number."""
    environment, setting = Circle(d=3, n=8), Setting((10, 4, 6))
    method = cm.ConditionalERMRegressor(feature_map=None, kappa=1.0)
    found = run(environment, {"erm": method}, setting=setting, seeds=[3]).finals("erm")
    tasks = draw(environment, setting, 3)
    support, query = tasks.test
    predicted = method.fit(tasks.train).adapt(support).predict(query)
    expected = np.abs(predicted - query.restore_order(query.y)).mean()
    np.testing.assert_allclose(found, expected, rtol=1e-9)
