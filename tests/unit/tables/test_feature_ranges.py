"""Rows far outside the training range: their predictions are a guess, and a warning says so."""

import warnings

import numpy as np
import pandas as pd
import pytest

import condmeta as cm
from condmeta.errors import FewTasksWarning

WARNING = "far outside the training range"
FIXED = {"metric": "identity", "noise": "shared", "kappa": 1.0, "context": False}
LEARNER = cm.ConditionalRidge(**FIXED, cold_start="prior", x_transform=None, y_transform=None)
FIRST = pd.Timestamp("2024-01-01")


def sales(n_stores: int = 12, n_days: int = 20) -> pd.DataFrame:
    rng, n = np.random.default_rng(0), n_stores * n_days
    day = np.tile(np.arange(n_days), n_stores)
    return pd.DataFrame({
        "store": np.repeat([f"{store:03d}" for store in range(n_stores)], n_days),
        "day": FIRST + pd.to_timedelta(day, "D"), "price": rng.uniform(1, 3, n),
        "shut": rng.random(n) < 0.1, "sold": rng.normal(10, 1, n),
    })  # fmt: skip


@pytest.fixture(scope="module")
def model() -> cm.TableModel:
    with warnings.catch_warnings(action="ignore"):
        return cm.TableModel(LEARNER, task="store", target="sold").fit(sales())


def test_a_row_outside_is_named_with_its_range(model):
    rows = sales()[:3].assign(price=[2.0, 2.0, 50.0])
    with pytest.warns(
        UserWarning,
        match=r"^1 row of 3 has a number far outside the training range; .*: row 3, price 50 is "
        r"above the training range 1\.\d+ to 2\.\d+\.$",
    ):
        model.predict(rows)


def test_days_are_shown_as_dates(model):
    rows = sales()[:2].assign(day=pd.Timestamp("2030-05-06"))
    with pytest.warns(
        UserWarning, match="day 2030-05-06 is above the training range 2024-01-01 to 2024-01-20, "
                           "and others",
    ):  # fmt: skip
        model.predict(rows)


@pytest.mark.parametrize("later", [0, 3])  # of 20 days in training
def test_a_little_later_is_no_reason_to_warn(model, later):
    rows = sales()[-2:]
    model.predict(rows.assign(day=rows["day"] + pd.Timedelta(days=later)))


def test_update_widens_the_ranges():
    with warnings.catch_warnings(action="ignore"):
        model = cm.TableModel(LEARNER, task="store", target="sold").fit(sales())
        model.update(sales()[:2].assign(price=6.0))
    model.predict(sales()[:2].assign(price=6.0))


def test_ranges_are_saved(model, tmp_path):
    model.save(tmp_path / "model.condmeta")
    with pytest.warns(UserWarning, match=WARNING):
        cm.load(tmp_path / "model.condmeta").predict(sales()[:1].assign(price=-40.0))


def test_parts_of_a_table_have_the_ranges_of_the_whole(model):
    table = sales()
    with warnings.catch_warnings(action="ignore", category=FewTasksWarning):
        warnings.simplefilter("ignore")
        parts = cm.TableModel(LEARNER, task="store", target="sold").fit_batches(
            [table[:120], table[120:]]
        )
    assert parts.schema_.ranges == model.schema_.ranges


def test_files_have_the_ranges_of_the_table(model, tmp_path):
    pytest.importorskip("duckdb")
    table = sales()
    for part in range(2):
        table[part::2].to_parquet(tmp_path / f"{part}.parquet")
    with warnings.catch_warnings(action="ignore"):
        files = cm.TableModel(LEARNER, task="store", target="sold").fit_files(tmp_path)
    assert files.schema_.ranges == model.schema_.ranges
