"""Formulas: the features they make, the models they fit, what they refuse."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import condmeta as cm
from condmeta.errors import DataError, ModelFileError
from condmeta.tables.formula_parts import FormulaParts

pytest.importorskip("formulaic")


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    stores = pd.DataFrame(
        {"store": [f"s{i}" for i in range(40)], "size": rng.normal(size=40)}
    ).assign(street=lambda table: np.where(table["size"] > 0, "high", "low"))
    sales = stores[["store", "size"]].loc[np.repeat(np.arange(40), 8)].reset_index(drop=True)
    sales["price"] = rng.uniform(1, 3, len(sales))
    sales["promo"] = rng.choice(["yes", "no"], len(sales))
    sales["sold"] = (1 + sales["size"]) * np.log(sales["price"]) + (sales["promo"] == "yes")
    sales["sold"] += 0.1 * rng.normal(size=len(sales))
    return sales.drop(columns="size"), stores


def test_same_as_features_made_by_hand(tables):
    sales, stores = tables
    model = cm.from_formula("sold ~ log(price) + promo | store ~ size + street", sales, stores)
    X = pd.DataFrame({"log(price)": np.log(sales["price"])})
    X["promo[T.yes]"] = (sales["promo"] == "yes").astype(int)
    side = pd.DataFrame({"size": stores["size"]})
    side["street[T.low]"] = (stores["street"] == "low").astype(int)
    by_hand = cm.ConditionalRidge().fit(
        X, sales["sold"], task=sales["store"], side_info=side.set_index(stores["store"])
    )
    expected = by_hand.predict(X, task=sales["store"])
    np.testing.assert_allclose(model.predict(sales), expected, rtol=1e-9)
    assert model.learner_.feature_names_in_.tolist() == ["log(price)", "promo[T.yes]"]
    assert model.learner_.side_features_ == ["size", "street[T.low]"]
    assert {*model.summary().effects["side"]} == {"(base)", "size", "street[T.low]"}
    predicted, std = model.predict(sales[:3], return_std=True)
    assert predicted.shape == std.shape == (3,)


def test_new_tasks_use_the_encodings_of_the_fit(tables):
    sales, stores = tables
    old, new = sales[sales["store"] != "s0"], sales[sales["store"] == "s0"]
    model = cm.from_formula("sold ~ log(price) + promo | store ~ size + street", old, stores[1:])
    one = model.predict(new, stores[:1])  # one level of promo and of street: still the same columns
    assert one.shape == (8,)
    adapted = model.adapt(new, stores[:1])
    assert adapted.coef_.shape == (1, 2)
    model.update(new, stores[:1])
    assert "s0" in set(model.coef_frame()["store"])
    np.testing.assert_allclose(model.predict(new[:2]), adapted.predict(
        pd.DataFrame({"log(price)": np.log(new["price"][:2]),
                      "promo[T.yes]": (new["promo"][:2] == "yes").astype(int)}),
        task=new["store"][:2],
    ))  # fmt: skip


def test_side_columns_in_the_table_itself(tables):
    sales, stores = tables
    joined = sales.merge(stores)
    inside = cm.from_formula("sold ~ price | store ~ size", joined)
    apart = cm.from_formula("sold ~ price | store ~ size", sales, stores)
    np.testing.assert_allclose(inside.predict(joined), apart.predict(sales), rtol=1e-9)
    other = cm.from_formula("sold ~ price | store ~ size", pl.from_pandas(joined))
    np.testing.assert_allclose(other.predict(joined), inside.predict(joined), rtol=1e-9)


def test_intercepts(tables):
    sales, _ = tables
    without = cm.from_formula("sold ~ 0 + price | store", sales)
    assert without.learner_.fit_intercept is False
    alone = cm.from_formula("sold ~ 1 | store", sales)
    assert alone.learner_.feature_names_in_.tolist() == ["(intercept)"]
    means = sales.groupby("store", sort=False)["sold"].mean().to_numpy()
    shrunken = alone.coef_frame()["adapted"].to_numpy()
    assert np.corrcoef(means, shrunken)[0, 1] > 0.999
    assert alone.predict(sales).shape == (320,)


def test_powers_are_those_of_r(tables):
    """I(price^2) was Python's exclusive or of whole numbers, without a word."""
    whole = tables[0].assign(price=tables[0]["price"].round().astype(int))
    ours, python = (
        cm.from_formula(f"sold ~ I(price{power}2) | store", whole).predict(whole)
        for power in ("^", "**")
    )
    np.testing.assert_array_equal(ours, python)


