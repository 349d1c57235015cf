"""A wrong environment of one's own gets a sentence that names the method and what it returns."""

import numpy as np
import pytest

import condmeta as cm
from condmeta.environments import Circle
from condmeta.errors import DataError

CIRCLE = Circle(d=2, n=4)
MAP = cm.feature_maps.CircleMap()
SAMPLE = (
    r"^Own\.sample must be a method sample\(n_tasks, random_state\) that returns a TaskSet of n_"
)


class Own:
    """An environment that passes its tasks on; tests replace single methods."""

    n = 4

    def sample(self, n_tasks, random_state=None):
        return CIRCLE.sample(n_tasks, random_state)

    def tau(self, tasks):
        return CIRCLE.tau(tasks)


def own(**members):
    """Return an environment with other members; None removes one."""
    cls = type("Own", (Own,), {name: one for name, one in members.items() if one is not None})
    for name in members:
        if members[name] is None:
            setattr(cls, name, property(lambda self: self.absent))
    return cls()


def run(environment):
    method = cm.ConditionalSGDRegressor(None, lam=1.0, meta_step=0.1)
    return cm.experiments.run(environment, {"a": method}, setting=((4, 2, 2),), seeds=1)


def guarantees(environment):
    return cm.theory.guarantees(environment, MAP, T=10, n_tasks=50)


def gap(environment):
    return cm.theory.gap(environment, n_tasks=50)


def risk(environment):
    tasks = CIRCLE.sample(3, 0)
    return cm.theory.excess_risk(environment, tasks, tasks.weights + 1, n_points=5)


def kernel(environment):
    return cm.theory.best_linear(environment, cm.kernels.GaussianKernel(), n_tasks=50)


ARRAYS = lambda self, n_tasks, random_state: [np.zeros((2, 2))] * n_tasks  # noqa: E731
POINTS = r"^Own\.sample_points must be a method sample_points\(tasks, n_points, rng\) that "
TAU = (
    r"^Own\.tau must be a method tau\(tasks\) that returns the bias of each task, an array \(T, d\)"
)


@pytest.mark.parametrize(
    ("call", "members", "sentence"),
    [
        (run, {"sample": ARRAYS}, SAMPLE + r".* It returned an object of type list\."),
        (guarantees, {"sample": ARRAYS}, SAMPLE + r".* It returned an object of type list\."),
        (run, {"sample": lambda self, n_tasks, random_state: None}, SAMPLE + r".* returned None\."),
        (run, {"sample": lambda self, n_tasks: None}, SAMPLE + ".* too many positional arguments"),
        (run, {"sample": lambda self, n_tasks, random_state: CIRCLE.sample(3, 0)},
         SAMPLE + r".* Asked for 8 tasks, it returned 3\."),
        (guarantees, {"sample": lambda self, n, random_state: CIRCLE.sample(3, 0)},
         SAMPLE + r".* Asked for 50 tasks, it returned 3\."),
        (gap, {"sample": 7}, SAMPLE + r".* There is no such method\."),
        (guarantees, {"n": None}, "^Own has no attribute 'n', the number of training points"),
        (gap, {"tau": lambda self, tasks: np.zeros((3, 3))},
         TAU + r".* Asked for \(50, 2\), it returned \(3, 3\)\."),
        (gap, {"tau": lambda self, tasks: "unknown"}, TAU + ".* It returned other values"),
        (gap, {"variances": lambda self: (1.0, 2.0, 3.0), "w_rho": np.zeros(2)},
         r"^Own\.variances must be a method variances\(\) that returns a Variances\. It returned"),
        (kernel, {"w_rho": [[1.0, 2.0]]},
         r"^Own\.w_rho must be the mean weights .* It is an array of shape \(1, 2\)\."),
        (risk, {"sample_points": lambda self, tasks, n, rng: np.zeros((3, 5, 2))},
         POINTS + r"returns X .* It returned an object of type ndarray\."),
        (risk, {"sample_points": lambda self, tasks, n, rng: (np.zeros((15, 2)), np.zeros(15))},
         POINTS + r"returns X .* Asked for \(3, 5, 2\), it returned \(15, 2\) and \(15,\)\."),
    ],
)  # fmt: skip
def test_wrong_members_are_named(call, members, sentence):
    with pytest.raises(DataError, match=sentence):
        call(own(**members))


@pytest.mark.parametrize("call", [run, guarantees, gap])
def test_a_class_is_not_an_environment(call):
    with pytest.raises(
        DataError, match=r"^Own is a class: give an environment, as Own\(\.\.\.\)\."
    ):
        call(Own)


def test_what_is_no_environment():
    with pytest.raises(DataError, match=r"with a method sample\(n_tasks, .* Got int instead"):
        run(3)


def test_a_right_one_works():
    assert run(Own()).curve("a").n_seeds == 1
    assert guarantees(Own()).conditional.value > 0
    assert gap(Own()).value == pytest.approx(cm.theory.gap(CIRCLE).value, rel=0.3)
