"""KernelConditionalSGDRegressor: equal to explicit features, streams, files, refusals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import assert_same, draw_problem, unchanged
from sklearn.model_selection import GridSearchCV, GroupKFold

import condmeta as cm
from condmeta.errors import DataError, DivergenceError, ModelFileError
from condmeta.kernels import AbelKernel, GaussianKernel, LaplaceKernel, MeanEmbedding

P = draw_problem(n_tasks=12, d=3, p=2)
CALL = {"task": P.task, "side_info": P.side}
IDENTITY = cm.feature_maps.Identity()
STEPS = {"lam": 0.5, "meta_step": 0.25}
PARTS = [f"t{t}" for t in range(12)]


def kernel(*args, **params):
    return cm.KernelConditionalSGDRegressor(*args, **STEPS | params)


def linear(**params):
    return kernel("linear", feature_map=IDENTITY, **params)


def gaussian_table(ids=PARTS, columns=PARTS):
    S = P.side.take(PARTS).numeric()
    K = pd.DataFrame(GaussianKernel().gram(S, S), PARTS, PARTS)
    return cm.TaskTable(K.loc[ids, columns].to_numpy(), ids, columns=columns)


# -- the same as explicit features -----------------------------------------------------------------


@pytest.mark.parametrize("averaging", ["uniform", "linear", "last"])
@pytest.mark.parametrize("inner", ["online", "batch"])
@pytest.mark.parametrize("units", [{}, {"scale": "standard", "fit_intercept": True}])
def test_linear_kernel_equals_the_explicit_learner(engine, inner, averaging, units):
    params = {"inner": inner, "averaging": averaging, "tol": 1e-13, **units}
    one = linear(**params).fit(P.X, P.y, **CALL)
    two = cm.ConditionalSGDRegressor(IDENTITY, **STEPS, **params).fit(P.X, P.y, **CALL)
    new = cm.TaskTable(np.random.default_rng(1).normal(size=(4, 2)), list("abcd"))
    close = {"rtol": 1e-10, "atol": 1e-10}
    np.testing.assert_allclose(one.theta_for(new), two.theta_for(new), **close)
    np.testing.assert_allclose(one.b_, two.b_, **close)
    np.testing.assert_allclose(one.theta_mean_, two.theta_mean_, **close)
    assert one.norm_ == pytest.approx(np.linalg.norm(np.column_stack([two.M_, two.b_])), rel=1e-10)
    for name in ("prior", "own", "adapted"):
        np.testing.assert_allclose(one.coef_frame()[name], two.coef_frame()[name], **close)
    for X, y in ((None, None), (P.X[:4], P.y[:4])):
        got, want = (model.adapt(X, y, side_info=[0.3, -1.0]) for model in (one, two))
        np.testing.assert_allclose(got.coef_, want.coef_, **close)
    if inner == "online":
        more = {"task": ["t0", "n"], "side_info": {"n": [1.0, 1.0]}}
        for model in (one, two):
            model.update(P.X[:2], P.y[:2], **more)
        got, want = (model.coef_frame(wide=True)["x0"] for model in (one, two))
        np.testing.assert_allclose(got, want, **close)


def test_mean_embedding_equals_mean_features(engine):
    for conditioning in ("shared", "split"):
        params = {"conditioning": conditioning, "scale": "standard"}
        one = kernel(MeanEmbedding("linear"), **params).fit(P.X, P.y, task=P.task)
        two = cm.ConditionalSGDRegressor(cm.feature_maps.MeanInput(), **STEPS, **params)
        two.fit(P.X, P.y, task=P.task)
        np.testing.assert_allclose(
            one.coef_frame()["adapted"], two.coef_frame()["adapted"], rtol=1e-10, atol=1e-12
        )
        X = P.X[:2], ["new", "t3"]
        np.testing.assert_allclose(
            one.predict(X[0], task=X[1]), two.predict(X[0], task=X[1]), rtol=1e-10
        )


def test_separate_conditioning_points():
    rng = np.random.default_rng(3)
    points = cm.TaskSet.from_arrays(rng.normal(size=(36, 3)), None, np.repeat(PARTS, 3))
    one = kernel(MeanEmbedding("linear")).fit(P.X, P.y, task=P.task, side_info=points)
    two = cm.ConditionalSGDRegressor(cm.feature_maps.MeanInput(), **STEPS)
    two.fit(P.X, P.y, task=P.task, side_info=points)
    np.testing.assert_allclose(one.theta_for(points), two.theta_for(points), rtol=1e-10)
    abel = kernel(AbelKernel(3.0)).fit(P.X, P.y, task=P.task, side_info=points)
    assert abel.theta_for(points).shape == (12, 3)


def test_precomputed_and_function_equal_the_kernel(engine):
    want = kernel(feature_map=IDENTITY).fit(P.X, P.y, **CALL)
    close = {"rtol": 1e-10, "atol": 1e-12}
    own = kernel(lambda a, b: np.exp(-np.sum((a - b) ** 2) / 2), feature_map=IDENTITY)
    own.fit(P.X, P.y, **CALL)
    given = kernel("precomputed").fit(P.X, P.y, task=P.task, side_info=gaussian_table())
    turned = gaussian_table(PARTS[::-1], PARTS[3:] + PARTS[:3])  # columns count by their names
    other = kernel("precomputed").fit(P.X, P.y, task=P.task, side_info=turned)
    row = {name: GaussianKernel()(P.side.take([name]).numeric(), [0.2, 0.4]) for name in PARTS}
    for model, s in ((own, [0.2, 0.4]), (given, row), (other, row)):
        np.testing.assert_allclose(
            model.coef_frame()["adapted"], want.coef_frame()["adapted"], **close
        )
        np.testing.assert_allclose(model.theta_for(s), want.theta_for([0.2, 0.4]), **close)
        assert model.norm_ == pytest.approx(want.norm_, rel=1e-10)


def test_random_features_converge_at_the_rate_of_their_number():
    """The distance to the Gaussian kernel falls like k^(-1/2)."""
    params = {"loss": "squared", "inner": "batch", "meta_step": 0.05}
    exact = kernel(feature_map=IDENTITY, **params).fit(P.X, P.y, **CALL).theta_for(P.side)
    sizes, errors = np.array([50, 200, 800, 3200]), []
    for k in sizes:
        seeds = []
        for seed in range(30):
            fmap = cm.feature_maps.RandomFourier(n_features=int(k), std=1.0, random_state=seed)
            model = cm.ConditionalSGDRegressor(fmap, **STEPS | params).fit(P.X, P.y, **CALL)
            seeds.append(np.mean((model.theta_for(P.side) - exact) ** 2))
        errors.append(np.sqrt(np.mean(seeds)))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4
    assert errors[-1] < 0.05 * np.abs(exact).max()


def test_without_side_information_it_is_unconditional(engine):
    one = kernel().fit(P.X, P.y, task=P.task)
    two = cm.ConditionalSGDRegressor(**STEPS).fit(P.X, P.y, task=P.task)
    np.testing.assert_allclose(one.b_, two.b_, rtol=1e-12)
    np.testing.assert_allclose(one.theta_for(), two.theta_for(), rtol=1e-12)


def test_inner_algorithm_of_the_users():
    class Half:
        def solve(self, theta, X, y):
            return theta, X.T @ (X @ theta - y) / len(y), np.nan

    one = kernel(feature_map=IDENTITY, inner=Half(), meta_step=0.05).fit(P.X, P.y, **CALL)
    assert np.isfinite(one.predict(P.X, task=P.task)).all()
    two = cm.ConditionalSGDRegressor(IDENTITY, inner=Half(), meta_step=0.05).fit(P.X, P.y, **CALL)
    three = linear(inner=Half(), meta_step=0.05).fit(P.X, P.y, **CALL)
    np.testing.assert_allclose(three.theta_for(P.side), two.theta_for(P.side), rtol=1e-10)


def test_grid_search_over_the_lengthscale():
    frame = pd.DataFrame(P.X, columns=list("abc")).assign(
        store=P.task, size=P.side.take(P.task.tolist()).data["s0"]
    )
    learner = kernel(GaussianKernel(), task_column="store", side_columns="size")
    grid = {"kernel__lengthscale": [0.5, 2.0], "lam": [1.0]}
    search = GridSearchCV(learner, grid, cv=GroupKFold(3), error_score="raise")
    search.fit(frame, P.y, groups=frame["store"])
    assert search.best_params_["kernel__lengthscale"] in (0.5, 2.0)
    assert learner.kernel.lengthscale == 1.0


# -- what is missing -------------------------------------------------------------------------------


def test_tasks_without_side_rows(engine):
    some = P.side.take(PARTS[:9])
    with pytest.raises(
        DataError, match="Add the missing rows to side_info, or set missing_side='mean'"
    ):
        kernel().fit(P.X, P.y, task=P.task, side_info=some)
    model = kernel(missing_side="mean", feature_map=IDENTITY)
    model.fit(P.X, P.y, task=P.task, side_info=some)
    X, y, task = P.of(*PARTS[:9])
    only = kernel(feature_map=IDENTITY).fit(X, y, task=task, side_info=some)
    np.testing.assert_array_equal(model.theta_for(some), only.theta_for(some))
    mean = only.theta_for(some).mean(axis=0)
    np.testing.assert_allclose(model.theta_mean_, mean, rtol=1e-12)
    prior = model.coef_frame().query("task == 't11'")["prior"]
    np.testing.assert_allclose(prior, mean, rtol=1e-12)
    np.testing.assert_allclose(model.predict(P.X[:2], task=["n", "n"]), P.X[:2] @ mean, rtol=1e-12)


def test_one_point_of_a_split_task_cannot_teach(engine):
    model = kernel(MeanEmbedding(), conditioning="split")
    X, y = P.X[:3], P.y[:3]
    model.fit(X, y, task=["a", "a", "b"])
    assert len(model.fitted_.tau.sides) == 1
    with pytest.raises(
        DataError, match="reads the conditioning points of tasks, and no task has any"
    ):
        model.fit(X, y, task=["a", "b", "c"])


# -- learning curves and streams -------------------------------------------------------------------


@pytest.mark.parametrize("averaging", ["uniform", "linear", "last"])
def test_learning_curve_is_the_fits_on_prefixes(engine, averaging):
    params = {"averaging": averaging, "feature_map": IDENTITY}
    model = kernel(fit_intercept=True, **params).fit(P.X, P.y, **CALL)
    table, row = list(model.learning_curve(P.side)), list(model.learning_curve([0.1, 0.2]))
    order = list(dict.fromkeys(P.task))
    assert len(table) == len(row) == 12
    for T in (1, 5, 12):
        X, y, task = P.of(*order[:T])
        ones = np.column_stack([X, np.ones(len(X))])  # with the offset of y of all tasks
        prefix = kernel(**params)
        prefix.fit(ones, y - model.y_offset_, task=task, side_info=P.side.take(order[:T]))
        offset = np.array([0, 0, 0, model.y_offset_])
        np.testing.assert_allclose(table[T - 1], prefix.theta_for(P.side) + offset, rtol=1e-10)
        np.testing.assert_allclose(row[T - 1], prefix.theta_for([0.1, 0.2]) + offset, rtol=1e-10)
    np.testing.assert_allclose(table[-1], model.theta_for(P.side), rtol=1e-10)


KINDS = {
    "gaussian": (GaussianKernel(2.0), IDENTITY, P.side),
    "laplace": ("laplace", IDENTITY, P.side),
    "function": (lambda a, b: float(a @ b), IDENTITY, P.side),
    "sets": (MeanEmbedding(), "auto", None),
    "precomputed": ("precomputed", "auto", gaussian_table()),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("inner", ["online", "batch"])
def test_partial_fit_equals_fit_bit_for_bit(engine, kind, inner):
    k, fmap, side = KINDS[kind]
    order = list(dict.fromkeys(P.task))
    fit = kernel(k, feature_map=fmap, inner=inner).fit(P.X, P.y, task=P.task, side_info=side)
    stream = kernel(k, feature_map=fmap, inner=inner)
    for lo, hi in ((0, 1), (1, 2), (2, 9), (9, 12)):
        X, y, task = P.of(*order[lo:hi])
        stream.partial_fit(X, y, task=task, side_info=side)
    for name in ("sides", "weights", "gradients"):
        assert_same(getattr(stream.fitted_.tau, name), getattr(fit.fitted_.tau, name))
    assert stream.n_tasks_ == fit.n_tasks_ == 12
    if kind != "sets":
        assert_same(stream.theta_for(side), fit.theta_for(side))
    with pytest.raises(DataError, match="'t0' was seen before"):
        stream.partial_fit(*P.of("t0")[:2], task=P.of("t0")[2], side_info=side)


def test_a_failed_call_changes_nothing():
    model = kernel(loss="squared", feature_map=IDENTITY, inner="batch").fit(P.X, P.y, **CALL)
    with unchanged(model, P.X, task=P.task):
        with pytest.raises(DataError, match="NaN"):
            model.partial_fit([[np.nan] * 3], [1.0], task=["n"], side_info={"n": [0.0, 1.0]})
        with pytest.raises(DataError, match="The side information lacks 's1'"):
            model.theta_for({"s0": 1.0})


def test_meta_steps_that_diverge():
    model = kernel(loss="squared", feature_map=IDENTITY, inner="batch", meta_step=1e6)
    with pytest.raises(DivergenceError, match="The meta-steps diverge at meta_step=1e"):
        model.fit(P.X, P.y, **CALL)
    with pytest.raises(DivergenceError, match=r"Task 't\d+': The online pass diverges"):
        kernel(loss="squared", lam=1e-9).fit(1e3 * P.X, P.y, **CALL)


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "side", "row"),
    [
        (GaussianKernel(0.7), P.side, [0.1, 0.2]),
        ("laplace", P.side, [0.1, 0.2]),
        ("precomputed", gaussian_table(), dict.fromkeys(PARTS, 0.5)),
        (MeanEmbedding(LaplaceKernel(2.0)), None, None),
    ],
)
@pytest.mark.parametrize("resume", [False, True])
def test_save_and_load(tmp_path, k, side, row, resume):
    path = tmp_path / "model.condmeta"
    model = kernel(k, fit_intercept=True).fit(P.X, P.y, task=P.task, side_info=side)
    agreed = {"include_points": True} if side is None else {}
    model.save(path, resume=resume, **agreed)
    loaded = cm.load(path)
    assert len(loaded.fitted_.tau.sides) == (12 if resume else 11)  # the last task has weight 0
    assert_same(loaded.predict(P.X, task=P.task), model.predict(P.X, task=P.task))
    assert_same(loaded.theta_mean_, model.theta_mean_)
    np.testing.assert_allclose(loaded.norm_, model.norm_, rtol=1e-12)
    np.testing.assert_allclose(loaded.b_, model.b_, rtol=1e-12)
    if row is not None:
        np.testing.assert_allclose(loaded.theta_for(row), model.theta_for(row), rtol=1e-12)
    again = tmp_path / "again.condmeta"
    loaded.save(again, resume=resume, **agreed)
    assert_same(cm.load(again).__dict__, loaded.__dict__)
    more = {"task": ["n", "n"], "side_info": None if side is None else _row_of(side)}
    if not resume:
        with pytest.raises(
            DataError, match="saved without the data that partial_fit and learning_curve"
        ):
            loaded.partial_fit(P.X[:2], P.y[:2], **more)
        with pytest.raises(DataError, match="with resume=True"):
            loaded.learning_curve(P.side)
    elif k != "precomputed":
        for each in (model, loaded):
            each.partial_fit(P.X[:2], P.y[:2], **more)
        assert_same(loaded.fitted_.tau.gradients, model.fitted_.tau.gradients)


def _row_of(side):
    return cm.TaskTable(side.take(["t0"]).numeric(), ["n"], columns=side.columns)


@pytest.mark.parametrize(
    "change",
    [
        {"weights": np.zeros((3, 3))},
        {"weights": np.zeros((11, 2))},
        {"given_mean": np.zeros(2)},
        {"sides": np.zeros((11, 5))},
        {"sides": [1, 2]},
    ],
)
def test_a_file_whose_parts_do_not_fit(tmp_path, change):
    path = tmp_path / "model.condmeta"
    model = kernel().fit(P.X, P.y, **CALL)
    tau = model.slim(resume=False).fitted_.tau
    model._model = model.fitted_._replace(tau=replace(tau, **change))
    model.save(path)
    with pytest.raises(ModelFileError, match=r"its field KernelConditionalSGDRegressor.fitted"):
        cm.load(path)


def test_what_save_refuses(tmp_path):
    model = kernel(MeanEmbedding()).fit(P.X, P.y, task=P.task)
    with pytest.raises(DataError, match=r"Call save\(..., include_points=True\) to allow"):
        model.save(tmp_path / "sets.condmeta")
    own = kernel(lambda a, b: float(a @ b)).fit(P.X, P.y, **CALL)
    with pytest.raises(
        ModelFileError, match=r"function .*lambda.*, which a model file cannot hold"
    ):
        own.save(tmp_path / "own.condmeta")
    assert not list(tmp_path.iterdir())


# -- sentences -------------------------------------------------------------------------------------


def test_there_is_no_matrix():
    model = kernel().fit(P.X, P.y, **CALL)
    for name in ("M_", "M_frame"):
        with pytest.raises(AttributeError, match=f"has no {name}: it learns by kernel evaluations"):
            getattr(model, name)
    with pytest.raises(AttributeError, match="not fitted yet"):
        kernel().norm_  # noqa: B018


def test_precomputed_tables_that_do_not_fit():
    def fit(table):
        return kernel("precomputed").fit(P.X, P.y, task=P.task, side_info=table)

    with pytest.raises(DataError, match=r"Tasks without a column: 't11'\.$"):
        fit(gaussian_table(columns=PARTS[:-1]))
    renamed = cm.TaskTable(gaussian_table().numeric(), PARTS, columns=[*PARTS[:-1], "x"])
    with pytest.raises(DataError, match=r"column: 't11'\. Columns without a task: 'x'\."):
        fit(renamed)
    with pytest.raises(DataError, match="reads kernel values from side_info"):
        fit(None)
    values = gaussian_table().numeric().copy()
    values[2, 3] = np.nan
    with pytest.raises(DataError, match="'t2' has no kernel value in column 't3'"):
        fit(cm.TaskTable(values, PARTS, columns=PARTS))
    values[2, 3] = 0.9
    with pytest.raises(DataError, match=r"not symmetric: tasks 't[23]' and 't[23]' give"):
        fit(cm.TaskTable(values, PARTS, columns=PARTS))
    with pytest.raises(DataError, match="not positive semi-definite"):
        fit(cm.TaskTable(-gaussian_table().numeric(), PARTS, columns=PARTS))
    model = fit(gaussian_table())
    with pytest.raises(DataError, match="The side information lacks 't"):
        model.theta_for(cm.TaskTable([[1.0]], ["n"], columns=["t0"]))


def test_more_rows_than_training_tasks_in_a_precomputed_table():
    X, y, task = P.of(*PARTS[:9])
    model = kernel("precomputed").fit(X, y, task=task, side_info=gaussian_table())
    want = kernel(feature_map=IDENTITY).fit(X, y, task=task, side_info=P.side)
    np.testing.assert_allclose(model.coef_frame()["prior"], want.coef_frame()["prior"], rtol=1e-9)


def test_sets_of_other_sizes():
    X, y = np.ones((5, 2)), np.ones(5)
    sentence = "'b' has 3 conditioning points, others have 2: .* Use MeanEmbedding"
    with pytest.raises(DataError, match=sentence):
        kernel(AbelKernel()).fit(X, y, task=list("aabbb"))
    model = kernel(AbelKernel()).fit(X[:4], y[:4], task=list("aabb"))
    with pytest.raises(DataError, match=r"1 conditioning points, others have 2"):
        model.adapt(X[:1], y[:1], task=["c"])


def test_parameters_that_do_not_go_together():
    with pytest.raises(DataError, match="does not use 'feature_map': leave it at 'auto'"):
        kernel(MeanEmbedding(), feature_map=IDENTITY).fit(P.X, P.y, task=P.task)
    with pytest.raises(DataError, match="The 'kernel' parameter must be"):
        kernel("rbf").fit(P.X, P.y, **CALL)
    with pytest.raises(DataError, match="'lengthscale' parameter of GaussianKernel"):
        kernel(GaussianKernel(-1.0)).fit(P.X, P.y, **CALL)
    with pytest.raises(DataError, match="needs side information of every task"):
        kernel(missing_side="mean").fit(P.X, P.y, **CALL).learning_curve()
