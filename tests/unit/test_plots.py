"""Figures: what is drawn, that styles are fixed, that files are the same bytes every time."""

from __future__ import annotations

import builtins
import re
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import condmeta as cm
from condmeta.display.plots.style import FIXED, LEARNERS, OTHERS, PAPER, styles_of
from condmeta.display.plots.task_map import principal
from condmeta.errors import DataError
from condmeta.evaluation.advantage import Advantage
from condmeta.evaluation.gains import Gain
from condmeta.evaluation.linear_gap import Interval
from condmeta.evaluation.report_words import LABELS
from condmeta.experiments import PANELS, Published, Results
from condmeta.feature_maps import CircleMap
from condmeta.plots import (
    AdvantageDisplay,
    CoverageDisplay,
    FinalErrorsDisplay,
    LearningCurveDisplay,
    MapDisplay,
    ShotCurveDisplay,
    ShrinkageDisplay,
    TaskMapDisplay,
    curves_figure,
    published_figure,
    save_figure,
)

METHODS = ("ITL", "unconditional", "mine")


def fake_results(methods=METHODS, seeds=3, T=20, seed=0) -> Results:
    """Return curves that fall from 4 to about 2, a little noise on each seed."""
    rng = np.random.default_rng(seed)
    rows = [
        (method, s, t, 1.0, 0.1, "test", 2 + 2 / t + 0.1 * rng.normal())
        for method in methods
        for s in range(seeds)
        for t in range(1, T + 1)
    ]
    columns = ("method", "seed", "T", "lam", "meta_step", "split", "error")
    return Results(dict(zip(columns, zip(*rows, strict=True), strict=True)))


def test_curves_show_mean_and_one_standard_deviation():
    results = fake_results()
    display = LearningCurveDisplay.from_results(results).plot()
    assert display.figure_ is display.ax_.figure
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == list(METHODS)
    curve = results.curve("mine")
    np.testing.assert_array_equal(display.lines_["mine"].get_xdata(), curve.T)
    np.testing.assert_array_equal(display.lines_["mine"].get_ydata(), curve.mean)
    band = display.ax_.collections[METHODS.index("mine")].get_paths()[0].vertices
    assert np.isclose(band[:, 1].max(), (curve.mean + curve.std).max())
    assert np.isclose(band[:, 1].min(), (curve.mean - curve.std).min())


def test_a_choice_of_methods_in_given_axes():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    display = fake_results().plot(ax, methods=["ITL"])
    assert display.ax_ is ax
    assert list(display.lines_) == ["ITL"]


def test_a_bad_start_does_not_flatten_the_rest():
    results = fake_results(T=40)
    results.columns["error"][results.columns["T"] == 1] = 1e6
    low, high = LearningCurveDisplay.from_results(results).plot().ax_.get_ylim()
    assert 0 <= low < 2
    assert high < 10


def test_one_seed_and_one_point():
    results = fake_results(seeds=1, T=1)
    assert LearningCurveDisplay.from_results(results).plot().ax_.get_xlim() == (0, 1)


def test_styles_are_fixed_by_name_and_distinct():
    for panel in PANELS.values():
        found = styles_of(panel.published)
        assert all(found[name] == PAPER[name] for name in found)
        for part in zip(*found.values(), strict=True):  # colours, lines, markers
            assert len(set(map(str, part))) == len(found)
    assert styles_of(["mine"]) == {"mine": styles_of(["ITL", "mine"])["mine"]}
    names = [f"method {i}" for i in range(len(OTHERS))]
    assert len(set(styles_of(names).values())) == len(OTHERS)
    many = ["ITL", "own data", "mean", "pooled", *(f"method {i}" for i in range(20))]
    assert len(set(styles_of(many).values())) == len(many)
    assert styles_of(["pooled"])["pooled"] == styles_of(["mean"])["mean"]
    assert len(styles_of(f"method {i}" for i in range(30))) == 30


def test_a_learner_of_the_library_looks_the_same_in_every_picture():
    assert set(LABELS) <= set(FIXED)
    together = styles_of(LABELS)
    assert all(styles_of([name])[name] == together[name] for name in LABELS)
    for part in zip(*together.values(), strict=True):
        assert len(set(map(str, part))) == len(LABELS)
    assert not {style.colour for style in LEARNERS.values()} & {style.colour for style in OTHERS}


def luminance(colour: str) -> float:
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_lines_of_the_paper_stand_out_from_the_page():
    assert max(luminance(style.colour) for style in FIXED.values()) <= 1.05 / 3 - 0.05  # WCAG


def test_coloured_lines_stand_out_from_a_dark_page_too():
    colours = {style.colour for style in FIXED.values()} - {"#000000", "#595959"}  # see render.py
    assert min(map(luminance, colours)) >= 3 * (luminance("#14171a") + 0.05) - 0.05


