"""A chosen drift is hedged: `update` sees whether forgetting still pays."""

import numpy as np
import pytest

import condmeta as cm
from condmeta.inner.hedge import KEEPS, SHARES, TRUST, Hedge

T, SPLIT, END = 60, 16, 28


def panel(seed=0, noise=0.2):
    """Return rows (X, y, task, time): the levels of tasks walk, and stay from time 16 on.

    From then on labels have shocks that pass: a model that forgets takes them for the level.
    """
    rng = np.random.default_rng(seed)
    level, start, X, y = rng.normal(size=T), None, [], []
    for time in range(END):
        x = rng.normal(size=(T, 1))
        if time == SPLIT:
            start = np.mean([each - noise for each in y[-SPLIT:]], axis=0)
        shock = 0.0 if time < SPLIT else 1.5 * rng.normal(size=T)
        here = level if time < SPLIT else start
        X.append(x)
        y.append(x[:, 0] + here + shock + noise * rng.normal(size=T))
        level = level + 0.4 * rng.normal(size=T)
    task, time = np.tile(np.arange(T), END), np.repeat(np.arange(float(END)), T)
    return np.concatenate(X), np.concatenate(y), task, time


def fit(rows, drift="auto"):
    early = rows[3] < SPLIT
    X, y, task, time = (part[early] for part in rows)
    return cm.ConditionalRidge(drift=drift).fit(X, y, task=task, time=time)


def errors(model, rows, first=SPLIT):
    found = []
    for now in range(first, END):
        X, y, task, time = (part[rows[3] == now] for part in rows)
        found.append(np.abs(model.predict(X, task=task, time=time) - y).mean())
        model.update(X, y, task=task, time=time)
    return np.array(found)


def test_a_drift_that_stops_to_pay_is_given_up():
    rows = panel()
    hedged, never = fit(rows), fit(rows, None)
    assert hedged.drift_ is not None
    assert hedged.drift_share_ == 1.0
    assert never.drift_share_ is None
    bare = fit(rows, hedged.drift_)
    assert bare.drift_share_ == 1.0
    ours, without, forgets = errors(hedged, rows), errors(never, rows), errors(bare, rows)
    assert hedged.drift_share_ < 0.5
    assert forgets.mean() > 1.1 * without.mean()  # forgetting alone does worse
    assert ours[3:].mean() < 1.01 * without[3:].mean()
    # Of what forgetting would have cost, a quarter at most is lost before it is given up.
    assert (ours - without).sum() < 0.25 * (forgets - without).sum()
    np.testing.assert_allclose(ours[0], forgets[0])  # nothing can be known before


def test_the_share_stays_where_forgetting_pays():
    rng = np.random.default_rng(1)
    steps = 0.4 * rng.normal(size=(END, T))
    y = (rng.normal(size=T) + np.cumsum(steps, axis=0) + 0.2 * rng.normal(size=(END, T))).ravel()
    task, time = np.tile(np.arange(T), END), np.repeat(np.arange(1.0 * END), T)
    rows = rng.normal(size=(END * T, 1)), y, task, time
    hedged = fit(rows)
    bare = fit(rows, hedged.drift_)
    np.testing.assert_array_equal(errors(hedged, rows), errors(bare, rows))
    assert hedged.drift_share_ == 1.0


def updated():
    """Return a model with a share between 0 and 1, and rows that it has not seen."""
    rows = panel()
    model = fit(rows)
    for now in range(SPLIT, END - 1):
        X, y, task, time = (part[rows[3] == now] for part in rows)
        model.update(X, y, task=task, time=time)
        if 0 < model.drift_share_ < 1:
            break
    assert 0 < model.drift_share_ < 1
    last = rows[3] == END - 1
    return model, rows, [part[last] for part in rows], now


def test_predictions_are_those_of_two_models_in_these_shares():
    model, rows, (X, _, task, time), now = updated()
    seen = (rows[3] < SPLIT, (rows[3] >= SPLIT) & (rows[3] <= now))
    still = model.fitted_.inner.stays
    two = []
    for drift in (("ar", 1.0), model.drift_):  # AR(1) with phi = 1 stays
        each = fit(rows, drift)
        each.update(*(part[seen[1]] for part in rows[:2]), task=rows[2][seen[1]],
                    time=rows[3][seen[1]])  # fmt: skip
        two.append(each.predict(X, task=task, time=time, return_std=True))
    (stay, stay_std), (drifts, drifts_std) = two
    np.testing.assert_allclose(still.s2 * model.fitted_.scales.y_scale**2, fit(rows, None).s2_)
    v = model.drift_share_
    found, std = model.predict(X, task=task, time=time, return_std=True)
    np.testing.assert_allclose(found, v * drifts + (1 - v) * stay, rtol=1e-8)
    variance = v * drifts_std**2 + (1 - v) * stay_std**2 + v * (1 - v) * (drifts - stay) ** 2
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-8)
    frame = model.coef_frame(std=True)
    assert np.isfinite(frame[[c for c in frame if "std" in c]].to_numpy()).all()


