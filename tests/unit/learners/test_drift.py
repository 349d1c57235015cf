"""`ConditionalRidge(drift=...)`: tasks that change with time."""

from threading import Thread

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import cross_validate

import condmeta as cm
from condmeta.errors import DataError
from condmeta.inner.drift import Drift, Process

T, N_TIMES = 40, 12
PLAIN = {"metric": "full", "noise": "shared", "kappa": 1.0}


class Panel:
    """Rows of tasks with weights that move by AR(1) towards tau(s); phi = 1 stays."""

    def __init__(self, phi=0.9, n_tasks=T, n_times=N_TIMES, seed=0, noise=0.3):
        rng = np.random.default_rng(seed)
        s = rng.normal(size=n_tasks)
        tau = np.column_stack([2 * s, 1 - s])
        w = tau + rng.normal(size=tau.shape)
        X, y = [], []
        for _ in range(n_times):
            x = rng.normal(size=(n_tasks, 2))
            X.append(x)
            y.append(np.einsum("ti,ti->t", x, w) + noise * rng.normal(size=n_tasks))
            w = tau + phi * (w - tau) + np.sqrt(1 - phi**2) * rng.normal(size=tau.shape)
        self.X, self.y = np.concatenate(X), np.concatenate(y)
        self.task = np.tile(np.arange(n_tasks), n_times)
        self.time = np.repeat(np.arange(float(n_times)), n_tasks)
        self.side = cm.TaskTable({"s": s}, ids=range(n_tasks))

    def rows(self, mask):
        return (self.X[mask], self.y[mask]), {"task": self.task[mask], "time": self.time[mask]}

    def fit(self, mask=None, **params):
        mask = np.ones(len(self.y), bool) if mask is None else mask
        args, named = self.rows(mask)
        if params.get("drift", "auto") is None:
            del named["time"]
        return cm.ConditionalRidge(**params).fit(*args, **named, side_info=self.side)

    def errors(self, model, first):
        """Return mean absolute errors one step ahead from time `first` on; the model is updated."""
        found = []
        for time in range(first, int(self.time.max()) + 1):
            (X, y), named = self.rows(self.time == time)
            timed = named if model.fitted_.info.get("time") else {"task": named["task"]}
            found.append(np.abs(model.predict(X, **timed) - y))
            model.update(X, y, **timed)
        return np.mean(found)


PANEL = Panel()


def test_decay_equals_weights_by_age_and_the_prior_does_not_change():
    plain, rho = PANEL.fit(drift=None, **PLAIN), 0.8
    forgets = PANEL.fit(drift=rho, **PLAIN)
    assert forgets.drift_ == ("decay", rho, 1.0)
    for name in ("M_", "b_", "H_", "s2_"):
        np.testing.assert_array_equal(getattr(forgets, name), getattr(plain, name))
    age = PANEL.time.max() - PANEL.time
    given = {"task": PANEL.task, "side_info": PANEL.side}
    weighted = plain.adapt(PANEL.X, PANEL.y, **given, sample_weight=rho**age)
    coef = forgets.fitted_.tasks.coef
    np.testing.assert_allclose(coef, weighted._coef, rtol=1e-11, atol=1e-12)
    adapted = forgets.adapt(PANEL.X, PANEL.y, **given, time=PANEL.time)
    np.testing.assert_allclose(adapted._coef, weighted._coef, rtol=1e-11, atol=1e-12)


def test_ar_is_the_posterior_of_moving_weights():
    phi, model = 0.7, PANEL.fit(drift=("ar", 0.7), **PLAIN)
    inner, scales, store = model.fitted_.inner, model.fitted_.scales, model.fitted_.tasks
    H = inner.factor @ inner.factor.T
    for t in (0, 17):
        rows = PANEL.task == t
        X, y, time = scales.rows(PANEL.X[rows]), scales.target(PANEL.y[rows]), PANEL.time[rows]
        at = store.index[t]
        theta = store.theta[at]
        K = phi ** np.abs(np.subtract.outer(time, time)) * (X @ H @ X.T)
        K += inner.s2 * np.eye(len(y))
        for now in (time.max(), time.max() + 2.5):
            cross = phi ** (now - time) * (H @ X.T)
            mean = theta + cross @ np.linalg.solve(K, y - X @ theta)
            cov = H - cross @ np.linalg.solve(K, cross.T)
            x = np.array([[0.3, -1.2]])
            row = scales.rows(x)[0]
            found, std = model.predict(x, task=[t], time=[now], return_std=True)
            np.testing.assert_allclose(found, scales.answer(row @ mean), rtol=1e-9)
            np.testing.assert_allclose(
                std, scales.y_scale * np.sqrt(row @ cov @ row + inner.s2), rtol=1e-9
            )


