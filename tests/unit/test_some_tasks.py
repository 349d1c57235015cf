"""`load(path, tasks=...)`: the answers of the whole model, from a part of its file."""

import datetime as dt
import re
from pathlib import Path

import numpy as np
import pytest

import condmeta as cm
from condmeta.errors import DataError, ModelFileError
from condmeta.persistence import container, members, read_card

OLD = sorted((Path(__file__).parents[1] / "data" / "models").glob("*.condmeta"))
T, N, D = 60, 8, 3
WANTED = [41, 3, 17]


@pytest.fixture
def small_pieces(monkeypatch):
    """Let arrays of a few hundred bytes have checksums of pieces."""
    for module in (members, container):
        monkeypatch.setattr(module, "PIECE", 256)
        monkeypatch.setattr(module, "LARGE", 512)


def draw(seed=0):
    rng = np.random.default_rng(seed)
    task, side = np.repeat(np.arange(T), N), rng.normal(size=(T, 2))
    X = rng.normal(size=(T * N, D))
    w = side @ rng.normal(size=(2, D)) + 0.3 * rng.normal(size=(T, D))
    return X, np.einsum("ij,ij->i", X, w[task]) + rng.normal(size=T * N), task, side


NAMES = {
    "int": lambda i: 1000 - i,
    "str": lambda i: f"säule {i}",
    "tuple": lambda i: ("north", i),
    "date": lambda i: dt.date(2020, 1, 1) + dt.timedelta(days=i),
    "mixed": lambda i: i if i % 2 else f"t{i}",
}
LEARNERS = {
    "ridge": cm.ConditionalRidge(),
    "sgd": cm.ConditionalSGDRegressor(),
    "coin": cm.ConditionalCoinRegressor(),
    "shared": cm.ConditionalRidge(random="intercept"),
    "independent": cm.IndependentRegressor(lam=1.0),
    "log": cm.ConditionalRidge(y_transform="yeo-johnson"),
    "boosting": cm.ConditionalRidge(base="boosting"),
}


def ids_of(kind: str, codes) -> np.ndarray:
    found = np.empty(len(codes), object)
    found[:] = [NAMES[kind](int(i)) for i in codes]
    return found


def saved(learner, path, kind="int", **options):
    X, y, task, side = draw()
    if kind == "tuple":
        ids = np.array([["north", str(i)] for i in range(T)], object)[task]
        model = learner.fit(X, y, task=ids)
    else:
        table = cm.TaskTable(side, ids=ids_of(kind, range(T)).tolist())
        model = learner.fit(X, y, task=ids_of(kind, task), side_info=table)
    model.save(path, **options)
    return model


@pytest.mark.parametrize("pieces", [False, True])
@pytest.mark.parametrize("kind", LEARNERS)
def test_answers_are_those_of_the_whole_model(kind, pieces, tmp_path, request):
    if pieces:
        request.getfixturevalue("small_pieces")
    path = tmp_path / "m.condmeta"
    whole = saved(LEARNERS[kind], path)
    assert read_card(path)["format_version"] == (3 if pieces else 2)
    X, y, task, side = draw()
    rows, ids = np.isin(task, WANTED), ids_of("int", WANTED).tolist()
    part = cm.load(path, tasks=ids)
    assert sorted(part.fitted_.tasks.ids.tolist()) == sorted(ids)
    named = {"task": ids_of("int", task)[rows]}
    np.testing.assert_array_equal(part.predict(X[rows], **named), whole.predict(X[rows], **named))
    if kind in ("ridge", "log", "shared"):
        for found, expected in zip(
            *(model.predict(X[rows], **named, return_std=True) for model in (part, whole)),
            strict=True,
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-13)
    other = part.predict(X[:2], task=["new"] * 2, side_info=cm.TaskTable(side[:1], ids=["new"]))
    expected = whole.predict(X[:2], task=["new"] * 2, side_info=cm.TaskTable(side[:1], ids=["new"]))
    np.testing.assert_array_equal(other, expected)
    updated = [m.update(X[rows], y[rows] + 1, **named) for m in (part, whole)]
    found, expected = (model.predict(X[rows], **named) for model in updated)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("kind", NAMES)
