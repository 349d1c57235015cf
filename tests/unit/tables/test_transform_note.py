"""A table model that took a transformation says so, and how to have none."""

import warnings

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import condmeta as cm
from condmeta.cli.app import app
from condmeta.errors import ReadingNote


@pytest.fixture(scope="module")
def prices():
    """Prices that are normal on a log scale."""
    rng = np.random.default_rng(0)
    shop = np.repeat(np.arange(60), 10)
    size = rng.normal(size=600)
    log_price = size + 0.7 * rng.normal(size=60)[shop] + 0.5 * rng.normal(size=600)
    return pd.DataFrame({"shop": shop, "size": size, "price": np.exp(log_price)})


def test_a_note_names_the_transformation_and_the_remedy(prices):
    words = "predicts medians of 'price', which is skewed.*set x_transform=None and y_transform"
    with pytest.warns(ReadingNote, match=words):
        model = cm.TableModel(task="shop", target="price").fit(prices)
    assert model.learner_.y_transform_ == "yeo-johnson"


def test_coefficients_say_which_scale_they_are_on(prices, tmp_path):
    prices = prices.assign(kind=prices["shop"] % 2)
    model = cm.TableModel(task="shop", target="price", side=["kind"])
    with pytest.warns(ReadingNote):
        model.fit(prices).save(tmp_path / "m.condmeta")
    assert model.card()["chosen"]["y_transform"] == "yeo-johnson"
    explained = model.explain(task=0)
    assert str(explained).splitlines()[1] == "  all coefficients are on the yeo-johnson scale of y"
    assert "on the yeo-johnson scale of y" in explained._repr_html_()
    prices[:5].to_csv(tmp_path / "new.csv", index=False)
    done = CliRunner().invoke(
        app, ["adapt", str(tmp_path / "m.condmeta"), str(tmp_path / "new.csv")]
    )
    assert "Note: Coefficients are on the yeo-johnson scale of 'price'." in done.stderr


def test_a_transformation_that_was_asked_for_needs_no_note(prices):
    learner = cm.ConditionalRidge(x_transform=None, y_transform="log")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cm.TableModel(learner, task="shop", target="price").fit(prices)


def test_the_command_has_an_option_for_the_linear_model(prices, tmp_path):
    table, model = tmp_path / "prices.csv", tmp_path / "model.condmeta"
    prices.to_csv(table, index=False)
    command = ["fit", str(table), "--task", "shop", "--target", "price", "-o", str(model)]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert "'price' itself use --linear." in done.output
    done = CliRunner().invoke(app, [*command, "--linear", "--force"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "medians" not in done.output
    assert cm.load(model).learner_.y_transform_ is None
    wrong = CliRunner().invoke(app, [*command, "--linear", "--force", "--learner", "pooled"])
    assert "--linear works with ridge, levels and count, not with pooled" in wrong.output
