"""The paper's protocol: seeds that stand alone, two routes with one answer, tidy results."""

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from sklearn.base import BaseEstimator, clone

import condmeta as cm
from condmeta.environments import Circle
from condmeta.errors import DataError
from condmeta.experiments import Results, Setting, claims, get_panel, run
from condmeta.feature_maps import CircleMap, RandomFourier
from condmeta.paper.experiments.metric import get_metric
from condmeta.paper.experiments.protocol import _evaluate_any, evaluate, seeded
from condmeta.paper.experiments.seed_tasks import draw

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
    get_reusable_executor().shutdown()  # workers of an earlier test may have the other engine
    together = run(ENVIRONMENT, METHODS, setting=SETTING, grid=GRID, seeds=3)
    alone = run(ENVIRONMENT, {"random": METHODS["random"]}, setting=SETTING, grid=GRID, seeds=[2])
    side_by_side = run(ENVIRONMENT, METHODS, setting=SETTING, grid=GRID, seeds=3, jobs=2)
    np.testing.assert_array_equal(errors(together, "random", 2), errors(alone, "random", 2))
    np.testing.assert_array_equal(together.columns["error"], side_by_side.columns["error"])


@pytest.mark.parametrize("metric", ["absolute", "squared"])
@pytest.mark.parametrize("inner", ["online", "batch"])
@pytest.mark.parametrize("name", METHODS)
def test_fast_route_equals_fitting_anew(engine, name, inner, metric):
    method = seeded(METHODS[name].set_params(inner=inner), 0, name)
    tasks = draw(ENVIRONMENT, SETTING, 0)
    at = [1, 5, 12]
    pairs = {"lam": np.repeat(GRID["lam"], 2), "meta_step": np.tile(GRID["meta_step"], 3)}
    if name == "own":
        pairs = {"lam": np.array(GRID["lam"])}
    metric = get_metric(metric)
    fast = list(evaluate(method, tasks, GRID, metric, at))
    slow = list(_evaluate_any(method, tasks, pairs, metric, at))
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
    with pytest.raises(DataError, match="must be an environment, with a method sample"):
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
    assert len(frame) == len(results) == len(again)
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


def test_methods_with_different_losses_are_judged_by_one_metric():
    """Half the squared error of ridge would stand beside the absolute error of the others."""
    tasks = draw(ENVIRONMENT, SETTING, 0)
    support, query = tasks.test
    task = np.repeat(query.ids, query.sizes)
    methods = {
        "ridge": cm.ConditionalRidge(None, metric="identity"),
        "squared": cm.ConditionalSGDRegressor(None, loss="squared", lam=2.0, fit_intercept=True),
    }
    measures = {
        "absolute": np.abs,
        "squared": np.square,
        "relative": lambda off: np.abs(off) / np.abs(query.y),
    }
    own = {"relative": lambda y, predicted: np.abs(predicted - y) / np.abs(y)}
    for name, method in methods.items():
        predicted = method.fit(tasks.train).adapt(support).predict(query.X, task=task)
        for metric, measure in measures.items():
            given = own.get(metric, metric)
            found = run(ENVIRONMENT, {name: method}, setting=SETTING, seeds=[0], metric=given)
            expected = measure(predicted - query.y).mean()  # all tasks have as many rows
            np.testing.assert_allclose(found.finals(name), expected, rtol=1e-9)
    assert run(ENVIRONMENT, methods, setting=SETTING, seeds=[0]).metric == "absolute"


def test_a_table_holds_one_metric_and_its_plot_names_it():
    methods, shared = {"own": METHODS["own"]}, {"setting": SETTING, "grid": GRID}
    first = run(ENVIRONMENT, methods, seeds=[0], **shared)
    squared = run(ENVIRONMENT, methods, seeds=[1], metric="squared", **shared)
    with pytest.raises(DataError, match="two metrics, 'absolute' and 'squared', cannot be in one"):
        first + squared
    assert squared.plot().ax_.get_ylabel() == "test error (squared)"
    with pytest.raises(DataError, match="must be one of 'absolute', 'squared', 'zero_one', or a f"):
        run(ENVIRONMENT, methods, seeds=[0], metric="rmse", **shared)


def test_classifiers_are_judged_by_their_classes():
    tasks = ENVIRONMENT.sample(30, 0)
    labelled = tasks.with_target(np.where(tasks.y > 0, 1, 0))
    method = cm.ConditionalSGDClassifier(None)
    found = run(labelled, {"own": method}, setting=SETTING, seeds=[0], metric="zero_one")
    parts = draw(labelled, SETTING, 0)
    support, query = parts.test
    predicted = method.fit(parts.train).adapt(support).predict(query.X, task=np.repeat(
        query.ids, query.sizes))  # fmt: skip
    assert found.finals("own")[0] == pytest.approx(np.mean(predicted != query.y))
    assert 0 < found.finals("own")[0] < 1