@pytest.mark.parametrize("drift", [0.8, ("ar", 0.7), ("ar", 0.9, 0.5)])
def test_update_equals_adapt_on_all_rows(drift):
    early = PANEL.time < 6
    model = PANEL.fit(early, drift=drift, **PLAIN)
    before = model.fitted_
    given = {"task": PANEL.task, "side_info": PANEL.side, "time": PANEL.time}
    whole = model.adapt(PANEL.X, PANEL.y, **given)
    for first, last in ((6, 7), (7, 10), (10, N_TIMES)):
        args, named = PANEL.rows((PANEL.time >= first) & (PANEL.time < last))
        model.update(*args, **named)
    np.testing.assert_allclose(model.fitted_.tasks.coef, whole._coef, rtol=1e-9, atol=1e-11)
    assert model.fitted_.tau is before.tau
    assert (model.fitted_.tasks.sizes == N_TIMES).all()
    assert model.fitted_.state.whole.count.sum() == len(PANEL.y)  # the prior's state: all rows
    one = model.adapt(PANEL.X[:1], PANEL.y[:1], side_info={"s": 0.5}, time=PANEL.time[:1])
    one.update(PANEL.X[T : T + 1], PANEL.y[T : T + 1], time=3.0)
    two = model.adapt(PANEL.X[[0, T]], PANEL.y[[0, T]], side_info={"s": 0.5}, time=[0.0, 3.0])
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-10)
    assert one.predict(PANEL.X[:2], time=30.0)[0] != one.predict(PANEL.X[:2])[0]


@pytest.mark.parametrize("drift", [0.8, ("ar", 0.7)])
def test_predictions_go_back_to_tau_and_become_less_certain(drift):
    model = PANEL.fit(drift=drift, cold_start="prior", **PLAIN)
    X, task = PANEL.X[:T], PANEL.task[:T]
    now, at_last = model.predict(X, task=task), model.predict(X, task=task, time=11)
    np.testing.assert_allclose(now, at_last, rtol=1e-12)
    np.testing.assert_allclose(model.predict(X, task=task, time=3), now)  # earlier: as it is
    std = [model.predict(X, task=task, time=t, return_std=True)[1].mean() for t in (11, 13, 99)]
    assert std[0] < std[1] < std[2]
    far = model.predict(X, task=task, time=1e5)
    tau = np.array([model.adapt(side_info=PANEL.side.row(t)).predict(X[[t]])[0] for t in task])
    np.testing.assert_allclose(far, tau, rtol=1e-10)
    later = model.predict(np.repeat(X, 2, axis=0), task=np.repeat(task, 2), time=[11, 1e5] * T)
    np.testing.assert_allclose(later[::2], now)
    np.testing.assert_allclose(later[1::2], far)


@pytest.mark.parametrize("drift", ["auto", 0.8])
def test_nothing_is_lost_where_nothing_drifts(drift):
    still = Panel(phi=1.0)
    early = still.time < 8
    never, auto = still.fit(early, drift=None), still.fit(early, drift=drift)
    if drift == "auto":
        assert auto.drift_ is None
        assert auto.drift_choice_[0].keys() == {"drift", "rate", "noise", "score"}
        np.testing.assert_array_equal(auto.fitted_.tasks.coef, never.fitted_.tasks.coef)
        assert still.errors(auto, 8) == still.errors(never, 8)
    else:  # the test can fail: forgetting what stays costs
        assert still.errors(auto, 8) > 1.05 * still.errors(never, 8)


