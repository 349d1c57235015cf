"""Data sets: where a file is found, how it is downloaded and checked, what is read from it."""

import hashlib
import http.server
import os
import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from condmeta.datasets import files, load_lenk, load_schools
from condmeta.datasets.files import ByteBar
from condmeta.errors import DataError

REAL = os.environ.get("CONDMETA_DATA")
LENK, SCHOOLS = "lenk_data.mat", "schoolData.mat"


def real_data(test):
    """Mark a test that reads the published files from the folder named by CONDMETA_DATA."""
    absent = pytest.mark.skipif(not REAL, reason="CONDMETA_DATA names no folder of data files")
    return pytest.mark.real_data(absent(test))


# --- small files of the same form ---


def lenk_table(n, seed):
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1, 1], size=(180 * n, 13))
    ratings = rng.integers(0, 11, size=(180 * n, 1))
    return np.hstack([np.ones((180 * n, 1)), signs, ratings]).astype(np.int16)


def cells(arrays):
    out = np.empty((1, len(arrays)), dtype=object)
    out[0, :] = arrays
    return out


SIZES = (3, 5, 2)
PUPILS = [np.random.default_rng(n).integers(-1, 9, size=(26, n)).astype(np.int16) for n in SIZES]
MARKS = [np.arange(n, dtype=np.uint8)[:, None] + n for n in SIZES]


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Return a folder with two small files, which count as the published ones."""
    folder = tmp_path / "made"
    folder.mkdir()
    savemat(folder / LENK, {"Traindata": lenk_table(3, 0), "Testdata": lenk_table(2, 1)})
    savemat(folder / SCHOOLS, {"X": cells(PUPILS), "Y": cells(MARKS)})
    sums = {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in folder.iterdir()}
    monkeypatch.setattr(files, "CHECKSUMS", sums)
    monkeypatch.delenv("CONDMETA_DATA", raising=False)
    return folder


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Put the user's cache into a folder that is not there yet."""
    folder = tmp_path / "user" / "cache"
    monkeypatch.setattr(files, "_cache_folder", lambda pooch: folder)
    return folder


class Server(http.server.ThreadingHTTPServer):
    """Serve a folder on this machine; `mood` is how it fails, `asked` lists the requests."""

    daemon_threads = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.mood, self.asked = folder, "well", []


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        content = (self.server.folder / Path(self.path).name).read_bytes()
        if self.server.mood == "absent":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.server.mood == "corrupt":
            content = content[:-1] + bytes([content[-1] ^ 1])
        elif self.server.mood == "interrupt":
            content = content[: len(content) // 2]
        self.wfile.write(content)
        self.close_connection = True

    def log_message(self, *args):
        pass


@pytest.fixture
def server(made, cache, monkeypatch):
    """Start a server of the made files and download from it instead."""
    server = Server(made)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}/data/"
    monkeypatch.setattr(files, "FOLDERS", (address,))
    for proxy in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(proxy, "127.0.0.1")
    server.address = address
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def listing(folder):
    return sorted(f.name for f in folder.iterdir()) if folder.is_dir() else []


# --- download ---


def test_download_on_first_use_then_from_the_cache(server, made, cache, capfd):
    people = load_lenk()
    assert listing(cache) == [LENK]
    assert (cache / LENK).read_bytes() == (made / LENK).read_bytes()
    np.testing.assert_array_equal(people.X, load_lenk(made).X)
    assert load_schools().sizes.tolist() == list(SIZES)
    assert listing(cache) == [LENK, SCHOOLS]
    assert server.asked == [f"/data/{LENK}", f"/data/{SCHOOLS}"]
    assert capfd.readouterr() == ("", "")  # not at a terminal: no bar


def test_cache_needs_no_network(server, monkeypatch):
    load_lenk()
    monkeypatch.setattr(files, "FOLDERS", ())
    assert len(load_lenk()) == 180
    assert len(server.asked) == 1


def test_corrupted_download(server, cache):
    server.mood = "corrupt"
    with pytest.raises(ConnectionError, match="the downloaded file is not the published one"):
        load_lenk()
    assert listing(cache) == []
    server.mood = "well"
    assert len(load_lenk()) == 180
    assert listing(cache) == [LENK]


def test_interrupted_download(server, cache):
    server.mood = "interrupt"
    with pytest.raises(ConnectionError, match=rf"{LENK} could not be downloaded to"):
        load_lenk()
    assert listing(cache) == []
    server.mood = "well"
    assert len(load_lenk()) == 180


