"""Standard errors and the summary of ConditionalRidge, beside lme4 and by what they cover."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import condmeta as cm
from condmeta.errors import DataError

# lme4 1.1.31, maximum likelihood: tests/data/lme4/wages.R
LME4 = {
    ("(intercept)", "(base)"): (0.25548755084, 0.17860029314),
    ("exper", "(base)"): (0.02280227758, 0.02094986141),
    ("(intercept)", "educ"): (0.08513530920, 0.01486249336),
    ("exper", "educ"): (0.00340887177, 0.00176350894),
}
LINEAR = {"x_transform": None, "y_transform": None}
MAXIMUM_LIKELIHOOD = {"metric": "full", "noise": "shared", "kappa": 0.0} | LINEAR


@pytest.fixture(scope="module")
def wages():
    pytest.importorskip("linearmodels")
    table = cm.datasets.load_wages().to_frame(side=True)
    men = table.groupby("nr")[["educ"]].first()
    model = cm.ConditionalRidge(**MAXIMUM_LIKELIHOOD, tol=1e-5)
    return model.fit(table[["exper"]], table["lwage"], task=table["nr"], side_info=men)


def test_agrees_with_lme4(wages):
    summary = wages.summary(robust=False)
    for row in summary.effects.itertuples():
        estimate, error = LME4[row.coefficient, row.side]
        assert abs(row.effect - estimate) < 2e-3 * error
        assert abs(row.std_error / error - 1) < 1e-4
    np.testing.assert_allclose(summary.between["std"], [0.0541737783, 0.4584005033], rtol=2e-4)
    assert abs(summary.between["corr exper"][1] + 0.6567421670) < 2e-4
    assert abs(summary.noise - 0.3275035686) < 2e-6
    assert abs(summary.log_likelihood + 2162.4462162) < 1e-4
    assert (summary.n_tasks, summary.n_rows) == (545, 4360)


def test_prints_tables_and_html(wages):
    summary = wages.summary()
    text, html = repr(summary), summary._repr_html_()
    assert text.startswith("ConditionalRidge: 4,360 rows of 545 tasks, log likelihood -2162.45")
    assert "95 % intervals (robust)" in text
    assert "noise 0.3275" in text
    assert html.count("<table") == 2
    assert ">educ</td>" in html


def test_many_correlations_are_printed_as_the_strongest_of_each():
    rng, names = np.random.default_rng(0), [f"column_with_number_{j}" for j in range(6)]
    W = rng.normal(size=(60, 6)) + [0, 0, 0, 0, 0, 3] * rng.normal(size=(60, 1))
    X, task = rng.normal(size=(600, 6)), np.repeat(np.arange(60), 10)
    table = pd.DataFrame(X, columns=names)
    model = cm.ConditionalRidge(metric="full", **LINEAR)
    summary = model.fit(table, (X * W[task]).sum(axis=1), task=task).summary()
    lines = repr(summary).splitlines()
    at = next(i for i, line in enumerate(lines) if "strongest correlation  with" in line)
    assert max(map(len, lines[at : at + 8])) <= 80
    between = summary.between.set_index("coefficient")
    told, name = lines[at + 1].split()[-2:]
    assert float(told) == pytest.approx(between.loc[names[0], f"corr {name}"], abs=1e-3)
    others = between.loc[names[0]].filter(like="corr").drop(f"corr {names[0]}")
    assert abs(float(told)) == pytest.approx(others.abs().max(), abs=1e-3)
    assert "strongest correlation" in summary._repr_html_()


def test_markup_in_names_is_escaped():
    rng = np.random.default_rng(0)
    side = cm.TaskTable({"<b>s</b>": rng.normal(size=30)}, range(30))
    X, y, task = rng.normal(size=(90, 1)), rng.normal(size=90), np.repeat(np.arange(30), 3)
    html = cm.ConditionalRidge().fit(X, y, task=task, side_info=side).summary()._repr_html_()
    assert "<b>" not in html


def test_effects_are_per_unit_of_the_side_column(wages):
    step = wages.theta_for({"educ": 13.0}) - wages.theta_for({"educ": 12.0})
    effects = wages.summary().effects
    np.testing.assert_allclose(effects[effects["side"] == "educ"]["effect"], step, rtol=1e-9)


def test_m_frame_has_the_errors_of_its_units(wages):
    frame, effects = wages.M_frame(std=True, robust=False), wages.summary(robust=False).effects
    scaled = frame[frame["side_feature"] == "educ"]
    plain = effects[effects["side"] == "educ"]
    ratio = scaled["std_error"].to_numpy() / plain["std_error"].to_numpy()
    np.testing.assert_allclose(
        ratio, scaled["effect"].to_numpy() / plain["effect"].to_numpy(), rtol=1e-9
    )
    assert "exper (std)" in wages.M_frame(wide=True, std=True).columns


def test_coefficients_without_points_have_the_spread_of_the_prior():
    rng = np.random.default_rng(1)
    s, task = rng.normal(size=40), np.repeat(np.arange(39), 5)
    y = s[task] + rng.normal(size=39)[task] + rng.normal(size=195)
    model = cm.ConditionalRidge(**MAXIMUM_LIKELIHOOD, fit_intercept=False).fit(
        np.ones((195, 1)), y, task=task, side_info=cm.TaskTable({"s": s}, range(40))
    )
    frame = model.coef_frame(std=True)
    of_empty = frame.loc[frame["n"] == 0, "std"].item()
    errors = model.M_frame(std=True)["std_error"]
    assert of_empty > np.sqrt(model.H_[0, 0]) > frame.loc[frame["n"] > 0, "std"].max()
    assert of_empty < np.sqrt(model.H_[0, 0] * 40 / 37 + 4 * errors.max() ** 2 * (1 + s[39] ** 2))


@pytest.mark.parametrize(("n_tasks", "spread"), [(50, 0.0), (50, 0.6), (200, 0.0), (200, 0.6)])
def test_intervals_cover(n_tasks, spread):
    """95 % intervals of effects and of coefficients cover 93 to 97 %, and two standard errors."""
    effects = pytest.importorskip("benchmarks.effects")
    found = effects.coverage(n_tasks, spread, draws=100)
    for hits in (found["robust"], found["coefficients"]):
        slack = 0.02 + 2 * np.std(hits) / np.sqrt(len(hits))
        assert abs(np.mean(hits) - 0.95) < slack


def test_sentences():
    X, y, task = np.arange(8.0)[:, None], np.arange(8.0), np.repeat([0, 1], 4)
    pooled = cm.PooledRegressor(lam=1.0).fit(X, y, task=task)
    with pytest.raises(DataError, match="Standard errors are for ConditionalRidge"):
        pooled.coef_frame(std=True)
    bare = cm.ConditionalRidge(keep_tasks=False).fit(X, y, task=task)
    with pytest.raises(DataError, match="fit with keep_tasks=True"):
        bare.summary()
    model = cm.ConditionalRidge().fit(X, y, task=task)
    with pytest.raises(DataError, match=r"'level' of a summary must be in \(0, 1\). Got 95"):
        model.summary(level=95)


def test_levels_of_a_category_have_no_standard_error_and_a_note_says_so():
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(30), 5)
    X = rng.normal(size=(150, 1))
    sex = np.where(np.arange(30) % 2, "female", "male")
    y = (1 + (sex == "male"))[task] * X[:, 0] + rng.normal(size=30)[task] + rng.normal(size=150)
    settings = {"metric": "full", "noise": "shared", "kappa": 0.0, "context": False}
    both = cm.ConditionalRidge(**settings).fit(
        X, y, task=task, side_info=cm.TaskTable({"sex": sex}, ids=range(30))
    )
    note = "Effects of sex=female, sex=male have no standard error: the tasks determine only their"
    assert note in repr(both.summary())
    assert note in both.summary()._repr_html_()
    penalised = cm.ConditionalRidge(**settings | {"kappa": 0.1}).fit(
        X,
        y,
        task=task,
        side_info=cm.TaskTable({"sex": sex, "age": np.arange(30) % 7}, ids=range(30)),
    )
    large = "The tasks determine only differences between effects of sex=female, sex=male, as with"
    assert large in repr(penalised.summary())
    one = cm.ConditionalRidge(**settings)
    one.fit(X, y, task=task, side_info=cm.TaskTable({"male": sex == "male"}, ids=range(30)))
    assert "no standard error" not in repr(one.summary())
    assert one.summary().effects["std_error"].notna().all()
    assert "only differences" not in repr(one.set_params(kappa=0.1).fit(
        X, y, task=task, side_info=cm.TaskTable({"male": sex == "male"}, ids=range(30))
    ).summary())  # fmt: skip


def test_settings_that_differ_from_maximum_likelihood_are_said(wages):
    (cold,) = wages.summary().settings
    assert cold.startswith("A task without rows is predicted by the mean of the effects")
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(400, 1)), np.repeat(np.arange(50), 8)
    side = cm.TaskTable({"s": rng.normal(size=50)}, range(50))
    y = rng.normal(size=50)[task] + rng.normal(size=400)
    model = cm.ConditionalRidge(metric="diagonal", kappa=10.0, context=False, cold_start="pooled")
    text = repr(model.fit(X, y, task=task, side_info=side).summary())
    assert "A penalty (kappa=10) shrinks the effects" in text
    assert "A task without rows is predicted by one model of all rows" in text
    assert "(context)" not in text
    assert 'has the shape metric="diagonal" in scaled columns: metric="full" estimates' in text
    exact = cm.ConditionalRidge(metric="full", kappa=0.0, context=False, cold_start="prior")
    assert exact.fit(X, y, task=task, side_info=side).summary().settings == ()
    alone = cm.ConditionalRidge(kappa=10.0, context=True).fit(X, y, task=task).summary()
    assert "penalty" not in repr(alone)
    assert "depends on the means of its features (context)" in repr(alone)
    assert "Coefficients of an average task" in repr(alone)


@pytest.mark.parametrize("random", ["all", "intercept"])
@pytest.mark.filterwarnings("ignore::condmeta.errors.ConstantFeatureWarning")
def test_a_constant_column_leaves_the_other_standard_errors(random):
    """The intercept had none, and constant columns alone made random="intercept" fail."""
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(120, 1)), np.repeat(np.arange(20), 6)
    y = rng.normal(size=20)[task] + X[:, 0] + rng.normal(size=120)
    model = cm.ConditionalRidge(random=random, tol=1e-4, **MAXIMUM_LIKELIHOOD)
    for given in (X, X[:, :0]):
        plain = given if given.shape[1] else np.ones((120, 1))
        alone = {} if given.shape[1] else {"fit_intercept": False, "random": "all"}
        expected = clone(model).set_params(**alone).fit(plain, y, task=task).summary()
        found = model.fit(np.c_[given, np.full(120, 3.0)], y, task=task).summary()
        assert found.effects["std_error"].notna().all()
        np.testing.assert_allclose(
            found.effects[["effect", "std_error"]], expected.effects[["effect", "std_error"]],
            rtol=1e-3,
        )  # fmt: skip
        np.testing.assert_allclose(found.between["std"], expected.between["std"], rtol=1e-3)


def test_columns_that_depend_on_each_other_are_named():
    rng = np.random.default_rng(0)
    a, b, task = *rng.normal(size=(2, 120)), np.repeat(np.arange(20), 6)
    X = np.column_stack([a, b, 2 * a + 1])
    y = rng.normal(size=20)[task] + b + rng.normal(size=120)
    model = cm.ConditionalRidge(random="intercept", **MAXIMUM_LIKELIHOOD).fit(X, y, task=task)
    assert "Coefficients of x0, x2 have no standard error: the rows do not" in repr(model.summary())


@pytest.mark.parametrize("random", ["intercept", ["x0"], "all"])
def test_levels_of_a_side_column_that_moves_some_coefficients(random):
    """They are not taken for features that depend on each other."""
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(200, 2)), np.repeat(np.arange(40), 5)
    side = cm.TaskTable({"kind": np.where(np.arange(40) % 3, "a", "b")}, ids=range(40))
    y = X[:, 0] + rng.normal(size=40)[task] + rng.normal(size=200)
    model = cm.ConditionalRidge(random=random, **MAXIMUM_LIKELIHOOD)
    text = repr(model.fit(X, y, task=task, side_info=side).summary())
    assert "Effects of kind=a, kind=b have no standard error: the tasks determine only" in text
    assert "Coefficients of" not in text.partition("Effects of kind=a, kind=b")[2]


def test_all_levels_of_a_category_are_counted():
    rng = np.random.default_rng(0)
    day, task = np.tile(np.arange(6), 40), np.repeat(np.arange(20), 12)
    y = rng.normal(size=20)[task] + 0.5 * day + rng.normal(size=240)
    model = cm.ConditionalRidge(random="intercept", **MAXIMUM_LIKELIHOOD)
    text = repr(model.fit(np.eye(6)[day], y, task=task).summary())
    assert "Coefficients of x0, x1, x2, x3 and 2 more have no standard error: the rows do" in text


def test_a_weak_prior_is_said():
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(200, 1)), np.repeat(np.arange(20), 10)
    y = (X[:, 0] + rng.normal(size=20)[task] + rng.logistic(size=200) > 0) * 1
    note = "A weak prior of the coefficients of an average task is part of the log likelihood"
    for random, kappa, said in (
        ("all", "auto", True),
        ("intercept", "auto", True),
        ("all", 0, False),
    ):
        model = cm.ConditionalLogistic(metric="full", random=random, kappa=kappa)
        summary = model.fit(X, y, task=task).summary()
        assert summary.settings == ((summary.settings[0],) if said else ())
        assert (note in repr(summary)) is said
    three = (y + (rng.random(200) < 0.3)).astype(int)
    for random, said in (("all", True), ("intercept", False)):
        model = cm.ConditionalOrdinal(metric="full", random=random).fit(X, three, task=task)
        assert (note in repr(model.summary())) is said


def test_levels_that_are_left_out_are_said():
    rng = np.random.default_rng(1)
    X, task = np.ones((240, 1)), np.repeat(np.arange(40), 6)
    y = rng.normal(size=40)[task] + rng.normal(size=240)
    ids = [(t // 8, t) for t in task.tolist()]
    model = cm.ConditionalLevels(fit_intercept=False, scale="none").fit(X, y, task=ids)
    assert model.levels_ == ("none",)
    assert "Differences between groups by level 0 are left out" in repr(model.summary())
    model = cm.ConditionalLevels(fit_intercept=False, scale="none", metric="full")
    assert "left out" not in repr(model.fit(X, y, task=ids).summary())