def test_final_errors_beside_the_published():
    display = FinalErrorsDisplay.from_results(fake_results(), {"ITL": Published(2.5, 0.2)}).plot()
    points = [bar.lines[0].get_xydata()[0] for bar in display.ax_.containers]
    assert len(points) == len(METHODS) + 1  # one method was published
    assert np.isclose(points[0][0], fake_results().finals("ITL").mean())
    assert points[1][0] == 2.5
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == list(METHODS)


@pytest.mark.parametrize(("count", "shape"), [(1, (1, 1)), (3, (2, 2)), (4, (2, 2))])
def test_figures_of_several_panels(count, shape):
    panels = {f"panel {i}": fake_results(seed=i) for i in range(count)}
    figure = curves_figure(panels)
    assert [ax.get_title() for ax in figure.axes] == list(panels)
    assert figure.axes[0].get_gridspec().get_geometry() == shape
    beside = published_figure({name: (found, {}) for name, found in panels.items()})
    assert len(beside.axes) == count


def test_files_are_the_same_bytes_every_time(tmp_path):
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for attempt in ("a", "b"):
        figure = curves_figure({"w_rho = 0": fake_results()})
        paths = save_figure(figure, tmp_path / attempt)
        assert [path.name for path in paths] == [f"{attempt}.{kind}" for kind in starts]
    for kind, start in starts.items():
        one, other = ((tmp_path / f"{name}.{kind}").read_bytes() for name in "ab")
        assert one.startswith(start)
        assert one == other


def test_pyplot_is_left_alone():
    import sys

    before = "matplotlib.pyplot" in sys.modules
    fake_results().plot()
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_without_matplotlib_the_remedy_is_named(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r'pip install "condmeta\[plot\]"'):
        fake_results().plot()


SHOTS = {
    "learner": ["own data"] * 3 + ["conditional"] * 3,
    "shot": [5, 0, 1, 0, 1, 5],
    "error": [2.0, 4.0, 3.0, 1.5, 1.25, 1.0],
    "se": [0.2, 0.4, 0.3, 0.1, 0.1, 0.1],
}


@pytest.mark.parametrize("make", ["dict", "pandas", "polars", "pyarrow"])
def test_shot_curves_of_a_tidy_table(make):
    frame = SHOTS
    if make != "dict":
        library = pytest.importorskip(make)
        frame = library.table(SHOTS) if make == "pyarrow" else library.DataFrame(SHOTS)
    display = ShotCurveDisplay.from_frame(frame).plot()
    assert display.figure_ is display.ax_.figure
    np.testing.assert_array_equal(display.lines_["own data"].get_xdata(), [0, 1, 5])
    np.testing.assert_array_equal(display.lines_["own data"].get_ydata(), [4.0, 3.0, 2.0])
    band = display.ax_.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx((1.8, 4.4))
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["0", "1", "5"]


def test_shot_curves_choose_learners_and_do_without_standard_errors():
    bare = {name: SHOTS[name] for name in ("learner", "shot", "error")}
    display = ShotCurveDisplay.from_frame(bare, ["conditional"], error_name="log loss").plot()
    assert list(display.lines_) == ["conditional"]
    assert display.ax_.get_ylabel() == "log loss"
    with pytest.raises(DataError, match="no learner 'mine'; it has"):
        ShotCurveDisplay.from_frame(bare, ["mine"])
    with pytest.raises(DataError, match="needs a table with the columns learner, shot and error"):
        ShotCurveDisplay.from_frame({"shot": [1]})


def test_one_bad_learner_does_not_flatten_the_shot_curves():
    table = {**SHOTS, "error": [2.0, 4000.0, 3.0, 1.5, 1.25, 1.0]}
    display = ShotCurveDisplay.from_frame(table).plot()
    top = display.ax_.get_ylim()[1]
    assert 3 < top < 20
    edge = [line for line in display.ax_.lines if line.get_marker() == "^"]
    assert [line.get_xydata().tolist() for line in edge] == [[[0.0, top]]]


def test_arrows_at_the_edge_are_explained():
    table = {**SHOTS, "error": [2.0, 4000.0, 3.0, 1.5, 1.25, 1.0]}
    display = ShotCurveDisplay.from_frame(table).plot()
    (name,) = {name for name, curve in display.curves.items() if curve.error.max() == 4000}
    assert display.ax_.get_xlabel().endswith(f"\n▲ above the chart: {name} 4e+03 at 0.")


def test_at_most_five_learners_are_drawn_and_the_others_are_named():
    names = [f"method {i}" for i in range(8)]
    errors = [8.0, 1.0, 2.0, 7.0, 3.0, 4.0, np.nan, 5.0]
    table = {
        "learner": np.repeat(names, 2), "shot": [0, 5] * 8, "error": np.repeat(errors, 2),
    }  # fmt: skip
    display = ShotCurveDisplay.from_frame(table).plot()
    assert list(display.lines_) == [names[i] for i in (1, 2, 4, 5, 7)]
    note = " ".join(display.ax_.get_xlabel().splitlines())
    assert "Not drawn: method 0, method 3, method 6. plot(most=None) draws all." in note
    everything = display.plot(most=None)
    assert list(everything.lines_) == names
    assert everything.ax_.get_xlabel() == "number of points of the task"