def test_damaged_file_in_the_cache_is_downloaded_anew(server, cache):
    cache.mkdir(parents=True)
    (cache / LENK).write_bytes(b"half a file")
    assert len(load_lenk()) == 180
    assert server.asked == [f"/data/{LENK}"]
    server.mood = "corrupt"
    (cache / LENK).write_bytes(b"half a file")
    with pytest.raises(ConnectionError):
        load_lenk()


def test_second_address_is_tried(server, monkeypatch):
    monkeypatch.setattr(files, "FOLDERS", ("http://127.0.0.1:9/data/", server.address))
    assert len(load_lenk()) == 180


@pytest.mark.parametrize("mood", ["offline", "absent"])
def test_error_says_what_was_tried_and_what_to_do(server, cache, monkeypatch, mood):
    server.mood = mood
    address = server.address if mood == "absent" else "http://127.0.0.1:9/data/"
    monkeypatch.setattr(files, "FOLDERS", (address,))
    with pytest.raises(ConnectionError) as error:
        load_schools()
    reason = "answer 404" if mood == "absent" else "ConnectionError"
    assert str(error.value) == (
        f"schoolData.mat could not be downloaded to {cache}. Tried {address}schoolData.mat "
        f"({reason}). Check the network; or give the file with path=, or name its folder in the "
        "environment variable CONDMETA_DATA."
    )
    assert listing(cache) == []


