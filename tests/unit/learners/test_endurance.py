"""Resume, threads, processes and long runs: the same bits, no error, flat memory."""

import copy
import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from sklearn.base import is_classifier

import condmeta as cm
from condmeta.errors import DataError
from tools import endurance, kill_study, stored_models

pytestmark = pytest.mark.filterwarnings("ignore::condmeta.errors.FewTasksWarning")

T, N = 12, 6
RNG = np.random.default_rng(3)
X = RNG.normal(size=(T * N, 3))
TASK = np.repeat([f"t{t}" for t in range(T)], N)
Y = X @ [1.0, 0.0, -1.0] + np.repeat(RNG.normal(size=T), N) + 0.1 * RNG.normal(size=T * N)
LABELS = np.where(np.median(Y) < Y, "yes", "no")
COUNTS = np.floor(np.exp(Y / 2))
SIDE = cm.TaskTable(RNG.normal(size=(T, 2)), ids=[f"t{t}" for t in range(T)])


def streams():
    """Return every learner of the library with `partial_fit`."""
    public = (getattr(cm, name) for name in cm.__all__)
    classes = [c for c in public if isinstance(c, type) and hasattr(c, "partial_fit")]
    assert len(classes) >= 5
    return classes


def stream(cls):
    return cls() if cls is not cm.KernelConditionalSGDRegressor else cls(kernel="gaussian")


def part(cls, lo, hi):
    rows = slice(lo * N, hi * N)
    y = COUNTS if cls is cm.ConditionalCount else LABELS if is_classifier(cls()) else Y
    given = {"task": TASK[rows], "side_info": SIDE.take([f"t{t}" for t in range(lo, hi)])}
    return X[rows], y[rows], given


RESUME = """
import pickle, sys, condmeta as cm
path, job = sys.argv[1:]
with open(job, "rb") as file:
    X, y, given = pickle.load(file)
model = cm.load(path)
model.partial_fit(X, y, **given)
model.save(path)
"""


@pytest.mark.parametrize("cls", streams(), ids=lambda cls: cls.__name__)
def test_a_stream_resumed_in_a_new_process_has_the_same_bits(cls, tmp_path):
    path, job = tmp_path / "model.condmeta", tmp_path / "job"
    whole, first = stream(cls), stream(cls)
    for lo, hi in ((0, 5), (5, 9), (9, 12)):
        rows, y, given = part(cls, lo, hi)
        whole.partial_fit(rows, y, **given)
        if lo == 0:
            first.partial_fit(rows, y, **given).save(path)
            continue
        job.write_bytes(pickle.dumps((rows, y, given)))  # our own file
        subprocess.run([sys.executable, "-c", RESUME, path, job], check=True, timeout=120)
    again = cm.load(path)
    side = SIDE.take(["t1"]).row("t1")
    assert np.array_equal(again.theta_for(side), whole.theta_for(side))
    assert np.array_equal(again.b_, whole.b_)
    given = {"task": ["new"] * 5, "side_info": {"new": side}}
    assert np.array_equal(again.predict(X[:5], **given), whole.predict(X[:5], **given))


def outcome(use, model):
    """Return the bits of an answer, or the sentence of a refusal."""
    try:
        return np.asarray(use(model)).tobytes()
    except (AttributeError, DataError) as error:
        return str(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", stored_models.names())
def test_every_kind_of_model_goes_on_from_its_file_with_the_same_bits(name, tmp_path):
    """Saved and loaded after each call: update, partial_fit, update."""
    stored, path = stored_models.stored(name), tmp_path / "model.condmeta"
    whole = copy.deepcopy(stored.model)
    stored._replace(model=whole).save(path)
    for call in ("update", "partial_fit", "update", "predict"):
        if call not in stored.uses:
            continue
        again = cm.load(path)
        assert outcome(stored.uses[call], again) == outcome(stored.uses[call], whole), call
        stored._replace(model=again).save(path)


@pytest.fixture(scope="module")
def model():
    return endurance.fitted_model(30)


def test_sixteen_threads_answer_as_one(model):
    expected = [endurance.use(model, number) for number in range(10)]
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda number: endurance.use(model, number % 10), range(160)))
    assert found == expected * 16


def test_fits_in_threads_have_the_same_bits():
    expected = endurance.fit_bytes()
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda number: endurance.fit_bytes(), range(8))) == {expected}


@pytest.mark.parametrize("n_jobs", [2, 4])
@pytest.mark.parametrize(
    "name",
    ["sgd batch", "ridge", "logistic", "kernel", "coin", "erm", "counts", "ordered",
     "ridge in context", "ridge on trees"],
)  # fmt: skip
def test_the_number_of_threads_does_not_change_a_bit(name, n_jobs):
    learner, side, y = stored_models._learners()[name]
    answers = []
    for jobs in (1, n_jobs):
        fitted = copy.deepcopy(learner).set_params(n_jobs=jobs)
        fitted.fit(stored_models.X, y, task=stored_models.TASK, side_info=side)
        answers.append(fitted.fitted_.tasks.coef.tobytes())
    assert answers[0] == answers[1]


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_joblib_workers_answer_as_one(model, backend):
    expected = [endurance.use(model, number) for number in range(3)]
    jobs = (joblib.delayed(endurance.use)(model, number) for number in range(3))
    assert joblib.Parallel(2, backend=backend)(jobs) == expected


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_a_fork_after_threads_answers_as_its_parent(model):
    """No thread of a call outlives it, so all locks are free in a child."""
    fork = multiprocessing.get_context("fork")
    expected = endurance.fit_bytes(n_jobs=4), endurance.use(model, 0)
    answers = fork.SimpleQueue()

    def answer():
        answers.put((endurance.fit_bytes(n_jobs=4), endurance.use(model, 0)))

    children = [fork.Process(target=answer) for _ in range(3)]
    for child in children:
        child.start()
    assert [answers.get() for _ in children] == [expected] * 3
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0, 0, 0]


def test_memory_stays_flat():
    """The short form of `tools/endurance.py leaks`."""
    assert endurance.leaks(3000).share < 0.01


def test_traffic_leaves_the_state_of_the_same_updates():
    """The short form of `tools/endurance.py load`."""
    seen = endurance.load(seconds=2.0, tasks=600, threads=4)
    assert seen.errors == []
    assert seen.updates > 0
    assert seen.same_state


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_fit_of_files_ends_with_the_same_model():
    """The short form of tools/kill_study.py --fits 10."""
    pytest.importorskip("duckdb")
    assert sum(kill_study.study_fits(2, seed=1, tasks=300).values()) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_save_leaves_a_whole_file():
    """The short form of tools/kill_study.py."""
    counts = kill_study.study_kills(6, seed=0, names=["save"])
    assert counts["save"]["old"] + counts["save"]["new"] == 6