def test_at_most_five_methods_are_drawn_and_the_others_are_named():
    names = tuple(f"method {i}" for i in range(6))
    results = fake_results(methods=names)
    worst = max(names, key=lambda name: results.curve(name).mean[-1])
    display = LearningCurveDisplay.from_results(results).plot()
    assert list(display.lines_) == [name for name in names if name != worst]
    assert f"Not drawn: {worst}." in display.ax_.get_xlabel()
    assert list(results.plot(most=None).lines_) == list(names)
    assert list(results.plot(methods=names[:2], title="two").lines_) == list(names[:2])


def test_of_many_methods_five_have_own_colours_and_the_note_fits_the_figure():
    names = tuple(f"WIDE METHOD, SETTING NUMBER {i}" for i in range(20))
    results = fake_results(methods=names)
    displays = [LearningCurveDisplay.from_results(results).plot()]
    displays.append(
        ShotCurveDisplay.from_frame(
            {"learner": np.repeat(names, 2), "shot": [0, 5] * 20, "error": np.ones(40)}
        ).plot()
    )
    figures = [display.figure_ for display in displays] + [
        curves_figure({"one": results} | {"2": results})
    ]
    for figure in figures:
        figure.draw_without_rendering()
        for ax in figure.axes:
            box = ax.xaxis.label.get_window_extent()
            assert box.x0 >= 0
            assert box.x1 <= figure.bbox.x1
    for display in displays:
        assert len({line.get_color() for line in display.lines_.values()}) == 5


def test_baselines_are_drawn_beyond_five_methods():
    """Gains are judged by them, though their errors are the largest."""
    env, lam = cm.environments.Circle(d=2, n=6), {"lam": [1.0]}
    fast = {"meta_step": 0.1, "lam": 1.0}
    methods = {f"map {i}": cm.ConditionalSGDRegressor(CircleMap(), **fast) for i in range(5)}
    methods |= {
        "alone": cm.IndependentRegressor(), "one bias": cm.ConditionalSGDRegressor(None, **fast),
    }  # fmt: skip
    results = cm.experiments.run(env, methods, setting=((15, 4, 4),), seeds=1, grid=lam)
    assert results.baselines == ["alone", "one bias"]
    display = results.plot()
    assert {"alone", "one bias"} <= set(display.lines_)
    assert len(display.lines_) == 5
    note = " ".join(display.ax_.get_xlabel().splitlines())
    assert re.search(r"Not drawn: map \d, map \d\. plot\(most=None\) draws all\.", note)
    both = results + cm.experiments.run(env, {"more": methods["map 0"]}, setting=((15, 4, 4),),
                                        seeds=1, grid=lam)  # fmt: skip
    assert both.baselines == ["alone", "one bias"]


def test_baselines_of_the_paper_are_known_by_name(tmp_path):
    names = ("ITL", "mean", "unconditional", *(f"method {i}" for i in range(4)))
    fake_results(methods=names).to_csv(tmp_path / "results.csv")
    results = Results.read_csv(tmp_path / "results.csv")
    assert set(names[:3]) <= set(results.plot().lines_)


def test_many_numbers_of_points_are_labelled_as_far_as_there_is_room():
    shots = list(range(51))
    table = {"learner": ["a"] * 51, "shot": shots, "error": [1.0] * 51}
    figure = ShotCurveDisplay.from_frame(table).plot().figure_
    figure.draw_without_rendering()
    boxes = [tick.get_window_extent() for tick in figure.axes[0].get_xticklabels()]
    assert 5 < len(boxes) < 51
    assert all(one.x1 < two.x0 for one, two in pairwise(boxes))


def test_shot_curves_of_the_candidates_of_auto():
    tasks = cm.environments.Circle(d=2, n=6).sample(30, random_state=0)
    auto = cm.AutoRegressor(base=None, shots=(0, 2)).fit(tasks)
    display = ShotCurveDisplay.from_estimator(auto).plot()
    np.testing.assert_array_equal(display.lines_["pooled"].get_ydata(), auto.errors_[:, 1])
    assert display.describe().startswith("Mean absolute error on new tasks by number of points. 0")
    with pytest.raises(DataError, match="needs a fitted AutoRegressor"):
        ShotCurveDisplay.from_estimator(cm.PooledRegressor())


def made_advantage(n_columns=2, gains=()):
    whole = Interval(8.0, 6.0, 10.0)
    share = Interval(0.8, 0.6, 1.0)
    columns = {f"s{j}": (Interval(4.0 - j, 2, 5), Interval(1.0, 0, 2)) for j in range(n_columns)}
    coefficients = {"x0": (5.0, 1.0), "x1": (3.0, 1.0)}
    return Advantage(whole, share, whole, columns, coefficients, list(gains), 0.9, 50, 2, n_columns)


