"""`condmeta fit --random`, and the steps that the command line shows."""

import logging

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import condmeta as cm
from condmeta.cli.app import app
from condmeta.cli.terminal import logged_steps


@pytest.fixture
def sales(tmp_path):
    rng = np.random.default_rng(0)
    store = np.repeat([f"s{i:02d}" for i in range(30)], 8)
    price, promo = rng.normal(size=(2, 240))
    level = np.repeat(rng.normal(size=30), 8)
    table = pd.DataFrame({"store": store, "price": price, "promo": promo})
    table["sold"] = 2 * price - promo + level + 0.3 * rng.normal(size=240)
    path = tmp_path / "sales.csv"
    table.to_csv(path, index=False)
    return path


def run(path, *options):
    output = path.with_suffix(".condmeta")
    words = ["fit", str(path), "--task", "store", "--target", "sold", "-o", str(output), *options]
    return CliRunner().invoke(app, words), output


def slopes(output):
    return cm.load(output).coef_frame(wide=True)


def test_random_intercept_has_shared_slopes(sales):
    done, output = run(sales, "--random", "intercept")
    assert done.exit_code == 0, done.output
    table = slopes(output)
    assert np.ptp(table["price"]) < 1e-12
    assert np.ptp(table["promo"]) < 1e-12
    assert np.ptp(table["(intercept)"]) > 1


def test_random_names_columns(sales):
    done, output = run(sales, "--random", "promo")
    assert done.exit_code == 0, done.output
    assert np.ptp(slopes(output)["price"]) < 1e-12


def test_a_file_in_place_of_side_columns_is_a_slip(sales):
    done, output = run(sales, "--side", str(sales))
    assert done.exit_code == 2
    assert f"is a file, and --side names columns: use --side-table {sales}." in done.output
    assert not output.exists()


def test_unknown_columns_and_other_learners_are_errors(sales):
    done, output = run(sales, "--random", "colour")
    assert done.exit_code == 1
    assert "names 'colour', which is not among the 2 columns of X: 'price', 'promo'" in done.output
    assert not output.exists()
    done, _ = run(sales, "--random", "price", "--learner", "pooled")
    expected = "--random works with ridge, levels, logistic, ordinal and count, not with pooled"
    assert expected in done.output


@pytest.mark.parametrize("cuts", [[1.0], [-1.0, 1.5]])
def test_classes_have_a_random_intercept(sales, cuts):
    """Two classes, or three in their order."""
    table = pd.read_csv(sales)
    names = np.array(["high", "low", "medium"])[np.array([1, 2, 0] if len(cuts) > 1 else [1, 0])]
    table.assign(sold=names[np.digitize(table["sold"], cuts)]).to_csv(sales, index=False)
    ordered = ["--learner", "ordinal", "--classes", "low,medium,high"] if len(cuts) > 1 else []
    done, output = run(sales, "--random", "intercept", *ordered)
    assert done.exit_code == 0, done.output
    model = cm.load(output)
    kind = cm.ConditionalOrdinal if ordered else cm.ConditionalLogistic
    assert isinstance(model.learner_, kind)
    assert model.learner_.random == "intercept"
    table = slopes(output).to_pandas()
    assert table[["price", "promo", "(intercept)"]].nunique().tolist() == [1, 1, 30]


def test_steps_of_learners_are_shown():
    shown = []
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(120, 70)), np.repeat(np.arange(20), 6)
    level = logging.getLogger("condmeta").level
    with logged_steps(shown.append):
        cm.ConditionalRidge(metric="identity", noise="shared").fit(X, X[:, 0], task=task)
    assert shown[0] == "ridge on 70 columns, round 1 of 2"
    assert shown[-1].endswith("directions in which tasks differ")
    assert logging.getLogger("condmeta").level == level
    assert not logging.getLogger("condmeta").handlers


def test_a_shared_start_ignores_side_information(sales, tmp_path):
    stores = tmp_path / "stores.csv"
    size = np.random.default_rng(1).normal(size=30)
    ids = [f"s{i:02d}" for i in range(30)]
    pd.DataFrame({"store": ids, "size": size}).to_csv(stores, index=False)
    done, output = run(sales, "--side-table", str(stores), "--shared-start")
    assert done.exit_code == 0, done.output
    prior = cm.load(output).coef_frame().to_pandas().groupby("feature")["prior"]
    assert (prior.max() - prior.min()).max() < 1e-12
    done, _ = run(sales, "--shared-start", "--learner", "pooled", "--force")
    assert "--shared-start works with learners that read side information, not" in done.output


def test_options_leave_counts_to_the_learner_of_counts(sales):
    """Without --learner, an option must not change what the target is read as."""
    table = pd.read_csv(sales)
    rng = np.random.default_rng(1)
    table.assign(sold=rng.poisson(np.exp(table["sold"] / 3))).to_csv(sales, index=False)
    done, output = run(sales, "--random", "intercept")
    assert done.exit_code == 0, done.output
    model = cm.load(output)
    assert isinstance(model.learner_, cm.ConditionalCount)
    assert model.learner_.random == "intercept"
    done, output = run(sales, "--linear", "--force")
    assert done.exit_code == 0, done.output
    straight = cm.load(output).learner_
    assert isinstance(straight, cm.ConditionalCount)
    assert straight.x_transform is None
    done, _ = run(sales, "--boosting", "--force")
    assert done.exit_code == 1
    assert "not with count, which is for a target of counts: add --learner" in done.output
    assert run(sales, "--boosting", "--learner", "ridge", "--force")[0].exit_code == 0