def test_missing_extra_is_named_only_when_it_is_needed(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert len(load_lenk(made)) == 180
    monkeypatch.setenv("CONDMETA_DATA", str(made))
    assert len(load_lenk()) == 180
    monkeypatch.delenv("CONDMETA_DATA")
    with pytest.raises(ImportError, match=re.escape('pip install "condmeta[data]"')):
        load_lenk()


def test_bar_at_a_terminal(server, monkeypatch, capfd):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    load_lenk()
    drawn = capfd.readouterr().err
    assert drawn.startswith("\rlenk_data.mat  [")
    assert drawn.endswith("MB\n")
    server.mood = "interrupt"
    with pytest.raises(ConnectionError):
        load_schools()
    drawn = capfd.readouterr().err
    assert drawn == "" or drawn.endswith("\n")


def test_bar_without_a_total(capsys):
    bar = ByteBar("a.mat")
    bar.update(2_500_000)
    bar.close()
    bar.close()
    assert capsys.readouterr().err == "\ra.mat    2.5 MB\n"


def test_addresses_are_raw_files_over_https():
    assert all(re.fullmatch(r"https://[\w./-]+/data/", address) for address in files.FOLDERS)


# --- local files ---


def test_path_is_a_file_or_its_folder(made):
    for path in (made, str(made), made / LENK, str(made / LENK)):
        assert len(load_lenk(path)) == 180
    renamed = (made / LENK).rename(made / "survey.mat")
    assert len(load_lenk(renamed)) == 180


def test_path_comes_before_the_folder_of_the_variable(made, tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / LENK).write_bytes(b"no")
    monkeypatch.setenv("CONDMETA_DATA", str(tmp_path / "other"))
    assert len(load_lenk(made)) == 180
    with pytest.raises(DataError, match="is not the published lenk_data"):
        load_lenk()


def test_absent_path_is_named(made):
    with pytest.raises(FileNotFoundError, match=r"no file .*gone.*path= the file lenk_data.mat"):
        load_lenk(made / "gone")
    (made / LENK).unlink()
    with pytest.raises(FileNotFoundError, match=LENK):
        load_lenk(made)


def test_wrong_content_is_named(made):
    (made / LENK).write_bytes((made / SCHOOLS).read_bytes())
    with pytest.raises(DataError, match=r"sha256 differs from [0-9a-f]{64}"):
        load_lenk(made)


def test_folder_of_the_variable_is_never_written_to(server, made, cache, tmp_path, monkeypatch):
    """Lenk is read from it; Schools is not in it, and goes to the cache."""
    folder = tmp_path / "readonly"
    folder.mkdir()
    (folder / LENK).write_bytes((made / LENK).read_bytes())
    before = (folder / LENK).stat().st_mtime_ns
    folder.chmod(0o555)
    monkeypatch.setenv("CONDMETA_DATA", str(folder))
    try:
        assert len(load_lenk()) == 180
        assert server.asked == []
        assert len(load_schools()) == 3
    finally:
        folder.chmod(0o755)
    assert listing(folder) == [LENK]
    assert (folder / LENK).stat().st_mtime_ns == before
    assert listing(cache) == [SCHOOLS]


# --- what is read ---


def test_lenk_rows_stand_by_person_training_first(made):
    people = load_lenk(made)
    train, test = lenk_table(3, 0).reshape(180, 3, 15), lenk_table(2, 1).reshape(180, 2, 15)
    first, rest = people.split_points(3, order="first")
    np.testing.assert_array_equal(first.X, train[..., :14].reshape(-1, 14))
    np.testing.assert_array_equal(rest.y, test[..., 14].ravel())
    assert people.ids.tolist() == list(range(1, 181))
    assert people.feature_names[0] == "constant"
    assert people.feature_names[-1] == "price"
    assert (people.target_name, people.task_name, people.side) == ("rating", "person", None)


def test_lenk_options(made):
    plain = load_lenk(made)
    bare = load_lenk(made, constant=False)
    np.testing.assert_array_equal(bare.X, plain.X[:, 1:])
    assert bare.feature_names == plain.feature_names[1:]
    unit = load_lenk(made, scale="rows")
    np.testing.assert_allclose(unit.X, plain.X / np.sqrt(14))
    np.testing.assert_array_equal(unit.y, plain.y)


def test_schools_cells_become_tasks(made):
    schools = load_schools(made)
    assert schools.sizes.tolist() == list(SIZES)
    assert schools.ids.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(schools[1].X, PUPILS[1].T)
    np.testing.assert_array_equal(schools[1].y, MARKS[1].ravel())
    assert len(set(schools.feature_names)) == 26
    assert schools.feature_names[3:6] == ("free_meals", "top_band", "gender")
    unit = load_schools(made, scale="rows")
    np.testing.assert_allclose(np.linalg.norm(unit.X, axis=1), 1.0)
    np.testing.assert_allclose(unit.X * np.linalg.norm(schools.X, axis=1)[:, None], schools.X)


@pytest.mark.parametrize("load", [load_lenk, load_schools])
def test_wrong_scale(made, load):
    with pytest.raises(DataError, match=r"'scale' parameter of load_\w+ must be 'none' or 'rows'"):
        load(made, scale="unit")


def test_zero_rows_stay():
    from condmeta.datasets.files import scale_rows

    np.testing.assert_array_equal(
        scale_rows(np.array([[0.0, 0], [3, 4]]), "rows", ""), [[0, 0], [0.6, 0.8]]
    )


def test_files_of_another_form_are_refused(made, monkeypatch):
    savemat(made / LENK, {"Traindata": np.ones((10, 15))})
    savemat(made / SCHOOLS, {"X": cells(PUPILS), "Y": cells(MARKS[::-1])})
    sums = {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in made.iterdir()}
    monkeypatch.setattr(files, "CHECKSUMS", sums)
    with pytest.raises(DataError, match="no table 'Traindata' with 15 columns"):
        load_lenk(made)
    with pytest.raises(DataError, match="no cells 'X'"):
        load_schools(made)


# --- the published files ---


@real_data
def test_lenk():
    people = load_lenk(REAL)
    assert people.X.shape == (3600, 14)
    assert set(people.sizes.tolist()) == {20}
    np.testing.assert_array_equal(people.X[:, 0], 1.0)
    assert set(np.unique(people.X)) == {-1.0, 1.0}
    assert set(np.unique(people.y)) == set(range(11))
    # all people rate the same 16 + 4 computers, the 16 in orders of their own
    train, test = people.split_points(16, order="first")
    computers = {frozenset(map(tuple, task.X)) for task in train}
    assert len(computers) == 1
    assert len(computers.pop()) == 16
    assert all((task.X == test[0].X).all() for task in test)
    # people pay for memory, speed and CD-ROM, and do not like to pay
    effect = dict(
        zip(people.feature_names, np.linalg.lstsq(people.X, people.y)[0].round(2), strict=True)
    )
    assert effect["price"] == -1.21
    best = sorted(effect, key=effect.get)[-4:]
    assert best == ["ram", "cpu", "cd_rom", "constant"]


@real_data
def test_schools():
    schools = load_schools(REAL)
    assert schools.X.shape == (15362, 26)
    assert len(schools) == 139
    assert (schools.sizes.min(), schools.sizes.max()) == (22, 251)
    assert (schools.y.min(), schools.y.max()) == (1, 70)
    names = np.array(schools.feature_names)
    for group in ("year", "ethnic", "school_gender", "denomination"):
        columns = [bool(re.fullmatch(rf"{group}_\d+", name)) for name in names]
        np.testing.assert_array_equal((schools.X[:, columns] == 1).sum(axis=1), 1)
    own = [np.ptp(task.X, axis=0) == 0 for task in schools]
    constant = names[np.all(own, axis=0)]
    assert constant.tolist() == [
        f"{g}_{k}" for g in ("school_gender", "denomination") for k in (1, 2, 3)
    ]
    unit = load_schools(REAL, scale="rows")
    np.testing.assert_allclose(np.linalg.norm(unit.X, axis=1), 1.0)