def test_any_kind_of_id(kind, tmp_path):
    path = tmp_path / "m.condmeta"
    whole = saved(cm.ConditionalRidge(), path, kind)
    X, _, task, _ = draw()
    rows = np.isin(task, WANTED)
    ids = [("north", str(i)) for i in WANTED] if kind == "tuple" else ids_of(kind, WANTED).tolist()
    part = cm.load(path, tasks=ids)
    assert set(part.fitted_.tasks.ids.tolist()) == set(ids)
    named = ids_of(kind, task)[rows]
    if kind == "tuple":
        named = np.array([["north", str(i)] for i in task[rows]], object)
    np.testing.assert_array_equal(
        part.predict(X[rows], task=named), whole.predict(X[rows], task=named)
    )


def test_ids_that_are_not_in_the_file(tmp_path):
    path = tmp_path / "m.condmeta"
    saved(cm.ConditionalRidge(), path)
    assert cm.load(path, tasks=["no", 3.5, 998.0]).fitted_.tasks.ids.tolist() == [998]
    assert len(cm.load(path, tasks=[-1]).fitted_.tasks) == 0


def test_nothing_is_learned_from_some_tasks(tmp_path):
    path = tmp_path / "m.condmeta"
    saved(cm.ConditionalRidge(), path)
    X, y, *_ = draw()
    part = cm.load(path, tasks=[1000, 999])
    side = cm.TaskTable([[0.0, 0.0]], ids=["new"])
    with pytest.raises(DataError, match="saved without the statistics that partial_fit needs"):
        part.partial_fit(X[:3], y[:3], task=["new"] * 3, side_info=side)


def test_many_columns(tmp_path):
    """The rows that are kept of many columns are not read."""
    rng = np.random.default_rng(0)
    X, y, task = rng.normal(size=(90, 70)), rng.normal(size=90), np.repeat(np.arange(9), 10)
    whole = cm.ConditionalRidge().fit(X, y, task=task)
    whole.save(tmp_path / "m.condmeta")
    part, rows = cm.load(tmp_path / "m.condmeta", tasks=[4, 5]), np.isin(task, [4, 5])
    np.testing.assert_array_equal(
        part.predict(X[rows], task=task[rows]), whole.predict(X[rows], task=task[rows])
    )


def find(path, array: np.ndarray) -> int:
    """Return where the bytes of an array begin in a file."""
    return path.read_bytes().index(np.ascontiguousarray(array).tobytes())