def test_no_intercept_as_r_writes_it(tables):
    """ "price - 1" fitted an intercept, without a word."""
    sales, _ = tables
    first = cm.from_formula("sold ~ 0 + price | store", sales)
    last = cm.from_formula("sold ~ price - 1 | store", sales)
    np.testing.assert_array_equal(first.predict(sales), last.predict(sales))
    for effects in ("1", "1 + price"):
        with pytest.raises(DataError, match="has no intercept, but brackets include"):
            cm.from_formula(f"sold ~ price - 1 + ({effects} | store)", sales)


@pytest.mark.parametrize("formula", ["sold ~ 1 + (1 | store)", "sold ~ (1 | store)"])
def test_an_intercept_alone(tables, formula):
    sales, _ = tables
    bar, brackets = cm.from_formula("sold ~ 1 | store", sales), cm.from_formula(formula, sales)
    np.testing.assert_array_equal(bar.predict(sales), brackets.predict(sales))


def test_groups_in_groups(tables):
    sales = tables[0].assign(region=tables[0]["store"].str[:2])
    sales["sold"] += 3 * sales["region"].str[1].astype(float)
    slash = cm.from_formula("sold ~ price + (1 | region/store)", sales)
    levels = cm.ConditionalLevels()
    colon = cm.from_formula("sold ~ price + (1 | region:store)", sales, learner=levels)
    np.testing.assert_array_equal(slash.predict(sales), colon.predict(sales))
    alone = cm.from_formula("sold ~ 1 + (1 | region/store)", sales)
    assert alone.summary().between["level"].tolist() == ["region", "store"]
    with pytest.raises(DataError, match="nested groups, which ConditionalRidge does not support"):
        cm.from_formula("sold ~ price + (1 | region/store)", sales, learner=cm.ConditionalRidge())


def test_shares_of_trials(tables):
    shares = tables[0].assign(size=10, hits=np.arange(len(tables[0])) % 11)
    learner = cm.ConditionalLogistic(metric="identity")
    formula = "hits ~ price + (1 | store)"
    model = cm.from_formula(formula, shares, learner=learner, trials="size")
    found = model.predict_proba(shares.drop(columns=["size", "hits"]))
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    by_hand = model.learner_.predict_proba(shares[["price"]], task=shares["store"])
    np.testing.assert_array_equal(found, by_hand)
    for target in ("cbind(hits, size - hits)", "hits/size"):
        with pytest.raises(DataError, match="trials="):
            cm.from_formula(f"{target} ~ price + (1 | store)", shares, learner=learner)
    with pytest.raises(DataError, match=r"reads no trials: .* or take ConditionalLogistic"):
        cm.from_formula(formula, shares, trials="size")


def test_the_given_learner_is_left_as_it_is(tables):
    given = cm.ConditionalRidge(metric="diagonal")
    model = cm.from_formula("sold ~ 0 + price | store", tables[0], learner=given)
    assert given.fit_intercept is True
    assert not given.__sklearn_is_fitted__()
    assert model.learner_.metric_ == "diagonal"


def test_several_task_columns(tables):
    sales = tables[0].assign(region=tables[0]["store"].str[:2])
    model = cm.from_formula("sold ~ price | region:store", sales)
    assert model.predict(sales[:2]).shape == (2,)


