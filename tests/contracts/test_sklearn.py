"""Every learner keeps scikit-learn's contract, metadata routing off and on."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from helpers import assert_same, draw_problem, make, problem_for, public_learners
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import condmeta as cm

# The tasks of these tests are few.
pytestmark = pytest.mark.filterwarnings("ignore::condmeta.errors.FewTasksWarning")

SKLEARN = tuple(map(int, sklearn.__version__.split(".")[:2]))
LEARNERS = public_learners()
each_learner = pytest.mark.parametrize("cls", LEARNERS, ids=lambda cls: cls.__name__)


@pytest.fixture
def routing():
    """Switch metadata routing on."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def fitted(cls, **params):
    problem = problem_for(cls)
    return make(cls, **params).fit(problem.X, problem.y, task=problem.task, side_info=problem.side)


EQUIVALENCES = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
WEIGHT_CHECKS = (
    "check_sample_weights_pandas_series", "check_sample_weights_not_an_array",
    "check_sample_weights_list", "check_all_zero_sample_weights_error",
    "check_sample_weights_shape", "check_sample_weights_not_overwritten", *EQUIVALENCES,
    "check_classifiers_one_label_sample_weights",
)  # fmt: skip


def expected_failures(learner) -> dict[str, str]:
    """Return the checks that a learner fails with its default parameters, and why."""
    if getattr(learner, "inner", "") == "online" and hasattr(learner, "theta"):
        return dict.fromkeys(WEIGHT_CHECKS, "the online inner algorithm refuses weights")
    if isinstance(learner, cm.ConditionalOrdinal):
        return {
            "check_classifiers_classes": "three texts have no order unless classes= gives it",
            "check_classifiers_train": "its three clusters of points lie in no order",
        }
    if getattr(learner, "lam", "") in ("cv", "auto"):
        why = "lam is chosen on rows left out by their order, each of them whole"
        return dict.fromkeys(EQUIVALENCES, why)
    return {}


@parametrize_with_checks([cls() for cls in LEARNERS], expected_failed_checks=expected_failures)
def test_estimator_checks(estimator, check):
    check(estimator)


@parametrize_with_checks([cls() for cls in LEARNERS], expected_failed_checks=expected_failures)
def test_estimator_checks_with_routing(routing, estimator, check):
    check(estimator)


GIVEN = [
    cm.ConditionalERMRegressor(lam=0.1, kappa=1.0),
    cm.IndependentRegressor(lam=0.1),
    cm.IndependentClassifier(lam=0.1),
    cm.PooledRegressor(lam=0.1),
    cm.PooledClassifier(lam=0.1, loss="hinge"),
    cm.FixedBiasRegressor(inner="batch", loss="huber"),
    cm.FixedBiasClassifier(inner="batch"),
]


@pytest.mark.parametrize("learner", GIVEN, ids=lambda learner: type(learner).__name__)
def test_weights_are_repetition_where_nothing_is_chosen(learner):
    checks = {
        check.func.__name__: (estimator, check)
        for estimator, check in estimator_checks_generator(learner)
    }
    assert set(EQUIVALENCES) <= set(checks)
    if SKLEARN < (1, 7) and type(learner) is cm.FixedBiasClassifier:
        pytest.skip("scikit-learn 1.6 gives repeated rows other classes than weighted ones")
    for name in set(WEIGHT_CHECKS) & set(checks):
        estimator, check = checks[name]
        check(estimator)


def test_all_learners_are_looked_at():
    assert {cls.__name__ for cls in LEARNERS} >= {
        "ConditionalSGDRegressor", "ConditionalSGDClassifier", "ConditionalCoinRegressor",
        "ConditionalERMRegressor",
        "ConditionalLogistic", "ConditionalCount", "ConditionalOrdinal", "ConditionalRidge",
        "IndependentRegressor",
        "IndependentClassifier", "PooledRegressor", "PooledClassifier", "FixedBiasRegressor",
        "FixedBiasClassifier", "KernelConditionalSGDRegressor",
    }  # fmt: skip


@each_learner
def test_parameters_are_the_signature_and_survive_clone(cls):
    signature = inspect.signature(cls).parameters
    learner = cls(n_jobs=2, scale="rows", fit_intercept=True, task_column=["a", "b"])
    params = learner.get_params()
    assert list(params) == sorted(signature)
    assert params["n_jobs"] == 2
    assert clone(learner).get_params() == params
    defaults = {name: p.default for name, p in signature.items()}
    assert cls().get_params() == defaults
    with pytest.raises(ValueError, match="Invalid parameter 'lamda'"):
        cls().set_params(lamda=1.0)


@each_learner
def test_fit_returns_self_and_keeps_its_input(cls):
    problem = problem_for(cls)
    before = problem.X.copy(), problem.y.copy(), problem.task.copy()
    learner = cls()
    assert learner.fit(problem.X, problem.y, task=problem.task, side_info=problem.side) is learner
    assert_same(before, (problem.X, problem.y, problem.task))


@each_learner
def test_fit_keeps_constructor_parameters(cls):
    before = cls().get_params()
    assert fitted(cls).get_params() == before


@each_learner
def test_second_fit_forgets_the_first(cls):
    other = problem_for(cls, n_tasks=3, d=2, seed=5)
    call = {"task": other.task, "side_info": other.side}
    learner = fitted(cls, random_state=0).fit(other.X, other.y, **call)
    assert_same(vars(learner), vars(make(cls, random_state=0).fit(other.X, other.y, **call)))