@pytest.mark.parametrize("phi", [0.97, 0.8])
def test_auto_finds_drift_and_pays(phi):
    panel = Panel(phi, n_tasks=60, n_times=24, seed=3)
    early = panel.time < 18
    auto, never = panel.fit(early), panel.fit(early, drift=None)
    assert auto.drift_choice_[0]["drift"] == "ar"
    assert abs(auto.drift_choice_[0]["rate"] - phi) < 0.06
    assert auto.drift_ is not None
    assert panel.errors(auto, 18) < 0.9 * panel.errors(never, 18)


def test_the_unit_of_time_does_not_matter():
    panel = Panel(0.97, n_times=24)
    years = panel.fit()
    months = cm.ConditionalRidge().fit(
        panel.X, panel.y, task=panel.task, side_info=panel.side, time=12 * panel.time
    )
    kind, rate, noise = years.drift_
    assert months.drift_ == (kind, pytest.approx(rate ** (1 / 12)), noise)
    np.testing.assert_allclose(months.fitted_.tasks.coef, years.fitted_.tasks.coef, rtol=1e-9)


def test_auto_needs_some_tasks_with_later_rows():
    few = PANEL.task < 4
    assert PANEL.fit(few).drift_ is None
    one_time = PANEL.time == 3
    assert PANEL.fit(one_time, **(PLAIN | {"metric": "identity"})).drift_ is None


def test_a_time_without_drift_changes_nothing():
    timed = cm.ConditionalRidge(drift=None).fit(
        PANEL.X, PANEL.y, task=PANEL.task, side_info=PANEL.side, time=PANEL.time
    )
    plain = PANEL.fit(drift=None)
    np.testing.assert_array_equal(timed.fitted_.tasks.coef, plain.fitted_.tasks.coef)
    args, named = PANEL.rows(PANEL.time == 11)
    timed.update(*args, **named)
    plain.update(*args, task=named["task"])
    np.testing.assert_array_equal(timed.fitted_.tasks.coef, plain.fitted_.tasks.coef)


@pytest.mark.parametrize("drift", ["auto", ("ar", 0.8), 0.9])
def test_files_keep_it(tmp_path, drift):
    model = PANEL.fit(PANEL.time < 9, drift=drift)
    model.save(tmp_path / "m.condmeta")
    again = cm.load(tmp_path / "m.condmeta")
    assert again.drift_ == model.drift_ is not None
    assert again.drift == drift or tuple(again.drift) == drift
    args, named = PANEL.rows(PANEL.time >= 9)
    for each in (model, again):
        each.update(*args, **named)
    call = {"task": named["task"], "time": 20.0}
    np.testing.assert_array_equal(again.predict(args[0], **call), model.predict(args[0], **call))
    model.save(tmp_path / "slim.condmeta", resume=False)
    slim = cm.load(tmp_path / "slim.condmeta")
    np.testing.assert_array_equal(
        slim.predict(args[0], task=named["task"]), model.predict(args[0], task=named["task"])
    )
    with pytest.raises(
        DataError, match="saved without the statistics that predictions at other times"
    ):
        slim.predict(args[0], **call)


@pytest.mark.parametrize("drift", ["auto", ("ar", 0.8)])
def test_partial_fit_and_merge_equal_fit(drift, tmp_path):
    whole = PANEL.fit(drift=drift)
    parts = [PANEL.task < 15, PANEL.task >= 15]
    chunks = cm.ConditionalRidge(drift=drift)
    learners = []
    for part in parts:
        args, named = PANEL.rows(part)
        ids = np.unique(named["task"])
        side = PANEL.side.take(ids)
        chunks.partial_fit(*args, **named, side_info=side)
        own = cm.ConditionalRidge(drift=drift).partial_fit(*args, **named, side_info=side)
        own.save(tmp_path / "own.condmeta")
        learners.append(cm.load(tmp_path / "own.condmeta"))
    for model in (chunks, cm.merge(*learners)):
        assert model.drift_ == pytest.approx(whole.drift_)
        at = model.fitted_.tasks.positions(whole.fitted_.tasks.ids.tolist())
        np.testing.assert_allclose(
            model.predict(PANEL.X[:T], task=PANEL.task[:T], time=14),
            whole.predict(PANEL.X[:T], task=PANEL.task[:T], time=14), rtol=1e-5,
        )  # fmt: skip
        assert (at >= 0).all()