@pytest.mark.parametrize(
    ("formula", "parts"),
    [
        ("y ~ x|g", ("y ~ x", ["g"], None, None)),
        ("y ~ x + z | g ~ s * t", ("y ~ x + z", ["g"], "s * t", None)),
        ("log(y) ~ x | a:b ~ s", ("log(y) ~ x", ["a", "b"], "s", None)),
        ("y ~ x + (1 | g)", ("y ~ x", ["g"], None, "")),
        ("y ~ log(x) + (1 + log(x) | g) + z", ("y ~ log(x) + z", ["g"], None, "log(x)")),
        ("y ~ (x + z | a:b ~ log(s)) + x + z", ("y ~ x + z", ["a", "b"], "log(s)", "x + z")),
        ("y ~ (1 | g)", ("y ~ 1", ["g"], None, "")),
        ("y ~ x + (1 | a/b)", ("y ~ x", ["a", "b"], None, "", True)),
        ("y ~ x + (1 + x || g ~ s)", ("y ~ x", ["g"], "s", "x", False, True)),
        ("y ~ I((x)^2) + (x + z)^2 + (1 | g)", ("y ~ I((x)**2) + (x + z)^2", ["g"], None, "")),
    ],
)
def test_parts(formula, parts):
    assert FormulaParts.of(formula) == FormulaParts(*parts)


@pytest.mark.parametrize("formula", ["y ~ x", "y | g", "y ~ x |", "y ~ x | g ~", "~ | ~", 7])
def test_wrong_forms(formula):
    with pytest.raises(DataError, match="A formula must look like 'target ~ features"):
        FormulaParts.of(formula)


def test_sentences(tables):
    sales, _ = tables
    for formula in ("sold ~ price + (1 | store) + (1 | promo)", "sold ~ price || store"):
        with pytest.raises(DataError, match=r"has several bars, and a model has one grouping"):
            cm.from_formula(formula, sales)
    for formula in ("sold ~ price + (0 + price | store)", "sold ~ price + (price - 1 | store)"):
        with pytest.raises(DataError, match="leaves the intercept out of the brackets"):
            cm.from_formula(formula, sales)
    with pytest.raises(DataError, match="has an offset among its terms: name its column in off"):
        cm.from_formula("sold ~ promo + offset(price) + (1 | store)", sales)
    with pytest.raises(DataError, match=r"reads no offset: .* a column of exp\(offset\) in expos"):
        cm.from_formula(
            "sold ~ promo | store", sales, learner=cm.ConditionalCount(), offset="price"
        )
    with pytest.raises(DataError, match="hold 'price', which is not a feature: add"):
        cm.from_formula("sold ~ promo + (price | store)", sales)
    with pytest.raises(
        DataError,
        match=r"in ConditionalERMRegressor all coefficients differ by task\. Write '\| task'",
    ):
        cm.from_formula("sold ~ price + (1 | store)", sales, learner=cm.ConditionalERMRegressor())
    with pytest.raises(DataError, match="IndependentRegressor reads no offset: leave offset= out"):
        cm.from_formula(
            "sold ~ promo | store", sales, learner=cm.IndependentRegressor(), offset="price"
        )
    with pytest.raises(DataError, match=r"intervals=True\) of ConditionalRidge reads no precision"):
        cm.from_formula("sold ~ promo | store", sales, precision="price", intervals=True)
    with pytest.raises(DataError, match=r"Column 'cost' \(offset\) is not in the table"):
        cm.from_formula("sold ~ price | store", sales, offset="cost")
    with pytest.raises(DataError, match="The model has no intervals: fit it with intervals=True"):
        cm.from_formula("sold ~ price | store", sales).predict_interval(sales)
    with pytest.raises(DataError, match=r"'prize' cannot be computed: .*prize"):
        cm.from_formula("sold ~ prize | store", sales)
    with pytest.raises(
        DataError, match=r"'log.prize.' cannot be computed: the table has no column 'prize'; "
    ):
        cm.from_formula("sold ~ log(prize) | store", sales)
    with pytest.raises(DataError, match=r"The terms 'gain' cannot .* has no column 'gain'"):
        cm.from_formula("gain ~ price | store", sales)
    with pytest.raises(DataError, match="cannot be computed: a bracket is not closed"):
        cm.from_formula("sold ~ price + (1 | store", sales)
    with pytest.raises(DataError, match=r"'price \+' cannot be computed: "):
        cm.from_formula("sold ~ price + | store", sales)
    gaps = sales.assign(price=sales["price"].where(sales["price"] > 1.1))
    with pytest.raises(
        DataError, match="Column 'price' has 11 missing values, the first in row 52"
    ):
        cm.from_formula("sold ~ price | store", gaps)
    with pytest.raises(DataError, match=r"needs the table as a DataFrame\. Got ndarray"):
        cm.from_formula("sold ~ price | store", np.ones((3, 3)))
    with pytest.raises(DataError, match="'shop'"):
        cm.from_formula("sold ~ price | shop", sales)
    with pytest.raises(DataError, match="Task 's0' has several rows of side columns: price must"):
        cm.from_formula("sold ~ promo | store ~ price", sales)


