"""scikit-learn's tools over a TableModel: parameters, clone, score, searches with TaskSplit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score

import condmeta as cm
from condmeta.errors import DataError


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    size = rng.normal(size=30)
    task = np.repeat(np.arange(30), 6)
    rows = pd.DataFrame({"store": task, "price": rng.normal(size=180)})
    rows["sold"] = (1 + 2 * size[task]) * rows["price"] + 0.1 * rng.normal(size=180)
    return rows, pd.DataFrame({"store": np.arange(30), "size": size})


def model_of(**options):
    return cm.TableModel(cm.ConditionalRidge(**options), task="store", target="sold")


def test_parameters_and_clone(tables):
    model = model_of(kappa=0.5)
    assert model.get_params()["learner__kappa"] == 0.5
    assert model.get_params(deep=False)["target"] == "sold"
    again = clone(model).set_params(learner__kappa=2.0, missing="impute")
    assert (again.learner.kappa, again.missing, model.learner.kappa) == (2.0, "impute", 0.5)


def test_score_is_r2_or_accuracy(tables):
    rows, stores = tables
    model = model_of().fit(rows, stores)
    assert model.score(rows) == pytest.approx(r2_score(rows["sold"], model.predict(rows)))
    yes = rows.assign(sold=np.where(rows["sold"] > 0, "yes", "no"))
    model = cm.TableModel(task="store", target="sold").fit(yes, stores)
    assert model.score(yes) == np.mean(model.predict(yes) == yes["sold"])


def test_a_search_holds_out_whole_tasks(tables):
    """A far too large penalty on the map loses, because side information matters for new stores."""
    rows, stores = tables
    split = cm.TaskSplit(3, support=0, random_state=0)
    model = model_of(cold_start="prior")  # a pooled regression would not need the map
    search = GridSearchCV(model, {"learner__kappa": [0.1, 1e6]}, cv=split)
    search.fit(rows, groups=rows["store"], side_info=stores)
    assert search.best_params_ == {"learner__kappa": 0.1}
    assert search.best_score_ > 0.9 > search.cv_results_["mean_test_score"].min()
    assert search.predict(rows[:2]).shape == (2,)
    scores = cross_val_score(
        model_of(), rows, groups=rows["store"], cv=split, params={"side_info": stores}
    )
    assert scores.shape == (3,)


@pytest.mark.parametrize("support", [0, 2, 0.5])
def test_rows_of_a_split(support):
    task = np.array([1, 2, 1, 3, 3, 2, 1, 2, 3, 3])
    split = cm.TaskSplit(3, support=support, order="first", random_state=0)
    assert split.get_n_splits() == 3
    judged = []
    for train, test in split.split(task[:, None], groups=task):
        assert np.intersect1d(train, test).size == 0
        assert sorted([*train, *test]) == list(range(10))
        shown = np.flatnonzero(np.isin(task, task[test]) & np.isin(np.arange(10), train))
        of_task = (task == task[test[0]]).sum()
        assert len(shown) == (support if support in (0, 2) else np.floor(of_task * support + 0.5))
        assert not len(shown) or shown.max() < test.min()
        judged += test.tolist()
    assert len(set(judged)) == len(judged)
    with pytest.raises(DataError, match="TaskSplit needs the task of each row: pass groups="):
        list(split.split(task[:, None]))