def test_update_after_partial_fit_keeps_the_rows_to_learn_from_again():
    early = (PANEL.time < 8) & (PANEL.task < 30)
    args, named = PANEL.rows(early)
    side = PANEL.side.take(np.arange(30))
    model = cm.ConditionalRidge(**PLAIN).partial_fit(*args, **named, side_info=side)
    args, named = PANEL.rows((PANEL.time >= 8) & (PANEL.task < 30))
    model.update(*args, **named)
    args, named = PANEL.rows(PANEL.task >= 30)
    model.partial_fit(*args, **named, side_info=PANEL.side.take(np.arange(30, T)))
    whole = PANEL.fit(**PLAIN)
    assert model.drift_ == pytest.approx(whole.drift_)
    X, task = PANEL.X[:T], PANEL.task[:T]
    np.testing.assert_allclose(model.predict(X, task=task), whole.predict(X, task=task), rtol=1e-5)


def test_fit_keeps_no_rows_and_says_so():
    model = PANEL.fit(drift=0.9)
    assert not model.fitted_.keeps_history
    with pytest.raises(DataError, match="partial_fit would have to learn drift again, from rows"):
        model.partial_fit(PANEL.X[:1], PANEL.y[:1], task=[99], time=[1.0], side_info={99: [0.0]})
    with pytest.raises(DataError, match="merge would have to learn drift again"):
        cm.merge(model, PANEL.fit(drift=0.9))


def test_dates_count_in_days_and_columns_may_hold_them():
    days = np.datetime64("2024-01-01") + (7 * PANEL.time).astype("timedelta64[D]")
    numbers = PANEL.fit(drift=0.9)
    by_day = cm.ConditionalRidge(drift=0.9 ** (1 / 7))
    frame = pd.DataFrame({"a": PANEL.X[:, 0], "b": PANEL.X[:, 1], "day": days, "t": PANEL.task})
    by_day.fit(frame, PANEL.y, task="t", time="day", side_info=PANEL.side)
    assert by_day.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_allclose(by_day.fitted_.tasks.coef, numbers.fitted_.tasks.coef, rtol=1e-9)
    zoned = pd.Series(days).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    for time in (days.tolist(), pd.Series(days), zoned, days.astype("datetime64[ns]")):
        again = cm.ConditionalRidge(drift=0.9 ** (1 / 7)).fit(
            frame[["a", "b"]], PANEL.y, task=PANEL.task, time=time, side_info=PANEL.side
        )
        np.testing.assert_allclose(again.fitted_.tasks.coef, by_day.fitted_.tasks.coef)
    later = by_day.predict(frame, task="t", time="day")
    call = {"task": frame["t"], "time": frame["day"]}
    np.testing.assert_array_equal(by_day.predict(frame[["a", "b"]], **call), later)
    with pytest.raises(DataError, match="The times of fit were dates, and these are numbers"):
        by_day.predict(frame[["a", "b"]], task=frame["t"], time=3.0)
    with pytest.raises(DataError, match="The times of fit were numbers, and these are dates"):
        numbers.update(PANEL.X, PANEL.y, task=PANEL.task, time=days)