@pytest.mark.parametrize("saved", [False, True])
def test_a_level_that_fit_did_not_see_is_no_reference_level(tables, tmp_path, saved):
    sales = tables[0].merge(tables[1], on="store")
    model = cm.from_formula("sold ~ promo + C(week) | store ~ street", _with_weeks(sales))
    if saved:
        model.save(tmp_path / "model.condmeta")
        model = cm.load(tmp_path / "model.condmeta")
    rows = _with_weeks(sales)[:2]
    with pytest.raises(
        DataError, match=r"'week' holds 'w9', which fit did not see, .* seen in fit are 'w0', 'w1'"
    ):
        model.predict(rows.assign(week=["w9", "w0"]))
    with pytest.raises(DataError, match="'street' holds 'canal', which fit did not see"):
        model.predict(rows.assign(store="new", street="canal"))


def test_a_number_as_level_that_fit_did_not_see_is_refused(tables):
    sales = tables[0]
    model = cm.from_formula("sold ~ C(size) | store", sales.assign(size=np.arange(len(sales)) % 2))
    with pytest.raises(DataError, match=r"'C\(size\)' hold a level that fit did not see"):
        model.predict(sales[:1].assign(size=7))


def _with_weeks(sales):
    return sales.assign(week=np.where(np.arange(len(sales)) % 2, "w1", "w0"))


FORMULAS = [
    "sold ~ log(price) + promo | store ~ size + street",
    "sold ~ poly(price, 2) + promo:price | store ~ scale(size)",
    "sold ~ C(promo) * bs(price, df=4) | store",
    "log(sold + 10) ~ 0 + price | store ~ street",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_saved_and_loaded(tables, formula, tmp_path):
    sales, stores = tables
    model = cm.from_formula(formula, sales[sales["store"] != "s0"], stores[1:])
    path = tmp_path / "formula.condmeta"
    model.save(path)
    again = cm.load(path)
    known = sales[sales["store"] == "s7"]
    np.testing.assert_array_equal(again.predict(known), model.predict(known))
    new = sales[sales["store"] == "s0"][:3]
    np.testing.assert_array_equal(again.predict(new, stores[:1]), model.predict(new, stores[:1]))
    assert again.formula == formula
    assert again.card()["formula"] == formula
    again.save(path)  # from a file, before and after its terms were used
    np.testing.assert_array_equal(cm.load(path).predict(known), model.predict(known))
    cm.load(path).save(path)
    both = cm.load(path)
    both.update(new, stores[:1])
    model.update(new, stores[:1])
    np.testing.assert_array_equal(both.predict(new), model.predict(new))


def test_text_columns_of_different_numbers_of_levels_are_saved(tables, tmp_path):
    sales, stores = tables
    sales = sales.assign(season=np.resize(["a", "b", "c"], len(sales)))
    stores = stores.assign(street=np.resize(["w", "x", "y", "z"], len(stores)))
    model = cm.from_formula("sold ~ promo + season | store ~ street", sales, stores)
    model.save(tmp_path / "levels.condmeta")
    again = cm.load(tmp_path / "levels.condmeta")
    np.testing.assert_array_equal(again.predict(sales), model.predict(sales))


def test_other_learners_are_saved(tables, tmp_path):
    sales, _ = tables
    counts = sales.assign(sold=(sales["sold"].rank() % 7).astype(int))
    model = cm.from_formula(
        "sold ~ price | store", counts, learner=cm.ConditionalCount(metric="identity")
    )
    model.save(tmp_path / "counts.condmeta", resume=False)
    again = cm.load(tmp_path / "counts.condmeta")
    np.testing.assert_array_equal(again.predict(counts[:5]), model.predict(counts[:5]))


HOSTILE = [
    "sold ~ exec('x') | store",
    "sold ~ price.__class__ | store",
    "sold ~ {price + 1} | store",
    "sold ~ np.log(price) | store",
    "sold ~ log(price) | store ~ open('x')",
    "sold ~ [x for x in price] | store",
    "sold ~ (lambda: price)() | store",
    "sold ~ __import__('os') | store",
    "sold ~ log(exp)(price) | store",
    "sold ~ " + "(" * 500 + "price" + ")" * 500 + " | store",
    "sold + ~ | store",
]


@pytest.mark.parametrize("formula", HOSTILE)
def test_files_cannot_run_code(tables, formula, tmp_path):
    """A crafted file has the formula of an attacker; it is refused before anything is evaluated."""
    sales, _ = tables
    model = cm.from_formula("sold ~ price | store", sales)
    model.formula = formula
    model.save(tmp_path / "bad.condmeta")
    with pytest.raises(ModelFileError, match="formula must"):
        cm.load(tmp_path / "bad.condmeta")


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("levels", {}, "levels must be of the parts features, target"),
        ("levels", {"features": {"price": "1"}, "target": {"sold": 1.0}}, "levels must be a"),
        ("learner_", cm.TaskTable({"a": [1.0]}, [0]), "must be a fitted learner"),
        ("_stored", {"other": {}}, "levels must be of the parts"),
    ],
)  # fmt: skip
def test_crafted_files_are_refused(tables, field, value, sentence, tmp_path):
    sales, _ = tables
    model = cm.from_formula("sold ~ price | store", sales)
    path = tmp_path / "bad.condmeta"
    if field == "learner_":
        model.slim = None
        model.card = lambda: {}
        from condmeta import persistence

        model.learner_ = value
        persistence.write_model(path, model, card={})
    else:
        setattr(model._terms, field, value)
        model.save(path)
    with pytest.raises(ModelFileError, match=sentence):
        cm.load(path)


