"""Standard deviations and transformed labels in SQL, in DuckDB, SQLite and PostgreSQL."""

import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import condmeta as cm
from condmeta.errors import DataError
from condmeta.fitted.dialects import find_dialect
from condmeta.fitted.sql import coefficient_columns
from condmeta.fitted.sql_averaged import ordered_columns, two_class_columns
from condmeta.fitted.sql_labels import probability_of
from condmeta.inner.averaged import averaged_logistic
from condmeta.inner.likelihoods import Ordered

duckdb = pytest.importorskip("duckdb")
OUT = ["prediction", "prediction_std"]


class Data:
    """Sales of 50 stores, the last ten of which are new, and facts about all but the last."""

    def __init__(self):
        rng = np.random.default_rng(0)
        task = np.repeat(np.arange(50), 6)
        self.side = pd.DataFrame({"store": [f"s{i}" for i in range(50)]})
        self.side["size m2"] = rng.normal(50, 9, 50)
        self.side["city"] = np.array(["Bonn", "O'Hara", None])[np.arange(50) % 3]
        self.side.loc[[3, 45], "size m2"] = np.nan
        rows = pd.DataFrame({"store": self.side["store"].to_numpy()[task]})
        rows["year"], rows["price"] = 2000.0 + rng.integers(0, 20, 300), rng.uniform(1, 2, 300)
        level = self.side["size m2"].fillna(50).to_numpy()[task] / 100
        rows["sold"] = np.exp(level * rows["price"] + rng.normal(0, 0.3, 300))
        self.old, self.all = rows[task < 40], rows.assign(position=np.arange(300))
        self.side = self.side[:-1]

    def fit(self, **options):
        side = self.side.set_index("store")[:40]
        learner, X = (
            cm.ConditionalRidge(missing_side="mean", **options),
            self.old[["year", "price"]],
        )
        return learner.fit(X, self.old["sold"], task=self.old["store"], side_info=side)

    def expected(self, model) -> np.ndarray:
        X, side = self.all[["year", "price"]], self.side.set_index("store")
        return np.column_stack(
            model.predict(X, task=self.all["store"], side_info=side, return_std=True)
        )


@pytest.fixture(scope="module")
def data():
    return Data()


def in_duckdb(query, tables) -> pd.DataFrame:
    con = duckdb.connect()
    for name, table in tables.items():
        con.register(name, table)
    return con.sql(query).df()


def in_sqlite(query, tables) -> pd.DataFrame:
    con = sqlite3.connect(":memory:")
    for name, table in tables.items():
        table.to_sql(name, con, index=False)
    return pd.read_sql(query, con)


class Postgres:
    """A server of its own, in a folder, that listens on a socket in that folder."""

    def __init__(self, folder: Path):
        self.folder, self.user = folder, {}
        if os.getuid() == 0:  # the server refuses to run as root
            account = pwd.getpwnam("postgres")
            os.chown(folder, account.pw_uid, account.pw_gid)
            self.user = {"user": account.pw_uid, "group": account.pw_gid}
        self.run(find_program("initdb"), "-D", f"{folder}/data", "-A", "trust", "-U", "me")
        self.control("start", "-w", "-l", f"{folder}/log", "-o", f"-k {folder} -h ''")

    def run(self, *command, **options) -> str:
        how = {"check": True, "capture_output": True, "text": True, "cwd": self.folder}
        return subprocess.run(command, **how, **self.user, **options).stdout

    def control(self, *words) -> None:
        how = {"check": True, "stdout": subprocess.DEVNULL, "cwd": self.folder} | self.user
        subprocess.run([find_program("pg_ctl"), "-D", f"{self.folder}/data", *words], **how)

    def __call__(self, query, tables) -> pd.DataFrame:
        script = ""
        for name, table in tables.items():
            kinds = {"object": "text", "str": "text", "int64": "bigint"}
            columns = ", ".join(
                f'"{column}" {kinds.get(str(kind), "double precision")}'
                for column, kind in table.dtypes.items()
            )
            script += f'DROP TABLE IF EXISTS "{name}"; CREATE TABLE "{name}" ({columns});\n'
            script += f'COPY "{name}" FROM STDIN (FORMAT csv);\n'
            script += table.to_csv(index=False, header=False) + "\\.\n"
        script += f"COPY ({query}) TO STDOUT (FORMAT csv, HEADER);\n"
        psql = find_program("psql"), "-qX", "-v", "ON_ERROR_STOP=1", "-h", str(self.folder)
        out = self.run(*psql, "-U", "me", "-d", "postgres", input=script)
        path = self.folder / "out.csv"
        path.write_text(out)
        return pd.read_csv(path)