def test_task_sets_carry_times():
    tasks = cm.TaskSet.from_arrays(
        PANEL.X, PANEL.y, PANEL.task, side_info=PANEL.side, time=PANEL.time
    )
    model, same = cm.ConditionalRidge(drift=0.9).fit(tasks), PANEL.fit(drift=0.9)
    np.testing.assert_allclose(model.fitted_.tasks.coef, same.fitted_.tasks.coef)
    np.testing.assert_array_equal(
        model.predict(tasks), model.predict(PANEL.X, task=PANEL.task, time=PANEL.time)
    )
    again = cm.TaskSet.from_tasks(list(tasks))
    np.testing.assert_array_equal(again.time, tasks.time)
    frame = tasks.to_frame()
    named = cm.TaskSet.from_frame(frame, task="task", target="y", time="time")
    np.testing.assert_array_equal(named.time, tasks.time)
    assert named.n_features == 2
    models = model.adapt(tasks)
    np.testing.assert_allclose(models.predict(tasks), model.predict(tasks), rtol=1e-9)
    found, std = models.predict(tasks, return_std=True)
    np.testing.assert_allclose(std, model.predict(tasks, return_std=True)[1], rtol=1e-9)
    assert len(found) == len(PANEL.y)
    np.testing.assert_allclose(models[3].coef_, models.coef_[list(models).index(3)])
    with pytest.raises(DataError, match="Task 1 has no times while other tasks have some"):
        cm.TaskSet.from_tasks([*list(tasks)[:1], tasks[1]._replace(time=None)])


def test_both_engines_agree(monkeypatch):
    moving = Panel(0.97, n_times=24)
    native = PANEL.fit(drift=("ar", 0.9)), moving.fit()
    monkeypatch.setenv("CONDMETA_ENGINE", "numpy")
    other = PANEL.fit(drift=("ar", 0.9)), moving.fit()
    for one, two in zip(native, other, strict=True):
        assert one.drift_ == pytest.approx(two.drift_)
        assert one.drift_ is not None
        np.testing.assert_allclose(
            one.fitted_.tasks.coef, two.fitted_.tasks.coef, rtol=1e-4, atol=1e-5
        )


def test_weights_and_precision_work_with_drift():
    rng = np.random.default_rng(5)
    weight, precision = rng.integers(0, 3, len(PANEL.y)), rng.uniform(0.5, 2, len(PANEL.y))
    call = {"task": PANEL.task, "side_info": PANEL.side, "time": PANEL.time}
    model = cm.ConditionalRidge(drift=("ar", 0.8), **PLAIN)
    model.fit(PANEL.X, PANEL.y, **call, sample_weight=weight, precision=precision)
    rows = np.repeat(np.arange(len(PANEL.y)), weight)
    call |= {"task": PANEL.task[rows], "time": PANEL.time[rows]}
    twice = cm.ConditionalRidge(drift=("ar", 0.8), **PLAIN)
    twice.fit(PANEL.X[rows], PANEL.y[rows], **call, precision=precision[rows])
    order = model.fitted_.tasks.positions(twice.fitted_.tasks.ids.tolist())
    np.testing.assert_allclose(
        model.fitted_.tasks.coef[order], twice.fitted_.tasks.coef, rtol=1e-4, atol=1e-5
    )


def test_own_estimates_and_standard_errors_are_of_all_rows():
    plain, forgets = PANEL.fit(drift=None, **PLAIN), PANEL.fit(drift=("ar", 0.6), **PLAIN)
    one, two = (model.coef_frame(std=True) for model in (plain, forgets))
    np.testing.assert_allclose(one["own"], two["own"], rtol=1e-9)
    assert (two["std"] > one["std"]).mean() > 0.9  # less is known about weights that move
    one, two = (model.summary() for model in (plain, forgets))
    np.testing.assert_allclose(one.effects["std_error"], two.effects["std_error"], rtol=1e-9)
    assert "drift: AR(1), a task keeps 0.6 after a unit of time" in str(two)
    assert "drift" not in str(one)
    assert "it forgets earlier points: AR(1)" in str(cm.explain(forgets, task=3))
    assert "forgets" not in str(cm.explain(plain, task=3))


def test_check_says_whether_a_model_has_fallen_behind():
    moving, still = Panel(0.8, n_tasks=80, seed=3), Panel(1.0, n_tasks=80, seed=3)
    reports = []
    for panel in (moving, still):
        model = panel.fit(panel.time < 6, drift=None)
        (X, y), named = panel.rows(panel.time >= 6)
        reports.append(cm.check(model, X, y, **named))
        assert cm.check(model, X, y, task=named["task"]).forgetting is None
    assert reports[0].forgetting > 0.1
    assert "a model that forgets would have errors" in str(reports[0])
    assert reports[1].forgetting == 0
    assert "forgets" not in str(reports[1])
    forgets = moving.fit(moving.time < 6)
    (X, y), named = moving.rows(moving.time == 6)
    report = cm.check(forgets, X, y, **named)
    assert report.forgetting is None
    assert report.verdict == "keep"


