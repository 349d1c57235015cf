"""What AutoRegressor takes beside X and y: an offset, a transformer of X, levels that are rare."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures

import condmeta as cm
from condmeta.errors import DataError
from condmeta.learners.held_out import frozen

RNG = np.random.default_rng(0)
TASK = np.repeat(np.arange(24), 6)
X = RNG.uniform(-2, 2, size=(144, 1))
OFFSET = 10 * RNG.normal(size=144)
Y = X[:, 0] * RNG.normal(size=24)[TASK] + 0.1 * RNG.normal(size=144)
FORGOTTEN = r"^The model was fitted with an offset: give offset= here as well"
FEW = {"base": None, "shots": (0, 3)}


def test_an_offset_is_taken_off_and_added():
    plain = cm.AutoRegressor(**FEW).fit(X, Y, task=TASK)
    model = cm.AutoRegressor(**FEW).fit(X, Y + OFFSET, task=TASK, offset=OFFSET)
    expected = plain.predict(X, task=TASK)
    found = model.predict(X, task=TASK, offset=OFFSET)
    np.testing.assert_allclose(found, expected + OFFSET)
    np.testing.assert_allclose(model.predict(X, task=TASK, offset=0), expected)
    few = model.adapt(X[:3], Y[:3] + OFFSET[:3], offset=OFFSET[:3])
    np.testing.assert_allclose(few.predict(X), plain.adapt(X[:3], Y[:3]).predict(X))
    model.update(X[:3], Y[:3] + OFFSET[:3], task=["new"] * 3, offset=OFFSET[:3])
    plain.update(X[:3], Y[:3], task=["new"] * 3)
    call = {"X": X[:2], "task": ["new"] * 2}
    np.testing.assert_allclose(model.predict(**call, offset=0), plain.predict(**call))


def test_a_forgotten_offset_is_an_error(tmp_path):
    model = cm.AutoRegressor(**FEW).fit(X, Y + OFFSET, task=TASK, offset=OFFSET)
    model.save(tmp_path / "auto.condmeta")
    for one in (model, cm.load(tmp_path / "auto.condmeta")):
        for call in (
            lambda one=one: one.predict(X, task=TASK),
            lambda one=one: one.adapt(X[:3], Y[:3]),
            lambda one=one: one.update(X[:3], Y[:3], task=TASK[:3]),
        ):
            with pytest.raises(DataError, match=FORGOTTEN):
                call()
        assert np.isfinite(one.adapt().predict(X)).all()  # no points: nothing to take it off


def test_a_transformer_lets_the_priors_bend():
    bent = (X[:, 0] ** 2) * RNG.normal(size=24)[TASK] + 0.1 * RNG.normal(size=144)
    squares = PolynomialFeatures(2, include_bias=False)
    straight = cm.AutoRegressor(**FEW).fit(X, bent, task=TASK)
    model = cm.AutoRegressor(x_transform=squares, **FEW).fit(X, bent, task=TASK)
    with_prior = straight.candidates_.index("unconditional")
    assert model.errors_[1, with_prior] < 0.5 * straight.errors_[1, with_prior]
    own = straight.candidates_.index("own data")
    np.testing.assert_allclose(model.errors_[:, own], straight.errors_[:, own])
    assert "transformed" in straight.candidates_  # it finds splines by itself
    assert np.abs(model.predict(X, task=TASK) - bent).mean() < 0.1  # as large as the noise


@pytest.mark.parametrize("kind", [cm.AutoRegressor, cm.AutoClassifier])
def test_own_folds_do_not_warn_of_unseen_levels(kind):
    """Each of 24 tasks has its own level: a fold that is held out has levels that others lack."""
    side = cm.TaskTable({"town": [f"town {t // 2}" for t in range(24)]}, ids=range(24))
    y = Y if kind is cm.AutoRegressor else Y > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = kind(**FEW).fit(X, y, task=TASK, side_info=side)
        assert "conditional" in model.candidates_
    if "conditional" in model.learners_:
        other = cm.TaskTable({"town": ["elsewhere"]}, ids=["new"])
        with pytest.warns(UserWarning, match="levels not seen in training"):
            model.predict(X[:1], task=["new"], side_info=other)


def test_folds_judge_the_learner_that_is_used():
    """An infinite kappa that was chosen leaves side information to the pooled map, if it reads it.

    As a given setting it does not: folds judged another learner than the one that answered.
    """
    rng = np.random.default_rng(1)
    task, level, s = np.repeat(np.arange(40), 8), rng.normal(size=40), rng.normal(size=40)
    x = (level[task] + rng.normal(size=320))[:, None]
    y = x[:, 0] + 2 * level[task] + 0.3 * rng.normal(size=320)
    call = {"task": task, "side_info": {t: {"s": s[t]} for t in range(40)}}
    learner = cm.ConditionalRidge(context=False, x_transform=None, y_transform=None)
    learner.fit(x, y, **call)
    assert (learner.kappa_, learner.cold_start_) == (np.inf, "pooled")
    new = {"task": ["new"] * 320, "side_info": {"new": {"s": 1.5}}}
    again = frozen(learner).fit(x, y, **call)
    np.testing.assert_allclose(again.predict(x, **new), learner.predict(x, **new), rtol=1e-6)


def test_folds_keep_noise_that_follows_side_information():
    """An infinite kappa that was chosen, given to the folds, had them refuse this noise."""
    rng = np.random.default_rng(0)
    task, s = np.repeat(np.arange(60), 12), rng.normal(size=60)
    x = rng.normal(size=(720, 1))
    slope, level = 2 + 0.3 * rng.normal(size=60), rng.normal(size=60)
    y = x[:, 0] * slope[task] + level[task] + np.exp(s[task]) * rng.normal(size=720)
    call = {"task": task, "side_info": cm.TaskTable({"s": s}, ids=range(60))}
    model = cm.AutoRegressor(**FEW, criterion="squared").fit(x, y, **call)
    used = cm.ConditionalRidge(x_transform=None, y_transform=None).fit(x, y, **call)
    assert (used.kappa_, used.noise_, used.cold_start_) == (np.inf, "by_side", "prior")
    assert "conditional" in model.candidates_
