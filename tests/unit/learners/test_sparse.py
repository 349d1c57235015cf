"""Sparse X: kept by `ConditionalRidge` of many columns, made dense by other learners."""

import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_array
from scipy.sparse import random as random_rows

import condmeta as cm
from condmeta.errors import DataError, ModelFileError
from condmeta.learners import call_columns
from condmeta.tasks.sparse_rows import SparseRows, read_sparse

T, N, D = 40, 12, 150
rng = np.random.default_rng(0)
X = random_rows(T * N, D, 0.08, format="csr", random_state=0, data_rvs=rng.standard_normal)
TASK = np.repeat(np.arange(T), N)
Y = X @ rng.normal(size=D) + 2 * rng.normal(size=T)[TASK] + 0.3 * rng.normal(size=T * N)


@pytest.fixture(scope="module")
def model():
    return cm.ConditionalRidge().fit(X, Y, task=TASK)


def test_rows_do_what_arrays_do():
    rows, dense = read_sparse(csc_matrix(X)), X.toarray()
    weight = rng.random(T * N)
    mean = np.average(dense, axis=0, weights=weight)
    spread = np.sqrt(np.average((dense - mean) ** 2, axis=0, weights=weight))
    np.testing.assert_allclose(rows.moments(weight), [mean, spread], atol=1e-12)
    np.testing.assert_allclose(rows.moments(None)[1], dense.std(axis=0), atol=1e-12)
    ones = np.hstack([dense, np.ones((T * N, 1))])
    np.testing.assert_array_equal(rows.with_ones().toarray(), ones)
    np.testing.assert_array_equal(rows.times(np.arange(D)).toarray(), dense * np.arange(D))
    assert isinstance(rows[3:9], SparseRows)


def test_it_stays_sparse_and_predicts_dense_rows_alike(model):
    assert isinstance(model.fitted_.state.X, SparseRows)
    expected = model.predict(X, task=TASK)
    np.testing.assert_allclose(model.predict(X.toarray(), task=TASK), expected)
    np.testing.assert_allclose(model.predict(X, task=TASK, return_std=True)[0], expected)
    dense = cm.ConditionalRidge().fit(X.toarray(), Y, task=TASK)  # centres its columns
    np.testing.assert_allclose(dense.predict(X, task=TASK), dense.predict(X.toarray(), task=TASK))
    assert np.corrcoef(dense.predict(X, task=TASK), expected)[0, 1] > 0.999


def test_every_method_takes_it(model, tmp_path):
    one = model.adapt(X[:5], Y[:5])
    np.testing.assert_allclose(one.predict(X[5:9]), one.predict(X[5:9].toarray()))
    many = model.adapt(X, Y, task=TASK)
    np.testing.assert_allclose(many.predict(X, task=TASK), model.predict(X, task=TASK))
    model.save(tmp_path / "a.condmeta")
    again = cm.load(tmp_path / "a.condmeta")
    np.testing.assert_array_equal(again.predict(X, task=TASK), model.predict(X, task=TASK))
    again.update(X[:5], Y[:5], task=[99] * 5).update(X[:2], Y[:2], task=TASK[:2])
    again.partial_fit(X[:N], Y[:N], task=["new"] * N)
    assert np.isfinite(again.predict(X[:2], task=["new", 99])).all()
    assert cm.check(model, X, Y, task=TASK).verdict
    weight = np.full(T * N, 2.0)
    weighted = cm.ConditionalRidge().fit(X, Y, task=TASK, sample_weight=weight)
    assert np.corrcoef(weighted.predict(X, task=TASK), model.predict(X, task=TASK))[0, 1] > 0.99
    assert cm.TaskSet.from_arrays(X, Y, TASK).to_frame().shape == (T * N, D + 2)


@pytest.mark.parametrize("cls", [cm.PooledRegressor, cm.IndependentRegressor])
def test_other_learners_read_dense_rows(cls):
    found = cls(lam=0.1).fit(X, Y, task=TASK).predict(X, task=TASK)
    expected = cls(lam=0.1).fit(X.toarray(), Y, task=TASK).predict(X.toarray(), task=TASK)
    np.testing.assert_allclose(found, expected)


def test_comparisons_take_it():
    learners = {"pooled": cm.PooledRegressor(lam=0.1), "ridge": cm.ConditionalRidge()}
    found = cm.compare(X, Y, task=TASK, learners=learners, shots=(0, 5))
    assert found.best[5] == "ridge"


def test_huge_labels_and_numbers():
    huge = cm.ConditionalRidge(metric="diagonal", noise="shared").fit(X, 1e200 * Y, task=TASK)
    plain = cm.ConditionalRidge(metric="diagonal", noise="shared").fit(X, Y, task=TASK)
    expected = plain.predict(X, task=TASK)
    np.testing.assert_allclose(huge.predict(X, task=TASK) / 1e200, expected, rtol=1e-4, atol=1e-4)
    far = X.copy()
    far.data[7] = 1e300
    with pytest.raises(DataError, match=f"has 1e\\+300 in feature {far.indices[7]} of X"):
        plain.update(far[:N], Y[:N], task=TASK[:N])
    with_far = cm.ConditionalRidge(metric="diagonal", noise="shared").fit(far, Y, task=TASK)
    assert np.isfinite(with_far.predict(X, task=TASK)).all()


def test_gaps_are_named():
    bad = X.copy()
    bad.data[200] = np.nan
    row = int(np.searchsorted(bad.indptr, 200, side="right") - 1)
    sentence = f"Task {TASK[row]} has NaN in feature {bad.indices[200]} of X"
    with pytest.raises(DataError, match=sentence):
        cm.ConditionalRidge().fit(bad, Y, task=TASK)


def test_rows_that_would_not_fit_into_memory_are_refused(monkeypatch):
    monkeypatch.setattr(call_columns, "MOST_DENSE", 1000)
    with pytest.raises(
        DataError, match="PooledRegressor needs a dense X, and 480 x 150 dense numbers"
    ):
        cm.PooledRegressor().fit(X, Y, task=TASK)


def test_a_file_with_wrong_positions_is_refused():
    from condmeta.persistence import decode, encode

    value, arrays = encode(read_sparse(csr_array(np.eye(3))))
    broken = [np.where(a == 2, 77, a) if a.dtype.kind == "i" and len(a) == 3 else a for a in arrays]
    with pytest.raises((ModelFileError, ValueError)):
        decode(value, broken)
