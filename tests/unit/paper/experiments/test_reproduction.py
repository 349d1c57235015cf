"""`reproduce`: the files it writes, the panels it reuses, the panels it skips."""

from __future__ import annotations

import json

import numpy as np
import pytest
from small_panels import hide_data, shrink_panels

from condmeta import __version__
from condmeta.errors import DataError
from condmeta.experiments import PANELS, Results
from condmeta.paper.experiments.readings import Readings
from condmeta.paper.experiments.reproduction import reproduce
from condmeta.paper.experiments.summary import Row, summarise

FIGURES = {f"{name}.{kind}" for name in ("figure-1", "authors") for kind in ("png", "svg", "pdf")}


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    monkeypatch.setenv("CONDMETA_ENGINE", "numpy")
    shrink_panels(monkeypatch)
    hide_data(monkeypatch, tmp_path)
    monkeypatch.setattr(
        "condmeta.paper.experiments.reproduction.FORMATS", ("svg",)
    )  # one saves time


def again(out, names=("one-cluster",), seeds=2, **options):
    """Run and return the outcome and the events."""
    events = []
    found = reproduce(names, seeds, out=out, jobs=1, progress=events.append, **options)
    return found, [event.kind for event in events if event.kind != "figures"]


def files(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


RAN = ["starts", "seed", "seed", "done"]


def test_tables_provenance_and_figures_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr("condmeta.paper.experiments.reproduction.FORMATS", ("png", "svg", "pdf"))
    found, events = again(tmp_path / "deep" / "out")
    assert events == RAN
    assert files(found.out) == {"one-cluster.csv", "one-cluster.json"} | FIGURES
    results, written = found.results["one-cluster"], found.out / "one-cluster.csv"
    read = Results.read_csv(written)
    for name, column in results.columns.items():
        np.testing.assert_array_equal(read.columns[name], column)
    provenance = json.loads((found.out / "one-cluster.json").read_text())
    assert provenance["condmeta"] == __version__
    assert (provenance["panel"], provenance["engine"], provenance["seeds"]) == (
        "one-cluster",
        "numpy",
        [0, 1],
    )
    assert provenance["options"] == Readings().options()
    assert provenance["grid"] == "2 x 2 on 1e-1..1e1"
    assert provenance["setting"]["sizes"] == [12, 6, 6]
    assert provenance["seconds"] >= 0
    assert {"instruction set", "python", "numpy", "jobs", "sha256"} <= set(provenance)


def test_a_finished_panel_is_reused(tmp_path, monkeypatch):
    first, _ = again(tmp_path)
    monkeypatch.setattr("condmeta.paper.experiments.reproduction.run", None)  # would fail if called
    second, events = again(tmp_path)
    assert events == ["reused"]
    assert second.reused == ("one-cluster",)
    name = "one-cluster"
    np.testing.assert_array_equal(
        second.results[name].columns["error"], first.results[name].columns["error"]
    )
    assert second.results[name].provenance["seconds"] == first.results[name].provenance["seconds"]


@pytest.mark.parametrize(
    "change",
    [
        {"force": True},
        {"seeds": [4, 7]},
        {"readings": Readings(averaging="linear")},
        {"inner": "batch"},
    ],
)
def test_other_options_run_anew(tmp_path, change):
    again(tmp_path)
    assert again(tmp_path, **change)[1] == RAN


@pytest.mark.parametrize("damage", ["table", "provenance", "version"])
def test_a_damaged_panel_runs_anew(tmp_path, damage):
    again(tmp_path)
    table, beside = tmp_path / "one-cluster.csv", tmp_path / "one-cluster.json"
    whole = table.read_bytes()
    if damage == "table":
        table.write_bytes(whole[:-100])
    elif damage == "provenance":
        beside.write_text(beside.read_text()[:-20])
    else:
        beside.write_text(beside.read_text().replace(__version__, "0.0.1"))
    assert again(tmp_path)[1] == RAN
    assert table.read_bytes() == whole


def test_an_interrupted_run_goes_on(tmp_path):
    names = ["one-cluster", "circle"]

    def stop(event):
        if event.panel == "circle" and event.kind == "seed":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(names, 2, out=tmp_path, jobs=1, progress=stop)
    assert files(tmp_path) == {"one-cluster.csv", "one-cluster.json"}
    found, events = again(tmp_path, names)
    assert events == ["reused", *RAN]
    assert list(found.results) == names


def test_nothing_is_left_of_a_write_that_fails(tmp_path, monkeypatch):
    def fail(self, path):
        path.write_text("half")
        raise OSError("No space left on device")

    monkeypatch.setattr(Results, "to_csv", fail)
    with pytest.raises(OSError, match="No space"):
        again(tmp_path)
    assert files(tmp_path) == set()


def test_a_table_of_the_user_is_not_replaced(tmp_path):
    table = tmp_path / "circle.csv"
    table.write_text("radius,angle\n1,2\n")
    with pytest.raises(
        DataError, match=r"circle\.csv' was not written by condmeta reproduce, which wo"
    ):
        reproduce(["circle"], seeds=1, out=tmp_path)
    assert table.read_text() == "radius,angle\n1,2\n"


def test_random_features_are_fixed_by_the_seed(tmp_path):
    errors = [
        again(tmp_path / name, ["circle"])[0].results["circle"].columns["error"] for name in "ab"
    ]
    np.testing.assert_array_equal(*errors)


def test_seeds_do_not_depend_on_jobs_or_company(tmp_path):
    one, _ = again(tmp_path / "a", seeds=[3])
    two = reproduce(["one-cluster"], [2, 3], out=tmp_path / "b", jobs=2)
    columns = two.results["one-cluster"].columns
    mine = columns["seed"] == 3
    np.testing.assert_array_equal(
        columns["error"][mine], one.results["one-cluster"].columns["error"]
    )


def test_all_skips_real_panels_that_are_not_at_hand(tmp_path, monkeypatch):
    for name in ("lenk", "schools"):
        monkeypatch.setitem(PANELS, name, PANELS[name]._replace(source=None))  # never called
    found, events = again(tmp_path, ["all"])
    assert events.count("skipped") == 2
    assert list(found.results) == [name for name in PANELS if not PANELS[name].is_real]
    remedy = "Set CONDMETA_DATA to the folder that holds lenk_data.mat, or download it: condmeta"
    assert f"{remedy} reproduce lenk" in found.skipped["lenk"]


def test_a_real_panel_that_is_named_says_why_it_fails(tmp_path, monkeypatch):
    def offline():
        raise ConnectionError("lenk_data.mat could not be downloaded")

    monkeypatch.setitem(PANELS, "lenk", PANELS["lenk"]._replace(source=offline))
    with pytest.raises(ConnectionError, match="could not be downloaded"):
        again(tmp_path, ["lenk"])


@pytest.mark.parametrize("where", ["variable", "cache"])
def test_real_panels_at_hand_are_run(tmp_path, monkeypatch, where):
    folder = tmp_path / "cache" / "condmeta" if where == "cache" else tmp_path / "data"
    folder.mkdir(parents=True)
    (folder / "lenk_data.mat").touch()
    if where == "variable":
        monkeypatch.setenv("CONDMETA_DATA", str(folder))
    circle = PANELS["circle"]
    monkeypatch.setitem(PANELS, "lenk", circle._replace(figure="2", is_real=True))
    monkeypatch.setattr(
        "condmeta.paper.experiments.readings.PAPER_SETTINGS", {}
    )  # the source of the panel counts
    found, _ = again(tmp_path / "out", ["all"])
    assert "lenk" in found.results
    assert list(found.skipped) == ["schools"]
    assert (tmp_path / "out" / "figure-2.svg").exists()


def test_wrong_requests(tmp_path):
    with pytest.raises(DataError, match="no experiment 'cirle'"):
        again(tmp_path, ["cirle"])
    with pytest.raises(DataError, match="at least one seed"):
        again(tmp_path, seeds=[])
    assert files(tmp_path) == set()


def test_names_run_in_the_order_of_the_paper(tmp_path):
    found, _ = again(tmp_path, ["circle", "one-cluster", "circle"])
    assert list(found.results) == ["one-cluster", "circle"]


def test_summary_sets_ours_beside_theirs(tmp_path):
    found, _ = again(tmp_path)
    row = summarise(found.results)[0]
    finals = found.results["one-cluster"].finals("ITL")
    assert (row.panel, row.method, row.authors_mean) == ("one-cluster", "ITL", 27.25)
    assert np.isclose(row.mean, finals.mean())
    assert np.isclose(row.standard_error, abs(finals[0] - finals[1]) / 2)
    assert np.isclose(row.difference, (finals.mean() - 27.25) / 27.25)
    alone = Row("x", "mine", 1.0, np.nan, np.nan, np.nan)
    assert alone.cells() == ("mine", "1.00", "-", "-")


@pytest.mark.filterwarnings("ignore")  # of the scheduler, in a thread of this process
def test_workers_give_the_same_tables(tmp_path):
    """The seeds of both panels run on two worker processes."""
    pytest.importorskip("distributed")
    from condmeta.tables.cluster.workers import cluster_of

    names = ("one-cluster", "circle")
    here, events = again(tmp_path / "here", names)
    with cluster_of(2, None) as client:
        found, kinds = again(tmp_path / "workers", names, client=client)
    assert kinds == events == [*RAN, *RAN]
    assert files(found.out) == files(here.out)
    for name in names:
        one, other = (out / f"{name}.csv" for out in (here.out, found.out))
        assert one.read_bytes() == other.read_bytes()
        one, other = (json.loads(path.with_suffix(".json").read_text()) for path in (one, other))
        differing = {key for key in one if one[key] != other[key]}
        assert differing <= {"jobs", "seconds"}
