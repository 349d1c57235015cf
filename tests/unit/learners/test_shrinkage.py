"""Shrinking estimates: published meta-analyses, the same model fitted to rows, faults."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.optimize import minimize_scalar

import condmeta as cm
from condmeta.cli.app import app
from condmeta.errors import DataError
from condmeta.inner.squared import SquaredState
from condmeta.meta.ascent import Stopping
from condmeta.meta.ridge import learn_prior

# Thirteen trials of the BCG vaccine (Colditz et al. 1994): cases and others with and without it,
# and the latitude of the place.
TRIALS = np.array(
    [
        [4, 119, 11, 128, 44], [6, 300, 29, 274, 55], [3, 228, 11, 209, 42],
        [62, 13536, 248, 12619, 52], [33, 5036, 47, 5761, 13], [180, 1361, 372, 1079, 44],
        [8, 2537, 10, 619, 19], [505, 87886, 499, 87892, 13], [29, 7470, 45, 7232, 27],
        [17, 1699, 65, 1600, 42], [186, 50448, 141, 27197, 18], [5, 2493, 3, 2338, 33],
        [27, 16886, 29, 17825, 33],
    ], float,
)  # fmt: skip


def bcg() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return log risk ratios, standard errors and latitudes, keyed by trial."""
    a, b, c, d, latitude = TRIALS.T
    trial = pd.Index([f"trial {i}" for i in range(13)], name="trial")
    ratio = np.log((a / (a + b)) / (c / (c + d)))
    error = np.sqrt(1 / a - 1 / (a + b) + 1 / c - 1 / (c + d))
    columns = {"ratio": ratio}, {"ratio": error}, {"latitude": latitude}
    return tuple(pd.DataFrame(column, index=trial) for column in columns)


def test_meta_analysis_of_thirteen_trials():
    estimates, errors, _ = bcg()
    result = cm.shrink(estimates, std_errors=errors, kappa=0.0)
    summary = result.summary(robust=False)
    assert abs(summary.effects["effect"][0] + 0.71119914) < 1e-8
    assert abs(summary.effects["std_error"][0] - 0.17189681) < 1e-8
    assert abs(summary.between["std"][0] ** 2 - 0.28002814) < 2e-8
    assert abs(summary.log_likelihood + 12.66507635) < 1e-8
    assert (summary.noise, summary.n_tasks, summary.n_rows) == (None, 13, 13)
    assert "13 estimates of 13 tasks" in str(summary)


def test_meta_regression_on_latitude():
    estimates, errors, latitude = bcg()
    result = cm.shrink(estimates, std_errors=errors, side_info=latitude, kappa=0.0)
    effects = result.summary().effects.set_index("side")["effect"]
    assert abs(effects["latitude"] + 0.02950934) < 1e-8
    assert abs(effects["(base)"] - 0.28210717) < 1e-8
    assert abs(result.summary().between["std"][0] ** 2 - 0.03435144) < 1e-8
    assert abs(result.objective_ + 7.68566553) < 1e-8


def test_eight_schools_have_no_variance_between_them():
    effects = dict(enumerate([28, 8, -3, 7, -1, 1, 18, 12]))
    errors = dict(enumerate([15, 10, 16, 11, 9, 11, 10, 18]))
    result = cm.shrink(effects, std_errors=errors, kappa=0.0)
    assert abs(result.theta_mean_[0] - 7.68561673) < 1e-7
    assert result.summary().between["std"][0] < 0.01  # standard errors are 9 to 18
    np.testing.assert_allclose(result.coef_frame()["adapted"], 7.68561673, atol=1e-5)


def draw(T=80, d=2, n=9, s2=0.49, seed=3):
    """Draw rows of tasks, and the least-squares estimates that somebody made from them."""
    rng = np.random.default_rng(seed)
    s = rng.normal(size=T)
    W, L = rng.normal(size=(2, d)), np.tril(rng.normal(size=(d, d)))
    w = np.column_stack([s, np.ones(T)]) @ W + rng.normal(size=(T, d)) @ L.T
    X = rng.normal(size=(T, n, d))
    y = np.einsum("tnd,td->tn", X, w) + np.sqrt(s2) * rng.normal(size=(T, n))
    gram = np.swapaxes(X, 1, 2) @ X
    b = np.linalg.solve(gram, np.einsum("tnd,tn->td", X, y)[:, :, None])[:, :, 0]
    return s, X, y, b, s2 * np.linalg.inv(gram), s2