def test_all_task_models_follow_the_share_and_files_keep_it(tmp_path):
    model, _, (X, _, task, time), _ = updated()
    inner, store = model.fitted_.inner, model.fitted_.tasks
    np.testing.assert_allclose(store.coef, inner.posterior(store.state, store.theta).mean)
    model.save(tmp_path / "m.condmeta")
    again = cm.load(tmp_path / "m.condmeta")
    assert again.drift_share_ == model.drift_share_
    asked = {"task": task, "time": time}
    np.testing.assert_array_equal(again.predict(X, **asked), model.predict(X, **asked))
    some = cm.load(tmp_path / "m.condmeta", tasks=task[:3].tolist())
    three = {"task": task[:3], "time": time[:3]}
    np.testing.assert_array_equal(some.predict(X[:3], **three), model.predict(X[:3], **three))
    for each in (model, again):
        each.update(X[:5], X[:5, 0], task=task[:5], time=time[:5])
    np.testing.assert_array_equal(again.fitted_.tasks.coef, model.fitted_.tasks.coef)
    assert again.fitted_.inner.hedge.losses.tolist() == model.fitted_.inner.hedge.losses.tolist()


def test_new_tasks_have_the_share_too():
    model, _, (X, y, _, _), _ = updated()
    shop = model.adapt(X[:4], y[:4], time=[20.0, 21.0, 22.0, 23.0])
    inner = model.fitted_.inner
    state, theta = shop._state, shop._theta[None]
    two = [
        inner.drifts.posterior(state.timed, theta).mean[0],
        inner.stays.posterior(state.all_rows, theta).mean[0],
    ]
    v = model.drift_share_
    np.testing.assert_allclose(shop._coef, v * two[0] + (1 - v) * two[1], rtol=1e-12)


def test_both_engines_agree(monkeypatch):
    rows, found = panel(), []
    for engine in ("native", "numpy"):
        monkeypatch.setenv("CONDMETA_ENGINE", engine)
        model = fit(rows)
        errors(model, rows, SPLIT)
        found.append(model.fitted_.inner.hedge.losses)
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_the_order_of_updates_and_rows_of_the_fit_do_not_count():
    hedge = Hedge.start(2.0, time=3.0, gap=2.0)
    np.testing.assert_allclose(hedge.losses, 2 * TRUST * (1 - SHARES))
    assert hedge.share == 1.0
    drifts, stays = np.array([1.0, -2.0, 0.5]), np.array([0.5, 1.0, -0.1])
    time, mass = np.array([5.0, 4.0, 7.0]), np.array([1.0, 2.0, 1.0])
    after = hedge.with_errors(drifts, stays, mass, time)
    by_hand = [
        KEEPS**2.0 * lost
        + KEEPS * abs(v * 1.0 + (1 - v) * 0.5)
        + KEEPS**1.5 * 2 * abs(v * -2.0 + (1 - v) * 1.0)
        + abs(v * 0.5 + (1 - v) * -0.1)
        for v, lost in zip(SHARES, hedge.losses, strict=True)
    ]
    np.testing.assert_allclose(after.losses, by_hand)
    steps = hedge
    for at in ([1], [0], [2]):
        steps = steps.with_errors(drifts[at], stays[at], mass[at], time[at])
    np.testing.assert_allclose(steps.losses, by_hand)
    assert after.with_errors(*np.empty((4, 0))) is after


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_of_one_part_is_that_part(share):
    model = updated()[0]
    inner = model.fitted_.inner
    inner.hedge = inner.hedge._replace(losses=np.abs(SHARES - share))
    assert inner.hedge.share == share
    state, theta = model.fitted_.tasks.state, model.fitted_.tasks.theta
    alone, part = (inner.drifts, state.timed) if share else (inner.stays, state.all_rows)
    np.testing.assert_allclose(
        inner.covariances(state, theta), alone.covariances(part, theta), rtol=1e-12
    )
    np.testing.assert_allclose(
        inner.posterior(state, theta).mean, alone.posterior(part, theta).mean, rtol=1e-12
    )