def test_tasks_without_query_rows_are_left_out_with_a_note():
    whole = ENVIRONMENT.sample(23, 0)
    short = whole.ids[[3, 8, 15]]  # of these tasks a single row is left
    first = np.zeros(len(whole.y), bool)
    first[whole.offsets[:-1]] = True
    is_long = ~np.isin(np.repeat(whole.ids, whole.sizes), short)
    tasks, setting = whole.where(is_long | first), Setting((9, 7, 7), 1)
    with pytest.warns(UserWarning, match="no query rows with support=1: left out of the errors"):
        results = run(tasks, METHODS, setting=setting, grid=GRID, seeds=3)
    left_out = results.provenance["left_out"]
    assert set(left_out) == {0, 1, 2}
    assert set().union(*left_out.values()) <= set(short)
    assert np.isfinite(results.columns["error"]).all()
    judged = draw(tasks, setting, 0)
    assert (judged.test[1].sizes > 0).all()
    assert (judged.validation[1].sizes > 0).all()
    with pytest.raises(DataError, match="No task held out in seed 0 has query rows"):
        run(tasks, METHODS, setting=Setting((9, 7, 7), 8), grid=GRID, seeds=1)


def test_unknown_keys_of_the_grid_are_an_error():
    with pytest.raises(DataError, match=r"may hold 'lam' and 'meta_step'\. Got 'lamda' too"):
        run(ENVIRONMENT, METHODS, setting=SETTING, grid={"lamda": [1.0]}, seeds=1)


@pytest.mark.parametrize(
    "method", [cm.IndependentRegressor(), cm.FixedBiasRegressor(0.0, lam="cv")]
)
def test_a_grid_takes_the_place_of_a_lam_that_is_chosen(method):
    env = cm.environments.paper_environment("one-cluster")
    setting = Setting(sizes=(20, 10, 10))
    grid = {"lam": [0.1, 1.0]}
    found = run(env, {"method": method}, setting=setting, grid=grid, seeds=1).frame
    given = clone(method).set_params(lam=1.0)
    same = run(env, {"method": given}, setting=setting, grid=grid, seeds=1).frame
    np.testing.assert_array_equal(found["error"], same["error"])
    assert len(run(env, {"method": method}, setting=setting, seeds=1).frame)  # by itself


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([0.0], "finite numbers above 0. Got 0.0 for 'lam'"),
        ([1.0, -1.0], "finite numbers above 0. Got -1.0"),
        ([np.nan], "finite numbers above 0. Got nan"),
        ([], "a list of numbers for each parameter"),
        (1.0, "a list of numbers for each parameter"),
    ],
)
def test_a_grid_holds_positive_numbers(values, sentence):
    env = cm.environments.paper_environment("one-cluster")
    with pytest.raises(DataError, match=sentence):
        run(env, {}, setting=Setting(sizes=(20, 10, 10)), grid={"lam": values})


class Newton:
    """Somebody's own inner algorithm: the exact solution for the squared loss."""

    def solve(self, theta, X, y):
        w = theta + np.linalg.solve(X.T @ X / len(y) + np.eye(len(theta)), X.T @ (y - X @ theta))
        return w, theta - w, 0.0


@pytest.mark.parametrize(
    "method",
    [
        cm.ConditionalSGDRegressor(CircleMap(), loss="squared"),
        cm.ConditionalSGDRegressor(CircleMap(), loss="squared", inner=Newton()),
        cm.KernelConditionalSGDRegressor("linear", loss="squared"),
    ],
)
def test_a_pair_that_diverges_is_not_chosen_and_others_go_on(method):
    grid = {"lam": [1e-4, 3.0], "meta_step": [0.01, 1e6]}
    with np.errstate(over="ignore", invalid="ignore"):
        results = run(ENVIRONMENT, {"squared": method}, setting=SETTING, grid=grid, seeds=2)
    assert all(step == 0.01 for _, step in results.chosen("squared"))
    assert np.isfinite(results.finals("squared")).all()
    assert np.isinf(results.columns["error"]).any()


@pytest.mark.parametrize("step", [0.1, cm.outer_steps.Momentum(0.1)])  # two routes
def test_a_method_that_always_diverges_is_named(step):
    methods = {"wild": cm.ConditionalSGDRegressor(CircleMap(), loss="squared", meta_step=step)}
    with pytest.warns(UserWarning, match="'wild' diverges with all its settings in 2 of 2 seeds"):
        results = run(ENVIRONMENT, methods, setting=SETTING, grid={"lam": [1e-4]}, seeds=2)
    assert np.isinf(results.finals("wild")).all()


