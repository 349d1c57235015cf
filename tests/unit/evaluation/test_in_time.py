"""`compare` and `calibrate` with times: later rows are predicted from earlier ones."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import condmeta as cm
from condmeta.cli.app import app
from condmeta.errors import DataError
from condmeta.tasks.splits.in_time import in_time_order, known_tasks_ahead, steps_ahead

SEARCH = {"metric": "full", "noise": "shared", "kappa": 1.0, "context": False}


def panel(phi, n_tasks=60, n_times=24, seed=0, noise=0.3):
    """Return shuffled rows of tasks whose weights follow an AR(1); with phi = 1 they stay."""
    rng = np.random.default_rng(seed)
    w, rows = rng.normal(size=(n_tasks, 2)), []
    for time in range(n_times):
        x = rng.normal(size=n_tasks)
        y = w[:, 0] * x + w[:, 1] + noise * rng.normal(size=n_tasks)
        rows.append(pd.DataFrame({"task": np.arange(n_tasks), "time": time, "x": x, "y": y}))
        w = phi * w + np.sqrt(1 - phi**2) * rng.normal(size=w.shape)
    return pd.concat(rows, ignore_index=True).sample(frac=1, random_state=seed)


def test_steps_are_the_rows_before_and_then():
    frame = pd.DataFrame({
        "task": ["a", "b", "a", "b", "a", "a"], "time": [3, 5, 1, 5, 3, 2], "x": range(6),
        "y": np.arange(6.0),
    })  # fmt: skip
    tasks = cm.TaskSet.from_frame(frame, task="task", target="y", time="time")
    assert in_time_order(tasks).time.tolist() == [1, 2, 3, 3, 5, 5]
    found = [
        {i: (b.y.tolist(), t.y.tolist()) for i, b, t in zip(then.ids, before, then, strict=True)}
        for before, then in steps_ahead(tasks)
    ]
    assert found == [
        {"a": ([], [2.0]), "b": ([], [1.0, 3.0])},
        {"a": ([2.0], [5.0])},
        {"a": ([2.0, 5.0], [0.0, 4.0])},
    ]
    # 70 % of the four times are the start; b has no row in it and is not known.
    (step,) = known_tasks_ahead(tasks.subset([0]))
    assert (step.before.y.tolist(), step.then.y.tolist()) == ([2.0, 5.0], [0.0, 4.0])
    assert step.then.ids.tolist() == ["a"]


def test_long_tasks_are_predicted_at_some_times_only():
    n = 500
    tasks = cm.TaskSet.from_arrays(np.ones((n, 1)), np.arange(n), ["a"] * n, time=np.arange(n))
    sizes = [before.sizes[0] for before, _ in steps_ahead(tasks)]
    assert sizes[:10] == list(range(10))
    assert sizes[-1] == n - 1
    assert len(sizes) <= 35
    assert len(list(known_tasks_ahead(tasks))) == 30
    one = cm.TaskSet.from_arrays(np.ones((3, 1)), np.arange(3), ["a"] * 3, time=1.0)
    assert not list(known_tasks_ahead(one))


@pytest.mark.parametrize(("phi", "best"), [(0.9, "forgets"), (1.0, "never forgets")])
def test_the_right_learner_wins(phi, best):
    rows = panel(phi)
    found = cm.compare(rows[["x", "time"]], rows["y"], task=rows["task"], time="time", shots=(0, 5))
    assert found.order == "first"
    errors = {row["learner"]: row["error"] for row in found.ahead_rows}
    if phi < 1:
        assert errors["forgets"] < 0.9 * errors["never forgets"]
    else:
        assert errors["forgets"] == pytest.approx(errors["never forgets"])
    assert found.advised == best
    assert "one step ahead" in repr(found)
    assert "one step ahead" in found._repr_html_()
    assert "next rows of a known" in found.to_html()


def test_known_tasks_are_those_of_fit_and_update():
    rows = panel(0.9, n_tasks=30).sort_values("time")
    ridge = cm.ConditionalRidge(drift=("ar", 0.9), **SEARCH)
    learners = {"ar": ridge, "pooled": cm.PooledRegressor()}
    call = {"task": rows["task"], "time": rows["time"]}
    found = cm.compare(rows[["x"]], rows["y"], **call, learners=learners, shots=(0, 3))
    start = np.unique(rows["time"])[int(0.7 * 24)]
    by_hand, early = {}, rows[rows["time"] < start]
    for name, learner in learners.items():
        timed = name == "ar"
        given = {"time": early["time"]} if timed else {}
        learner.fit(early[["x"]], early["y"], task=early["task"], **given)
        errors = []
        for time in range(start, 24):
            now = rows[rows["time"] == time]
            given = {"task": now["task"]} | ({"time": now["time"]} if timed else {})
            errors.append(np.abs(learner.predict(now[["x"]], **given) - now["y"]))
            if timed:
                learner.update(now[["x"]], now["y"], **given)
        by_hand[name] = np.concatenate(errors).mean()
    errors = {row["learner"]: row["error"] for row in found.ahead_rows}
    assert errors == pytest.approx(by_hand, rel=1e-8)
    assert found.ahead_rows[0]["n_rows"] == 30 * (24 - start)
    assert found.trials[1].answers.shape == (30 * 21, 2)  # all but the first three rows in time
    assert set(rows["time"].to_numpy()[found.trials[1].row]) == set(range(3, 24))


def test_densities_can_be_compared_in_time():
    rows = panel(0.8)
    learners = {"never": cm.ConditionalRidge(drift=None), "ar": cm.ConditionalRidge()}
    found = cm.compare(
        rows[["x"]], rows["y"], task=rows["task"], time=rows["time"], learners=learners,
        shots=(0, 5), criterion="log density",
    )  # fmt: skip
    errors = {row["learner"]: row["error"] for row in found.ahead_rows}
    assert errors["ar"] < errors["never"] - 0.1


def test_intervals_cover_later_rows():
    rows = panel(0.9, n_tasks=100, n_times=30, seed=3)
    early, later = rows[rows["time"] < 18], rows[rows["time"] >= 18]
    fit = {"task": early["task"], "time": early["time"]}
    learner = cm.calibrate(cm.ConditionalRidge(), early[["x"]], early["y"], **fit)
    assert learner.drift_ is not None
    assert learner.n_tasks_calibrated_ == dict.fromkeys((0, 1, 2, 5, 10), 100)
    inside = []
    for time in range(18, 30):
        now = later[later["time"] == time]
        call = {"task": now["task"], "time": now["time"]}
        low, high = learner.predict_interval(now[["x"]], **call, coverage=0.9)
        inside.append((low <= now["y"]) & (now["y"] <= high))
        learner.update(now[["x"]], now["y"], **call)
    assert 0.87 < np.mean(inside) < 0.93
    # New tasks, each row from those before it; the tasks were not among those of the fit.
    fresh = panel(0.9, n_tasks=100, n_times=12, seed=4)
    inside = {}
    for m in (0, 1, 5):
        shown, now = fresh[fresh["time"] < m], fresh[fresh["time"] == m]
        call = {"task": now["task"], "time": now["time"]}
        if m:
            seen = {"task": shown["task"], "time": shown["time"]}
            models = learner.adapt(shown[["x"]], shown["y"], **seen)
        else:
            models, call["task"] = learner, now["task"] + 1000
        low, high = models.predict_interval(now[["x"]], **call)
        inside[m] = np.mean((low <= now["y"]) & (now["y"] <= high))
    assert all(0.83 <= share <= 0.97 for share in inside.values()), inside


def test_intervals_that_ignore_time_do_not_cover():
    """Random points of a task that moves are easier than its next one."""
    rows = panel(0.97, n_tasks=100, n_times=30, seed=5, noise=0.1)
    early, now = rows[rows["time"] < 29], rows[rows["time"] == 29]
    one, two = (
        cm.calibrate(
            cm.ConditionalRidge(drift=None), early[["x"]], early["y"], task=early["task"], **when
        ).predict_interval(now[["x"]], task=now["task"])
        for when in ({}, {"time": early["time"]})
    )
    assert np.mean(two[1] - two[0]) > 1.05 * np.mean(one[1] - one[0])


def test_files_and_tables_keep_timed_intervals(tmp_path):
    rows = panel(0.9, n_tasks=40).assign(task=lambda r: "t" + r["task"].astype(str))
    early, now = rows[rows["time"] < 20], rows[rows["time"] == 20]
    model = cm.TableModel(task="task", target="y", time="time", intervals=True).fit(early)
    found = model.predict_frame(now, coverage=0.9)
    y = now["y"].to_numpy()
    assert ((found["lower"] < y) & (y < found["upper"])).mean() > 0.8
    model.save(tmp_path / "m.condmeta")
    again = cm.load(tmp_path / "m.condmeta").predict_frame(now, coverage=0.9)
    pd.testing.assert_frame_equal(found, again)


def test_classes_and_fixed_drifts_have_sentences():
    rows = panel(0.9, n_tasks=30)
    call = {"task": rows["task"], "time": rows["time"]}
    with pytest.raises(DataError, match="classifiers do not forget old rows"):
        cm.compare(rows[["x"]], rows["y"] > 0, **call)
    with pytest.raises(DataError, match=r"needs the time of each row: give time="):
        cm.calibrate(cm.ConditionalRidge(drift=0.9), rows[["x"]], rows["y"], task=rows["task"])
    with pytest.raises(DataError, match="no table: give the times"):
        cm.compare(rows[["x"]].to_numpy(), rows["y"], task=rows["task"], time="time")
    tasks = cm.TaskSet.from_frame(rows, task="task", target="y", time="time")
    with pytest.raises(DataError, match="weights and times: pass it alone"):
        cm.calibrate(cm.ConditionalRidge(), tasks, time=rows["time"])


def test_the_command_compares_in_time(tmp_path):
    rows = panel(0.8, n_tasks=30)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    words = ["compare", str(tmp_path / "rows.csv"), "--task", "task", "--target", "y"]
    words += ["--time", "time", "--shots", "0,3", "-o", str(tmp_path / "page.html")]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.output
    assert "for the next rows of a known task: old rows count less" in found.output
    assert "--learner ridge --task task --target y --time time -o" in found.output
    assert "next rows of a known" in (tmp_path / "page.html").read_text(encoding="utf-8")
    found = CliRunner().invoke(app, [*words, "--force", "--json", "--quiet"])
    assert '"known_tasks_ahead"' in found.output