def test_estimates_say_as_much_as_rows():
    """With known noise, estimates and covariances are sufficient: the same W and H."""
    s, X, y, b, C, s2 = draw()
    T, n, d = X.shape
    side = cm.TaskTable({"s": s}, range(T))
    result = cm.shrink(
        cm.TaskTable(b, range(T), ["u", "v"]), C, side_info=side, kappa=0.0, metric="full"
    )
    stats = SquaredState.of(X.reshape(-1, d), y.ravel(), n * np.arange(T + 1))
    Z = ((s - s.mean()) / s.std())[:, None]
    prior = learn_prior(stats, Z, "full", 0.0, noise=s2, stopping=Stopping(1e-8, 500)).prior
    assert prior.s2 == s2
    found = result.theta_for(side)
    np.testing.assert_allclose(found, prior.theta(Z), atol=1e-6)
    scale = result.fitted_.scales.user_matrix()
    np.testing.assert_allclose(scale @ result.H_ @ scale.T, prior.H, atol=1e-6)


def test_new_estimates_and_further_ones():
    _, _, _, b, C, _ = draw()
    ids = [f"t{i}" for i in range(len(b))]
    estimates = cm.TaskTable(b, ids, ["u", "v"])
    result = cm.shrink(estimates, C)
    again = result.adapt(b[4], C[4]).coef_
    frame = result.coef_frame()
    np.testing.assert_allclose(again, frame["adapted"][8:10], rtol=1e-9)
    np.testing.assert_allclose(frame["own"], b.ravel(), rtol=1e-9)
    many = result.adapt(cm.TaskTable(b[:3], ["x", "y", "z"], ["u", "v"]), C[:3])
    np.testing.assert_allclose(many.coef_, frame["adapted"].to_numpy().reshape(-1, 2)[:3])
    # Twice the same independent estimate is one with half its covariance.
    result.update(estimates.rows(np.array([4])), C[4:5])
    half = cm.shrink(estimates, C).adapt(b[4], C[4] / 2).coef_
    np.testing.assert_allclose(result.coef_frame()["adapted"][8:10], half, rtol=1e-9)
    np.testing.assert_allclose(result.adapt().coef_, result.theta_mean_)


def test_standard_errors_are_diagonal_covariances():
    _, _, _, b, C, _ = draw()
    table = cm.TaskTable(b, range(len(b)), ["u", "v"])
    std = np.sqrt(np.einsum("tii->ti", C))
    diagonal = std[:, :, None] ** 2 * np.eye(2)
    one = cm.shrink(table, diagonal)
    two = cm.shrink(table, std_errors=cm.TaskTable(std, range(len(b)), ["u", "v"]))
    by_id = cm.shrink(table, dict(enumerate(diagonal)))
    assert one.objective_ == two.objective_ == by_id.objective_


def test_a_coefficient_that_was_not_estimated():
    _, _, _, b, C, _ = draw()
    b[7, 1] = np.nan
    result = cm.shrink(cm.TaskTable(b, range(len(b)), ["u", "v"]), C, metric="full")
    frame = result.coef_frame(std=True)
    own = frame.loc[frame["task"] == 7, "own"].to_numpy()
    assert abs(own[0] - b[7, 0]) < 1e-9
    assert np.isnan(own[1])
    assert np.isfinite(frame["adapted"]).all()
    # The estimate of u moves v by their correlation between tasks.
    scale = result.fitted_.scales.user_matrix()
    H = scale @ result.H_ @ scale.T
    prior = frame.loc[frame["task"] == 7, "prior"].to_numpy()
    expected = prior[1] + H[1, 0] / (H[0, 0] + C[7, 0, 0]) * (b[7, 0] - prior[0])
    assert abs(frame.loc[frame["task"] == 7, "adapted"].to_numpy()[1] - expected) < 1e-9


