"""`update` of counts, shares and classes: exact, from the rows that the model keeps."""

import numpy as np
import pytest

import condmeta as cm
from condmeta.errors import DataError, ModelFileError
from condmeta.fitted.kept_rows import KeptRows

QUICK = {"metric": "diagonal", "kappa": 1.0}
SIDE = cm.TaskTable({"s": np.random.default_rng(0).normal(size=31)}, range(31))


def draw(kind, seed=0):
    """Return X, labels, tasks 0 to 29, and the sizes of rows by name."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(30), 6)
    X = rng.normal(size=(180, 2))
    f = X @ [0.5, -0.5] + 0.5 * rng.normal(size=30)[task]
    if kind == "count":
        exposure = rng.uniform(1, 3, size=180)
        return X, rng.poisson(exposure * np.exp(f)), task, {"exposure": exposure}
    if kind == "trials":
        trials = rng.integers(1, 9, size=180)
        return X, rng.binomial(trials, 1 / (1 + np.exp(-f))), task, {"trials": trials}
    y = np.digitize(f + rng.logistic(size=180), [-1, 1])
    return X, (y > 0) * 1 if kind == "two" else y, task, {}


LEARNERS = {
    "count": cm.ConditionalCount, "trials": cm.ConditionalLogistic, "two": cm.ConditionalLogistic,
    "many": cm.ConditionalLogistic, "ordered": cm.ConditionalOrdinal,
}  # fmt: skip


def part(values, at):
    return {name: value[at] for name, value in values.items()}


def coefficients(model):
    table = model.coef_frame()
    return table["adapted"].to_numpy()


@pytest.fixture(params=LEARNERS)
def half(request):
    """Return a learner that has seen the first rows of tasks 0 to 28, and all rows."""
    X, y, task, sizes = draw(request.param)
    early = (np.arange(180) % 6 < 4) & (task < 29)
    model = LEARNERS[request.param](**QUICK)
    model.fit(X[early], y[early], task=task[early], side_info=SIDE, **part(sizes, early))
    return model, (X, y, task, sizes), early


def test_update_is_adapt_on_all_points(half):
    model, (X, y, task, sizes), early = half
    late = ~early
    known = task < 29
    table = cm.TaskTable({"s": SIDE.data["s"]}, range(31))
    whole = model.adapt(X, y, task=task, side_info=table, **part(sizes, slice(None)))
    model.update(X[late], y[late], task=task[late], **part(sizes, late))
    ids = model.fitted_.tasks.ids
    for t in (0, 7, 28, 29):
        one = whole[t]
        at = ids.tolist().index(t)
        parts = getattr(model.fitted_, "parts", [model.fitted_])
        found = np.squeeze([p.scales.user_vector(p.tasks.coef[at]) for p in parts])
        expected = np.column_stack([one.coef_, one.intercept_]) if found.ndim == 2 else None
        expected = np.append(one.coef_, one.intercept_) if expected is None else expected
        np.testing.assert_allclose(found, expected, atol=1e-7)
    assert model.n_points(X[known], task=task[known]).max() == 6
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(
            model.predict_proba(X, task=task), whole.predict_proba(X, task=task), atol=1e-7
        )


def test_an_adapted_model_takes_further_points(half):
    model, (X, y, _, sizes), _ = half
    row = {"s": 0.3}
    whole = model.adapt(X[:6], y[:6], side_info=row, **part(sizes, slice(0, 6)))
    some = model.adapt(X[:4], y[:4], side_info=row, **part(sizes, slice(0, 4)))
    some.update(X[4:6], y[4:6], **part(sizes, slice(4, 6)))
    assert some.n_ == 6
    np.testing.assert_allclose(some.coef_, whole.coef_, atol=1e-7)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(some.predict_proba(X), whole.predict_proba(X), atol=1e-7)
    else:
        found, expected = some.predict_distribution(X), whole.predict_distribution(X)
        np.testing.assert_allclose(found.std, expected.std, rtol=1e-6)


def test_files_hold_rows_only_if_they_are_to_resume(half, tmp_path):
    model, (X, y, task, sizes), early = half
    path, late = tmp_path / "model.condmeta", ~early
    model.save(path)
    again = cm.load(path)
    again.update(X[late], y[late], task=task[late], **part(sizes, late))
    model.update(X[late], y[late], task=task[late], **part(sizes, late))
    np.testing.assert_array_equal(coefficients(again), coefficients(model))
    assert again.card()["resumable"]
    model.save(path, resume=False)
    slim = cm.load(path)
    values = getattr(slim.fitted_, "parts", [slim.fitted_])
    assert all(value.state is None for value in values)
    assert not slim.card()["resumable"]
    call = {"task": task[late], **part(sizes, late)}
    with pytest.raises(
        DataError, match=r"^This model was saved without the statistics that update needs"
    ):
        slim.update(X[late], y[late], **call)
    exposure = part(sizes, late) if "exposure" in sizes else {}
    np.testing.assert_array_equal(
        slim.predict(X[late], task=task[late], **exposure),
        model.predict(X[late], task=task[late], **exposure),
    )


BAD = {
    "state.X": lambda rows: rows._replace(X=rows.X[:, :1].copy()),
    "state.offsets": lambda rows: rows._replace(offsets=np.array([0, len(rows.y)])),
    "state.y": lambda rows: rows._replace(y=rows.y - 5.0),
    "state.weight": lambda rows: rows._replace(weight=np.zeros(len(rows.y))),
    "tasks.sizes": lambda rows: rows._replace(weight=np.full(len(rows.y), 2.0)),
}


@pytest.mark.parametrize("field", BAD)
@pytest.mark.parametrize("kind", ["two", "ordered", "count"])
def test_hostile_rows_are_refused(kind, field, tmp_path):
    X, y, task, sizes = draw(kind)
    model = LEARNERS[kind](**QUICK).fit(X, y, task=task, **sizes)
    assert isinstance(model._model.state, KeptRows)
    model._model = model._model._replace(state=BAD[field](model._model.state))
    model.save(tmp_path / "bad.condmeta")
    with pytest.raises(ModelFileError, match=field):
        cm.load(tmp_path / "bad.condmeta")


def test_points_that_condition_cannot_be_added():
    X, y, task, _ = draw("two")
    model = cm.ConditionalLogistic(cm.feature_maps.MeanInputOutput(), **QUICK)
    model.fit(X, y, task=task)
    with pytest.raises(DataError, match=r"its feature map reads points, or its file is old\. Call"):
        model.update(X[:2], y[:2], task=task[:2])


def test_deviations_of_coefficients_are_those_of_the_posterior(half):
    model, *_ = half
    table = model.coef_frame(std=True)
    assert (table["std"] > 0).all()
    wide = model.coef_frame(wide=True, std=True)
    added = [name for name in wide if name.endswith("(std)")]
    assert added == ["x0 (std)", "x1 (std)", "(intercept) (std)"]
    value = getattr(model.fitted_, "parts", [model.fitted_])[0]
    C = value.scales.user_matrix()
    expected = np.sqrt(np.diag(C @ value.tasks.state.covariance[0] @ C.T))
    np.testing.assert_allclose(table["std"][:3], expected)