def test_advantage_shows_shares_of_columns_with_intervals():
    display = AdvantageDisplay.from_advantage(made_advantage()).plot()
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == ["all columns", "s0", "s1"]
    points = [bar.lines[0].get_xydata()[0][0] for bar in display.ax_.containers]
    assert points == pytest.approx([0.8, 0.4, 0.1, 0.3, 0.1])  # of a variance of 10
    assert display.describe() == (
        "Side information explains 80 % [60, 100] of the variance of task coefficients. "
        "Alone: s0 40 %, s1 30 %."
    )


def test_shares_stay_within_100_percent():
    wide = {"a": ((1.3, 0.2, 2.5), (0.1, -0.1, 1.4)), "b": ((0.5, 0.2, 0.9), (0.1, 0.0, 0.2))}
    display = AdvantageDisplay((1.2, 0.9, 1.5), wide).plot()
    assert display.ax_.get_xlim()[1] <= 1.05
    assert max(tick for tick in display.ax_.get_xticks() if tick <= 1.05) <= 1.0
    for bar in display.ax_.containers:
        assert bar.lines[0].get_xdata()[0] <= 1.0
        assert bar.lines[2][0].get_segments()[0][:, 0].max() <= 1.0
    assert "explains 100 % [90, 100]" in display.describe()
    assert "Alone: a 100 %, b 50 %." in display.describe()
    poor = {"a": ((-0.6, -1.6, 0.4), (-0.2, -0.9, -0.1))}
    display = AdvantageDisplay((0.1, -0.9, 0.5), poor).plot()
    for bar in display.ax_.containers:
        assert bar.lines[0].get_xdata()[0] >= 0.0
        assert bar.lines[2][0].get_segments()[0][:, 0].min() >= 0.0
    assert -0.1 < display.ax_.get_xlim()[0] < 0
    small = dict.fromkeys("ab", ((-0.001, -0.1, 0.1), (0.0, 0.0, 0.1)))
    said = AdvantageDisplay((0.1, -0.004, 0.2), small, [(0, -0.002, 0.1)]).describe()
    assert "10 % [0, 20]" in said
    assert "a 0 %, b 0 %" in said
    assert said.endswith("0 % at 0.")


def test_advantage_of_many_columns_names_what_is_left_out():
    display = AdvantageDisplay.from_advantage(made_advantage(15)).plot(most=10)
    assert len(display.ax_.get_yticks()) == 11
    assert "(5 more columns explain less)" in display.ax_.get_xlabel()


def test_gains_by_number_of_points():
    gains = [Gain(0, 50, 2.0, 1.0, 0.5, 0.1), Gain(5, 50, 1.0, 0.9, 0.1, 0.1)]
    display = AdvantageDisplay.from_advantage(made_advantage(gains=gains)).plot(of="gains")
    (bars,) = display.ax_.containers
    np.testing.assert_array_equal(bars.lines[0].get_ydata(), [0.5, 0.1])
    assert display.describe().endswith("by number of points: 50 % at 0, 10 % at 5.")
    with pytest.raises(DataError, match=r"must be 'columns' or 'gains'. Got 'rows'"):
        display.plot(of="rows")
    with pytest.raises(DataError, match="call advantage with shots="):
        AdvantageDisplay.from_advantage(made_advantage()).plot(of="gains")


def stores(T=12, n=8, seed=0) -> cm.TaskSet:
    """Draw tasks of two clusters, with a text, a number with gaps and a boolean known of each."""
    rng = np.random.default_rng(seed)
    south, size = rng.random(T) < 0.5, rng.normal(50, 10, size=T)
    w = np.where(south, -1.0, 4.0)[:, None] + [0.05, 0.0] * (size - 50)[:, None]
    w = w + 0.5 * rng.normal(size=(T, 2))
    X, ids = rng.normal(size=(T, n, 2)), [f"store {t}" for t in range(T)]
    y = np.einsum("tnd,td->tn", X, w) + rng.normal(size=(T, n))
    columns = {
        "region": np.where(south, "south", "north"),
        "size": np.where(np.arange(T) == 3, np.nan, size),
        "open": rng.random(T) < 0.5,
    }
    side = cm.TaskTable(columns, ids)
    return cm.TaskSet.from_arrays(X.reshape(-1, 2), y.ravel(), np.repeat(ids, n), side_info=side)


@pytest.fixture(scope="module")
def small():
    return cm.ConditionalRidge(metric="diagonal", noise="shared", kappa=1.0).fit(stores())


@pytest.fixture(scope="module")
def large():
    return cm.ConditionalRidge(metric="diagonal", noise="shared", kappa=1.0).fit(stores(400))


def test_shrinkage_of_few_tasks_names_each(small):
    display = ShrinkageDisplay.from_estimator(small, feature="x1").plot(title="one")
    frame = small.coef_frame()
    frame = frame[frame["feature"] == "x1"]
    order = np.argsort(-frame["prior"].to_numpy(), kind="stable")
    own, prior, adapted = (line.get_xdata() for line in display.ax_.lines)
    np.testing.assert_allclose(own, frame["own"].to_numpy()[order])
    np.testing.assert_allclose(prior, frame["prior"].to_numpy()[order])
    np.testing.assert_allclose(adapted, frame["adapted"].to_numpy()[order])
    names = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert names == [f"{frame['task'].iloc[t]} (8)" for t in order]
    assert display.describe().startswith("Coefficient of x1 of 12 tasks. Priors from -")