def test_unsafe_formulas_are_not_saved(tables, tmp_path):
    sales, _ = tables
    model = cm.from_formula("sold ~ np.log(price) | store", sales)
    with pytest.raises(DataError, match=r"^The formula has the part 'np\.log"):
        model.save(tmp_path / "no.condmeta")


def test_a_formula_transforms_nothing_with_a_learner_of_ones_own_either(tables):
    sales, stores = tables
    skewed = sales.assign(sold=np.exp(3 * sales["sold"]))
    given = cm.ConditionalRidge(metric="diagonal")
    model = cm.from_formula("sold ~ price | store ~ size", skewed, stores, learner=given)
    assert (model.learner_.x_transform, model.learner_.y_transform) == (None, None)
    kept = cm.ConditionalRidge(y_transform="log")
    model = cm.from_formula("sold ~ price | store ~ size", skewed, stores, learner=kept)
    assert model.learner_.y_transform == "log"


RANDOM = {
    "sold ~ price + promo + (1 | store)": "intercept",
    "sold ~ price + promo + (1 + price | store ~ size)": ["price"],
    "sold ~ price + promo + (promo | store)": ["promo[T.yes]"],
    "sold ~ price + promo + (price + promo | store)": "all",
}


@pytest.mark.parametrize("formula", RANDOM)
def test_effects_in_brackets_differ_by_task(tables, formula, tmp_path):
    sales, stores = tables
    model = cm.from_formula(formula, sales, stores)
    assert model.learner_.random == RANDOM[formula]
    X = sales[["price"]].assign(**{"promo[T.yes]": (sales["promo"] == "yes").astype(int)})
    side = stores.set_index("store")[["size"]] if "size" in formula else None
    by_hand = cm.ConditionalRidge(random=RANDOM[formula], x_transform=None, y_transform=None)
    by_hand.fit(X, sales["sold"], task=sales["store"], side_info=side)
    np.testing.assert_allclose(
        model.predict(sales), by_hand.predict(X, task=sales["store"]), rtol=1e-9
    )
    model.save(tmp_path / "random.condmeta")
    np.testing.assert_array_equal(
        cm.load(tmp_path / "random.condmeta").predict(sales), model.predict(sales)
    )


