"""Deviance and log density as criteria of `compare` and `AutoRegressor`."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.metrics import mean_poisson_deviance

import condmeta as cm
from condmeta.cli.app import app
from condmeta.errors import DataError
from condmeta.meta.criteria import CRITERIA
from condmeta.meta.stacking import convex_weights


def draw(n_tasks=60, n=8, seed=0):
    rng = np.random.default_rng(seed)
    s, task = rng.normal(size=n_tasks), np.repeat(np.arange(n_tasks), n)
    x = rng.normal(size=(len(task), 1))
    rate = np.exp(1 + 0.7 * s[task] + (0.5 + 0.3 * rng.normal(size=n_tasks))[task] * x[:, 0])
    return x, rng.poisson(rate).astype(float), task, cm.TaskTable({"s": s}, range(n_tasks))


@pytest.fixture(scope="module")
def data():
    return draw()


def test_deviance_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, mean = rng.poisson(2.0, size=50).astype(float), rng.uniform(0.5, 4, size=(50, 2))
    found = CRITERIA["deviance"].mean(mean, y)
    expected = [mean_poisson_deviance(y, mean[:, c]) for c in range(2)]
    np.testing.assert_allclose(found, expected)


def test_weights_are_the_best():
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.5, 6, size=3000)
    y = rng.poisson(truth).astype(float)
    answers = truth[:, None] * np.exp(0.5 * rng.normal(size=(3000, 3)))
    for name in ("deviance", "log density"):
        given = answers if name == "deviance" else rng.uniform(0, 2, size=(3000, 3))
        judge = CRITERIA[name]
        w = convex_weights(given, y, judge)
        assert w.sum() == pytest.approx(1)
        best = judge.mean((given @ w)[:, None], y)[0]
        for other in np.random.default_rng(1).dirichlet(np.ones(3), size=200):
            assert judge.mean((given @ other)[:, None], y)[0] > best - 1e-4


@pytest.mark.parametrize("criterion", ["deviance", "log density"])
def test_counts_win_by_either_criterion(data, criterion):
    X, y, task, side = data
    found = cm.compare(X, y, task=task, side_info=side, shots=(0, 4), criterion=criterion)
    assert "counts" in found.best[0] or found.best[0] == "auto"
    assert found.advised in ("conditional counts", "auto")
    names = set(found.names)
    assert {"conditional counts", "unconditional counts"} <= names
    assert ("own data" in names) == (criterion == "deviance")
    assert found.criterion.title in repr(found)
    assert "<html" in found.to_html()


def test_log_density_is_that_of_the_learners(data):
    """Probabilities of counts for both kinds of learners."""
    X, y, task, side = data
    own = {
        "counts": cm.ConditionalCount(metric="diagonal", kappa=1.0),
        "ridge": cm.ConditionalRidge(),
    }
    found = cm.compare(
        X, y, task=task, side_info=side, learners=own, shots=(0,), criterion="log density"
    )
    assert found.errors[0, 0] < found.errors[0, 1]
    assert (found.trials[0].answers <= 1).all()
    with pytest.raises(
        DataError, match=r"needs learners that predict a distribution.*'p' is a Pooled"
    ):
        cm.compare(X, y, task=task, learners={"p": cm.PooledRegressor()}, criterion="log density")


def test_densities_of_numbers():
    tasks = cm.environments.Circle(d=2, n=8).sample(40, random_state=0)
    found = cm.compare(tasks, shots=(0, 4), criterion="log density")
    assert found.names == ["unconditional", "conditional", "auto"]
    assert np.isfinite(found.errors).all()
    assert all(row["behind"] >= 0 for row in found.rows)


def test_auto_chooses_counts(data, tmp_path):
    X, y, task, side = data
    auto = cm.AutoRegressor(base=None, shots=(0, 4), criterion="deviance")
    auto.fit(X, y, task=task, side_info=side)
    assert auto.candidates_[int(auto.weights_[0].argmax())] == "conditional counts"
    assert (auto.predict(X, task=task) >= 0).all()
    auto.save(tmp_path / "auto.condmeta")
    again = cm.load(tmp_path / "auto.condmeta")
    np.testing.assert_array_equal(again.predict(X, task=task), auto.predict(X, task=task))
    density = cm.AutoRegressor(shots=(0, 4), criterion="log density")
    density.fit(X, y, task=task, side_info=side)
    assert "own data" not in density.report_
    assert density.task_errors_ is None


def test_negative_numbers_have_no_deviance(data):
    X, y, task, _ = data
    for run in (
        lambda: cm.compare(X, y - 1, task=task, criterion="deviance"),
        lambda: cm.AutoRegressor(criterion="deviance").fit(X, y - 1, task=task),
    ):
        with pytest.raises(DataError, match=r"^criterion='deviance' is for counts, and y holds -1"):
            run()


def test_the_command_compares_counts_by_their_deviance(data, tmp_path, monkeypatch):
    X, y, task, side = data
    monkeypatch.chdir(tmp_path)
    rows = pd.DataFrame({"store": task, "price": X[:, 0], "sold": y.astype(int)})
    rows.to_csv("sales.csv", index=False)
    pd.DataFrame({"store": range(60), "size": side.data["s"]}).to_csv("stores.csv", index=False)
    words = "compare sales.csv --task store --target sold --side-table stores.csv --shots 0,4"
    done = CliRunner().invoke(app, [*words.split(), "--no-boosting"])
    assert done.exit_code == 0, done.output
    assert "Mean Poisson deviance for a new store" in done.output
    assert "holds counts: learners are compared by their deviance" in done.output
    assert "counts, start by side information" in done.output
    assert "--learner count" in done.output