def test_shrinkage_of_many_tasks_shows_points(large):
    display = ShrinkageDisplay.from_estimator(large)
    assert display.feature in ("x0", "x1")  # the intercept does not depend on the side
    display.plot()
    points = display.ax_.lines[-1]
    np.testing.assert_array_equal(points.get_xdata(), display.prior)
    np.testing.assert_array_equal(points.get_ydata(), display.adapted)
    assert ShrinkageDisplay.from_estimator(large, -1).feature == "(intercept)"


def test_shrinkage_shows_the_coefficient_whose_priors_differ_most():
    """Not x2, which differs little between tasks, and only by the side column."""
    tasks, rng = stores(60, n=20), np.random.default_rng(1)
    size = np.nan_to_num(tasks.side.data["size"].astype(float), nan=50)
    own, more = 3 * rng.normal(size=(60, 2)).repeat(20, axis=0), rng.normal(size=1200)
    y = tasks.y + np.sum(own * tasks.X, axis=1) + 0.05 * (size - 50).repeat(20) * more
    tasks = tasks.with_rows(np.column_stack([tasks.X, more]), y)
    model = cm.ConditionalRidge(metric="diagonal", noise="shared", kappa=1.0).fit(tasks)
    assert ShrinkageDisplay.from_estimator(model).feature in ("x0", "x1")
    plain = cm.ConditionalRidge(None).fit(tasks)  # all priors are the same
    assert ShrinkageDisplay.from_estimator(plain).feature in ("x0", "x1")


@pytest.mark.parametrize("T", [12, 60])
def test_shrinkage_without_own_estimates(T):
    tasks = stores(T)
    labels = np.where(tasks.y > np.median(tasks.y), 1.0, -1.0)
    model = cm.ConditionalLogistic().fit(tasks.with_target(labels))
    display = ShrinkageDisplay.from_estimator(model).plot()
    assert np.isnan(display.own).all()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [
        "prior",
        "adapted",
    ]
    assert display.describe().endswith("No task has an own estimate.")


@pytest.mark.parametrize("T", [12, 60])
def test_shrinkage_where_some_tasks_have_an_own_estimate(T):
    rng = np.random.default_rng(0)
    prior, adapted = rng.normal(size=(2, T))
    own = np.where(np.arange(T) % 2, 1e6, np.nan)  # far off, or undetermined
    own[1] = 0.5 * (prior[1] + adapted[1])
    display = ShrinkageDisplay(np.arange(T), prior, own, adapted, np.full(T, 3)).plot()
    low, high = display.ax_.get_xlim() if T == 12 else display.ax_.get_ylim()
    assert low > -20
    assert high < 20  # a few own estimates do not set the limits
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["own estimate (least squares)", "prior", "adapted"]
    assert f"Tasks with an own estimate: {T // 2}; the median one moves" in display.describe()


def test_the_map_is_drawn_in_the_units_of_the_learner(small):
    display = MapDisplay.from_estimator(small).plot(title="map")
    np.testing.assert_array_equal(display.image_.get_array(), small.M_.T[:, :-1])
    np.testing.assert_array_equal(display.intercept_image_.get_array(), small.M_.T[:, -1:])
    rows = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert rows == ["region=north", "region=south", "size", "size=(missing)", "open"]
    assert len(display.ax_.texts) == small.M_.size
    assert "on 3 coefficients: x0 most by size=(missing)" in display.describe()
    assert len(MapDisplay.from_estimator(small).plot(most=2).ax_.get_yticks()) == 2


def test_a_large_intercept_does_not_pale_the_other_effects():
    effects = np.array([[1.0, -2.0, 900.0], [0.5, 0.0, 10.0]])
    display = MapDisplay(effects, ["a", "b"], ["x0", "x1", "(intercept)"]).plot()
    assert display.image_.get_clim() == (-2.0, 2.0)
    assert display.intercept_image_.get_clim() == (-900.0, 900.0)
    bars = {ax.get_ylabel() for ax in display.figure_.axes[1:]}
    assert bars == {"effect on the coefficient", "effect on the intercept"}
    assert MapDisplay(effects, ["a", "b"], ["x0", "x1", "x2"]).plot().intercept_image_ is None
    alone = MapDisplay(effects[:, :1], ["a", "b"], ["(intercept)"]).plot()
    assert alone.image_ is None
    assert alone.intercept_image_.get_clim() == (-1.0, 1.0)