def find_program(name: str) -> str | None:
    """Return a program of PostgreSQL; Debian keeps those of the server outside of the path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return shutil.which(name, path=os.pathsep.join([*map(str, folders), os.environ["PATH"]]))


@pytest.fixture(scope="module")
def postgres():
    if not all(map(find_program, ("initdb", "pg_ctl", "psql"))):
        pytest.skip("PostgreSQL is not installed")
    with tempfile.TemporaryDirectory() as folder:  # short: the path of a socket is limited
        server = Postgres(Path(folder))
        yield server
        server.control("stop", "-m", "immediate")


OPTIONS = {
    "plain": {},
    "own noise": {"noise": "per_task"},
    "noise by side": {"noise": "by_side"},
    "full": {"metric": "full"},
    "no intercept": {"fit_intercept": False},
    "context": {"context": True},
    "log": {"y_transform": "log"},
    "power": {"y_transform": "yeo-johnson"},
    "mean of a log": {"y_transform": "log", "criterion": "squared"},
    "mean of a power": {"y_transform": "yeo-johnson", "criterion": "squared"},
    "splines": {"x_transform": "splines", "y_transform": None},
    "both": {"x_transform": "splines", "y_transform": "yeo-johnson"},
}


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres"])
def test_as_predict(data, kind, dialect, request):
    """Known and new tasks, gaps, a task without side row: to 1e-12 of predict."""
    model = data.fit(**OPTIONS[kind])
    tables = {
        "rows": data.all, "side": data.side,
        "coefficients": pd.DataFrame(coefficient_columns(model.fitted_, std=True)),
    }  # fmt: skip
    engines = {"duckdb": in_duckdb, "sqlite": in_sqlite}
    run = engines.get(dialect) or request.getfixturevalue("postgres")
    found = run(model.to_sql(dialect, std=True), tables).sort_values("position")
    expected = data.expected(model)
    np.testing.assert_allclose(found[OUT], expected, rtol=1e-12)
    plain = run(model.to_sql(dialect), tables).sort_values("position")
    np.testing.assert_allclose(plain["prediction"], expected[:, 0], rtol=1e-12)


@pytest.mark.parametrize("spread", [0.0, 0.7])
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_powers_on_both_sides_of_zero(data, power, spread):
    old = data.old.assign(sold=data.old["sold"] - 2)
    model = cm.ConditionalRidge(y_transform="yeo-johnson")
    model.fit(old[["price"]], old["sold"], task=old["store"])
    target = model.fitted_.target._replace(power=power, low=-3.0, high=3.0, spread=spread)
    model._model = model.fitted_._replace(predictor=model.fitted_.predictor._replace(target=target))
    rows = old.assign(price=old["price"] * np.linspace(-90, 90, len(old)))
    coefficients = pd.DataFrame(coefficient_columns(model.fitted_, std=True))
    rows["position"] = np.arange(len(rows))
    tables = {"rows": rows, "coefficients": coefficients}
    found = in_duckdb(model.to_sql(std=True), tables).sort_values("position")
    expected = model.predict(rows[["price"]], task=rows["store"], return_std=True)
    np.testing.assert_allclose(found[OUT], np.column_stack(expected), rtol=1e-12, atol=1e-12)
    assert found["prediction"].min() < 0 < found["prediction"].max()


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_splines_far_from_the_rows_and_gaps(data, dialect):
    """Beyond the last knots splines are lines; a gap is NULL, or filled as in predict."""
    model = data.fit(x_transform="splines")
    rows = data.all.assign(year=np.linspace(1900, 2100, 300), price=np.linspace(-9, 9, 300))
    tables = {
        "rows": rows, "side": data.side,
        "coefficients": pd.DataFrame(coefficient_columns(model.fitted_)),
    }  # fmt: skip
    run = {"duckdb": in_duckdb, "sqlite": in_sqlite}[dialect]
    found = run(model.to_sql(dialect), tables).sort_values("position")
    X, side = rows[["year", "price"]], data.side.set_index("store")
    expected = model.predict(X, task=rows["store"], side_info=side)
    np.testing.assert_allclose(found["prediction"], expected, rtol=1e-12, atol=1e-12)
    tables["rows"] = rows.assign(price=rows["price"].where(rows.index != 7))
    gap = run(model.to_sql(dialect), tables).sort_values("position")["prediction"].isna()
    assert np.flatnonzero(gap).tolist() == [7]
    table = cm.TableModel(
        cm.ConditionalRidge(x_transform="splines", y_transform=None), task="store", target="sold",
        missing="impute", missing_side="mean",
    )  # fmt: skip
    gaps = np.arange(len(data.old)) % 9 == 0
    table.fit(data.old.assign(price=data.old["price"].where(~gaps)), data.side)
    tables["coefficients"] = pd.DataFrame(coefficient_columns(table.learner_.fitted_))
    found = run(table.to_sql(dialect), tables).sort_values("position")
    with pytest.warns(UserWarning, match="far outside the training range"):
        expected = table.predict(tables["rows"], data.side)
    np.testing.assert_allclose(found["prediction"], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres"])
def test_ordered_classes(data, dialect, request):
    """Known and new tasks, a task without side row, far scores: class and probabilities."""
    y = np.array(["low", "it's ok", "good", "best"])[np.digitize(data.old["sold"], [1.5, 2, 3])]
    learner = cm.ConditionalOrdinal(
        classes=["low", "it's ok", "good", "best"], missing_side="mean", kappa=1.0
    )
    X, side = ["year", "price"], data.side.set_index("store")
    model = learner.fit(data.old[X], y, task=data.old["store"], side_info=side[:40])
    far = np.where(np.arange(300) % 10 == 0, 40.0, 0.0)
    rows = data.all.assign(price=data.all["price"] + far)
    coefficients = pd.DataFrame(coefficient_columns(model.fitted_))
    tables = {"rows": rows, "side": data.side, "coefficients": coefficients}
    engines = {"duckdb": in_duckdb, "sqlite": in_sqlite}
    run = engines.get(dialect) or request.getfixturevalue("postgres")
    found = run(model.to_sql(dialect), tables).sort_values("position")
    given = {"task": rows["store"], "side_info": side}
    names = [f"probability {label}" for label in model.classes_]
    wanted = model.predict_proba(rows[X], **given)
    np.testing.assert_allclose(found[names], wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found["prediction"], model.predict(rows[X], **given))
    assert len(set(found["prediction"])) == 4
    assert wanted.min() < 1e-6


def test_tails_of_ordered_classes():
    """The sums in SQL have the digits of those in Python, whatever the score and its variance."""
    score, variance = np.meshgrid(np.linspace(-800, 800, 401), [0.0, 1e-3, 1.0, 50.0, 1e4])
    score = np.append(score.ravel(), np.linspace(-9, 9, 401))
    variance = np.append(variance.ravel(), np.full(401, 0.3))
    cuts = np.array([0.0, 0.7, 2.5])
    tails, chances, best = ordered_columns([1, 2, 3, 4], cuts, "q.f", "q.v", find_dialect("duckdb"))
    table = {"q": pd.DataFrame({"f": score, "v": variance})}
    for columns in (tails, chances, best):
        shown = ", ".join(f'{expression} AS "{name}"' for name, expression in columns.items())
        table = {"q": in_duckdb(f"SELECT q.*, {shown} FROM q", table)}
    wanted = Ordered(np.diff(cuts)).probabilities(score, variance)
    found = table["q"][[f"probability {k}" for k in (1, 2, 3, 4)]].to_numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-290)
    np.testing.assert_array_equal(table["q"]["prediction"], 1 + np.argmax(wanted, axis=1))


CLASSES = {"text": ["it's", "no"], "flag": [False, True], "number": [0, 7]}


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres"])
@pytest.mark.parametrize("labels", CLASSES)
def test_two_classes(data, labels, dialect, request):
    """Known and new tasks, gaps: the class, and its probability with or without a posterior."""
    y = np.array(CLASSES[labels])[(data.old["sold"] > data.old["sold"].median()).astype(int)]
    X, rows = ["year", "price"], data.all[data.all["store"] != "s49"]
    engines = {"duckdb": in_duckdb, "sqlite": in_sqlite}
    run = engines.get(dialect) or request.getfixturevalue("postgres")
    known = {"side_info": data.side.set_index("store")}
    for learner in (cm.ConditionalLogistic(), cm.ConditionalSGDClassifier(loss="logistic")):
        model = learner.fit(data.old[X], y, task=data.old["store"], **known)
        coefficients = pd.DataFrame(coefficient_columns(model.fitted_))
        tables = {"rows": rows, "side": data.side, "coefficients": coefficients}
        found = run(model.to_sql(dialect), tables).sort_values("position")
        classes = found["prediction"].to_numpy()
        if labels == "flag":
            classes = np.array([c in (1, "t") for c in classes.tolist()])  # as engines write it
        np.testing.assert_array_equal(classes, model.predict(rows[X], task=rows["store"], **known))
        chances = model.predict_proba(rows[X], task=rows["store"], **known)[:, 1]
        np.testing.assert_allclose(found["probability"], chances, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("random", ["all", "intercept"])
@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres"])
def test_probabilities_of_any_task(data, dialect, random, request):
    """Few tasks leave the map open; tasks without side row, far rows and gaps."""
    old = data.old[data.old["store"].isin([f"s{i}" for i in range(12)])]
    X, side = ["year", "price"], data.side.set_index("store")
    model = cm.ConditionalLogistic(missing_side="mean", kappa=1.0, random=random)
    model.fit(old[X], old["sold"] > 2, task=old["store"], side_info=side[:12])
    far = np.where(np.arange(300) % 10 == 0, 40.0, 0.0)
    rows = data.all.assign(price=data.all["price"] + far)
    coefficients = pd.DataFrame(coefficient_columns(model.fitted_))
    gap = rows["position"] == 7
    tables = {
        "rows": rows.assign(price=rows["price"].where(~gap)), "side": data.side,
        "coefficients": coefficients,
    }  # fmt: skip
    engines = {"duckdb": in_duckdb, "sqlite": in_sqlite}
    run = engines.get(dialect) or request.getfixturevalue("postgres")
    found = run(model.to_sql(dialect), tables).sort_values("position")["probability"].to_numpy()
    wanted = model.predict_proba(rows[X], task=rows["store"], side_info=side)[:, 1]
    np.testing.assert_allclose(found[~gap], wanted[~gap], rtol=1e-12)
    assert np.isnan(found[gap]).all()


def test_averaged_probabilities_of_extreme_scores():
    """The sums in SQL have the digits of those in Python, whatever the score and its variance."""
    score, variance = np.meshgrid(np.linspace(-800, 800, 401), [0.0, 1e-3, 1.0, 50.0, 1e4])
    q = pd.DataFrame({"f": score.ravel(), "v": variance.ravel()})
    labels = np.array(["no", "yes"])
    for columns in two_class_columns(labels, "q.f", "q.v", find_dialect("duckdb")):
        shown = ", ".join(f'{expression} AS "{name}"' for name, expression in columns.items())
        q = in_duckdb(f"SELECT q.*, {shown} FROM q", {"q": q})
    wanted = averaged_logistic(score.ravel(), variance.ravel())
    np.testing.assert_allclose(q["probability"], wanted, rtol=1e-11, atol=1e-290)
    np.testing.assert_array_equal(q["prediction"], labels[(q["f"] > 0).astype(int)])


def test_probabilities_of_extreme_scores():
    scores = np.array([-1e4, -701.0, -5.0, 0.0, 5.0, 701.0, 1e4])
    query = f"SELECT {probability_of('score')} AS p FROM t"
    found = in_duckdb(query, {"t": pd.DataFrame({"score": scores})})["p"]
    np.testing.assert_allclose(found, np.exp(-np.logaddexp(0, -scores)), rtol=1e-12, atol=1e-300)


def test_without_an_answer_there_is_no_std(data):
    """NULL for a task without side row, and where a feature is missing."""
    X, side = data.old[["price"]], data.side.set_index("store")[["size m2"]]
    model = cm.ConditionalRidge().fit(X, data.old["sold"], task=data.old["store"], side_info=side)
    rows = data.all.assign(price=data.all["price"].where(data.all["position"] != 5))
    coefficients = pd.DataFrame(coefficient_columns(model.fitted_, std=True))
    tables = {"rows": rows, "coefficients": coefficients, "side": data.side}
    found = in_duckdb(model.to_sql(std=True), tables).sort_values("position")
    lacking = (rows["store"] == "s49").to_numpy() | (np.arange(300) == 5)
    np.testing.assert_array_equal(found[OUT].isna().to_numpy(), lacking[:, None].repeat(2, 1))


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_tables_of_classes_and_of_means(data, dialect):
    """Levels, gaps and unseen tasks of a table; means end at the bounds of intervals."""
    kinds = np.array(["shop", "kiosk", None])
    old = data.old.assign(kind=kinds[np.arange(len(data.old)) % 3])
    rows = data.all.assign(kind=kinds[np.arange(300) % 3])
    rows.loc[5, "price"] = np.nan
    options = {"task": "store", "missing": "impute", "missing_side": "mean"}
    classes = cm.TableModel(cm.ConditionalLogistic(), target="much", **options)
    much = np.where(old["sold"] > 2, "it's much", "little")
    classes.fit(old.drop(columns="sold").assign(much=much), data.side)
    how = {"y_transform": "log", "x_transform": None, "criterion": "squared"}
    means = cm.TableModel(cm.ConditionalRidge(**how), target="sold", intervals=True, **options)
    means.fit(old, data.side)
    order = ["low", "mid", "high"]
    grades = cm.TableModel(cm.ConditionalOrdinal(classes=order), target="grade", **options)
    grade = np.array(order)[np.digitize(old["sold"], [1.5, 2.5])]
    grades.fit(old.drop(columns="sold").assign(grade=grade), data.side)
    run = {"duckdb": in_duckdb, "sqlite": in_sqlite}[dialect]
    for model in (classes, means, grades):
        coefficients = pd.DataFrame(coefficient_columns(model.learner_.fitted_))
        tables = {"rows": rows, "side": data.side, "coefficients": coefficients}
        found = run(model.to_sql(dialect), tables).sort_values("position")
        wanted = model.predict_frame(rows, data.side)
        wanted.columns = [name.replace(" of ", " ") for name in wanted]
        for name in wanted.columns[wanted.columns.str.startswith("pr")]:
            if wanted[name].dtype.kind == "f":
                np.testing.assert_allclose(found[name], wanted[name], rtol=1e-12)
            else:
                np.testing.assert_array_equal(found[name], wanted[name])


def test_a_table_and_the_command(data, tmp_path):
    from click.testing import CliRunner

    from condmeta.cli.app import app

    model = cm.TableModel(task="store", target="sold", missing="impute")
    model.fit(data.old, side_info=data.side)
    model.save(tmp_path / "m.condmeta")
    path = [str(tmp_path / name) for name in ("m.condmeta", "out")]
    done = CliRunner().invoke(app, ["export", *path, "--std"])
    assert done.exit_code == 0, done.output
    tables = {"rows": data.all, "side": data.side}
    tables["coefficients"] = pd.read_parquet(tmp_path / "out" / "coefficients.parquet")
    found = in_duckdb((tmp_path / "out" / "score.sql").read_text(), tables).sort_values("position")
    shown = found[found["store"] != "s49"]
    expected = model.predict(shown[data.old.columns], side_info=data.side)
    np.testing.assert_allclose(shown["prediction"], expected, rtol=1e-12)
    known, learner = shown["store"].isin(data.old["store"]), model.learner_
    X, task = shown.loc[known, ["year", "price"]], shown.loc[known, "store"]
    _, std = learner.predict(X, task=task, return_std=True)
    np.testing.assert_allclose(shown.loc[known, "prediction_std"], std, rtol=1e-12)


def test_sentences(data, tmp_path):
    X, y, task = data.old[["price"]], data.old["sold"], data.old["store"]
    other = cm.ConditionalSGDRegressor().fit(X, y, task=task)
    with pytest.raises(DataError, match=r"in SQL are for ConditionalRidge without drift\."):
        other.to_sql(std=True)
    data.fit().save(tmp_path / "m.condmeta", resume=False)
    with pytest.raises(DataError, match=r"saved without\. Save it with resume=True\."):
        cm.export(cm.load(tmp_path / "m.condmeta"), tmp_path, std=True)