def test_unlabelled_tasks_keep_tau_and_new_tasks_join():
    model = PANEL.fit(PANEL.task < 20, drift=("ar", 0.8))  # others: by their side rows alone
    X, new = PANEL.X[:T], PANEL.task[:T] >= 20
    far, now = (model.predict(X, task=PANEL.task[:T], time=t) for t in (99, 11))
    np.testing.assert_allclose(far[new], now[new])
    args, named = PANEL.rows(PANEL.task >= 20)
    model.update(*args, **named)
    whole = model.adapt(PANEL.X, PANEL.y, task=PANEL.task, time=PANEL.time, side_info=PANEL.side)
    at = model.fitted_.tasks.positions(list(whole))
    np.testing.assert_allclose(model.fitted_.tasks.coef[at], whole._coef, rtol=1e-9)


def test_models_without_task_models_adapt_by_time():
    model = PANEL.fit(drift=0.7, keep_tasks=False, **PLAIN)
    kept = PANEL.fit(drift=0.7, **PLAIN)
    call = {"task": PANEL.task, "side_info": PANEL.side, "time": PANEL.time}
    found = model.adapt(PANEL.X, PANEL.y, **call)
    np.testing.assert_allclose(found._coef, kept.fitted_.tasks.coef, rtol=1e-9)


def test_the_process_of_a_fitted_model_is_public_enough_to_check():
    model = PANEL.fit(drift=("ar", 0.9, 0.5), **PLAIN)
    inner = model.fitted_.inner
    assert inner.process == Process(Drift("ar", 0.9, 0.5), inner.factor, inner.s2)
    assert model.s2_ == pytest.approx(0.5 * PANEL.fit(drift=None, **PLAIN).s2_)


SMALL = {"X": [[1.0], [2.0], [3.0]], "y": [1.0, 2.0, 3.0], "task": ["a", "b", "b"]}


@pytest.mark.parametrize(
    ("time", "sentence"),
    [
        ([1, np.nan, 3], "time is missing or infinite in 1 of 3 rows, first in row 1 (task 'b')."),
        ([1, np.inf, 3], "Every row needs a time: fill it in, or drop the row."),
        (
            np.array(["2024-01-01", "NaT", "2024-01-03"], "datetime64[D]"),
            "first in row 1 (task 'b')",
        ),
        (pd.to_datetime(pd.Series(["2024-01-01", None, "2024-01-03"])), "missing or infinite in 1"),
        ([None, 1.0, 2.0], "missing or infinite in 1 of 3 rows, first in row 0 (task 'a')"),
        (["2024-01-01", "2024-01-02", "3.1.2024"], "time holds text ('2024-01-01', ...)"),
        ([1, "late", 3], "time holds text ('late', ...)"),
        ([1, 2], "time has shape (2,), expected one time for each of 3 rows"),
        ([[1], [2], [3]], "time has shape (3, 1), expected one time for each of 3"),
        ([1j, 2, 3], "time holds complex128: give numbers or dates"),
        ([{}, 2, 3], "time holds dict, int: give numbers or dates"),
        ("day", "time='day' names a column, and X is no table: give the times"),
    ],
)
def test_bad_times_have_sentences_and_change_nothing(time, sentence):
    learner = cm.ConditionalRidge(drift=0.9)
    with pytest.raises(DataError) as error:
        learner.fit(**SMALL, time=time)
    assert sentence in str(error.value)
    assert not learner.__sklearn_is_fitted__()
    learner.fit(**SMALL, time=[1, 2, 3])
    before = learner.fitted_
    for call in (learner.update, learner.adapt):
        with pytest.raises(DataError):
            call(**SMALL, time=time)
    with pytest.raises(DataError):
        learner.predict(SMALL["X"], task=SMALL["task"], time=time)
    assert learner.fitted_ is before