def test_tasks_far_from_the_others_are_named():
    positions = np.random.default_rng(0).uniform(-1, 1, size=(40, 2))
    positions[7], positions[30] = (30.0, 0.0), (0.0, -60.0)
    ids = np.array([f"store {t}" for t in range(40)])
    display = TaskMapDisplay(positions, ("a", "b"), ids=ids).plot()
    assert [text.get_text() for text in display.ax_.texts] == ["store 30", "store 7"]
    assert display.describe() == "40 tasks by a and b. Far from the others: store 30, store 7."
    assert not TaskMapDisplay(positions[8:30], ("a", "b"), ids=ids).plot().ax_.texts
    assert not TaskMapDisplay(np.zeros((3, 2)), ("a", "b"), ids=ids).plot().ax_.texts


def test_tasks_by_their_coefficients(large):
    display = TaskMapDisplay.from_estimator(large).plot(title="tasks")
    assert display.column == "region"  # the largest effect on the priors
    assert set(display.values) == {"north", "south"}
    coef = np.column_stack([large.coef_frame(wide=True)[c] for c in ("x0", "x1", "(intercept)")])
    Z = (coef - coef.mean(axis=0)) / coef.std(axis=0)
    values, vectors = np.linalg.eigh(Z.T @ Z)
    expected = np.abs(Z @ vectors[:, ::-1][:, :2])
    np.testing.assert_allclose(np.abs(display.positions), expected, atol=1e-8)
    share = 100 * values[-1] / values.sum()
    assert display.labels[0].startswith(f"direction 1, {share:.0f} % (+x")
    counts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert counts == [f"{r} ({(display.values == r).sum()})" for r in ("north", "south")]


