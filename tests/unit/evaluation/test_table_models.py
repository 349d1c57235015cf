"""Models that read tables, given where a learner or data are needed: the error says what to do."""

import numpy as np
import pandas as pd
import pytest

import condmeta as cm
from condmeta.errors import DataError


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"store": np.repeat(np.arange(12), 6), "price": rng.normal(size=72)})
    return rows.assign(sold=rows["price"] + rng.normal(size=72))


@pytest.fixture(scope="module")
def model(table) -> cm.TableModel:
    return cm.TableModel(cm.PooledRegressor(), task="store", target="sold").fit(table)


def test_check_and_explain_name_the_method_of_the_model(table, model):
    with pytest.raises(DataError, match=r"A TableModel reads tables itself: call its own check\("):
        cm.check(model, table)
    with pytest.raises(DataError, match="A TableModel reads tables itself: call its own explain"):
        cm.explain(model)
    pytest.importorskip("formulaic")
    formula = cm.from_formula("sold ~ price | store", table)
    with pytest.raises(DataError, match="A FormulaModel reads tables itself: call its own check"):
        cm.check(formula, table)
    with pytest.raises(DataError, match="A FormulaModel reads tables itself: call its own explain"):
        cm.explain(formula)


@pytest.mark.parametrize("who", ["compare", "advantage"])
def test_a_model_is_no_data(model, who):
    with pytest.raises(DataError, match=rf"{who} takes data, not a TableModel: .*read_tasks\("):
        getattr(cm, who)(model)


def test_a_target_is_needed(table):
    with pytest.raises(DataError, match="compare needs the target y: pass X, y and task"):
        cm.compare(table, task="store")
    with pytest.raises(DataError, match="cross_validate_tasks needs the target y"):
        cm.cross_validate_tasks(cm.PooledRegressor(), table, None, task="store")
    bare = cm.TaskSet.from_arrays(table[["price"]], None, table["store"])
    with pytest.raises(DataError, match=r"compare needs the targets .*: the TaskSet has none"):
        cm.compare(bare)


def test_a_table_model_is_no_learner_to_compare(table, model):
    tasks = model.read_tasks(table)
    with pytest.raises(DataError, match=r"'mine' is a TableModel, .*: compare its learner, on"):
        cm.compare(tasks, learners={"mine": model})


def test_explain_names_a_learner_of_the_same_kind(table):
    X, task = table[["price"]], table["store"]
    bought = np.where(table["sold"] > 0, "yes", "no")
    auto = cm.AutoClassifier(base=None).fit(X, bought, task=task)
    with pytest.raises(DataError, match="such as ConditionalLogistic, and explain that"):
        cm.explain(auto)