def test_calls_that_lack_a_time_or_have_one_too_many():
    model = cm.ConditionalRidge(drift=0.9).fit(**SMALL, time=[1, 2, 3])
    for call in (model.update, model.adapt):
        with pytest.raises(DataError, match="needs the time of these rows: give time="):
            call(**SMALL)
    one = model.adapt([[1.0]], [2.0], time=3)
    with pytest.raises(DataError, match="needs the time of these rows"):
        one.update([[1.0]], [2.0])
    plain = cm.ConditionalRidge().fit(**SMALL)
    assert plain.drift_ is None
    for call in (plain.update, plain.adapt):
        with pytest.raises(DataError, match="The model was fitted without time="):
            call(**SMALL, time=[1, 2, 3])
    with pytest.raises(DataError, match="The model was fitted without time="):
        plain.predict(SMALL["X"], task=SMALL["task"], time=3)
    with pytest.raises(DataError, match=r"drift=0.9 needs the time of each row: give time="):
        cm.ConditionalRidge(drift=0.9).fit(**SMALL)
    started = cm.ConditionalRidge().partial_fit(**SMALL, time=[1, 2, 3])
    with pytest.raises(DataError, match="needs the time of these rows"):
        started.partial_fit([[1.0]], [1.0], task=["c"])
    with pytest.raises(DataError, match="'when'"):
        cm.ConditionalRidge().fit(pd.DataFrame({"x": [1.0, 2, 3]}), [1.0, 2, 3], time="when")


@pytest.mark.parametrize(
    "drift", [0.0, 1.5, "often", ("ar",), ("walk", 0.9), ("ar", 0.9, 2.0), True]
)
def test_a_drift_that_is_none(drift):
    with pytest.raises(DataError, match="The 'drift' parameter of ConditionalRidge must be 'auto'"):
        cm.ConditionalRidge(drift=drift).fit(**SMALL, time=[1, 2, 3])


def test_what_cannot_forget_says_so():
    with pytest.raises(DataError, match=r"drift=\('ar', phi\) does not work with noise='per_task'"):
        PANEL.fit(drift=("ar", 0.9), noise="per_task")
    own = PANEL.fit(drift=0.9, noise="per_task")
    assert own.noise_ == "per_task"
    assert np.isfinite(own.fitted_.tasks.coef).all()
    with pytest.raises(DataError, match="Drift works with up to 64 columns"):
        cm.ConditionalRidge().fit(np.eye(70), np.arange(70.0), task=[0, 1] * 35, time=range(70))
    mean = cm.feature_maps.MeanInput()
    with pytest.raises(DataError, match="Drift does not work with a feature map of the task's own"):
        cm.ConditionalRidge(mean).fit(PANEL.X, PANEL.y, task=PANEL.task, time=PANEL.time)


def test_late_rows_are_taken_as_what_they_say_now():
    model = PANEL.fit(PANEL.time != 4, drift=0.8, **PLAIN)
    args, named = PANEL.rows(PANEL.time == 4)
    model.update(*args, **named)
    call = {"task": PANEL.task, "side_info": PANEL.side, "time": PANEL.time}
    whole = model.adapt(PANEL.X, PANEL.y, **call)
    at = model.fitted_.tasks.positions(list(whole))
    np.testing.assert_allclose(model.fitted_.tasks.coef[at], whole._coef, rtol=1e-9, atol=1e-11)
    moving = PANEL.fit(PANEL.time != 4, drift=("ar", 0.8), **PLAIN)
    before = moving.fitted_.tasks.state
    moving.update(*args, **named)
    after = moving.fitted_.tasks.state
    np.testing.assert_array_equal(after.clock, before.clock)
    assert (np.einsum("tii->t", after.gram) > np.einsum("tii->t", before.gram)).all()