def test_a_direction_of_many_features_names_the_largest():
    """In a direction of 30 features no part need be large."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(50, 1)) + 0.1 * rng.normal(size=(50, 30))
    _, labels = principal(features, [f"x{j}" for j in range(30)])
    assert re.fullmatch(r"direction 1, \d+ % \(\+x\d+\)", labels[0])


def test_tasks_by_side_information_and_a_number(small):
    display = TaskMapDisplay.from_estimator(small, of="side", colour_by="size").plot()
    np.testing.assert_allclose(display.values, stores().side.data["size"])  # a gap is a gap
    assert display.figure_.axes[1].get_ylabel() == "size"
    opened = TaskMapDisplay.from_estimator(small, colour_by="open")
    assert opened.values.tolist() == [str(v) for v in stores().side.data["open"].tolist()]
    assert ", coloured by open." in opened.describe()


def test_many_levels_are_pooled_in_the_picture():
    levels = np.array([f"level {i % 12}" for i in range(60)])
    display = TaskMapDisplay(np.random.default_rng(0).normal(size=(60, 2)), ("a", "b"), levels, "c")
    told = [text.get_text() for text in display.plot().ax_.get_legend().get_texts()]
    assert told[-1] == "others (30)"
    assert len(told) == 7


def test_one_coefficient_is_drawn_against_the_number_of_points():
    X = np.arange(1.0, 7.0)[:, None]
    model = cm.ConditionalSGDRegressor().fit(X, 2 * X[:, 0], task=[0, 0, 1, 1, 1, 2])
    display = TaskMapDisplay.from_estimator(model).plot()
    assert display.labels == ("x0", "number of points")
    assert display.positions[:, 1].tolist() == [2, 3, 1]
    assert (display.values, display.column) == (None, None)


@pytest.mark.parametrize("calibrated", [False, True])
def test_coverage_is_counted_task_by_task(calibrated):
    tasks = cm.environments.Circle(d=2, n=8).sample(70, random_state=0)
    train, fresh = tasks.split_tasks((40, 30), random_state=0)
    model = cm.ConditionalRidge(metric="diagonal", noise="shared", kappa=1.0)
    model = cm.calibrate(model, train, shots=(0,)) if calibrated else model.fit(train)
    display = CoverageDisplay.from_estimator(model, fresh).plot(title="intervals")
    assert display.nominal.max() == (0.95 if calibrated else 0.98)  # 40 tasks reach 40 / 41
    at = display.nominal.tolist().index(0.9)
    if calibrated:
        low, high = model.predict_interval(fresh, coverage=0.9)
    else:
        mean, std = model.predict(fresh, return_std=True)
        low, high = mean - 1.6448536 * std, mean + 1.6448536 * std
    share = ((low <= fresh.y) & (fresh.y <= high)).reshape(30, 8).mean(axis=1)
    assert display.observed[at] == pytest.approx(share.mean())
    assert display.error[at] == pytest.approx(share.std(ddof=1) / np.sqrt(30))
    assert "% for 90 %" in display.describe()


def test_sentences_of_displays_without_what_they_draw(small):
    kernel = cm.KernelConditionalSGDRegressor().fit(stores())
    with pytest.raises(DataError, match=r"with a linear map, as ConditionalRidge\. Got Kernel"):
        MapDisplay.from_estimator(kernel)
    with pytest.raises(DataError, match="map has no side features"):
        MapDisplay.from_estimator(cm.ConditionalRidge(None).fit(stores()))
    bare = cm.ConditionalSGDRegressor(keep_tasks=False).fit(stores())
    for display in (ShrinkageDisplay, TaskMapDisplay):
        with pytest.raises(DataError, match="needs the models of tasks: fit with keep_tasks=True"):
            display.from_estimator(bare)
    with pytest.raises(DataError, match="no coefficient 'x9'; there are x0, x1,"):
        ShrinkageDisplay.from_estimator(small, "x9")
    with pytest.raises(DataError, match="no side column 'height'; the model has 'region', 'size'"):
        TaskMapDisplay.from_estimator(small, colour_by="height")
    with pytest.raises(DataError, match=r"must be 'coefficients' or 'side'. Got 'Phi'"):
        TaskMapDisplay.from_estimator(small, of="Phi")
    with pytest.raises(DataError, match=r"has no intervals: make it with calibrate"):
        CoverageDisplay.from_estimator(kernel, stores())
    classes = cm.ConditionalSGDClassifier().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(
        DataError, match=r"Intervals are for numbers\. To check probabilities, use sklearn"
    ):
        CoverageDisplay.from_estimator(classes, stores())


@pytest.mark.filterwarnings("ignore::condmeta.errors.ReadingNote")
def test_models_of_tables_are_drawn():
    rng = np.random.default_rng(0)
    shop = np.repeat([f"s{t:02d}" for t in range(30)], 8)
    frame = pd.DataFrame({"shop": shop, "kind": np.resize(["a", "b", "c"], 240)})
    frame["day"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 99, 240), "D")
    frame["sold"] = rng.normal(size=30).repeat(8) + (frame["kind"] == "a") + rng.normal(size=240)
    old, new = frame[frame["shop"] < "s20"], frame[frame["shop"] >= "s20"]
    roles = {"task": "shop", "target": "sold", "intervals": True}
    model = cm.TableModel(cm.AutoRegressor(base=None, shots=(0, 2)), **roles).fit(old)
    assert ShotCurveDisplay.from_estimator(model).plot().lines_.keys() >= {"pooled"}
    rows = new[new["kind"] != "b"]  # read as in fit: the same levels, and days since its first day
    display = CoverageDisplay.from_estimator(model, rows).plot()
    inside = rows.assign(**model.predict_frame(rows, coverage=0.8)).eval("lower <= sold <= upper")
    expected = inside.groupby(rows["shop"]).mean().mean()
    assert display.n_tasks == 10
    np.testing.assert_allclose(display.observed[display.nominal == 0.8], expected)
    formula = cm.from_formula("sold ~ kind + (1 | shop)", old, intervals=True)
    with pytest.raises(DataError, match="FormulaModel reads tables itself: compare the ends of"):
        CoverageDisplay.from_estimator(formula, new)


def every_display(small, large) -> list:
    """Return one display of each kind, with what `plot` needs, of names that are hard to draw."""
    name = "a <b>very</b> long $name_of^ a thing & its_owner$"
    results = fake_results(methods=("ITL", "mean", "unconditional", "conditional", name))
    shots = {**SHOTS, "learner": ["own data"] * 3 + [name] * 3}
    gains = [(0, 0.5, 0.1), (5, 0.1, 0.1)]
    shares = {f"{name} {j}": ((0.4, 0.2, 0.6), (0.1, -0.1, 0.2)) for j in range(15)}
    effects = np.random.default_rng(0).normal(size=(40, 3))
    levels = np.array([name, "x"])[np.arange(60) % 2]
    ids = np.array([f"{t} {name}" for t in range(60)], dtype=object)
    places, own = np.random.default_rng(1).normal(size=(2, 60)).cumsum(axis=1)
    places = np.column_stack([places, own])
    places[-3:] = [[60, 60], [60, 60.1], [60, 59.9]]
    return [
        (AdvantageDisplay((0.8, 0.6, 1.0), shares, gains), {}),
        (AdvantageDisplay((0.8, 0.6, 1.0), shares, gains), {"of": "gains"}),
        (CoverageDisplay(np.array([0.5, 0.9]), np.array([0.4, 0.9]), np.array([0.1, 0.1]), 3), {}),
        (FinalErrorsDisplay.from_results(results, {"ITL": Published(2.5, 0.2)}), {}),
        (LearningCurveDisplay.from_results(results), {}),
        (MapDisplay(effects, [f"{name} {j}" for j in range(40)], [name, "b", "(intercept)"]), {}),
        (ShotCurveDisplay.from_frame(shots), {}),
        (ShrinkageDisplay(ids[:12], *np.ones((3, 12)).cumsum(axis=0), np.arange(12), name), {}),
        (ShrinkageDisplay.from_estimator(large), {}),
        (TaskMapDisplay(places, ("price", "direction 2, 9 % (+$a$)"), levels, name, ids), {}),
        (TaskMapDisplay.from_estimator(small, colour_by="size"), {}),
    ]


def test_greys_are_inverted_on_a_dark_page_and_colours_stay(small, large):
    from matplotlib import style
    from matplotlib.colors import to_rgb

    styles = styles_of(["ITL", "mean", "conditional"])
    with style.context("dark_background"):
        display = LearningCurveDisplay.from_results(fake_results(methods=list(styles))).plot()
        for one, options in every_display(small, large):
            ax = one.plot(**options).ax_
            for line in (*ax.lines, *ax.get_xgridlines()):
                assert luminance(hex_of(line.get_color())) > 0.01, one  # black has 0
            texts = [t for t in ax.texts if not isinstance(one, MapDisplay)]  # written on cells
            assert all(min(to_rgb(text.get_color())) > 0.5 for text in texts), one
    colours = {name: line.get_color() for name, line in display.lines_.items()}
    assert colours == {"ITL": "#a6a6a6", "mean": "#ffffff", "conditional": "#d55e00"}


def hex_of(colour) -> str:
    from matplotlib.colors import to_hex

    return to_hex(colour)


@pytest.mark.parametrize("size", [None, (3.4, 3.0), (10.0, 3.2)])
def test_long_names_stay_inside_figures_of_every_width(small, large, size):
    """Legends lie inside the figure and above the axes, and no name lies over another."""
    from matplotlib.figure import Figure

    for display, options in every_display(small, large):
        ax = None if size is None else Figure(figsize=size, layout="constrained").subplots()
        figure = display.plot(ax, title="A title", **options).figure_
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # "axes sizes collapsed to zero"
            figure.draw_without_rendering()
        box, whole = figure.get_tightbbox(), figure.bbox_inches
        assert min(box.x0, box.y0) >= -0.1, display
        assert box.x1 <= whole.x1 + 0.1, display
        assert box.y1 <= whole.y1 + 0.1, display
        legend = display.ax_.get_legend()
        if legend is not None:
            assert legend.get_window_extent().y0 >= display.ax_.get_window_extent().y1, display
        names = [text.get_window_extent() for text in display.ax_.get_yticklabels()]
        rows = sorted((name.y0, name.y1) for name in names if name.width)
        assert all(above[0] >= below[1] - 3 for below, above in pairwise(rows)), display
        if isinstance(display, TaskMapDisplay):
            named = [text.get_window_extent() for text in display.ax_.texts]
            pairs = ((a, b) for i, a in enumerate(named) for b in named[:i])
            assert not any(a.overlaps(b) for a, b in pairs)


def test_a_dollar_in_a_name_starts_no_formula():
    display = ShotCurveDisplay.from_frame({**SHOTS, "learner": ["$a_1$"] * 3 + ["b"] * 3}).plot()
    (text, _) = display.ax_.get_legend().get_texts()
    assert text.get_text() == r"\$a_1\$"  # matplotlib draws $a_1$


def test_numbers_of_tasks_are_whole():
    ticks = fake_results(T=20).plot().ax_.get_xticks()
    np.testing.assert_array_equal(ticks, np.round(ticks))


def test_tiny_gains_look_tiny():
    gains = [(0, -0.0005, 0.0002), (1, 0.0003, 0.0001)]
    ax = AdvantageDisplay((0.1, 0.0, 0.2), {}, gains).plot(of="gains").ax_
    ax.figure.draw_without_rendering()
    labels = [tick.get_text() for tick in ax.get_yticklabels()]
    assert len(set(labels)) == len(labels)
    assert "-0 %" not in labels


def test_shares_that_are_not_known_leave_an_empty_row():
    unknown = (np.nan,) * 3
    display = AdvantageDisplay(unknown, {"a": (unknown, unknown)}).plot()
    assert display.ax_.get_xlim()[1] < 0.3
    assert "nan %" in display.describe()


def test_displays_of_results_describe_themselves():
    results = fake_results(methods=("ITL",), seeds=1, T=2)
    last = results.curve("ITL").mean[-1]
    said = LearningCurveDisplay.from_results(results).describe()
    assert said.endswith(f"After 2 tasks: ITL {last:.4g}.")
    said = FinalErrorsDisplay.from_results(results, {"ITL": Published(2.5, 0.2)}).describe()
    assert said == f"Final test errors. Here: ITL {last:.4g}. Authors: ITL 2.5."


def test_nothing_is_cut_off_or_written_over(small, large):
    """Labels, titles and legends lie inside the figure; legend and title do not touch."""
    displays = [
        ShrinkageDisplay.from_estimator(small), ShrinkageDisplay.from_estimator(large),
        MapDisplay.from_estimator(small), TaskMapDisplay.from_estimator(large),
        AdvantageDisplay.from_advantage(made_advantage(4)), ShotCurveDisplay.from_frame(SHOTS),
    ]  # fmt: skip
    for display in displays:
        figure = display.plot(title="A title").figure_
        figure.draw_without_rendering()
        box, whole = figure.get_tightbbox(), figure.bbox_inches
        assert box.x0 >= -0.02
        assert box.y0 >= -0.02
        assert box.x1 <= whole.x1 + 0.02
        assert box.y1 <= whole.y1 + 0.02
        legend = display.ax_.get_legend()
        if legend is not None:
            title = display.ax_.title.get_window_extent()
            assert not title.overlaps(legend.get_window_extent())