def test_units_do_not_matter():
    _, _, _, b, C, _ = draw()
    unit = np.array([1000.0, 0.01])
    ids = range(len(b))
    plain = cm.shrink(cm.TaskTable(b, ids, ["u", "v"]), C)
    scaled = cm.shrink(cm.TaskTable(b * unit, ids, ["u", "v"]), C * np.outer(unit, unit))
    a, c = (x.coef_frame()["adapted"].to_numpy().reshape(-1, 2) for x in (plain, scaled))
    np.testing.assert_allclose(c, a * unit, rtol=1e-5)


def test_saves_and_loads(tmp_path):
    estimates, errors, latitude = bcg()
    result = cm.shrink(estimates, std_errors=errors, side_info=latitude)
    result.save(tmp_path / "trials.condmeta")
    again = cm.load(tmp_path / "trials.condmeta")
    assert again.theta_for({"latitude": 30.0}) == result.theta_for({"latitude": 30.0})
    assert again.adapt([-0.5], std_errors=[0.1], side_info={"latitude": 30.0}).coef_ == (
        result.adapt([-0.5], std_errors=[0.1], side_info={"latitude": 30.0}).coef_
    )
    assert list(result.coef_frame().columns[:2]) == ["trial", "feature"]


def test_command(tmp_path):
    estimates, errors, latitude = bcg()
    table = estimates.assign(se=errors["ratio"]).reset_index()
    table.to_csv(tmp_path / "trials.csv", index=False)
    latitude.reset_index().to_csv(tmp_path / "places.csv", index=False)
    files = ["shrink", str(tmp_path / "trials.csv"), "--side-table", str(tmp_path / "places.csv")]
    columns = ["--task", "trial", "--estimate", "ratio", "--se", "se", "--kappa", "0"]
    out = tmp_path / "shrunken.csv"
    done = CliRunner().invoke(app, [*files, *columns, "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "13 estimates of 13 tasks" in done.stderr
    found = pd.read_csv(out)
    expected = cm.shrink(estimates, std_errors=errors, side_info=latitude, kappa=0.0)
    np.testing.assert_allclose(found["adapted"], expected.coef_frame()["adapted"], atol=1e-9)
    table.assign(place="x", latitude=latitude["latitude"].to_numpy()).to_csv(
        tmp_path / "both.csv", index=False
    )
    named = ["shrink", str(tmp_path / "both.csv"), "--side", "latitude", *columns]
    done = CliRunner().invoke(app, [*named, "-o", str(tmp_path / "same.csv")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "same.csv").read_text() == out.read_text()
    lacking = CliRunner().invoke(app, [*files, "--side", "height", *columns])
    assert "Column 'height' (--side) is not in the table" in lacking.stderr
    wrong = CliRunner().invoke(app, [*files, *columns[:4], "--se", "se,ratio"])
    assert wrong.exit_code == 1
    assert "--estimate names 1 columns and --se 2" in wrong.stderr


@pytest.mark.parametrize(
    ("covariances", "std_errors", "message"),
    [
        (None, None, "Give either covariances= or std_errors="),
        (
            np.ones((2, 2, 2)),
            None,
            r"must have the shape \(3, 1, 1\): 3 tasks, 1 coeff.*std_errors=\.",
        ),
        ({"a": [[1.0]], "b": [[1.0]]}, None, "Task 'c' has an estimate, but no covariance"),
        ("many", None, r"must hold a \(1, 1\) matrix for each task"),
        (np.array([[[1.0]], [[-1.0]], [[1.0]]]), None, "Task 'b' has a covariance that is not"),
        (None, {"a": 1.0, "b": 0.0, "c": 2.0}, "Task 'b' has a covariance that is not"),
        (None, {"a": 1.0, "b": np.nan, "c": 2.0}, "Task 'b' has a covariance that is not"),
    ],
)
def test_faults(covariances, std_errors, message):
    with pytest.raises(DataError, match=message):
        cm.shrink({"a": 1.0, "b": 2.0, "c": 3.0}, covariances, std_errors=std_errors)


def test_standard_errors_are_named_as_the_estimates():
    estimates, errors, _ = bcg()
    renamed = cm.shrink(estimates, std_errors=errors.rename(columns={"ratio": "se"}))
    same = cm.shrink(estimates, std_errors=errors)
    np.testing.assert_array_equal(renamed.coef_frame()["adapted"], same.coef_frame()["adapted"])
    two = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    with pytest.raises(DataError, match="estimates has no task ids: name their column in task="):
        cm.shrink(two, std_errors=two)
    two.index = ["A", "B"]
    message = "std_errors has the columns 'a', 'se', and the estimates have 'a', 'b': give them"
    with pytest.raises(DataError, match=message):
        cm.shrink(two, std_errors=two.rename(columns={"b": "se"}))


def test_a_new_study_has_a_standard_deviation():
    """That of metafor's prediction interval, with tau^2 times 13 / 11 for the two effects."""
    estimates, errors, latitude = bcg()
    latitude.loc["new"] = 30.0
    result = cm.shrink(estimates, std_errors=errors, side_info=latitude, kappa=0.0)
    new = result.coef_frame(std=True).iloc[-1]
    assert (new["trial"], new["n"]) == ("new", 0)
    # predict(rma(yi, vi, mods = ~ ablat, method = "ML"), 30): pred -0.6032, se 0.0827
    np.testing.assert_allclose(new["adapted"], -0.6032, atol=5e-5)
    np.testing.assert_allclose(new["std"] ** 2, 0.0827**2 + 0.03435144 * 13 / 11, atol=2e-5)


def test_asymmetric_covariance():
    table = cm.TaskTable([[1.0, 2.0]], ["a"], ["u", "v"])
    with pytest.raises(DataError, match="Task 'a' has a covariance that is not symmetric"):
        cm.shrink(table, np.array([[[1.0, 0.5], [0.1, 1.0]]]))


def test_a_series_is_keyed_by_its_index():
    estimates = pd.Series([1.0, 2.0, 3.0, 2.5], index=list("abcd"))
    errors = pd.Series(0.3, index=list("abcd"), name="se")
    found = cm.shrink(estimates, std_errors=errors)
    same = cm.shrink(dict(estimates), std_errors=dict(errors))
    np.testing.assert_array_equal(found.coef_frame()["adapted"], same.coef_frame()["adapted"])
    for wrong in ([1.0, 2.0], np.ones(2)):
        with pytest.raises(DataError, match=r"estimates must be keyed by task id: .* Got a"):
            cm.shrink(wrong, std_errors=wrong)
    with pytest.raises(DataError, match="std_errors must be keyed by task id"):
        cm.shrink(estimates, std_errors=[0.3] * 4)


def test_deviations_of_effects_have_no_noise_of_labels():
    """b ~ N(mu, tau2 + se^2), by maximum likelihood; predictions had the variance 1 more."""
    b, se = np.array([0.2, 1.4, -0.3, 0.9]), np.array([0.2, 0.3, 0.25, 0.2])

    def cost(tau2):
        v = tau2 + se**2
        mu = np.average(b, weights=1 / v)
        return np.sum(np.log(v) + (b - mu) ** 2 / v)

    tau2 = minimize_scalar(cost, bounds=(0.0, 4.0), method="bounded", options={"xatol": 1e-9}).x
    ids = list("ABCD")
    learner = cm.Shrinkage(kappa=0.0, tol=1e-10)
    result = learner.fit(dict(zip(ids, b, strict=True)), std_errors=dict(zip(ids, se, strict=True)))
    for model, expected in (
        (result.adapt([0.1], std_errors=[0.5]), 1 / (1 / tau2 + 4)),
        (result.adapt(), tau2),
    ):
        _, std = model.predict([[1.0], [-2.0]], return_std=True)
        np.testing.assert_allclose(std, np.sqrt(expected) * np.array([1.0, 2.0]), rtol=1e-4)
