"""Coefficients that differ between tasks, and shared ones: beside lme4 and dense likelihoods."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import condmeta as cm
from condmeta.errors import DataError

ML = {"noise": "shared", "kappa": 0.0, "tol": 1e-4, "max_iter": 2000, "metric": "full"}
ML |= {"context": False}
LME4 = Path(__file__).parents[2] / "data" / "lme4" / "random_effects.csv"
FITS = {
    "lwage ~ exper + union + (1 | nr)": (["exper", "union"], {"random": "intercept"}),
    "lwage ~ exper + union + educ + (1 | nr)": (["exper", "union"], {"random": "intercept"}),
    "lwage ~ exper + union + (1 + exper | nr)": (["exper", "union"], {"random": ["exper"]}),
    "lwage ~ exper + (1 + exper | nr)": (["exper"], {}),
    "lwage ~ exper + (1 + exper || nr)": (["exper"], {"metric": "diagonal", "scale": "none"}),
}


@pytest.fixture(scope="module")
def wages():
    return cm.datasets.load_wages().to_frame(side=True)


@pytest.fixture(scope="module")
def lme4():
    found = {}
    with LME4.open() as file:
        for row in csv.DictReader(file):
            found.setdefault(row["model"], {})[row["name"]] = float(row["value"])
    return found


@pytest.mark.parametrize("formula", FITS)
def test_fits_are_those_of_lme4(wages, lme4, formula):
    columns, options = FITS[formula]
    side = wages.groupby("nr")[["educ"]].first() if "educ" in formula else None
    model = cm.ConditionalRidge(**(ML | options), x_transform=None, y_transform=None)
    model.fit(wages[columns], wages["lwage"], task=wages["nr"], side_info=side)
    expected = lme4[formula]
    np.testing.assert_allclose(model.objective_, expected["logLik"], atol=1e-4)
    names = [*columns, "(Intercept)"]
    start = model.fitted_.scales.user_vector(model.b_)
    if side is not None:
        start, one = (model.theta_for({"educ": value}) for value in (0.0, 1.0))
        np.testing.assert_allclose(one - start, [0, 0, expected["educ"]], atol=1e-5)
    np.testing.assert_allclose(start, [expected[name] for name in names], rtol=1e-4)
    C = model.fitted_.scales.user_matrix()
    variances = [expected.get(f"var {name}", 0.0) for name in names]
    np.testing.assert_allclose(np.diag(C @ model.H_ @ C.T), variances, rtol=1e-3, atol=1e-12)
    np.testing.assert_allclose(model.s2_, expected["Residual"], rtol=1e-4)


@pytest.mark.parametrize("formula", FITS)
def test_formulas_are_written_as_in_lme4(wages, lme4, formula):
    pytest.importorskip("formulaic")
    model = cm.from_formula(formula, wages, learner=cm.ConditionalRidge(**ML))
    np.testing.assert_allclose(model.learner_.objective_, lme4[formula]["logLik"], atol=1e-4)


def test_standard_errors_are_those_of_lme4(wages, lme4):
    side = wages.groupby("nr")[["educ"]].first()
    model = cm.ConditionalRidge(random="intercept", **ML)
    model.fit(wages[["exper", "union"]], wages["lwage"], task=wages["nr"], side_info=side)
    effects = model.summary(robust=False).effects
    found = effects.set_index(["coefficient", "side"])["std_error"]
    errors = lme4["lwage ~ exper + union + educ + (1 | nr)"]
    expected = {
        ("exper", "(base)"): errors["error exper"],
        ("union", "(base)"): errors["error union"],
        ("(intercept)", "(base)"): errors["error (Intercept)"],
        ("(intercept)", "educ"): errors["error educ"],
    }
    assert set(found.index) == set(expected)  # educ changes no coefficient that men share
    assert model.summary().between["coefficient"].tolist() == ["(intercept)"]
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-3, atol=1e-9)


@pytest.fixture(scope="module")
def tasks():
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 9, 60)
    task = np.repeat(np.arange(60), sizes)
    X, size = rng.normal(size=(len(task), 3)), rng.normal(size=60)
    level = 2 * size + rng.normal(size=60)
    y = X @ [1.0, -1.0, 0.5] + level[task] + 0.6 * rng.normal(size=len(task))
    return X, y, task, cm.TaskTable({"size": size}, ids=range(60))


@pytest.mark.parametrize("random", ["intercept", [0], "all"])
def test_objective_is_the_log_likelihood(tasks, random):
    X, y, task, side = tasks
    model = cm.ConditionalRidge(random=random, **ML).fit(X, y, task=task, side_info=side)
    fitted, total = model.fitted_, 0.0
    for t in range(60):
        rows, labels = fitted.scales.rows(X[task == t]), fitted.scales.target(y[task == t])
        V = rows @ model.H_ @ rows.T + model.s2_ * np.eye(len(rows))
        total += multivariate_normal.logpdf(labels, rows @ fitted.tasks.theta[t], V)
    np.testing.assert_allclose(model.objective_, total, rtol=1e-9)


def test_penalty_is_subtracted_from_the_objective(tasks):
    X, y, task, side = tasks
    fits = [
        cm.ConditionalRidge(random="intercept", **(ML | {"kappa": kappa}))
        .fit(X, y, task=task, side_info=side)
        .objective_
        for kappa in (0.0, 1.0, 100.0, np.inf)
    ]
    assert fits == sorted(fits, reverse=True)


def test_shared_coefficients_are_the_same_for_all_tasks(tasks):
    X, y, task, side = tasks
    model = cm.ConditionalRidge(random="intercept").fit(X, y, task=task, side_info=side)
    models = model.adapt(X, y, task=task, side_info=side)
    assert np.ptp(models.coef_, axis=0).max() < 1e-12
    assert np.ptp(models.intercept_) > 1
    np.testing.assert_allclose(models.coef_[0], [1.0, -1.0, 0.5], atol=0.1)
    some = cm.ConditionalRidge(random=[0, 2]).fit(X, y, task=task, side_info=side)
    assert np.ptp(some.adapt(X, y, task=task, side_info=side).coef_[:, 1]) < 1e-12


def test_parts_equal_one_fit_and_files_hold_it(tasks, tmp_path):
    X, y, task, side = tasks
    whole = cm.ConditionalRidge(random=[1]).fit(X, y, task=task, side_info=side)
    parts = cm.ConditionalRidge(random=[1])
    for ids in (range(25), range(25, 60)):
        at = np.isin(task, ids)
        parts.partial_fit(X[at], y[at], task=task[at], side_info=side.take(list(ids)))
    expected = whole.predict(X, task=task)
    np.testing.assert_allclose(parts.predict(X, task=task), expected, rtol=1e-5, atol=1e-6)
    whole.save(tmp_path / "a.condmeta")
    np.testing.assert_array_equal(cm.load(tmp_path / "a.condmeta").predict(X, task=task), expected)


def test_many_columns_with_a_random_intercept():
    rng = np.random.default_rng(1)
    X, task = rng.normal(size=(600, 90)), np.repeat(np.arange(50), 12)
    y = X[:, :5].sum(axis=1) + rng.normal(size=50)[task] + 0.5 * rng.normal(size=600)
    model = cm.ConditionalRidge(random="intercept").fit(X, y, task=task)
    models = model.adapt(X, y, task=task)
    assert np.ptp(models.coef_, axis=0).max() < 1e-12
    assert np.ptp(models.intercept_) > 1
    some = cm.ConditionalRidge(random=[3]).fit(X, y, task=task)
    assert np.flatnonzero(np.diag(some.H_)[:90]).tolist() in ([3], [])


def test_names_stand_for_columns_and_levels(wages):
    rows = wages.iloc[:2000]
    table = rows[["exper", "union"]].assign(**{"kind=a": rows["black"], "kind=b": rows["hisp"]})
    model = cm.ConditionalRidge(random=["kind"], metric="diagonal", noise="shared")
    model.fit(table, rows["lwage"], task=rows["nr"])
    assert np.flatnonzero(np.diag(model.H_)[:4]).tolist() == [2, 3]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"random": ["price"]}, "random names 'price', which is not among the 3 columns of X"),
        ({"random": [3]}, "random names 3, which is not among"),
        ({"random": "slope"}, "must be 'auto', 'all', 'intercept' or a list of columns"),
        ({"random": []}, "must be 'auto', 'all', 'intercept' or a list of columns"),
        ({"random": "intercept", "fit_intercept": False}, "there is no intercept"),
    ],
)
def test_wrong_values_are_named(tasks, options, sentence):
    X, y, task, _ = tasks
    with pytest.raises(DataError, match=sentence):
        cm.ConditionalRidge(**options).fit(X, y, task=task)