def test_a_random_intercept_of_counts(tables):
    sales, _ = tables
    counts = sales.assign(sold=(sales["sold"].rank() % 7).astype(int))
    learner = cm.ConditionalCount(metric="identity")
    model = cm.from_formula("sold ~ price + (1 | store)", counts, learner=learner, exposure="price")
    assert np.ptp(model.coef_frame(wide=True)["price"]) < 1e-12
    low, high = model.predict_interval(counts[:5], coverage=0.8)
    assert (low <= high).all()
    with pytest.raises(DataError, match=r"Column 'price' \(exposure\)|price"):
        model.predict(counts.drop(columns="price"))


@pytest.mark.parametrize("kind", [cm.ConditionalLogistic, cm.ConditionalOrdinal])
def test_a_random_intercept_of_classes(tables, kind, tmp_path):
    sales, _ = tables
    cuts = [0.0] if kind is cm.ConditionalLogistic else [-0.5, 0.5]
    classes = sales.assign(sold=np.digitize(sales["sold"] - sales["sold"].median(), cuts))
    learner = kind(metric="identity")
    model = cm.from_formula("sold ~ price + promo + (1 | store)", classes, learner=learner)
    assert model.learner_.random == "intercept"
    assert np.ptp(model.coef_frame(wide=True)["price"]) < 1e-12
    model.save(tmp_path / "classes.condmeta")
    again = cm.load(tmp_path / "classes.condmeta")
    np.testing.assert_array_equal(again.predict(classes), model.predict(classes))
    with pytest.raises(
        DataError, match=r"in AutoClassifier all coefficients differ by task.*ConditionalRi"
    ):
        cm.from_formula("sold ~ price + (1 | store)", classes, learner=cm.AutoClassifier())


def test_weights_and_offsets_are_columns(tables, tmp_path):
    sales, stores = tables
    table = sales.assign(often=np.arange(len(sales)) % 3 + 1, before=sales["price"] ** 2)
    roles = {"sample_weight": "often", "offset": "before"}
    model = cm.from_formula("sold ~ price | store ~ size", table, stores, **roles)
    by_hand = cm.ConditionalRidge(x_transform=None, y_transform=None).fit(
        table[["price"]], table["sold"], task=table["store"], sample_weight=table["often"],
        side_info=stores.set_index("store")[["size"]], offset=table["before"],
    )  # fmt: skip
    expected = by_hand.predict(table[["price"]], task=table["store"], offset=table["before"])
    np.testing.assert_allclose(model.predict(table.drop(columns="often")), expected, rtol=1e-9)
    model.save(tmp_path / "m.condmeta")
    again = cm.load(tmp_path / "m.condmeta")
    assert again.columns == roles
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    with pytest.raises(DataError, match=r"Column 'before' \(offset\) is not in the table"):
        again.predict(sales)
    assert model.check(table).verdict in ("keep", "update")
    assert model.adapt(table[:8], stores[:1]).coef_.shape == (1, 1)
    model.update(table[:8])


def test_intervals_of_formulas(tables, tmp_path):
    sales, stores = tables
    model = cm.from_formula("sold ~ log(price) + (1 | store ~ size)", sales, stores, intervals=True)
    low, high = model.predict_interval(sales, coverage=0.8)
    assert 0.7 < ((low <= sales["sold"]) & (sales["sold"] <= high)).mean() <= 1
    model.save(tmp_path / "m.condmeta")
    again = cm.load(tmp_path / "m.condmeta").predict_interval(sales, coverage=0.8)
    np.testing.assert_array_equal(again[0], low)
    assert model.summary().effects is not None


def test_classes_may_be_text(tables):
    """A target of text was the indicator of its first class, without a word."""
    sales, _ = tables
    learner = cm.ConditionalLogistic(metric="identity")
    model = cm.from_formula("promo ~ sold + price | store", sales, learner=learner)
    assert model.learner_.classes_.tolist() == ["no", "yes"]
    assert np.mean(model.predict(sales) == sales["promo"]) > 0.9