@each_learner
def test_pickle_predicts_the_same(cls):
    learner, problem = fitted(cls), draw_problem()
    again = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(
        again.predict(problem.X, task=problem.task), learner.predict(problem.X, task=problem.task)
    )
    assert_same(vars(again), vars(learner))


@each_learner
def test_html_repr(cls):
    html = fitted(cls, scale="rows")._repr_html_()
    assert cls.__name__ in html
    assert "scale='rows'" in repr(cls(scale="rows"))


@each_learner
def test_skops(cls):
    skops = pytest.importorskip("skops.io")
    learner, problem = fitted(cls), draw_problem()
    data = skops.dumps(learner)
    again = skops.loads(data, trusted=skops.get_untrusted_types(data=data))
    np.testing.assert_array_equal(
        again.predict(problem.X, task=problem.task), learner.predict(problem.X, task=problem.task)
    )


def test_unknown_loss_does_not_break_attribute_lookup():
    assert not hasattr(cm.ConditionalSGDClassifier(loss="nonsense"), "predict_proba")
    assert not hasattr(cm.ConditionalSGDClassifier(loss="hinge"), "predict_proba")
    assert hasattr(cm.ConditionalSGDClassifier(loss="logistic"), "predict_proba")


# -- cross-validation ------------------------------------------------------------------------------


def test_cross_validate_hands_ids_to_fit():
    problem = draw_problem(n_tasks=8)
    learner = cm.ConditionalSGDRegressor(cm.feature_maps.Identity())
    seen = cross_validate(
        learner, problem.X, problem.y, groups=problem.task, cv=GroupKFold(4),
        params={"task": problem.task, "side_info": problem.side}, scoring=_by_side(problem),
        return_estimator=True,
    )  # fmt: skip
    assert np.isfinite(seen["test_score"]).all()
    # The table went to every fold whole: tasks of the test fold are there without points.
    assert [fold.fitted_.tasks.sizes.size for fold in seen["estimator"]] == [8] * 4
    assert sum(fold.n_tasks_ for fold in seen["estimator"]) == 8 * 3


def _by_side(problem):
    """Score without ids, which scikit-learn does not hand to scorers unless it routes them."""

    def score(learner, X, y):
        return learner.theta_for(problem.side)[0, 0]

    return score


@pytest.mark.skipif(SKLEARN < (1, 8), reason="a search routes nothing to score of a pipeline")
def test_pipeline_grid_search_by_task_with_routing(routing):
    problem = draw_problem(n_tasks=8)
    call = {"task": problem.task, "side_info": problem.side}
    learner = cm.ConditionalSGDRegressor(cm.feature_maps.Identity())
    search = GridSearchCV(
        make_pipeline(StandardScaler(), learner),
        {"conditionalsgdregressor__lam": [0.1, 1.0]},
        cv=GroupKFold(4),
        error_score="raise",
    )
    search.fit(problem.X, problem.y, groups=problem.task, **call)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.predict(problem.X, **call).shape == problem.y.shape
    assert np.isfinite(search.score(problem.X, problem.y, **call))


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_pipeline_routes_ids_to_every_answer(routing, method):
    problem = draw_problem(classes=True)
    call = {"task": problem.task, "side_info": problem.side}
    pipe = Pipeline([("scale", StandardScaler()), ("learn", cm.ConditionalSGDClassifier(
        loss="logistic"))]).fit(problem.X, problem.y, **call)  # fmt: skip
    scaled = pipe["scale"].transform(problem.X)
    np.testing.assert_array_equal(
        getattr(pipe, method)(problem.X, task=problem.task),
        getattr(pipe["learn"], method)(scaled, task=problem.task),
    )


@pytest.mark.parametrize("route", [False, True])
def test_task_column_needs_no_routing(route):
    problem = draw_problem(n_tasks=8)
    frame = pd.DataFrame(problem.X, columns=["a", "b", "c"]).assign(
        store=problem.task, size=problem.side.take(problem.task.tolist()).data["s0"]
    )
    learner = cm.ConditionalSGDRegressor(task_column="store", side_columns=["size"])
    search = GridSearchCV(learner, {"lam": [0.1, 1.0]}, cv=GroupKFold(4), error_score="raise")
    with sklearn.config_context(enable_metadata_routing=route):
        search.fit(frame, problem.y, groups=frame["store"])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert list(search.best_estimator_.feature_names_in_) == ["a", "b", "c"]
    assert search.predict(frame).shape == problem.y.shape


def test_task_table_is_never_sliced(routing):
    rng = np.random.default_rng(0)
    X, y, ids = rng.normal(size=(12, 2)), rng.normal(size=12), np.arange(12)
    side = cm.TaskTable(rng.normal(size=(12, 1)), ids)  # as many tasks as rows
    learner = cm.ConditionalSGDRegressor(cm.feature_maps.Identity())
    seen = cross_validate(
        learner, X, y, cv=KFold(3), params={"task": ids, "side_info": side},
        return_estimator=True, error_score="raise",
    )  # fmt: skip
    for fold in seen["estimator"]:
        assert fold.n_tasks_ == 8
        assert sorted(fold.fitted_.tasks.ids.tolist()) == ids.tolist()