@pytest.mark.parametrize(
    "params", [{"base": "boosting"}, {"random": "intercept"}, {"random": [0]}, {"scale": "rows"}]
)
def test_it_goes_with_other_parameters(params, tmp_path):
    model = PANEL.fit(PANEL.time < 9, drift=("ar", 0.8), **params)
    args, named = PANEL.rows(PANEL.time >= 9)
    model.update(*args, **named)
    given = {"task": PANEL.task, "side_info": PANEL.side, "time": PANEL.time}
    whole = model.adapt(PANEL.X, PANEL.y, **given)
    at, coef = model.fitted_.tasks.positions(list(whole)), model.fitted_.tasks.coef
    if "base" not in params:  # which gives training rows other residuals than new ones
        np.testing.assert_allclose(coef[at], whole._coef, rtol=1e-8, atol=1e-10)
    model.save(tmp_path / "m.condmeta")
    again, call = cm.load(tmp_path / "m.condmeta"), {"task": named["task"], "time": 15.0}
    for one, two in zip(*(m.predict(args[0], **call, return_std=True) for m in (model, again)),
                        strict=True):  # fmt: skip
        np.testing.assert_array_equal(one, two)


def test_threads_update_one_after_the_other():
    model = PANEL.fit(drift=("ar", 0.9), **PLAIN)
    before, (args, named) = model.fitted_.tasks.sizes.sum(), PANEL.rows(PANEL.time == 11)
    threads = [
        Thread(target=lambda k=k: model.update(*args, task=named["task"], time=12.0 + k))
        for k in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model.fitted_.tasks.sizes.sum() == before + 4 * T
    assert (model.fitted_.tasks.state.clock == 15).all()


def test_other_learners_do_not_read_times():
    tasks = cm.TaskSet.from_arrays(PANEL.X, PANEL.y, PANEL.task, time=PANEL.time)
    plain = cm.TaskSet.from_arrays(PANEL.X, PANEL.y, PANEL.task)
    for learner in (cm.IndependentRegressor(lam=1.0), cm.PooledRegressor(lam=1.0)):
        timed = learner.fit(tasks).update(tasks).predict(tasks)
        np.testing.assert_array_equal(timed, learner.fit(plain).update(plain).predict(plain))
    ids = [(t % 3, t) for t in PANEL.task.tolist()]
    with pytest.raises(
        DataError, match="ConditionalLevels does not forget old rows: leave time out"
    ):
        cm.ConditionalLevels().fit(PANEL.X, PANEL.y, task=ids, time=PANEL.time)


def test_routing_passes_times():
    call = {"task": PANEL.task, "time": PANEL.time}
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(
            cm.ConditionalRidge(drift=0.9, **PLAIN), PANEL.X, PANEL.y, params=call, cv=3
        )
    assert (found["test_score"] > 0.5).all()


def with_context(seed=0, n_tasks=80, n=8, walk=0.0):
    """Return tasks with levels that go with the means of their inputs, and may walk with time."""
    rng = np.random.default_rng(seed)
    task, time = np.repeat(np.arange(n_tasks), n), np.tile(np.arange(n, dtype=float), n_tasks)
    mean = 2 * rng.normal(size=n_tasks)
    X = (mean[task] + rng.normal(size=len(task)))[:, None]
    level = -2 * mean[task] + walk * rng.normal(size=(n_tasks, n)).cumsum(axis=1).ravel()
    return X, level + X[:, 0] + 0.5 * rng.normal(size=len(task)), task, time


def test_no_drift_leaves_what_never_forgets():
    """A fit with times that finds no drift is the fit without: it may read the context."""
    X, y, task, time = with_context()
    timed = cm.ConditionalRidge().fit(X, y, task=task, time=time)
    never = cm.ConditionalRidge(drift=None).fit(X, y, task=task, time=time)
    assert timed.drift_ is None
    assert timed.context_ is never.context_ is True
    np.testing.assert_array_equal(timed.predict(X, task=task), never.predict(X, task=task))
    assert len(timed.drift_choice_) > 3
    timed.update(X[:3], y[:3], task=task[:3], time=[9.0, 9.0, 9.0])


def test_drift_must_beat_a_model_with_context():
    X, y, task, time = with_context(walk=2.0)
    found = cm.ConditionalRidge().fit(X, y, task=task, time=time)
    assert found.drift_ is not None
    assert cm.ConditionalRidge(drift=None).fit(X, y, task=task, time=time).context_
