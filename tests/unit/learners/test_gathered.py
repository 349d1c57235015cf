"""`partial_fit` and `merge` of learners that keep rows: they equal one fit."""

import numpy as np
import pandas as pd
import pytest

import condmeta as cm
from condmeta.errors import DataError

T, N = 26, 7


def rows():
    rng = np.random.default_rng(3)
    task = np.repeat([f"s{t}" for t in range(T)], N)
    table = pd.DataFrame({"task": task, "a": rng.normal(size=T * N), "b": rng.uniform(size=T * N)})
    size = rng.normal(size=T).round(3)
    f = table["a"] * 0.7 + np.repeat(size, N) + 0.4 * np.repeat(rng.normal(size=T), N)
    table["count"] = rng.poisson(np.exp(f / 2))
    table["days"] = rng.integers(1, 5, size=T * N)
    table["yes"] = np.where(f + rng.logistic(size=T * N) > 0, "yes", "no")
    table["trials"] = rng.integers(1, 6, size=T * N)
    table["hits"] = rng.binomial(table["trials"], 1 / (1 + np.exp(-f)))
    table["level"] = np.digitize(f + rng.logistic(size=T * N), [-1, 1])
    table["mode"] = np.array(["bus", "car", "walk"])[table["level"]]
    side = pd.DataFrame({"size": size, "kind": np.where(size > 0, "x", "y")})
    side.index = [f"s{t}" for t in range(T)]
    return table, side


TABLE, SIDE = rows()
KINDS = {
    "counts": (cm.ConditionalCount, "count", None),
    "exposure": (cm.ConditionalCount, "count", ("exposure", "days")),
    "two classes": (cm.ConditionalLogistic, "yes", None),
    "trials": (cm.ConditionalLogistic, "hits", ("trials", "trials")),
    "three classes": (cm.ConditionalLogistic, "mode", None),
    "ordered": (cm.ConditionalOrdinal, "level", None),
}
GIVEN = {"metric": "diagonal", "kappa": 1.0}


def call(kind, part, method, learner, side=True):
    _, target, size = KINDS[kind]
    given = {} if size is None else {size[0]: part[size[1]]}
    if side:
        given["side_info"] = SIDE.loc[part["task"].unique()]
    return getattr(learner, method)(part[["a", "b"]], part[target], task=part["task"], **given)


def fit(kind, part, **settings):
    return call(kind, part, "fit", KINDS[kind][0](**settings))


def same(kind, one, other, tol=1e-6):
    given = {"task": TABLE["task"]} | ({"exposure": TABLE["days"]} if kind == "exposure" else {})
    ask = "predict" if KINDS[kind][0] is cm.ConditionalCount else "predict_proba"
    a, b = (getattr(m, ask)(TABLE[["a", "b"]], **given) for m in (one, other))
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol)
    np.testing.assert_allclose(one.M_, other.M_, rtol=1e-5, atol=1e-5)


def parts(*edges):
    number = TABLE["task"].str[1:].astype(int)
    bounds = zip((0, *edges), (*edges, T), strict=True)
    return [TABLE[(number >= lo) & (number < hi)] for lo, hi in bounds]


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_equal_one_fit(kind):
    """The settings are chosen as well: the halves and folds of one fit are found again."""
    chunks = KINDS[kind][0]()
    for part in parts(9, 17):
        call(kind, part, "partial_fit", chunks)
    same(kind, fit(kind, TABLE), chunks)
    assert chunks.n_tasks_ == T


@pytest.mark.parametrize("kind", ["counts", "two classes"])
def test_settings_are_chosen_again(kind):
    first, second = parts(20)
    model = call(kind, second, "partial_fit", fit(kind, first))
    same(kind, fit(kind, TABLE), model)


@pytest.mark.parametrize("kind", KINDS)
def test_fit_then_more_tasks_equals_one_fit(kind, tmp_path):
    first, second = parts(20)
    model = fit(kind, first, **GIVEN)
    model.save(tmp_path / "model")
    for before in (model, cm.load(tmp_path / "model")):
        call(kind, second, "partial_fit", before)
        same(kind, fit(kind, TABLE, **GIVEN), before)


@pytest.mark.parametrize("kind", KINDS)
def test_merge_equals_one_fit(kind):
    sites = [fit(kind, part, **GIVEN) for part in parts(8, 19)]
    before = [site.M_.copy() for site in sites]
    same(kind, fit(kind, TABLE, **GIVEN), cm.merge(*sites))
    for site, M in zip(sites, before, strict=True):
        np.testing.assert_array_equal(site.M_, M)


@pytest.mark.parametrize("kind", ["counts", "three classes"])
def test_updates_count_when_learned_again(kind):
    """Rows and tasks that `update` added are there when further tasks are learned from."""
    first, middle, last = parts(14, 20)
    early = first.groupby("task").head(4)
    late = first.drop(early.index)
    model = fit(kind, early, **GIVEN)
    call(kind, late, "update", model, side=False)
    call(kind, middle, "update", model)
    call(kind, last, "partial_fit", model)
    same(kind, fit(kind, pd.concat([early, late, middle, last]), **GIVEN), model)


def test_one_class_in_the_first_chunk():
    first, second = parts(13)
    no = first.assign(yes="no")
    with pytest.raises(DataError, match="give both by classes="):
        call("two classes", no, "partial_fit", cm.ConditionalLogistic())
    model = cm.ConditionalLogistic(**GIVEN)
    side = SIDE.loc[no["task"].unique()]
    model.partial_fit(
        no[["a", "b"]], no["yes"], task=no["task"], side_info=side, classes=["no", "yes"]
    )
    call("two classes", second, "partial_fit", model)
    same("two classes", fit("two classes", pd.concat([no, second]), **GIVEN), model)


def test_refusals_name_the_remedy(tmp_path):
    first, second = parts(13)
    model = fit("counts", first, **GIVEN)
    with pytest.raises(DataError, match=r"13 tasks were seen before.*Use update"):
        call("counts", first, "partial_fit", model)
    with pytest.raises(DataError, match="different tasks"):
        cm.merge(model, model)
    model.save(tmp_path / "slim", resume=False)
    slim = cm.load(tmp_path / "slim")
    with pytest.raises(DataError, match="resume=True"):
        call("counts", second, "partial_fit", slim)
    with pytest.raises(DataError, match="resume=True"):
        cm.merge(slim, model)
    two = fit("two classes", second, **GIVEN)
    with pytest.raises(DataError, match=r"one kind\. Got ConditionalCount and ConditionalLogistic"):
        cm.merge(model, two)
    other = fit("two classes", first.assign(yes=first["yes"].str.upper()), **GIVEN)
    with pytest.raises(DataError, match="different classes"):
        cm.merge(two, other)
    with pytest.raises(DataError, match="exposure"):
        cm.merge(model, fit("exposure", second, **GIVEN))
    with pytest.raises(DataError, match="base=None"):
        call("two classes", first, "partial_fit", cm.ConditionalLogistic(base="trees"))
    assert model.n_tasks_ == 13  # an error leaves the learner as it was