@pytest.mark.parametrize("at", [[0], [3, 13], [2.5]])
@pytest.mark.parametrize("name", METHODS)
def test_numbers_of_tasks_that_do_not_exist_are_an_error(name, at):
    with pytest.raises(DataError, match=rf"at must hold .* from 1 to 12\. Got {at[-1]}"):
        run(ENVIRONMENT, {name: METHODS[name]}, setting=SETTING, grid=GRID, seeds=1, at=at)


@pytest.mark.parametrize("sizes", [(0, 6, 5), (12, 6, 0), (12, 6), (0.6, 0.2, 0.2)])
def test_sizes_are_three_counts(sizes):
    with pytest.raises(DataError, match="numbers of training, validation and test tasks"):
        run(ENVIRONMENT, METHODS, setting=Setting(sizes), grid=GRID, seeds=1)


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        ({"support": 1.0}, r"setting\.support must be a number of points, or a share .* Got 1\.0"),
        ({"support": -1}, r"setting\.support .* Got -1"),
        ({"support": 0}, "With support=0 the training tasks have no points"),
        ({"order": "last"}, r"setting\.order must be 'random' or 'first'\. Got 'last'"),
        ({"train_on": "al"}, r"setting\.train_on must be 'support' or 'all'\. Got 'al'"),
    ],
)
def test_wrong_fields_of_a_setting_are_named(field, sentence):
    with pytest.raises(DataError, match=sentence):
        run(ENVIRONMENT, METHODS, setting=SETTING._replace(**field), grid=GRID, seeds=1)


def test_tasks_may_be_judged_without_points_of_their_own():
    setting = SETTING._replace(support=0, train_on="all")
    results = run(ENVIRONMENT, METHODS, setting=setting, grid=GRID, seeds=1)
    query = draw(ENVIRONMENT, setting, 0).test[1]
    assert results.finals("own")[0] == pytest.approx(np.abs(query.y).mean())  # theta = 0


@pytest.mark.parametrize("seeds", [0, [], [0, 0], "3", [0.5], -1, [-1]])
def test_seeds_are_different_integers(seeds):
    with pytest.raises(DataError, match="seeds must be at least one seed: the number of"):
        run(ENVIRONMENT, METHODS, setting=SETTING, grid=GRID, seeds=seeds)


@pytest.mark.parametrize("method", [*METHODS.values(), Zero()])
def test_a_metric_returns_an_error_for_each_row(method):
    def mean(y, predicted):
        return np.abs(predicted - y).mean()

    shared = {"setting": SETTING, "grid": GRID, "seeds": 1}
    with pytest.raises(DataError, match=r"one error for each row, .* Its shape was \(\)"):
        run(ENVIRONMENT, {"mine": method}, metric=mean, **shared)


def test_methods_are_compared_in_the_same_seeds():
    """Two seeds each, but not the same ones: differences within a seed would mean nothing."""
    shared = {"setting": SETTING, "grid": GRID}
    first = run(ENVIRONMENT, {"own": METHODS["own"]}, seeds=[0, 1], **shared)
    other = run(ENVIRONMENT, {"true map": METHODS["true map"]}, seeds=[1, 2], **shared)
    with pytest.raises(DataError, match=r"results of different seeds, \[1, 2\] and \[0, 1\]"):
        claims.below("true map", "own")(first + other)


def test_tables_of_the_same_run_are_not_added():
    shared = {"setting": SETTING, "grid": GRID}
    first = run(ENVIRONMENT, {"own": METHODS["own"]}, seeds=[0, 1], **shared)
    more = run(ENVIRONMENT, {"own": METHODS["own"]}, seeds=[2], **shared)
    assert len((first + more).finals("own")) == 3
    with pytest.raises(DataError, match="Both tables have results of 'own' in seed 2"):
        first + more + more


def test_methods_have_names():
    for methods in (list(METHODS.values()), dict(enumerate(METHODS.values()))):
        with pytest.raises(DataError, match=r"methods must be a dict of text -> learner\. Got "):
            run(ENVIRONMENT, methods, setting=SETTING, grid=GRID, seeds=1)


class NoAdapt(BaseEstimator):
    def fit(self, tasks):
        return self


@pytest.mark.parametrize(
    ("method", "problem"),
    [(NoAdapt(), "It has no adapt"), (object(), "It has no get_params"), (Zero, "It is a class")],
)
def test_what_a_method_lacks_is_named(method, problem):
    with pytest.raises(DataError, match=f"The method 'mine' of run must be .* {problem}"):
        run(ENVIRONMENT, {"mine": method}, setting=SETTING, seeds=1)