def damage(path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.usefixtures("small_pieces")
def test_what_is_read_is_checked_and_the_rest_is_not_read(tmp_path):
    """A file that is damaged in the row of task 50 answers task 3, and not task 50."""
    path = tmp_path / "m.condmeta"
    model = saved(cm.ConditionalRidge(), path)
    coef = model.fitted_.tasks.coef
    damage(path, find(path, coef) + 50 * coef.strides[0])
    X, _, task, _ = draw()
    ids = ids_of("int", task)
    found = cm.load(path, tasks=[997]).predict(X[task == 3], task=ids[task == 3])
    np.testing.assert_array_equal(found, model.predict(X[task == 3], task=ids[task == 3]))
    for options in ({"tasks": [950]}, {}):
        with pytest.raises(ModelFileError, match="the checksum of an array is wrong"):
            cm.load(path, **options)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("where", ["header", "zip", "ids"])
def test_damage_elsewhere_is_found(tmp_path, where):
    path = tmp_path / "m.condmeta"
    model = saved(cm.ConditionalRidge(), path)
    at = find(path, model.fitted_.tasks.coef)
    if where == "ids":
        at = find(path, model.fitted_.tasks.ids.astype(np.int64)) + 8 * 30
    damage(path, at - {"header": 20, "zip": 150, "ids": 0}[where])
    with pytest.raises(ModelFileError, match=r"is damaged"):
        cm.load(path, tasks=[997])


@pytest.mark.usefixtures("small_pieces")
def test_numbers_that_no_model_has_are_refused(tmp_path):
    """A forged file: its checksums are right, and a wanted row holds NaN."""
    path = tmp_path / "m.condmeta"
    saved(cm.ConditionalRidge(), path)
    card, model, arrays = container.read_container(path)
    coef = cm.load(path).fitted_.tasks.coef
    forged = next(a for a in arrays if a.shape == coef.shape and np.array_equal(a, coef))
    forged[50] = np.nan
    container.write_container(path, card, model, arrays)
    with pytest.raises(ModelFileError, match=re.escape("fitted.tasks.coef must be an array")):
        cm.load(path, tasks=[950, 997])
    assert len(cm.load(path, tasks=[997]).fitted_.tasks) == 1


@pytest.mark.usefixtures("small_pieces")
def test_arrays_of_other_numbers_of_rows_are_refused(tmp_path):
    """A forged file: more tasks than rows. Nothing larger than the array is allocated."""
    path = tmp_path / "m.condmeta"
    saved(cm.ConditionalRidge(), path)
    card, model, arrays = container.read_container(path)
    coef = cm.load(path).fitted_.tasks.coef
    at = next(i for i, a in enumerate(arrays) if a.shape == coef.shape and (a == coef).all())
    for forged in (coef[:30], coef.reshape(1, -1), np.zeros(0)):
        container.write_container(path, card, model, [*arrays[:at], forged, *arrays[at + 1 :]])
        with pytest.raises(ModelFileError, match=r"fitted\.tasks\.coef"):
            cm.load(path, tasks=[950, 997])


@pytest.mark.usefixtures("small_pieces")
def test_wrong_lists_of_checksums_are_refused(tmp_path):
    path = tmp_path / "m.condmeta"
    saved(cm.ConditionalRidge(), path)
    content = path.read_bytes()
    (length,) = re.search(rb"condmeta-model 3 \S+ (\d+) ", content).groups()
    begin = len(container.local_header(container.Member("meta.json", int(length), 0)))
    text = content[begin : begin + int(length)]
    cut = re.sub(rb'([0-9a-f]{64})[0-9a-f]{64}"\]', rb'\1"]', text)
    assert len(cut) < len(text)
    with pytest.raises(Exception, match="list of arrays makes no sense"):
        container._load_json(cut, len(content))


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_files_of_the_first_format(path):
    """They are small: all of their tasks are read."""
    if read_card(path)["class"] == "TableModel":
        pytest.skip("ids are asked of its learner")
    whole = cm.load(path)
    assert type(cm.load(path, tasks=[0])) is type(whole)


def test_tasks_in_groups(tmp_path):
    """They are predicted; what depends on the others of a group is refused with a sentence."""
    rng = np.random.default_rng(0)
    X, _, task, _ = draw()
    w = 2 * rng.normal(size=(4, D))[np.arange(T) % 4] + 0.5 * rng.normal(size=(T, D))
    y = np.einsum("ij,ij->i", X, w[task]) + 0.5 * rng.normal(size=len(X))
    ids = np.array([[f"r{i % 4}", f"s{i}"] for i in range(T)], object)[task]
    whole = cm.ConditionalLevels().fit(X, y, task=ids)
    assert whole.fitted_.groups is not None
    whole.save(tmp_path / "m.condmeta")
    part, rows = cm.load(tmp_path / "m.condmeta", tasks=[("r1", "s5")]), task == 5
    known = {"task": ids[rows]}
    np.testing.assert_array_equal(part.predict(X[rows], **known), whole.predict(X[rows], **known))
    with pytest.raises(DataError, match="need the statistics of the tasks"):
        part.predict(X[rows], **known, return_std=True)
    with pytest.raises(DataError, match="saved without the statistics that update needs"):
        part.update(X[rows], y[rows], **known)


def test_tables(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y, task, _ = draw()
    rows = pd.DataFrame(X, columns=["a", "b", "c"]).assign(store=[f"s{i}" for i in task], y=y)
    model = cm.TableModel(task="store", target="y").fit(rows)
    model.save(tmp_path / "m.condmeta")
    few = rows[rows["store"].isin(["s4", "s9"])]
    part = cm.load(tmp_path / "m.condmeta", tasks=["s9", "s4"])
    np.testing.assert_array_equal(part.predict(few), model.predict(few))


def test_reads_little_of_a_large_file(tmp_path, monkeypatch):
    """Of a file of megabytes, some pieces of 64 KiB."""
    read = []
    piece = members.StoredArray._piece

    def counted(self, i):
        found = piece(self, i)
        read.append(len(found))
        return found

    monkeypatch.setattr(members.StoredArray, "_piece", counted)
    count = 20_000
    rng = np.random.default_rng(0)
    X, y, task = rng.normal(size=(2 * count, 6)), rng.normal(size=2 * count), np.arange(2 * count)
    model = cm.ConditionalRidge(metric="diagonal", kappa=1.0, max_iter=5)
    model.fit(X, y, task=task // 2)
    path = tmp_path / "m.condmeta"
    model.save(path)
    assert path.stat().st_size > 5e6
    part = cm.load(path, tasks=[7, 19_000])
    rows = np.isin(task // 2, [7, 19_000])
    found = part.predict(X[rows], task=(task // 2)[rows])
    np.testing.assert_array_equal(found, model.predict(X[rows], task=(task // 2)[rows]))
    assert sum(read) < 1.5e6
