"""The fuzz targets reach every function of the compiled core; `make fuzz` runs them for longer."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from condmeta import engine
from condmeta.losses import LOSSES
from tools.fuzz import native

CORE = engine.compiled_core()
pytestmark = pytest.mark.skipif(CORE is None, reason="needs the compiled engine")


def test_every_function_of_the_core_is_called():
    functions = {name for name in dir(CORE) if not name.startswith("_")}
    assert functions - {"instruction_set"} == set(native.CALLS)


@pytest.mark.parametrize("name", sorted(native.CALLS))
def test_a_call_without_a_fault_is_answered(name):
    """Otherwise the target would only ever see the first check of a function."""

    @settings(max_examples=5, deadline=None, database=None, derandomize=True,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(native.calls([name]).filter(lambda call: not call.faults))
    def answered(call):
        getattr(CORE, name)(*call.arguments)

    answered()


@settings(max_examples=60, deadline=None, database=None, derandomize=True,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(st.data())
def test_calls_with_faults_answer_or_refuse(data):
    native.check(data.draw(native.calls()))


@pytest.mark.parametrize("count", [-1, 10**15 + 1, 2**63 - 1])
@pytest.mark.parametrize("name", ["online_tasks", "coin_tasks"])
def test_numbers_of_points_cannot_overflow(name, count):
    """To add points to a count of 2**63 - 1 is undefined in C++."""
    before = np.zeros((1, 2)), np.zeros((1, 2)), np.ones(1), np.array([count])
    rows = np.zeros((1, 2)), np.ones((3, 2)), np.ones(3), np.array([0, 3]), 1.0
    loss = [] if name == "coin_tasks" else [LOSSES["squared"]().native]
    with pytest.raises(ValueError, match=r"^'count' must hold numbers of points, from 0 to 10"):
        getattr(CORE, name)(*rows, *loss, *before, 1)
